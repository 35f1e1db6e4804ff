"""Checkpoints: written beside their place and renamed, checked by digest when read, the last two and the best kept."""

from __future__ import annotations

import hashlib
import json
import os
import random
import shutil
import tempfile
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import safetensors.torch
import torch
from torch import Tensor, nn

from archlang.run import mistakes

_KEEP = 2
_WEIGHTS, _STATE, _MANIFEST = "weights.safetensors", "state.pt", "manifest.json"


class CheckpointWarning(UserWarning):
    """A checkpoint is damaged, and an older one is used."""


@dataclass(frozen=True)
class Saved:
    """A checkpoint in hand: the weights by name, and everything else that a run goes on from."""

    step: int
    weights: Mapping[str, Tensor]
    state: Mapping[str, Any]  # Any: what torch's optimizers keep is theirs


class Checkpoints:
    """The checkpoints of a run, in a folder of their own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def save(self, step: int, module: nn.Module, state: Mapping[str, Any], best: int | None) -> None:
        """Writes the checkpoint of a step, whole or not at all, and forgets older ones but for the best."""
        place = self.folder / f"step-{step:08d}"
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            # A damaged one of this step, which an older one was gone on from.
            shutil.rmtree(place, ignore_errors=True)
            self._write(place, module, state)
        except OSError as error:
            raise mistakes.not_written(place, error.strerror or str(error)) from error
        self._forget(best)

    def _write(self, place: Path, module: nn.Module, state: Mapping[str, Any]) -> None:
        beside = Path(tempfile.mkdtemp(prefix=f".{place.name}.", dir=self.folder))
        try:
            weights = {name: value.detach().cpu().contiguous() for name, value in module.state_dict().items()}
            (beside / _WEIGHTS).write_bytes(safetensors.torch.save(weights))
            torch.save(dict(state), beside / _STATE)
            digests = {name: _sha256(beside / name) for name in (_WEIGHTS, _STATE)}
            (beside / _MANIFEST).write_text(json.dumps(digests, indent=1), encoding="utf-8")
            for name in (_WEIGHTS, _STATE, _MANIFEST):
                with (beside / name).open("rb") as file:
                    os.fsync(file.fileno())
            beside.rename(place)
        except RuntimeError as error:
            # torch.save tells of a full disk in its own way.
            raise OSError(str(error).splitlines()[0]) from error
        finally:
            shutil.rmtree(beside, ignore_errors=True)

    def _forget(self, best: int | None) -> None:
        for step in self.steps()[:-_KEEP]:
            if step != best:
                shutil.rmtree(self.folder / f"step-{step:08d}", ignore_errors=True)

    def steps(self) -> list[int]:
        """The steps that have a checkpoint, in order."""
        if not self.folder.is_dir():
            return []
        return sorted(int(path.name.removeprefix("step-")) for path in self.folder.glob("step-*"))

    def latest(self) -> Saved | None:
        """The newest checkpoint that is whole; a damaged one is passed over with a warning."""
        for step in reversed(self.steps()):
            try:
                return self.read(step)
            except mistakes.RunError as error:
                warnings.warn(f"{error.message}; an older checkpoint is used", CheckpointWarning, stacklevel=2)
        return None

    def read(self, step: int) -> Saved:
        """The checkpoint of a step.

        Raises:
            RunError: it is damaged."""
        place = self.folder / f"step-{step:08d}"
        try:
            digests = json.loads((place / _MANIFEST).read_text(encoding="utf-8"))
            for name in (_WEIGHTS, _STATE):
                if _sha256(place / name) != digests[name]:
                    raise mistakes.damaged(place, f"{name} is not what was written")
            weights = safetensors.torch.load_file(place / _WEIGHTS)
            state = torch.load(place / _STATE, weights_only=True, map_location="cpu")
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise mistakes.damaged(place, str(error)) from error
        return Saved(step, weights, state)


def random_state() -> dict[str, Any]:  # Any: each generator's state has its own form
    """The state of every generator that a run draws from, in plain tensors and numbers."""
    version, internal, gauss = random.getstate()
    kind, keys, position, has_gauss, cached = np.random.get_state(legacy=True)
    return {
        "python": [version, list(internal), gauss],
        "numpy": [str(kind), [int(key) for key in keys], int(position), int(has_gauss), float(cached)],
        "torch": torch.get_rng_state(),
        "cuda": torch.cuda.get_rng_state_all() if torch.cuda.is_available() else [],
    }


def restore_random_state(state: Mapping[str, Any]) -> None:
    """Sets every generator back to where `random_state` found it."""
    version, internal, gauss = state["python"]
    random.setstate((version, tuple(internal), gauss))
    kind, keys, position, has_gauss, cached = state["numpy"]
    np.random.set_state((kind, np.array(keys, dtype=np.uint32), position, has_gauss, cached))
    torch.set_rng_state(state["torch"])
    if torch.cuda.is_available() and state["cuda"]:
        torch.cuda.set_rng_state_all(state["cuda"])


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
