"""The run folder: everything about one run, readable without archlang.

recipe.arch       the program, unchanged; files that it uses are copied beside it
plugins/          copies of the user's own Python files
run.json          the recipe's name, the task, every resolved setting, the seed, the precision, the claims,
                  the digests of the plugins, the trackers
vocabulary.json   the fields, the words and the classes that the model reads and answers
data.json         for each split its number of samples, the values of its groups, and its digest
graph.txt         the typed graph that is trained; graph_at_test.txt the one that is tested
versions.json     archlang, Python, torch and the machine
metrics.jsonl     a line for each logged step and each evaluation; the same for the same seed, bit for bit
timings.jsonl     seconds and steps per second of the same lines
tensorboard/      the same curves as TensorBoard events, with the extra `tensorboard`
checkpoints/      weights and everything else that resuming needs
results.json      the final measurements, with the claims
"""

import hashlib
import os
import os.path
import platform
import sys
import warnings
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import BinaryIO

import torch
from pydantic import BaseModel

from archlang.disk import package
from archlang.disk.folder import Folder, is_unfinished
from archlang.disk.limits import LARGEST_JSON
from archlang.errors import Source
from archlang.graph.facts import UNKNOWN
from archlang.graph.graph import Graph
from archlang.graph.text import print_graph
from archlang.plan.plan import Plan
from archlang.plugins import COPIES
from archlang.train.record import mistakes, reading, schemas
from archlang.train.record.curves import Curves, Tracker
from archlang.train.record.mistakes import RunError, RunWarning, disk_errors_as
from archlang.train.record.schemas import VERSIONS, ResumedRecord, SoftwareRecord, VersionsRecord

_BLOCK = 1 << 20
# What the bits of a result may depend on. The name of the system and the number of cores are not among it.
_COMPARED = ("archlang", "torch", "python", "machine", "processor", "device", "gpus", "steps", "threads")
_PACKAGE = package.FOLDER.resolve()
# The folder of copies whose originals are not below the program's folder.
_ELSEWHERE = "elsewhere"


def used_files(plan: Plan) -> dict[str, str]:
    """Returns the texts of the files that a program uses, and of the plugins, by their paths in the run folder. The
    program can be trained from copies of these files."""
    graphs = (plan.graph, plan.at_test)
    spans = [instance.span for graph in graphs for instance in graph.instances.values()]
    spans += [node.span for graph in graphs for node in graph.region.walk()]
    texts = stored_files(plan.source, (*plan.used, *(span.source for span in spans if span is not None)))
    texts |= {f"{COPIES}/{plugin.name}": plugin.text for plugin in plan.plugins.files}
    for name in texts:
        first = name.partition("/")[0]
        # Some file systems do not distinguish upper from lower case.
        if first.casefold() in reading.RESERVED or is_unfinished(first):
            raise mistakes.name_taken(plan.source.path, name)
    return texts


def stored_files(program: Source, used: Iterable[Source]) -> dict[str, str]:
    """Returns the texts of the used files that are neither the program nor in the library, by their paths relative to
    the program."""
    program_folder = os.path.dirname(os.path.abspath(program.path))
    texts: dict[str, str] = {}
    for source in used:
        path = os.path.abspath(source.path)
        if source.path == program.path or _is_library(Path(path)):
            continue
        name = os.path.relpath(path, program_folder).replace(os.sep, "/")
        if name.startswith("../") or name.casefold() == reading.RECIPE:
            name = f"{_ELSEWHERE}/{name.replace('../', '')}"
            while texts.get(name, source.text) != source.text:
                name = name.replace("/", "/other/", 1)
        texts[name] = source.text
    return texts


def _is_library(path: Path) -> bool:
    # In a checkout, `blocks` is a link: a path may have its name or its target.
    library = _PACKAGE / "blocks"
    return path.is_relative_to(library) or path.is_relative_to(library.resolve())


