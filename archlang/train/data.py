"""A split as tensors on the device, and its batches."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import reduce

import numpy as np
import numpy.typing as npt
import torch
from jaxtyping import Bool, Int, Shaped
from torch import Tensor

from archlang.tasks.kit.split import Ragged, Split, TargetForm, arrays_of
from archlang.train.settings import Settings

# The batches whose items are sorted by length together: enough to pad little, few enough to stay random.
_POOL = 16
# The longest item of a batch of many tokens, as a multiple of the shortest.
_MOST_PADDED, _FEWEST_TOKENS = 1.1, 1 << 12
# Integers that torch can index on every device; others are widened to int64.
_NARROW = (np.uint8, np.int32, np.bool_)
_STORED = (*_NARROW, np.float32)
# The share of a GPU's memory that a split takes at most; batches of a larger one are sent to the GPU one by one.
_LARGEST_SHARE = 1 / 8


@dataclass(frozen=True, eq=False)
class Sequences:
    """Ragged sequences as one flat tensor, from which a batch is gathered in one operation. A batch of tokens is int64;
    a batch of rows of features or truths is float32. On the CPU, the tensors are the arrays of the split themselves,
    which the cache maps, so that only the read pages are in memory and processes share them."""

    values: Shaped[Tensor, " places *k"]
    offsets: Int[Tensor, " starts"]
    common: int | None
    """the length of every sequence if all are equal; such batches are not padded"""

    @staticmethod
    def of(ragged: Ragged, device: torch.device) -> Sequences:
        """Moves ragged sequences to a device. Narrow integers stay narrow, which saves up to 7/8 of the memory."""
        dtype = ragged.values.dtype
        if ragged.values.ndim == 2:
            dtype = dtype if dtype in _NARROW else np.dtype(np.float32)
        values = _tensor(ragged.values, dtype if dtype in _STORED else np.int64).to(device)
        lengths = ragged.lengths
        common = int(lengths[0]) if len(lengths) and lengths.min() == lengths.max() else None
        return Sequences(values, _tensor(ragged.offsets, np.int64).to(device), common)

    def lengths(self, items: Int[Tensor, " b"]) -> Int[Tensor, " b"]:
        """Returns the lengths of the sequences of these items."""
        return self.offsets[items + 1] - self.offsets[items]

    def inside(self, items: Int[Tensor, " b"], width: int) -> Bool[Tensor, "b n"]:
        """Returns which places of a batch of this width are positions of its sequences."""
        return torch.arange(width, device=items.device) < self.lengths(items)[:, None]

    def batch(self, items: Int[Tensor, " b"], width: int) -> Shaped[Tensor, "b n *k"]:
        """Returns the sequences of these items, padded with zeros on the right to `width`."""
        row_shape = self.values.shape[1:]
        dtype = torch.float32 if row_shape else torch.int64
        if width == self.common:
            return self.values.view(-1, width, *row_shape)[items].to(dtype)
        if not len(self.values):
            return torch.zeros(len(items), width, *row_shape, dtype=dtype, device=items.device)
        places = self.offsets[items][:, None] + torch.arange(width, device=items.device)
        inside = self.inside(items, width)
        values = self.values[places.clamp_(max=len(self.values) - 1)].to(dtype)
        return values * (inside[..., None] if row_shape else inside)


@dataclass(frozen=True, eq=False)
class Batch:
    """The tensors of some items: by name, each field, tokens [b, n] of int64 or rows of numbers [b, n, k] of float32,
    padded with zeros at the end, and its lengths [b].

    Targets are classes [b], the first and the last position of spans [b, 2], classes of positions [b, n], sets or
    numbers of positions [b, n, k] or positions of the field `points_at` [b, n]. `scored` [b, n] marks the positions
    that count, or the positions that a span can have; it is None for classes."""

    items: Int[Tensor, " b"]
    fields: dict[str, Shaped[Tensor, "b _n *_k"]]
    lengths: dict[str, Int[Tensor, " b"]]
    targets: Shaped[Tensor, "b *_"]
    scored: Bool[Tensor, "b n"] | None
    form: TargetForm = TargetForm.CLASSES
    points_at: str = ""

    @property
    def choices(self) -> Bool[Tensor, "b _n"] | None:
        """The real positions of the field that answers point at; None if they do not."""
        if not self.points_at:
            return None
        lengths = self.lengths[self.points_at]
        return torch.arange(self.fields[self.points_at].shape[1], device=lengths.device) < lengths[:, None]

    def to(self, device: torch.device) -> Batch:
        """Returns the batch on a device, which may still wait for it."""
        return replace(
            self, items=_sent(self.items, device), targets=_sent(self.targets, device),
            fields={name: _sent(field, device) for name, field in self.fields.items()},
            lengths={name: _sent(lengths, device) for name, lengths in self.lengths.items()},
            scored=None if self.scored is None else _sent(self.scored, device),
        )  # fmt: skip


def _sent(tensor: Tensor, device: torch.device) -> Tensor:
    # A copy from memory that is not pinned would wait for all queued work of the device.
    return (tensor.pin_memory() if device.type == "cuda" else tensor).to(device, non_blocking=True)


def _room(device: torch.device) -> float:
    if device.type != "cuda":
        return float("inf")
    return torch.cuda.get_device_properties(device).total_memory * _LARGEST_SHARE


class DeviceSplit:
    """A split whose batches are on a device. It is there itself if it is not too large."""

    def __init__(self, split: Split, device: torch.device) -> None:
        self.size = len(split)
        self.device = device
        self.is_resident = sum(array.nbytes for array in arrays_of(split.parts()).values()) <= _room(device)
        device = device if self.is_resident else torch.device("cpu")
        self.form = split.form
        self.points_at = split.points_at
        self._fields = {name: Sequences.of(ragged, device) for name, ragged in split.inputs.items()}
        targets = split.targets
        self._targets = (
            Sequences.of(targets, device) if isinstance(targets, Ragged) else _tensor(targets, np.int64).to(device)
        )
        # Without `scored`, every position of the targets counts.
        has_marks = split.scored is not None and self.form is not TargetForm.CLASSES
        self._scored = Sequences.of(split.scored, device) if split.scored is not None and has_marks else None
        # The host chooses the items of a batch and its width, so that it does not wait for the device.
        self.lengths = reduce(np.maximum, (ragged.lengths for ragged in split.inputs.values()))
        self.frequencies = split.frequencies
        self._offsets = [ragged.offsets for ragged in split.inputs.values()]
        marked = targets if isinstance(targets, Ragged) else split.scored
        if marked is not None:
            self._offsets.append(marked.offsets)
        self._scored_before = _scored_before(split)

    def loss_count(self, items: np.ndarray) -> int:
        """Returns the number of losses in the mean loss of these items: scored positions, or items."""
        return len(items) if self._scored_before is None else int(_lengths(self._scored_before, items).sum())

    def batch(self, items: np.ndarray) -> Batch:
        """Returns the batch of some items."""
        return self.gather(self.place(items), self.widths(items))

    def widths(self, items: np.ndarray) -> tuple[int, ...]:
        """Returns the widths of a batch of these items: of each field, then of the scored positions if there are
        any."""
        return tuple(int(_lengths(offsets, items).max(initial=1)) for offsets in self._offsets)

    def place(self, items: np.ndarray) -> Int[Tensor, " b"]:
        """Copies the indices of items to where the split is."""
        indices = torch.from_numpy(items)
        return _sent(indices, self.device) if self.is_resident else indices

    def gather(self, items: Int[Tensor, " b"], widths: Sequence[int]) -> Batch:
        """Returns the batch of some items, whose indices `place` has copied. `widths` are those of `self.widths`."""
        columns = zip(self._fields.items(), widths, strict=False)
        fields = {name: field.batch(items, width) for (name, field), width in columns}
        lengths = {name: field.lengths(items) for name, field in self._fields.items()}
        if isinstance(self._targets, Tensor):
            targets = self._targets[items]
            scored = None if self._scored is None else self._scored.batch(items, widths[-1]).bool()
        else:
            targets, marks = self._targets.batch(items, widths[-1]), self._scored
            inside = self._targets.inside(items, widths[-1])
            scored = inside if marks is None else marks.batch(items, widths[-1]).bool()
        batch = Batch(items, fields, lengths, targets, scored, self.form, self.points_at)
        return batch if self.is_resident else batch.to(self.device)

    def batches_by_length(self, size: int, tokens: int = 1 << 15) -> Iterator[Batch]:
        """Yields every item once, short items first: at most `size` items and about `tokens` tokens a batch, and little
        padding if it has enough tokens."""
        return map(self.batch, self.items_by_length(size, tokens))

    def items_by_length(self, size: int, tokens: float = 1 << 15, *, equal: bool = False) -> Iterator[np.ndarray]:
        """Yields the items of each batch of `batches_by_length`; with `equal`, a batch has items of one length."""
        batch: list[int] = []
        for item in np.argsort(self.lengths, kind="stable"):
            length = self.lengths[item]
            is_full = len(batch) == size or (len(batch) + 1) * length > tokens
            shortest = self.lengths[batch[0]] if batch else length
            is_padded = length > _MOST_PADDED * shortest and len(batch) * length >= _FEWEST_TOKENS
            if batch and (is_full or is_padded or (equal and length != shortest)):
                yield np.asarray(batch)
                batch = []
            batch.append(item)
        if batch:
            yield np.asarray(batch)


def _tensor(array: np.ndarray, dtype: npt.DTypeLike) -> Tensor:
    """Returns the array itself as a tensor, or a copy if it has another type or is read-only, as torch's are not."""
    return torch.from_numpy(np.require(array, dtype, ["C", "W"]))


