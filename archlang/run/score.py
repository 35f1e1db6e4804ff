"""The loss of a batch, and how a model does on a whole split."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from archlang.run.data import Batch, Data
from archlang.run.generators import always_the_same
from archlang.tasks.base import Integers, Ragged, Split, Task
from archlang.tasks.metrics import Tally, tally


class Interrupted(Exception):
    """A measurement was given up because the run is asked to stop."""


@dataclass(frozen=True)
class Score:
    """What was measured on a split: each metric, the loss, and each metric by each value of each group."""

    split: str
    items: int
    loss: float
    metrics: Mapping[str, float]
    groups: Mapping[str, Mapping[int, Mapping[str, float]]]
    _tallies: Mapping[str, Tally] = field(default_factory=dict, repr=False, compare=False)
    _members: Mapping[str, Integers] = field(default_factory=dict, repr=False, compare=False)

    def among(self, metric: str, groups: Mapping[str, int]) -> float | None:
        """A metric over the items that are in all of these groups; None if it was not measured, or there are none."""
        if metric not in self._tallies or not groups.keys() <= self._members.keys():
            return None
        chosen = np.ones(self.items, dtype=np.bool_)
        for name, value in groups.items():
            chosen &= self._members[name] == value
        return _share(self._tallies[metric], chosen) if chosen.any() else None

    def described(self) -> dict[str, Any]:  # Any: JSON
        """All of it as JSON."""
        return {
            "items": self.items,
            "loss": self.loss,
            "metrics": dict(self.metrics),
            "groups": {name: dict(values) for name, values in self.groups.items()},
        }


def forward(module: nn.Module, batch: Batch) -> Tensor:
    """The logits of a batch."""
    lengths = next(iter(batch.lengths.values())) if len(batch.lengths) == 1 else batch.lengths
    logits: Tensor = module(*batch.fields, lengths=lengths)
    return logits


def loss(logits: Float[Tensor, "..."], batch: Batch) -> Float[Tensor, ""]:
    """The mean cross entropy over samples, or over the scored positions of the batch."""
    if batch.scored is None:
        return F.cross_entropy(logits.float(), batch.targets)
    each = F.cross_entropy(logits.float().flatten(0, 1), batch.targets.flatten(), reduction="none")
    counted = batch.scored.flatten()
    return (each * counted).sum() / counted.sum().clamp(min=1)


@torch.no_grad()
def evaluate(
    module: nn.Module,
    data: Data,
    split: Split,
    name: str,
    task: Task,
    batch: int = 1024,
    stopping: Callable[[], bool] = lambda: False,
) -> Score:
    """Every metric of the task on a split. Training notices nothing of it: the module's mode and the random numbers are
    afterwards as before.

    Raises:
        Interrupted: `stopping()` became true."""
    per_position = isinstance(split.targets, Ragged)
    found = np.zeros(len(split.targets.values) if isinstance(split.targets, Ragged) else len(split), dtype=np.int64)
    total = count = 0.0
    with _measuring(module, data.device):
        for part in data.in_order_of_length(batch):
            if stopping():
                raise Interrupted
            logits = forward(module, part)
            weight = float(part.scored.sum()) if part.scored is not None else float(len(part.items))
            total += float(loss(logits, part)) * weight
            count += weight
            chosen = logits.argmax(-1).cpu().numpy()
            items = part.items.cpu().numpy()
            if not per_position:
                found[items] = chosen
                continue
            assert isinstance(split.targets, Ragged)
            for row, item in zip(chosen, items, strict=True):
                start, stop = split.targets.offsets[item], split.targets.offsets[item + 1]
                found[start:stop] = row[: stop - start]
    tallies = {metric: tally(metric, task.unit, split, found) for metric in task.metrics}
    groups = {
        group: {
            int(value): {metric: _share(one, values == value) for metric, one in tallies.items()}
            for value in np.unique(values)
        }
        for group, values in split.groups.items()
    }
    measured = {metric: one.share for metric, one in tallies.items()}
    return Score(name, len(split), total / max(count, 1.0), measured, groups, tallies, dict(split.groups))


@contextmanager
def _measuring(module: nn.Module, device: torch.device) -> Iterator[None]:
    """Evaluation mode and, for models that draw at test time too, always the same random numbers."""
    training = module.training
    module.eval()
    try:
        with always_the_same(device):
            yield
    finally:
        module.train(training)


def _share(counted: Tally, chosen: np.ndarray) -> float:
    asked = int(counted.counts[chosen].sum())
    return float(counted.hits[chosen].sum() / asked) if asked else float("nan")