def with_resumption(recorded: VersionsRecord, step: int, now: VersionsRecord) -> tuple[VersionsRecord, str]:
    """Returns the record of a run that this process resumes at `step`, and what has changed since the run last began or
    resumed, in words. Nothing is recorded if nothing has changed."""
    changes = _changes(recorded.resumed[-1] if recorded.resumed else recorded, now)
    if not changes:
        return recorded, ""
    resumption = ResumedRecord(step=step, **now.model_dump(exclude={"resumed"}))
    return recorded.model_copy(update={"resumed": (*recorded.resumed, resumption)}), changes


def recorded_threads(folder: Path) -> int | None:
    """Returns the number of threads with which the run of a folder was last computed; None if that is unknown."""
    record = _recorded_versions(folder)
    return None if record is None else (record.resumed[-1] if record.resumed else record).threads


def _recorded_versions(folder: Path) -> VersionsRecord | None:
    try:
        return reading.read_record(folder, VERSIONS, VersionsRecord) if reading.has(folder, VERSIONS) else None
    except RunError:
        return None


def read_history(folder: Path) -> tuple[str, ...]:
    """Returns a sentence for the beginning of a run, and for each time that it was resumed with other software or on
    another machine; none if `versions.json` is missing or damaged."""
    record = _recorded_versions(folder)
    if record is None:
        return ()
    sentences = [
        f"begun with archlang {record.archlang}, torch {record.torch}, Python {record.python} on {record.device}"
    ]
    before: SoftwareRecord = record
    for resumption in record.resumed:
        sentences.append(f"resumed at step {resumption.step} with {_changes(before, resumption)}")
        before = resumption
    return tuple(sentences)


def _changes(before: SoftwareRecord, now: SoftwareRecord) -> str:
    values = ((name, getattr(before, name), getattr(now, name)) for name in _COMPARED)
    return ", ".join(f"{name} {_text(new)} instead of {_text(old)}" for name, old, new in values if old != new)


def _text(value: object) -> str:
    text = ", ".join(map(str, value)) if isinstance(value, tuple) else str(value)
    return text or "none"


def this_process(device: torch.device, steps: str = "") -> schemas.VersionsRecord:
    """Returns the software and the machine of this process, and how its steps run."""
    return schemas.VersionsRecord(
        archlang=package.VERSION,
        python=sys.version.split()[0],
        torch=str(torch.__version__),
        machine=platform.machine(),
        system=platform.platform(),
        processor=platform.processor(),
        cores=os.cpu_count(),
        threads=torch.get_num_threads(),
        device=str(device),
        steps=steps,
        gpus=tuple(torch.cuda.get_device_name(index) for index in range(torch.cuda.device_count())),
    )


