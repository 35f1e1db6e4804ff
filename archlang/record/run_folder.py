"""The run folder: everything about one run, readable without archlang.

recipe.arch       the program, unchanged; files that it uses are copied beside it
run.json          the recipe's name, the task, every resolved setting, the seed, the precision, the claims
data.json         for each split its number of samples, the values of its groups, and its digest
graph.txt         the typed graph that is trained; graph_at_test.txt the one that is tested
versions.json     archlang, Python, torch and the machine
metrics.jsonl     a line for each logged step and each evaluation; the same for the same seed, bit for bit
timings.jsonl     seconds and steps per second of the same lines
tensorboard/      the same curves as TensorBoard events
checkpoints/      weights and everything else that resuming needs
results.json      the final measurements, with the claims
"""

import os
import platform
import sys
import warnings
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import IO

import torch
from pydantic import BaseModel

import archlang
from archlang.files.atomic import is_unfinished, remove_unfinished, write_atomically
from archlang.files.os_errors import os_errors_as
from archlang.graph.facts import UNKNOWN
from archlang.graph.graph import Graph
from archlang.graph.text import print_graph
from archlang.plan.plan import Plan
from archlang.record import mistakes, schemas
from archlang.record.reading import GRAPH, GRAPH_AT_TEST, LOCK, RECIPE, read_graph, read_record
from archlang.record.tensorboard import Curves
from archlang.record.trackers import Tracker
from archlang.record.used_files import used_files

# A run that was killed before it began may have left these files.
_FIRST_FILES = (RECIPE, GRAPH, GRAPH_AT_TEST, schemas.VERSIONS, schemas.DATA, LOCK)


class RecordWarning(UserWarning):
    """A part of the record was lost; the run continues."""


def versions(device: torch.device) -> schemas.VersionsRecord:
    """Returns the software and the machine of this process."""
    return schemas.VersionsRecord(
        archlang=archlang.__version__,
        python=sys.version.split()[0],
        torch=str(torch.__version__),
        machine=platform.machine(),
        system=platform.platform(),
        processor=platform.processor(),
        cores=os.cpu_count(),
        threads=torch.get_num_threads(),
        device=str(device),
        gpus=tuple(torch.cuda.get_device_name(index) for index in range(torch.cuda.device_count())),
    )


