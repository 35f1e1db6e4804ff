"""The run folder: everything about one run, readable without archlang.

recipe.arch       the program, exactly as it was; files beside it that it uses stand beside it here too
run.json          the recipe's name, the task, every resolved setting, the seed, the precision, the claims
data.json         for each split how many items it has, of which groups, and a digest of them all
graph.txt         the typed graph that was trained; graph_at_test.txt that which is tested
versions.json     archlang, python, torch and the machine
metrics.jsonl     a line for each logged step and each evaluation; the same for the same seed, bit for bit
timings.jsonl     the seconds and steps per second of the same lines
tensorboard/      the same curves as TensorBoard events
checkpoints/      weights and everything else that the run goes on from
results.json      what was measured in the end, with the claims
"""

from __future__ import annotations

import json
import math
import os
import platform
import sys
import warnings
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

import torch

import archlang
from archlang.files.atomic import is_unfinished, remove_unfinished, write_atomically
from archlang.files.os_errors import os_errors_as
from archlang.graph.graph import Graph
from archlang.graph.text import parse_graph, print_graph
from archlang.plan.plan import BoundExtern, Plan, PublishedResult
from archlang.record import mistakes
from archlang.record.sources import used_files
from archlang.record.tensorboard import Curves
from archlang.record.trackers import Tracker
from archlang.source import Source
from archlang.types.statics import InstanceOf, Interval, StaticValue, Symbol

_RUN, _DATA, _LOCK = "run.json", "data.json", ".lock"
_GRAPH, _GRAPH_AT_TEST = "graph.txt", "graph_at_test.txt"
_LINES = ("metrics.jsonl", "timings.jsonl")
# What a folder may hold in which a run was killed before it had begun.
_FIRST = ("recipe.arch", _GRAPH, _GRAPH_AT_TEST, "versions.json", _DATA, _LOCK)


class RecordWarning(UserWarning):
    """Something of a record was lost; the run itself goes on."""


# A run as JSON


def encode(value: StaticValue) -> Any:  # Any: JSON
    """A static as JSON that `decode` reads back."""
    match value:
        case Symbol(text=text):
            return {"symbol": text}
        case Interval(low=low, high=high):
            return {"range": [low, high]}
        case InstanceOf(path=path):
            return {"instance": path}
        case tuple():
            return [encode(item) for item in value]
    return value


def decode(value: Any) -> StaticValue:  # Any: JSON
    match value:
        case {"symbol": str(text)}:
            return Symbol(text)
        case {"range": [int(low), int(high)]}:
            return Interval(low, high)
        case {"instance": str(path)}:
            return InstanceOf(path)
        case list():
            return tuple(decode(item) for item in value)
        case bool() | int() | float() | str():
            return value
    raise ValueError(f"{value!r} is no static")


