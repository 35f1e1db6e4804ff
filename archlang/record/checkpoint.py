"""Checkpoints: written atomically, verified by digest when read; the last two and the best one are kept."""

import hashlib
import pickle
import shutil
import warnings
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

import safetensors.torch
import torch
from pydantic import ValidationError
from torch import Tensor, nn

from archlang.files.atomic import atomic_folder, remove_unfinished
from archlang.files.os_errors import os_errors_as
from archlang.record import mistakes
from archlang.record.reading import explain
from archlang.record.schemas import MANIFEST, STATE, WEIGHTS, CheckpointState, ManifestRecord, json_text

_KEPT = 2


class CheckpointWarning(UserWarning):
    """A checkpoint is damaged, and another one is used."""


@dataclass(frozen=True)
class Checkpoint:
    """A checkpoint in memory: the weights by name, and the state that resuming needs."""

    step: int
    folder: Path
    weights: Mapping[str, Tensor]
    state: CheckpointState

    def load_into(self, module: nn.Module) -> None:
        """Loads the weights into a module.

        Raises:
            RunError: The module has other weights."""
        try:
            module.load_state_dict(dict(self.weights))
        except RuntimeError as error:
            raise mistakes.does_not_fit(self.folder, str(error).partition("\n")[2].strip()) from error


class Checkpoints:
    """The checkpoints of a run, in a folder of their own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def save(self, step: int, module: nn.Module, state: CheckpointState, best: int | None) -> None:
        """Writes the checkpoint of a step atomically, and removes all but the last two and that of the step `best`.

        Raises:
            RunError: It cannot be written; existing checkpoints are unchanged."""
        path = self._path(step)
        with os_errors_as(mistakes.not_written, path):
            self.folder.mkdir(parents=True, exist_ok=True)
            with atomic_folder(path) as unfinished:
                _write(unfinished, module, state)
        for old in self.steps()[:-_KEPT]:
            if old != best:
                shutil.rmtree(self._path(old), ignore_errors=True)

    def steps(self) -> list[int]:
        """Returns the steps that have a checkpoint, in order."""
        names = (path.name.removeprefix("step-") for path in self.folder.glob("step-*"))
        return sorted(int(name) for name in names if name.isdecimal())

    def latest(self) -> Checkpoint | None:
        """Returns the newest intact checkpoint; None if there is none. Warns about damaged ones."""
        return self.first_intact(reversed(self.steps()))

    def first_intact(self, steps: Iterable[int]) -> Checkpoint | None:
        """Returns the checkpoint of the first of `steps` that has an intact one; None if there is none. Warns about
        damaged ones."""
        existing = set(self.steps())
        for step in steps:
            if step not in existing:
                continue
            try:
                return self.read(step)
            except mistakes.RunError as error:
                warnings.warn(f"{error.message}; another checkpoint is used", CheckpointWarning, stacklevel=2)
        return None

    def read(self, step: int) -> Checkpoint:
        """Returns the checkpoint of a step, on the CPU.

        Raises:
            RunError: It is damaged."""
        folder = self._path(step)
        try:
            manifest = ManifestRecord.model_validate_json((folder / MANIFEST).read_bytes())
            for name, digest in ((WEIGHTS, manifest.weights), (STATE, manifest.state)):
                if _sha256(folder / name) != digest:
                    raise mistakes.damaged(folder, f"{name} is not what was written")
            weights = safetensors.torch.load_file(folder / WEIGHTS)
            state = torch.load(folder / STATE, weights_only=True, map_location="cpu")
            return Checkpoint(step, folder, weights, CheckpointState.model_validate(state))
        except ValidationError as error:
            raise mistakes.damaged(folder, explain(error)) from error
        except (OSError, ValueError, KeyError, TypeError, RuntimeError, pickle.UnpicklingError) as error:
            raise mistakes.damaged(folder, str(error)) from error

    def remove_after(self, step: int) -> None:
        """Removes the checkpoints after `step`, which a resumed run writes again, and those that a killed process left
        unfinished."""
        remove_unfinished(self.folder, "step-*")
        for later in self.steps():
            if later > step:
                shutil.rmtree(self._path(later), ignore_errors=True)

    def _path(self, step: int) -> Path:
        return self.folder / f"step-{step:08d}"


def _write(folder: Path, module: nn.Module, state: CheckpointState) -> None:
    try:
        weights = {name: value.detach().cpu().contiguous() for name, value in module.state_dict().items()}
        (folder / WEIGHTS).write_bytes(safetensors.torch.save(weights))
        with (folder / STATE).open("wb") as file:
            torch.save(state.stored(), file)
        manifest = ManifestRecord(weights=_sha256(folder / WEIGHTS), state=_sha256(folder / STATE))
        (folder / MANIFEST).write_text(json_text(manifest), encoding="utf-8")
    except RuntimeError as error:
        # torch.save raises RuntimeError for a full disk; the OSError is its context.
        if isinstance(error.__context__, OSError):
            raise error.__context__ from error
        raise


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
