"""A task's split as tensors on the device, and batches of sequences of like length."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Bool, Int, Shaped
from torch import Tensor

from archlang.tasks.kit.ragged import Ragged
from archlang.tasks.kit.split import Form, Split

# So many batches are sorted by length together: enough to pad little, few enough to stay random.
_POOL = 16
# What torch can index on every device; other kinds of whole numbers are widened.
_NARROW = (np.uint8, np.int32, np.bool_)
_KEPT = (*_NARROW, np.float32)


@dataclass(frozen=True, eq=False)
class Sequences:
    """Ragged sequences as one flat tensor; a batch of them is gathered in one step. Tokens reach the model as int64,
    rows of features or truths as float32."""

    values: Shaped[Tensor, " places *k"]
    offsets: Int[Tensor, " starts"]
    lengths: Int[Tensor, " items"]
    # The length of every sequence, if there is but one: then nothing is ever padded.
    common: int | None

    @staticmethod
    def of(ragged: Ragged, device: torch.device) -> Sequences:
        # A copy, as what comes from the cache is mapped read-only, and torch has no such tensors. Its numbers stay as
        # narrow as they are: a large set takes an eighth of the memory.
        kind = ragged.values.dtype
        if ragged.values.ndim == 2:
            kind = kind if kind in _NARROW else np.dtype(np.float32)
        values = torch.from_numpy(np.array(ragged.values, dtype=kind if kind in _KEPT else np.int64)).to(device)
        offsets = torch.from_numpy(np.array(ragged.offsets, dtype=np.int64)).to(device)
        common = int(ragged.lengths[0]) if len(np.unique(ragged.lengths)) == 1 else None
        return Sequences(values, offsets, offsets[1:] - offsets[:-1], common)

    def batch(self, items: Int[Tensor, " b"], width: int) -> Shaped[Tensor, "b n *k"]:
        """The chosen sequences, padded with zeros on the right to `width`."""
        row = self.values.shape[1:]
        dtype = torch.float32 if row else torch.int64
        if width == self.common:
            return self.values.view(-1, width, *row)[items].to(dtype)
        if not len(self.values):
            return torch.zeros(len(items), width, *row, dtype=dtype, device=items.device)
        columns = torch.arange(width, device=items.device)
        places = self.offsets[items][:, None] + columns
        inside = columns < self.lengths[items][:, None]
        found = self.values[places.clamp_(max=len(self.values) - 1)].to(dtype)
        return found * (inside[..., None] if row else inside)


@dataclass(frozen=True, eq=False)
class Batch:
    """Some items: each field [b, n] or [b, n, k] with its lengths [b]. Targets are classes [b], spans [b, 2], or
    classes [b, n] or sets [b, n, k] of positions. `scored` [b, n] marks the positions that count, and those that a span
    may have; classes have none."""

    items: Int[Tensor, " b"]
    fields: tuple[Shaped[Tensor, "b _n *_k"], ...]
    lengths: dict[str, Int[Tensor, " b"]]
    targets: Shaped[Tensor, "b *_"]
    scored: Bool[Tensor, "b n"] | None
    form: Form = Form.CLASSES


class Data:
    """A split on a device."""

    def __init__(self, split: Split, device: torch.device) -> None:
        self.size = len(split)
        self.device = device
        self.form = split.form
        self._fields = {name: Sequences.of(ragged, device) for name, ragged in split.inputs.items()}
        self._targets: Sequences | Tensor
        self._scored: Sequences | None = None
        if isinstance(split.targets, Ragged):
            self._targets = Sequences.of(split.targets, device)
            marks = split.scored or Ragged(np.ones(len(split.targets.values), dtype=np.bool_), split.targets.offsets)
            self._scored = Sequences.of(marks, device)
        else:
            self._targets = torch.from_numpy(np.array(split.targets, dtype=np.int64)).to(device)
            if split.scored is not None and split.form is Form.SPANS:
                self._scored = Sequences.of(split.scored, device)
        # The host decides which items make a batch, and how wide it is: no waiting for the device.
        self.lengths = np.max([ragged.lengths for ragged in split.inputs.values()], axis=0)
        self._widths = {name: np.asarray(ragged.lengths) for name, ragged in split.inputs.items()}
        marked = split.targets if isinstance(split.targets, Ragged) else split.scored
        self._marked_widths = None if marked is None else np.asarray(marked.lengths)
        self._counts = _counted(split)

    def weight(self, items: np.ndarray) -> int:
        """How many losses the loss of these items is the mean of: scored positions, or items."""
        return len(items) if self._counts is None else int(self._counts[items].sum())

    def batch(self, items: np.ndarray) -> Batch:
        return self.gather(self.place(items), self.widths(items))

    def widths(self, items: np.ndarray) -> tuple[int, ...]:
        """How wide a batch of these items is: each field, then the positions that are marked, if any are."""
        columns = [*self._widths.values(), *([] if self._marked_widths is None else [self._marked_widths])]
        return tuple(int(lengths[items].max(initial=1)) for lengths in columns)

    def place(self, items: np.ndarray) -> Int[Tensor, " b"]:
        """The numbers of items on the device."""
        numbers = torch.from_numpy(items)
        if self.device.type != "cuda":
            return numbers.to(self.device)
        # From memory that is not pinned, the copy would wait for all that the device has yet to do.
        return numbers.pin_memory().to(self.device, non_blocking=True)

    def gather(self, chosen: Int[Tensor, " b"], widths: Sequence[int]) -> Batch:
        """The batch of some items, whose numbers are on the device, as wide as `widths` says."""
        fields = tuple(field.batch(chosen, width) for field, width in zip(self._fields.values(), widths, strict=False))
        lengths = {name: field.lengths[chosen] for name, field in self._fields.items()}
        if self._scored is None:
            assert isinstance(self._targets, Tensor)
            return Batch(chosen, fields, lengths, self._targets[chosen], None, self.form)
        width = widths[-1]
        targets = self._targets[chosen] if isinstance(self._targets, Tensor) else self._targets.batch(chosen, width)
        return Batch(chosen, fields, lengths, targets, self._scored.batch(chosen, width).bool(), self.form)

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


def _counted(split: Split) -> np.ndarray | None:
    """The scored positions of each item; None where an item is scored as a whole."""
    if not isinstance(split.targets, Ragged):
        return None
    if split.scored is None:
        return np.asarray(split.targets.lengths)
    running = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(split.scored.values, dtype=np.int64)])
    return np.asarray(running[split.scored.offsets[1:]] - running[split.scored.offsets[:-1]])


@dataclass
class Sampler:
    """Which items each step trains on: a function of the seed and of how many steps were taken, and of nothing else.

    Each epoch is shuffled anew; what does not fill a batch is left out, as NDR does; then items are sorted by length
    within a pool of batches, so that little is padded, and the batches are shuffled again. (To leave out after sorting
    would leave out the longest.) Fewer items than a batch are one batch.

    With `tokens`, `batch` is how many tokens a batch has at most, padding included, and no item is left out; one that
    is longer is a batch of its own."""

    lengths: np.ndarray
    batch: int
    seed: int
    epoch: int = 0
    position: int = 0
    tokens: bool = False

    def __post_init__(self) -> None:
        self._order = self._epoch(self.epoch)

    def __len__(self) -> int:
        """The batches of this epoch."""
        return len(self._order)

    def _epoch(self, epoch: int) -> list[np.ndarray]:
        random = np.random.default_rng([self.seed, epoch])
        count = len(self.lengths)
        size = self.batch
        if self.tokens:
            size = max(int(self.batch / max(float(self.lengths.mean()), 1.0)), 1)
        items = random.permutation(count)[: count if self.tokens else count - count % size or count]
        pool = size * _POOL
        pools = [items[start : start + pool] for start in range(0, len(items), pool)]
        batches = [
            part[start:stop]
            for part in (some[np.argsort(self.lengths[some], kind="stable")] for some in pools)
            for start, stop in self._cuts(part)
        ]
        return [batches[index] for index in random.permutation(len(batches))]

    def _cuts(self, items: np.ndarray) -> Iterator[tuple[int, int]]:
        """Where the batches of a pool begin and end; its items are sorted by length."""
        start = 0
        while start < len(items):
            stop = start + 1 if self.tokens else min(start + self.batch, len(items))
            while self.tokens and stop < len(items) and (stop - start + 1) * self.lengths[items[stop]] <= self.batch:
                stop += 1
            yield start, stop
            start = stop

    def next(self) -> np.ndarray:
        """The items of the next step."""
        if self.position >= len(self._order):
            self.epoch += 1
            self.position = 0
            self._order = self._epoch(self.epoch)
        items = self._order[self.position]
        self.position += 1
        return items
