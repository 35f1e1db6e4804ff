"""What a run begins with in place of new weights, and which of its weights stay as they are."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping
from pathlib import Path

import torch
from torch import Tensor, nn

from archlang.errors.names import listed, plural
from archlang.train.record import reading, schemas
from archlang.train.record.checkpoint import Checkpoints
from archlang.train.runs import mistakes
from archlang.train.runs.evaluation import stored_weights
from archlang.train.settings import Settings

_LOADED = "loaded"


class Start:
    """Prepares the new module of a run: loads the weights of the setting `weights` where names and shapes agree, and
    freezes those of the setting `frozen`. A run that has a checkpoint is only frozen, as `start.json` says."""

    def __init__(self, settings: Settings, folder: Path) -> None:
        self.source, self._frozen = settings.weights, settings.frozen
        self.record = (
            reading.read_record(folder, schemas.START, schemas.StartRecord)
            if reading.has(folder, schemas.START)
            else None
        )
        self._has_checkpoint = bool(Checkpoints(folder / reading.CHECKPOINTS).steps())

    def check(self) -> None:
        """
        Raises:
            RunError: the weights to load are not those of a run or a saved model, or damaged."""
        if self.source and not (self.record and self._has_checkpoint):
            _require_model(Path(self.source))

    def prepare(self, module: nn.Module) -> Collection[str]:
        """Returns the names of the weights that the run has begun with.

        Raises:
            RunError: there are no such weights, none of them fits, they have changed, or no weight is left to train."""
        if self.source and not (self.record and self._has_checkpoint):
            self._load(module)
        loaded = set(self.record.loaded) if self.record and _LOADED in self._frozen else ()
        names = tuple(f".{name}." for name in self._frozen if name != _LOADED)
        for name, weight in module.named_parameters():
            if name in loaded or any(each in f".{name}." for each in names):
                weight.requires_grad_(False)
        for each in names:
            if not any(each in f".{name}." for name, _ in module.named_parameters()):
                raise mistakes.nothing_to_freeze(each.strip("."))
        if self._frozen and not any(weight.requires_grad for weight in module.parameters()):
            raise mistakes.all_frozen(self._frozen)
        return self.record.loaded if self.record else ()

    def _load(self, module: nn.Module) -> None:
        weights, own = _read(Path(self.source)), module.state_dict()
        digest = _digest(weights)
        if self.record is not None and self.record.sha256 != digest:
            raise mistakes.other_weights(self.source)
        loaded = {name for name, value in own.items() if name in weights and weights[name].shape == value.shape}
        if not loaded:
            raise mistakes.no_weight_fits(self.source, listed(weights), listed(own))
        with torch.no_grad():
            for name in loaded:
                own[name].copy_(weights[name])
        self.record = schemas.StartRecord(
            source=self.source, sha256=digest, loaded=tuple(name for name in own if name in loaded),
            new=tuple(name for name in own if name not in loaded),
            unused=tuple(name for name in weights if name not in loaded),
        )  # fmt: skip

    def describe(self) -> str:
        """Returns what has been loaded, in words; empty if nothing has."""
        if self.record is None:
            return ""
        text = f"begins with {plural(len(self.record.loaded), 'weight')} of {self.source}"
        parts = {"new": self.record.new, "not used": self.record.unused}
        return "; ".join([text, *(f"{what}: {listed(names)}" for what, names in parts.items() if names)])


def _require_model(folder: Path) -> None:
    if not reading.has(folder, schemas.RUN):
        raise mistakes.no_weights_in(folder)
    reading.require_intact(folder)


def _read(folder: Path) -> Mapping[str, Tensor]:
    _require_model(folder)
    record = reading.read_record(folder, schemas.RUN, schemas.ModelRecord)
    return stored_weights(folder, record, "best").weights


def _digest(weights: Mapping[str, Tensor]) -> str:
    digest = hashlib.sha256()
    for name, value in sorted(weights.items()):
        digest.update(f"{name} {value.dtype} {list(value.shape)}\n".encode())
        digest.update(value.contiguous().reshape(-1).view(torch.uint8).numpy().data)
    return digest.hexdigest()