def _lengths(offsets: np.ndarray, items: np.ndarray) -> np.ndarray:
    return np.asarray(offsets[items + 1] - offsets[items])


def _scored_before(split: Split) -> np.ndarray | None:
    """Returns how many scored positions are before each item [N + 1]; None if items are scored."""
    if not isinstance(split.targets, Ragged):
        return None
    if split.scored is None:
        return split.targets.offsets
    running = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(split.scored.values, dtype=np.int64)])
    return np.asarray(running[split.scored.offsets])


@dataclass
class Sampler:
    """The items of each step, which depend on the seed and the number of steps alone.

    Each epoch shuffles the items. Those that do not fill a batch are the last batch of the epoch, with the same number
    of items for every seed; `drop_last` drops them. If `sampling` is `bucketed`, the others are sorted by length within
    a pool of batches, so that batches need little padding, and the batches are shuffled. (Sorting before would make the
    longest items the last ones.) If there are fewer items than a batch holds, they are one batch. A `sequential` epoch
    has the items in their order, and with `replacement` each item of an epoch is drawn from all of them.

    With `tokens`, `batch` is the maximum number of tokens of a batch, padding included, and no item is dropped. An item
    with more tokens is a batch of its own.

    With `frequencies`, an item is in an epoch as often as its share of their sum says, rounded up or down; an epoch has
    as many items as before."""

    lengths: np.ndarray
    batch: int
    seed: int
    epoch: int = 0
    position: int = 0
    tokens: bool = False
    sampling: str = "bucketed"
    drop_last: bool = False
    frequencies: np.ndarray | None = None

    @staticmethod
    def of(settings: Settings, data: DeviceSplit, seed: int, epoch: int = 0, position: int = 0) -> Sampler:
        """The items of the steps of a run."""
        is_by_tokens = settings.batch_of == "tokens"
        # Deep supervision keeps the states of a whole batch; its rows take the next items when their own have ended.
        drop_last = settings.drop_last or settings.supervise == "deep"
        return Sampler(
            data.lengths, settings.batch, seed, epoch, position, is_by_tokens, settings.sampling, drop_last,
            data.frequencies,
        )  # fmt: skip

    def __post_init__(self) -> None:
        self._order = self._epoch(self.epoch)

    def __len__(self) -> int:
        return len(self._order)

    def _epoch(self, epoch: int) -> list[np.ndarray]:
        random = np.random.default_rng([self.seed, epoch])
        count = len(self.lengths)
        size = self.batch
        if self.tokens:
            size = max(int(self.batch / max(float(self.lengths.mean()), 1.0)), 1)
        full = count if self.tokens else count - count % size or count
        items, rest = np.split(self._order_of_items(random), [full])
        last = [rest] if len(rest) and not self.drop_last else []
        if self.sampling != "bucketed":
            return [*self._batches_of(items), *last]
        pool = size * _POOL
        pools = [items[start : start + pool] for start in range(0, len(items), pool)]
        batches = [
            batch
            for pool_items in pools
            for batch in self._batches_of(pool_items[np.argsort(self.lengths[pool_items], kind="stable")])
        ]
        return [*(batches[index] for index in random.permutation(len(batches))), *last]

    def _order_of_items(self, random: np.random.Generator) -> np.ndarray:
        count = len(self.lengths)
        if self.frequencies is not None:
            shares = self.frequencies / self.frequencies.max()  # so that no sum overflows
            return self._weighted_items(random, shares / shares.sum())
        if self.sampling == "sequential":
            return np.arange(count)
        return random.integers(count, size=count) if self.sampling == "replacement" else random.permutation(count)

    def _weighted_items(self, random: np.random.Generator, shares: np.ndarray) -> np.ndarray:
        count = len(shares)
        if self.sampling == "replacement":
            return random.choice(count, count, p=shares)
        # Systematic sampling: items of one share follow one another, so that the sum of their numbers is exact too.
        items = random.permutation(count)
        items = items[np.argsort(shares[items], kind="stable")]
        ends = np.floor(np.cumsum(shares[items]) * count + random.random())
        ends[-1] = count
        items = np.repeat(items, np.diff(ends, prepend=0).astype(np.int64))
        return np.sort(items) if self.sampling == "sequential" else random.permutation(items)

    def _batches_of(self, items: np.ndarray) -> Iterator[np.ndarray]:
        start = 0
        while start < len(items):
            stop = min(start + self.batch, len(items))
            if self.tokens:
                widths = np.maximum.accumulate(self.lengths[items[start:stop]])
                fits = widths * np.arange(1, len(widths) + 1) <= self.batch
                stop = start + max(int(fits.argmin()) if not fits.all() else len(fits), 1)
            yield items[start:stop]
            start = stop

    @property
    def has_ended(self) -> bool:
        """Whether the next step begins an epoch."""
        return self.position >= len(self._order)

    def next(self) -> np.ndarray:
        """Returns the items of the next step."""
        if self.has_ended:
            self.epoch += 1
            self.position = 0
            self._order = self._epoch(self.epoch)
        items = self._order[self.position]
        self.position += 1
        return items
