"""The run folder: everything about one run, readable without archlang.

recipe.arch       the program, exactly as it was
run.json          the recipe's name, the task, every resolved setting, the seed, the claims
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
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

import archlang
from archlang.graph.plan import Plan
from archlang.graph.text import print_graph
from archlang.run import mistakes
from archlang.types.statics import InstanceOf, Interval, StaticValue, Symbol


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


def describe(plan: Plan) -> dict[str, Any]:  # Any: JSON
    """`run.json`: what a run is, apart from its program."""
    return {
        "recipe": plan.recipe,
        "model": plan.model,
        "seed": plan.seed,
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


def versions() -> dict[str, Any]:  # Any: JSON
    return {
        "archlang": archlang.__version__,
        "python": sys.version.split()[0],
        "torch": torch.__version__,
        "machine": platform.machine(),
        "system": platform.platform(),
        "processor": platform.processor(),
        "cores": os.cpu_count(),
        "threads": torch.get_num_threads(),
        "gpus": [torch.cuda.get_device_name(index) for index in range(torch.cuda.device_count())],
    }


class Record:
    """A run folder that is being written: lines are appended, whole files are written beside and renamed."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._writer: Any = None  # Any: TensorBoard's writer is imported late

    def holds(self, plan: Plan) -> bool:
        """Whether the folder holds this run already; nothing is written.

        Raises:
            RunError: it holds another run, or something else."""
        if (self.folder / "run.json").exists():
            self._same(plan, describe(plan))
            return True
        if self.folder.exists() and (not self.folder.is_dir() or any(self.folder.iterdir())):
            raise mistakes.not_empty(self.folder)
        return False

    def begin(self, plan: Plan) -> None:
        """Makes the folder of a new run."""
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise mistakes.not_written(self.folder, error.strerror or str(error)) from error
        self.write("recipe.arch", plan.source.text)
        self.write("graph.txt", print_graph(plan.graph))
        self.write("graph_at_test.txt", print_graph(plan.at_test))
        self.write_json("versions.json", versions())
        self.write_json("run.json", describe(plan))

    def _same(self, plan: Plan, described: dict[str, Any]) -> None:
        known = json.loads((self.folder / "run.json").read_text(encoding="utf-8"))
        for part in ("recipe", "model", "seed"):
            if known.get(part) != described[part]:
                raise mistakes.another_recipe(
                    self.folder, f"its {part} is `{known.get(part)}`, not `{described[part]}`"
                )
        differing = [
            name
            for name in sorted({*known["settings"], *described["settings"]})
            if known["settings"].get(name) != described["settings"].get(name)
        ]
        if differing:
            raise mistakes.another_recipe(self.folder, f"`{differing[0]}` differs")
        if (self.folder / "recipe.arch").read_text(encoding="utf-8") != plan.source.text:
            raise mistakes.another_recipe(self.folder, "its program is not the same text")

    def write(self, name: str, text: str) -> None:
        """Writes a whole file, or nothing of it."""
        place = self.folder / name
        beside = place.with_name(f".{name}.part")
        try:
            beside.write_text(text, encoding="utf-8")
            beside.replace(place)
        except OSError as error:
            beside.unlink(missing_ok=True)
            raise mistakes.not_written(place, error.strerror or str(error)) from error

    def write_json(self, name: str, value: Mapping[str, Any]) -> None:
        self.write(name, json.dumps(_finite(value), indent=2, ensure_ascii=False, allow_nan=False) + "\n")

    def append(self, name: str, line: Mapping[str, Any]) -> None:
        """Adds a line of JSON to a file."""
        place = self.folder / name
        try:
            with place.open("a", encoding="utf-8") as file:
                file.write(json.dumps(_finite(line), allow_nan=False) + "\n")
        except OSError as error:
            raise mistakes.not_written(place, error.strerror or str(error)) from error

    def sizes(self) -> dict[str, int]:
        """How long the line files are: a checkpoint remembers it."""
        names = ("metrics.jsonl", "timings.jsonl")
        return {name: place.stat().st_size for name in names if (place := self.folder / name).exists()}

    def cut(self, sizes: Mapping[str, int]) -> None:
        """Takes back the lines that were written after a checkpoint."""
        for name in ("metrics.jsonl", "timings.jsonl"):
            place = self.folder / name
            if place.exists():
                with place.open("r+b") as file:
                    file.truncate(sizes.get(name, 0))

    def scalars(self, step: int, values: Mapping[str, float]) -> None:
        """Adds points to TensorBoard's curves."""
        if self._writer is None:
            from torch.utils.tensorboard import SummaryWriter

            self._writer = SummaryWriter(str(self.folder / "tensorboard"))
        for name, value in values.items():
            self._writer.add_scalar(name, value, step)

    def close(self) -> None:
        if self._writer is not None:
            self._writer.close()
            self._writer = None


def _finite(value: Any) -> Any:  # Any: JSON
    """JSON has no NaN: what was not measured is null."""
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, Mapping):
        return {str(name): _finite(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    return value