class RunFolder:
    """A run folder that is being written: lines are appended, files are replaced atomically."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._curves = Curves(folder / reading.CURVES)
        self.trackers: list[Tracker] = [self._curves]
        self._lock: BinaryIO | None = None
        self.steps = ""
        """how steps run on a GPU: as CUDA graphs, or why not"""

    def check(self, plan: Plan, precision: str) -> bool:
        """Returns whether the folder already holds this run. Changes nothing."""
        leftovers = {**dict.fromkeys(reading.FIRST), **used_files(plan)}
        with disk_errors_as(mistakes.not_written, self.folder):
            try:
                with Folder.open(self.folder) as folder:
                    for name in reading.RESERVED:
                        folder.require_plain(name)
                    holds_run = folder.has(schemas.RUN)
                    if not holds_run and not _holds_only(leftovers, folder):
                        raise mistakes.not_empty(self.folder, "holds other files")
            except FileNotFoundError:
                holds_run = False
            except NotADirectoryError:
                if self.folder.exists():
                    raise mistakes.not_empty(self.folder, "is a file") from None
                raise
        if holds_run:
            self._require_same_run(plan, precision)
        return holds_run

    def begin(
        self,
        plan: Plan,
        precision: str,
        data: schemas.DataRecord,
        input_format: BaseModel,
        device: torch.device,
        track: Sequence[str] = (),
        start: schemas.StartRecord | None = None,
    ) -> bool:
        """Creates the folder, or opens it if it holds the same run, and locks it. Returns whether it held the run.
        `track` are the names of its trackers, and `start` the weights with which it begins.

        Raises:
            RunError: The folder holds another run or other files, another process uses it, or it cannot be written.
                Nothing is changed then."""
        self.check(plan, precision)
        created = [path for path in (self.folder, *self.folder.parents) if not path.exists()]
        files = {
            reading.RECIPE: plan.source.text,
            reading.GRAPH: print_graph(plan.graph),
            reading.GRAPH_AT_TEST: print_graph(plan.at_test),
            schemas.VERSIONS: schemas.json_text(this_process(device, self.steps)),
            schemas.DATA: schemas.json_text(data),
            schemas.VOCABULARY: schemas.json_text(input_format),
            **({} if start is None else {schemas.START: schemas.json_text(start)}),
            **used_files(plan),
            # The last file: a folder that has it holds a run.
            schemas.RUN: schemas.json_text(schemas.RunRecord.of(plan, precision, track)),
        }
        try:
            with disk_errors_as(mistakes.not_written, self.folder), Folder.create(self.folder) as folder:
                existing = folder.names()
                try:
                    self._lock = folder.lock(reading.LOCK)
                except BlockingIOError:
                    raise mistakes.in_use(self.folder) from None
                folder.remove_unfinished()
            if self.check(plan, precision):
                self._require_same_data(data)
                return True
            try:
                for name, text in files.items():
                    self.write(name, text)
            except BaseException:
                with suppress(OSError), Folder.open(self.folder) as folder:
                    for name in {name.partition("/")[0] for name in (*files, reading.LOCK)}.difference(existing):
                        folder.remove(name)
                raise
        except BaseException:
            self.close()
            for path in created:
                # A folder that other processes have used in the meantime is not empty and stays.
                with suppress(OSError):
                    path.rmdir()
            raise
        return False

    def _require_same_run(self, plan: Plan, precision: str) -> None:
        """Refuses a run with other settings or another graph."""
        # The texts of the programs may differ, as in a comment or an unrelated recipe.
        old, new = (
            reading.read_record(self.folder, schemas.RUN, schemas.RunRecord),
            schemas.RunRecord.of(plan, precision),
        )
        for name in ("recipe", "model", "seed", "precision"):
            before, now = getattr(old, name), getattr(new, name)
            if before != now:
                raise mistakes.another_run(self.folder, f"its {name} is `{before}`, not `{now}`")
        for name in sorted({*old.settings, *new.settings}):
            if old.settings.get(name) != new.settings.get(name):
                raise mistakes.another_run(self.folder, f"its `{name}` differs")
        plan.plugins.require_recorded(old.plugins, self.folder, self.folder / COPIES)
        for name, graph in ((reading.GRAPH, plan.graph), (reading.GRAPH_AT_TEST, plan.at_test)):
            if _computation(reading.read_graph(self.folder, name)) != _computation(graph):
                raise mistakes.another_run(self.folder, "its program means another model")

    def _require_same_data(self, data: schemas.DataRecord) -> None:
        recorded = reading.read_record(self.folder, schemas.DATA, schemas.DataRecord)
        for name, split in data.root.items():
            if recorded.root.get(name) != split:
                old = recorded.root.get(name)
                stream = f", read from {old.stream}; it resumes once these are restored" if old and old.stream else ""
                raise mistakes.another_run(self.folder, f"its {name} split held other items{stream}")

    def write(self, name: str, text: str) -> None:
        """Writes a text file atomically."""
        with disk_errors_as(mistakes.not_written, self.folder / name), Folder.open(self.folder) as folder:
            parent, _, last = name.rpartition("/")
            if not parent:
                folder.write(name, text)
                return
            with folder.folder(parent, create=True) as inner:
                inner.remove_unfinished()
                inner.write(last, text)

    def write_json(self, name: str, value: BaseModel) -> None:
        """Writes a JSON file atomically."""
        self.write(name, schemas.json_text(value))

    def append(self, name: str, line: BaseModel) -> None:
        """Appends a line to a JSON lines file."""
        with disk_errors_as(mistakes.not_written, self.folder / name), Folder.open(self.folder) as folder:
            folder.append(name, schemas.json_line(line))

    def sizes(self) -> dict[str, int]:
        """Returns the sizes of the JSON lines files in bytes, flushed to disk, for a checkpoint."""
        with disk_errors_as(mistakes.not_written, self.folder), Folder.open(self.folder) as folder:
            names = (schemas.METRICS, schemas.TIMINGS)
            return {name: folder.flushed_size(name) for name in names if folder.has_file(name)}

    def note_resumption(self, step: int, device: torch.device) -> None:
        """Records and warns if another torch, Python, archlang or machine than before resumes the run at `step`."""
        try:
            recorded = reading.read_record(self.folder, schemas.VERSIONS, schemas.VersionsRecord)
        except mistakes.RunMachineError:
            raise
        except mistakes.RunError as error:
            warnings.warn(f"{error.message}: what the run began with is unknown", RunWarning, stacklevel=2)
            return
        record, changes = with_resumption(recorded, step, this_process(device, self.steps))
        if changes:
            self.write_json(schemas.VERSIONS, record)
            message = f"the run resumes with {changes}; its results may differ from those of an undisturbed run"
            warnings.warn(message, RunWarning, stacklevel=2)

    def digests(self, sizes: Mapping[str, int]) -> dict[str, str]:
        """Returns the SHA-256 of the first bytes of `metrics.jsonl`, as many as `sizes` says, for a checkpoint."""
        with disk_errors_as(mistakes.not_read, self.folder), Folder.open(self.folder) as folder:
            name = schemas.METRICS
            return {name: _digest(folder, name, sizes[name])} if name in sizes and folder.has_file(name) else {}

    def require_lines(self, sizes: Mapping[str, int], digests: Mapping[str, str], step: int) -> None:
        """Compares `metrics.jsonl` with what the checkpoint of `step` has recorded. A missing file is no error: the run
        resumes without its earlier lines. Changes nothing."""
        for name, digest in self.digests({name: sizes.get(name, 0) for name in digests}).items():
            if digest != digests[name]:
                raise mistakes.lines_differ(self.folder / name, step)

    def truncate(self, sizes: Mapping[str, int], step: int = 0) -> None:
        """Truncates the JSON lines files and the curves to what they were at the checkpoint of `step`."""
        self._curves.purge_step = step + 1
        with disk_errors_as(mistakes.not_written, self.folder), Folder.open(self.folder) as folder:
            for name in (schemas.METRICS, schemas.TIMINGS):
                size = sizes.get(name, 0)
                if (folder.size(name) if folder.has_file(name) else -1) >= size:
                    folder.truncate(name, size)
                elif size:
                    warnings.warn(f"{self.folder / name} has lost lines", RunWarning, stacklevel=2)

    def scalars(self, step: int, values: Mapping[str, float]) -> None:
        """Adds points to the curves of TensorBoard and of the trackers."""
        for tracker in self.trackers:
            tracker.add(step, values)

    def close(self) -> None:
        """Closes the curves and releases the lock."""
        for tracker in self.trackers:
            tracker.close()
        if self._lock is not None:
            self._lock.close()
            self._lock = None


def _digest(folder: Folder, name: str, size: int) -> str:
    digest = hashlib.sha256()
    with folder.open_file(name) as file:
        while size and (block := file.read(min(size, _BLOCK))):
            digest.update(block)
            size -= len(block)
    return digest.hexdigest()


def _computation(graph: Graph) -> Graph:
    """Returns a graph without facts that describe its computation: another version may write others."""
    instances = {
        path: replace(instance, costs=UNKNOWN, maps=(), records=()) for path, instance in graph.instances.items()
    }
    return replace(graph, instances=instances)


def _holds_only(texts: Mapping[str, str | None], folder: Folder) -> bool:
    """Returns whether a folder holds nothing but files of these paths and texts, or of any text for None, and temporary
    files: what a run that was killed before it began may have left."""
    for name in folder.names():
        below = {path.removeprefix(f"{name}/"): text for path, text in texts.items() if path.startswith(f"{name}/")}
        if name in texts:
            text = texts[name]
            if text is not None and folder.read(name, LARGEST_JSON) != text.encode():
                return False
        elif below and folder.has_folder(name):
            with folder.folder(name) as inner:
                if not _holds_only(below, inner):
                    return False
        elif not is_unfinished(name):
            return False
    return True
