"""Checkpoints: written whole or not at all, checked by digest when read, the last two and the best kept."""

from __future__ import annotations

import hashlib
import json
import pickle
import shutil
import warnings
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import safetensors.torch
import torch
from torch import Tensor, nn

from archlang.files.atomic import atomic_folder, remove_unfinished
from archlang.files.os_errors import os_errors_as
from archlang.record import mistakes

_KEEP = 2
_WEIGHTS, _STATE, _MANIFEST = "weights.safetensors", "state.pt", "manifest.json"


class CheckpointWarning(UserWarning):
    """A checkpoint is damaged, and another one is used."""


@dataclass(frozen=True)
class Saved:
    """A checkpoint in hand: the weights by name, and everything else that a run goes on from."""

    step: int
    folder: Path
    weights: Mapping[str, Tensor]
    state: Mapping[str, Any]  # Any: what torch's optimizers keep is theirs

    def load_into(self, module: nn.Module) -> None:
        """Puts the weights into a module.

        Raises:
            RunError: they are those of another one."""
        try:
            module.load_state_dict(dict(self.weights))
        except RuntimeError as error:
            raise mistakes.does_not_fit(self.folder, str(error).partition("\n")[2].strip()) from error


class Checkpoints:
    """The checkpoints of a run, in a folder of their own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def save(self, step: int, module: nn.Module, state: Mapping[str, Any], best: int | None) -> None:
        """Writes the checkpoint of a step, whole or not at all, and forgets older ones but for the best.

        Raises:
            RunError: it cannot be written; those that were there are as they were."""
        place = self._place(step)
        with os_errors_as(mistakes.not_written, place):
            self.folder.mkdir(parents=True, exist_ok=True)
            with atomic_folder(place) as unfinished:
                _write(unfinished, module, state)
        for old in self.steps()[:-_KEEP]:
            if old != best:
                shutil.rmtree(self._place(old), ignore_errors=True)

    def steps(self) -> list[int]:
        """The steps that have a checkpoint, in order."""
        names = (path.name.removeprefix("step-") for path in self.folder.glob("step-*"))
        return sorted(int(name) for name in names if name.isdecimal())

    def latest(self) -> Saved | None:
        """The newest checkpoint that is whole; a damaged one is passed over with a warning."""
        return self.first_whole(reversed(self.steps()))

    def first_whole(self, steps: Iterable[int]) -> Saved | None:
        """The first of these steps whose checkpoint is there and whole; a damaged one is passed over with a warning."""
        there = set(self.steps())
        for step in steps:
            if step not in there:
                continue
            try:
                return self.read(step)
            except mistakes.RunError as error:
                warnings.warn(f"{error.message}; another checkpoint is used", CheckpointWarning, stacklevel=2)
        return None

    def read(self, step: int) -> Saved:
        """The checkpoint of a step.

        Raises:
            RunError: it is damaged."""
        place = self._place(step)
        try:
            digests = json.loads((place / _MANIFEST).read_text(encoding="utf-8"))
            for name in (_WEIGHTS, _STATE):
                if _sha256(place / name) != digests[name]:
                    raise mistakes.damaged(place, f"{name} is not what was written")
            weights = safetensors.torch.load_file(place / _WEIGHTS)
            state = torch.load(place / _STATE, weights_only=True, map_location="cpu")
        except (OSError, ValueError, KeyError, TypeError, RuntimeError, pickle.UnpicklingError) as error:
            raise mistakes.damaged(place, str(error)) from error
        return Saved(step, place, weights, state)

    def forget_after(self, step: int) -> None:
        """Forgets what a run that goes on from `step` will write again, and what a killed one left unfinished."""
        remove_unfinished(self.folder, "step-*")
        for later in self.steps():
            if later > step:
                shutil.rmtree(self._place(later), ignore_errors=True)

    def _place(self, step: int) -> Path:
        return self.folder / f"step-{step:08d}"


def _write(folder: Path, module: nn.Module, state: Mapping[str, Any]) -> None:
    try:
        weights = {name: value.detach().cpu().contiguous() for name, value in module.state_dict().items()}
        (folder / _WEIGHTS).write_bytes(safetensors.torch.save(weights))
        with (folder / _STATE).open("wb") as file:
            torch.save(dict(state), file)
        digests = {name: _sha256(folder / name) for name in (_WEIGHTS, _STATE)}
        (folder / _MANIFEST).write_text(json.dumps(digests, indent=1), encoding="utf-8")
    except RuntimeError as error:
        # Of a full disk, torch.save tells in its own way; what Python said of it stands behind.
        if isinstance(error.__context__, OSError):
            raise error.__context__ from error
        raise


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
