"""The run folders of a place: which there are, how far they are, and where two of them differ."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from archlang.record import mistakes
from archlang.record.run_folder import decode, read_json
from archlang.types.statics import StaticValue

_RUN, _RESULTS, _LOCK = "run.json", "results.json", ".lock"


@dataclass(frozen=True)
class Known:
    """A run folder as it is listed."""

    folder: Path
    recipe: str
    model: str
    task: str
    seed: int
    state: str
    """done, running, or stopped"""
    step: int
    settings: dict[str, str]
    results: dict[str, Any] | None  # Any: JSON
    size: int
    """bytes"""

    def described(self) -> dict[str, Any]:  # Any: JSON
        metrics = {name: split["metrics"] for name, split in (self.results or {}).get("splits", {}).items()}
        return {
            "folder": str(self.folder), "recipe": self.recipe, "model": self.model, "task": self.task,
            "seed": self.seed, "state": self.state, "step": self.step, "bytes": self.size, "metrics": metrics,
        }  # fmt: skip


def known(folder: Path) -> Known:
    """What a run folder says of itself.

    Raises:
        RunError: it is no run folder, or is damaged."""
    run = read_json(folder, _RUN)
    try:
        settings = {name: _written(decode(value)) for name, value in run["settings"].items()}
        facts = str(run["recipe"]), str(run["model"]), str(run["task"]["name"]), int(run["seed"])
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise mistakes.damaged(folder / _RUN, f"it says too little of the run ({error!r})") from error
    results = read_json(folder, _RESULTS) if (folder / _RESULTS).exists() else None
    state = "running" if _is_held(folder) else "done" if results is not None else "stopped"
    size = sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
    return Known(folder, *facts, state, _last_step(folder), settings, results, size)


def _written(value: StaticValue) -> str:
    """A static as the language writes it."""
    if isinstance(value, bool):
        return str(value).lower()
    return f"[{', '.join(map(_written, value))}]" if isinstance(value, tuple) else str(value)


def runs_below(folder: Path) -> Iterator[Known]:
    """Every run in a folder or below it, by name; what is damaged is left out."""
    for place in sorted(folder.rglob(_RUN)):
        try:
            yield known(place.parent)
        except mistakes.RunError:
            continue


def differences(runs: Sequence[Known]) -> dict[str, tuple[str, ...]]:
    """The settings, and what else a run is named by, in which some of these runs differ."""
    facts = [
        {"recipe": one.recipe, "model": one.model, "task": one.task, "seed": str(one.seed), **one.settings}
        for one in runs
    ]
    names = dict.fromkeys(name for one in facts for name in one)
    rows = {name: tuple(one.get(name, "") for one in facts) for name in names}
    return {name: values for name, values in rows.items() if len(set(values)) > 1}


def _last_step(folder: Path) -> int:
    """The last step that was logged."""
    try:
        lines = (folder / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
    except OSError:
        return 0
    for line in reversed(lines):
        try:
            return int(json.loads(line)["step"])
        except (ValueError, KeyError, TypeError):
            continue  # half of a line
    return 0


def _is_held(folder: Path) -> bool:
    """Whether a process trains in the folder."""
    try:
        import fcntl

        with (folder / _LOCK).open("r") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (ImportError, FileNotFoundError):
        return False
    except OSError:
        return True
    return False
