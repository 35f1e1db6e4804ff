"""A task's split as tensors on the device, and batches of sequences of like length."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Bool, Int
from torch import Tensor

from archlang.tasks.base import Ragged, Split

# So many batches are sorted by length together: enough to pad little, few enough to stay random.
_POOL = 16
# What torch can index on every device; other kinds of whole numbers are widened.
_NARROW = (np.uint8, np.int32, np.bool_)


@dataclass(frozen=True, eq=False)
class Sequences:
    """Ragged sequences as one flat tensor; a batch of them is gathered in one step."""

    values: Tensor
    offsets: Int[Tensor, " starts"]
    lengths: Int[Tensor, " items"]
    # The length of every sequence, if there is but one: then nothing is ever padded.
    common: int | None

    @staticmethod
    def of(ragged: Ragged, device: torch.device) -> Sequences:
        # A copy, as what comes from the cache is mapped read-only, and torch has no such tensors. Its numbers stay as
        # narrow as they are: a large set takes an eighth of the memory.
        kind = ragged.values.dtype
        values = torch.from_numpy(np.array(ragged.values, dtype=kind if kind in _NARROW else np.int64)).to(device)
        offsets = torch.from_numpy(np.array(ragged.offsets, dtype=np.int64)).to(device)
        common = int(ragged.lengths[0]) if len(np.unique(ragged.lengths)) == 1 else None
        return Sequences(values, offsets, offsets[1:] - offsets[:-1], common)

    def batch(self, items: Int[Tensor, " b"], width: int) -> Int[Tensor, "b n"]:
        """The chosen sequences, padded with zeros on the right to `width`."""
        if width == self.common:
            return self.values.view(-1, width)[items].to(torch.int64)
        if not len(self.values):
            return torch.zeros(len(items), width, dtype=torch.int64, device=items.device)
        columns = torch.arange(width, device=items.device)
        places = self.offsets[items][:, None] + columns
        inside = columns < self.lengths[items][:, None]
        return self.values[places.clamp_(max=len(self.values) - 1)].to(torch.int64) * inside


@dataclass(frozen=True, eq=False)
class Batch:
    """Some items: each field [b, n] with its lengths [b]; targets are classes [b], or [b, n] with `scored` [b, n]."""

    items: Int[Tensor, " b"]
    fields: tuple[Int[Tensor, "b _n"], ...]
    lengths: dict[str, Int[Tensor, " b"]]
    targets: Tensor
    scored: Bool[Tensor, "b n"] | None


class Data:
    """A split on a device."""

    def __init__(self, split: Split, device: torch.device) -> None:
        self.size = len(split)
        self.device = device
        self._fields = {name: Sequences.of(ragged, device) for name, ragged in split.inputs.items()}
        self._targets: Sequences | Tensor
        self._scored: Sequences | None = None
        if isinstance(split.targets, Ragged):
            self._targets = Sequences.of(split.targets, device)
            marks = split.scored or Ragged(np.ones(len(split.targets.values), dtype=np.bool_), split.targets.offsets)
            self._scored = Sequences.of(marks, device)
        else:
            self._targets = torch.from_numpy(np.array(split.targets, dtype=np.int64)).to(device)
        # The host decides which items make a batch, and how wide it is: no waiting for the device.
        self.lengths = np.max([ragged.lengths for ragged in split.inputs.values()], axis=0)
        self._widths = {name: np.asarray(ragged.lengths) for name, ragged in split.inputs.items()}
        self._target_widths = np.asarray(split.targets.lengths) if isinstance(split.targets, Ragged) else None

    def batch(self, items: np.ndarray) -> Batch:
        chosen = torch.from_numpy(items).to(self.device)
        fields = tuple(
            field.batch(chosen, int(self._widths[name][items].max(initial=1))) for name, field in self._fields.items()
        )
        lengths = {name: field.lengths[chosen] for name, field in self._fields.items()}
        if isinstance(self._targets, Tensor):
            return Batch(chosen, fields, lengths, self._targets[chosen], None)
        assert self._scored is not None
        assert self._target_widths is not None
        width = int(self._target_widths[items].max(initial=1))
        return Batch(
            chosen, fields, lengths, self._targets.batch(chosen, width), self._scored.batch(chosen, width).bool()
        )

    def in_order_of_length(self, size: int, tokens: int = 1 << 15) -> Iterator[Batch]:
        """Every item once, short ones first, for evaluation: at most `size` items and about `tokens` tokens a batch."""
        order = np.argsort(self.lengths, kind="stable")
        start = 0
        while start < len(order):
            stop = start + 1
            while (
                stop < len(order) and stop - start < size and (stop - start + 1) * self.lengths[order[stop]] <= tokens
            ):
                stop += 1
            yield self.batch(order[start:stop])
            start = stop


@dataclass
class Sampler:
    """Which items each step trains on: a function of the seed and of how many steps were taken, and of nothing else.

    Each epoch is shuffled anew; what does not fill a batch is left out, as NDR does; then items are sorted by length
    within a pool of batches, so that little is padded, and the batches are shuffled again. (To leave out after sorting
    would leave out the longest.) Fewer items than a batch are one batch."""

    lengths: np.ndarray
    batch: int
    seed: int
    epoch: int = 0
    position: int = 0

    def __post_init__(self) -> None:
        self._order = self._epoch(self.epoch)

    def _epoch(self, epoch: int) -> list[np.ndarray]:
        random = np.random.default_rng([self.seed, epoch])
        count = len(self.lengths)
        items = random.permutation(count)[: count - count % self.batch or count]
        pool = self.batch * _POOL
        pools = [items[start : start + pool] for start in range(0, len(items), pool)]
        batches = [
            part[start : start + self.batch]
            for part in (some[np.argsort(self.lengths[some], kind="stable")] for some in pools)
            for start in range(0, len(part), self.batch)
        ]
        return [batches[index] for index in random.permutation(len(batches))]

    def next(self) -> np.ndarray:
        """The items of the next step."""
        if self.position >= len(self._order):
            self.epoch += 1
            self.position = 0
            self._order = self._epoch(self.epoch)
        items = self._order[self.position]
        self.position += 1
        return items