class Record:
    """A run folder that is being written: lines are appended, files are replaced atomically."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._curves = Curves(folder / "tensorboard")
        self.trackers: list[Tracker] = []
        self._lock: IO[str] | None = None

    def check(self, plan: Plan, precision: str) -> bool:
        """Returns whether the folder already holds this run. Changes nothing.

        Raises:
            RunError: The folder holds another run or other files."""
        if (self.folder / schemas.RUN).exists():
            self._require_same_run(plan, precision)
            return True
        with os_errors_as(mistakes.not_written, self.folder):
            names = os.listdir(self.folder) if self.folder.is_dir() else []
            if (self.folder.exists() and not self.folder.is_dir()) or not all(map(_may_be_left, names)):
                raise mistakes.not_empty(self.folder)
        return False

    def begin(self, plan: Plan, precision: str, data: schemas.DataRecord, device: torch.device) -> bool:
        """Creates the folder, or opens it if it holds the same run, and locks it. Returns whether it held the run.

        Raises:
            RunError: The folder holds another run or other files, another process uses it, or it cannot be written.
                Nothing is changed then."""
        self.check(plan, precision)
        created = [folder for folder in (self.folder, *self.folder.parents) if not folder.exists()]
        files = {
            RECIPE: plan.source.text,
            GRAPH: print_graph(plan.graph),
            GRAPH_AT_TEST: print_graph(plan.at_test),
            schemas.VERSIONS: schemas.json_text(versions(device)),
            schemas.DATA: schemas.json_text(data),
            **used_files(plan),
            # The last file: a folder that has it holds a run.
            schemas.RUN: schemas.json_text(schemas.RunRecord.of(plan, precision)),
        }
        try:
            with os_errors_as(mistakes.not_written, self.folder):
                self.folder.mkdir(parents=True, exist_ok=True)
                self._acquire_lock()
            remove_unfinished(self.folder, "*.part")
            if self.check(plan, precision):
                self._require_same_data(data)
                return True
            try:
                for name, text in files.items():
                    self.write(name, text)
            except BaseException:
                for name in (*files, LOCK):
                    (self.folder / name).unlink(missing_ok=True)
                raise
        except BaseException:
            self.close()
            for folder in created:
                # A folder that other processes have used in the meantime is not empty and stays.
                with suppress(OSError):
                    folder.rmdir()
            raise
        return False

    def _acquire_lock(self) -> None:
        """Locks the folder until this process ends, however it ends."""
        try:
            import fcntl
        except ImportError:  # Windows
            return
        self._lock = (self.folder / LOCK).open("w")
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise mistakes.in_use(self.folder) from None
        except OSError:
            pass  # a file system without locks

    def _require_same_run(self, plan: Plan, precision: str) -> None:
        """Compares settings and graphs. The program's text may differ, as in a comment or an unrelated recipe."""
        old, new = read_record(self.folder, schemas.RUN, schemas.RunRecord), schemas.RunRecord.of(plan, precision)
        for name in ("recipe", "model", "seed", "precision"):
            before, now = getattr(old, name), getattr(new, name)
            if before != now:
                raise mistakes.another_run(self.folder, f"its {name} is `{before}`, not `{now}`")
        for name in sorted({*old.settings, *new.settings}):
            if old.settings.get(name) != new.settings.get(name):
                raise mistakes.another_run(self.folder, f"its `{name}` differs")
        for name, graph in ((GRAPH, plan.graph), (GRAPH_AT_TEST, plan.at_test)):
            if _computation(read_graph(self.folder, name)) != _computation(graph):
                raise mistakes.another_run(self.folder, "its program means another model")

    def _require_same_data(self, data: schemas.DataRecord) -> None:
        recorded = read_record(self.folder, schemas.DATA, schemas.DataRecord)
        for name, split in data.root.items():
            if recorded.root.get(name) != split:
                raise mistakes.another_run(self.folder, f"its {name} split held other items")

    def write(self, name: str, text: str) -> None:
        """Writes a text file atomically.

        Raises:
            RunError: The file cannot be written."""
        path = self.folder / name
        with os_errors_as(mistakes.not_written, path):
            path.parent.mkdir(parents=True, exist_ok=True)
            write_atomically(path, text)

    def write_json(self, name: str, value: BaseModel) -> None:
        """Writes a JSON file atomically.

        Raises:
            RunError: The file cannot be written."""
        self.write(name, schemas.json_text(value))

    def append(self, name: str, line: BaseModel) -> None:
        """Appends a line to a JSON lines file.

        Raises:
            RunError: The file cannot be written."""
        path = self.folder / name
        with os_errors_as(mistakes.not_written, path), path.open("a", encoding="utf-8", newline="\n") as file:
            file.write(schemas.json_line(line))

    def sizes(self) -> dict[str, int]:
        """Returns the sizes of the JSON lines files in bytes, flushed to disk, for a checkpoint."""
        sizes = {}
        for name in (schemas.METRICS, schemas.TIMINGS):
            path = self.folder / name
            if path.exists():
                with os_errors_as(mistakes.not_written, path), path.open("rb") as file:
                    os.fsync(file.fileno())
                    sizes[name] = os.fstat(file.fileno()).st_size
        return sizes

    def truncate(self, sizes: Mapping[str, int], step: int = 0) -> None:
        """Truncates the JSON lines files and the curves to what they were at the checkpoint of `step`.

        Raises:
            RunError: A file cannot be written."""
        self._curves.purge_step = step + 1
        for name in (schemas.METRICS, schemas.TIMINGS):
            path, size = self.folder / name, sizes.get(name, 0)
            if not path.exists() or path.stat().st_size < size:
                if size:
                    warnings.warn(f"{path} has lost lines", RecordWarning, stacklevel=2)
                continue
            with os_errors_as(mistakes.not_written, path), path.open("r+b") as file:
                file.truncate(size)

    def scalars(self, step: int, values: Mapping[str, float]) -> None:
        """Adds points to the curves of TensorBoard and of the trackers."""
        self._curves.add(step, values)
        for tracker in self.trackers:
            tracker.add(step, values)

    def close(self) -> None:
        """Closes the curves and releases the lock."""
        self._curves.close()
        for tracker in self.trackers:
            tracker.close()
        if self._lock is not None:
            self._lock.close()
            self._lock = None


def _computation(graph: Graph) -> Graph:
    """Returns a graph without facts that describe its computation: another version may write others."""
    instances = {
        path: replace(instance, costs=UNKNOWN, maps=(), records=()) for path, instance in graph.instances.items()
    }
    return replace(graph, instances=instances)


def _may_be_left(name: str) -> bool:
    """Returns whether a run that was killed before it began may have left this file."""
    return name in _FIRST_FILES or is_unfinished(name)