def json_text(value: Mapping[str, Any]) -> str:  # Any: JSON
    """A value as it stands in a run folder."""
    return json.dumps(_finite(value), indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def _finite(value: Any) -> Any:  # Any: JSON
    """JSON has no NaN: what was not measured is null."""
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, Mapping):
        return {str(name): _finite(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    return value


def describe(plan: Plan, precision: str) -> dict[str, Any]:  # Any: JSON
    """`run.json`: what a run is, apart from its program."""
    return {
        "recipe": plan.recipe,
        "model": plan.model,
        "seed": plan.seed,
        "precision": precision,
        "task": {
            "name": plan.task.name,
            "python": plan.task.python,
            "statics": {name: encode(value) for name, value in plan.task.statics.items()},
        },
        "gives": dict(plan.gives),
        "train": {
            "name": plan.train.name,
            "python": plan.train.python,
            "statics": {name: encode(value) for name, value in plan.train.statics.items()},
        },
        "settings": {name: encode(value) for name, value in plan.settings.items()},
        "claims": [
            {
                "metric": claim.metric,
                "index": claim.index,
                "value": claim.value,
                "deviation": claim.deviation,
                "at": {name: encode(value) for name, value in claim.at.items()},
                "from": claim.origin,
            }
            for claim in plan.claims
        ],
    }


def versions(device: torch.device) -> dict[str, Any]:  # Any: JSON
    return {
        "archlang": archlang.__version__,
        "python": sys.version.split()[0],
        "torch": torch.__version__,
        "machine": platform.machine(),
        "system": platform.platform(),
        "processor": platform.processor(),
        "cores": os.cpu_count(),
        "threads": torch.get_num_threads(),
        "device": str(device),
        "gpus": [torch.cuda.get_device_name(index) for index in range(torch.cuda.device_count())],
    }


# Reading a folder


def read_text(folder: Path, name: str) -> str:
    """A file of a run.

    Raises:
        RunError: the folder is no run's."""
    try:
        return (folder / name).read_text(encoding="utf-8")
    except (FileNotFoundError, NotADirectoryError):
        raise mistakes.not_a_run(folder, name) from None
    except (OSError, UnicodeDecodeError) as error:
        raise mistakes.damaged(folder / name, str(error)) from error


def read_json(folder: Path, name: str) -> dict[str, Any]:  # Any: JSON
    try:
        found = json.loads(read_text(folder, name))
    except ValueError as error:
        raise mistakes.damaged(folder / name, str(error)) from error
    if not isinstance(found, dict):
        raise mistakes.damaged(folder / name, "it holds no object")
    return found


def read_graph(folder: Path, name: str = _GRAPH_AT_TEST) -> Graph:
    try:
        return parse_graph(read_text(folder, name))
    except ValueError as error:
        raise mistakes.damaged(folder / name, str(error)) from error


def read_plan(folder: Path) -> tuple[Plan, str]:
    """The plan of a run, and its precision, from its folder alone; what its recipe varies is not known any more.

    Raises:
        RunError: the folder is no run's, or is damaged."""
    run = read_json(folder, _RUN)
    try:
        task, trained = (
            BoundExtern(one["name"], one["python"], {name: decode(value) for name, value in one["statics"].items()})
            for one in (run["task"], run["train"])
        )
        graph, at_test = read_graph(folder, _GRAPH), read_graph(folder, _GRAPH_AT_TEST)
        claims = tuple(
            PublishedResult(
                one["metric"], one["index"], one["value"], one["deviation"],
                {name: decode(value) for name, value in one["at"].items()}, one["from"],
            )
            for one in run["claims"]
        )  # fmt: skip
        source = Source(str(folder / "recipe.arch"), read_text(folder, "recipe.arch"))
        settings = {name: decode(value) for name, value in run["settings"].items()}
        plan = Plan(
            run["recipe"], source, task, run["gives"], run["model"], graph, graph if at_test == graph else at_test,
            trained, run["seed"], settings, {}, claims,
        )  # fmt: skip
        return plan, str(run["precision"])
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise mistakes.damaged(folder / _RUN, f"what it says of the run cannot be understood ({error!r})") from error


# Writing one


class Record:
    """A run folder that is being written: lines are appended, whole files are written beside and renamed."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._curves = Curves(folder / "tensorboard")
        self.trackers: list[Tracker] = []
        self._lock: IO[str] | None = None

    def check(self, plan: Plan, precision: str) -> bool:
        """Whether the folder holds this run already. Nothing is changed.

        Raises:
            RunError: it holds another run, or something else."""
        if (self.folder / _RUN).exists():
            self._require_same(plan, precision)
            return True
        with os_errors_as(mistakes.not_written, self.folder):
            names = os.listdir(self.folder) if self.folder.is_dir() else []
            if (self.folder.exists() and not self.folder.is_dir()) or not all(map(_is_ours, names)):
                raise mistakes.not_empty(self.folder)
        return False

    def begin(self, plan: Plan, precision: str, data: Mapping[str, Any], device: torch.device) -> bool:
        """Makes the folder, or takes it up if it holds the same run. True if there was one.

        Raises:
            RunError: it holds another run or something else, or another process works in it; nothing is changed then.
                Or it cannot be written; nothing is left then."""
        self.check(plan, precision)
        made = [folder for folder in (self.folder, *self.folder.parents) if not folder.exists()]
        files = {
            "recipe.arch": plan.source.text,
            _GRAPH: print_graph(plan.graph),
            _GRAPH_AT_TEST: print_graph(plan.at_test),
            "versions.json": json_text(versions(device)),
            _DATA: json_text(data),
            **used_files(plan),
            # The last one: with it, the folder is a run's.
            _RUN: json_text(describe(plan, precision)),
        }
        try:
            with os_errors_as(mistakes.not_written, self.folder):
                self.folder.mkdir(parents=True, exist_ok=True)
                self._hold()
            remove_unfinished(self.folder, "*.part")
            if self.check(plan, precision):
                self._require_same_data(data)
                return True
            try:
                for name, text in files.items():
                    self.write(name, text)
            except BaseException:
                for name in (*files, _LOCK):
                    (self.folder / name).unlink(missing_ok=True)
                raise
        except BaseException:
            self.close()
            for folder in made:
                # Only where it is empty: what others put there in the meantime stays.
                with suppress(OSError):
                    folder.rmdir()
            raise
        return False

    def _hold(self) -> None:
        """Keeps other processes out of the folder until this one ends, however it ends."""
        try:
            import fcntl
        except ImportError:  # Windows
            return
        self._lock = (self.folder / _LOCK).open("w")
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise mistakes.in_use(self.folder) from None
        except OSError:
            pass  # a file system without locks

    def _require_same(self, plan: Plan, precision: str) -> None:
        """The program's text may differ, in a comment or another recipe, but not what it means."""
        known, described = read_json(self.folder, _RUN), describe(plan, precision)
        for part in ("recipe", "model", "seed", "precision"):
            if known.get(part) != described[part]:
                raise mistakes.another_run(self.folder, f"its {part} is `{known.get(part)}`, not `{described[part]}`")
        before, now = known.get("settings"), described["settings"]
        if not isinstance(before, dict):
            raise mistakes.damaged(self.folder / _RUN, "it has no settings")
        for name in sorted({*before, *now}):
            if before.get(name) != now.get(name):
                raise mistakes.another_run(self.folder, f"its `{name}` differs")
        for name, graph in ((_GRAPH, plan.graph), (_GRAPH_AT_TEST, plan.at_test)):
            if read_graph(self.folder, name) != graph:
                raise mistakes.another_run(self.folder, "its program means another model")

    def _require_same_data(self, data: Mapping[str, Any]) -> None:
        known = read_json(self.folder, _DATA)
        for split, facts in data.items():
            if known.get(split) != facts:
                raise mistakes.another_run(self.folder, f"its {split} split held other items")

    def write(self, name: str, text: str) -> None:
        """Writes a whole file, or nothing of it."""
        place = self.folder / name
        with os_errors_as(mistakes.not_written, place):
            place.parent.mkdir(parents=True, exist_ok=True)
            write_atomically(place, text)

    def write_json(self, name: str, value: Mapping[str, Any]) -> None:
        self.write(name, json_text(value))

    def append(self, name: str, line: Mapping[str, Any]) -> None:
        """Adds a line of JSON to a file."""
        place = self.folder / name
        with os_errors_as(mistakes.not_written, place), place.open("a", encoding="utf-8", newline="\n") as file:
            file.write(json.dumps(_finite(line), allow_nan=False) + "\n")

    def sizes(self) -> dict[str, int]:
        """How long the line files are: a checkpoint remembers it."""
        found = {}
        for name in _LINES:
            place = self.folder / name
            if place.exists():
                with os_errors_as(mistakes.not_written, place), place.open("rb") as file:
                    os.fsync(file.fileno())
                    found[name] = os.fstat(file.fileno()).st_size
        return found

    def cut(self, sizes: Mapping[str, int], step: int = 0) -> None:
        """Takes back what was written after the checkpoint of a step."""
        self._curves.anew_from = step + 1
        for name in _LINES:
            place, size = self.folder / name, sizes.get(name, 0)
            if not place.exists() or place.stat().st_size < size:
                if size:
                    warnings.warn(f"{place} has lost lines", RecordWarning, stacklevel=2)
                continue
            with os_errors_as(mistakes.not_written, place), place.open("r+b") as file:
                file.truncate(size)

    def scalars(self, step: int, values: Mapping[str, float]) -> None:
        """Adds points to the curves of TensorBoard, and of those that are told too."""
        self._curves.add(step, values)
        for tracker in self.trackers:
            tracker.add(step, values)

    def close(self) -> None:
        self._curves.close()
        for tracker in self.trackers:
            tracker.close()
        if self._lock is not None:
            self._lock.close()
            self._lock = None


def _is_ours(name: str) -> bool:
    """Whether a run that was killed before it had begun may have left this."""
    return name in _FIRST or is_unfinished(name)
