"""Samples that a block is given, and batches of them with padding."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce

import torch
from torch import Tensor

from archlang.types import Dim, Type

# Positions of padding that each sample has at hand.
MOST_PADDING = 8
# Padding is far from what stands in real positions.
_PADDING_SCALE = 30.0
_CHUNK = 2

Sizes = Mapping[str, int]


@dataclass(frozen=True, eq=False)
class Sample:
    """One sample: the real length of each length name, a value for each input, and for each a longer tensor, from whose
    end padding is taken."""

    sizes: Sizes
    values: tuple[Tensor, ...]
    padding: tuple[Tensor, ...]

    def with_value(self, index: int, value: Tensor) -> Sample:
        """The sample with another value of one input."""
        values = list(self.values)
        values[index] = value
        return replace(self, values=tuple(values))


def draw(kinds: Sequence[Type], sizes: Sizes, generator: torch.Generator) -> Sample:
    """A random sample of these lengths, in float64."""
    values = tuple(random_value(kind, shape(kind, sizes), generator) for kind in kinds)
    return repad(Sample(sizes, values, ()), kinds, generator)


def repad(sample: Sample, kinds: Sequence[Type], generator: torch.Generator) -> Sample:
    """The same sample with other padding."""
    longest = {name: size + MOST_PADDING for name, size in sample.sizes.items()}
    padding = []
    for kind, value in zip(kinds, sample.values, strict=True):
        filler = random_value(kind, shape(kind, longest), generator)
        if kind.name in ("seq", "map", "probs", "chunks"):
            filler = filler * _PADDING_SCALE
        if kind.name == "pointer":
            filler[..., value.shape[-1] :] = 0.0  # nothing points at a slot that is not there
        padding.append(filler)
    return replace(sample, padding=tuple(padding))


def random_value(kind: Type, shape: Sequence[int], generator: torch.Generator) -> Tensor:
    """A value of a type: normal numbers, tokens of the vocabulary, bits, probabilities, or weights that sum to 1."""
    size = kind.feature.constant if kind.feature is not None else None
    match kind.name:
        case "tokens":
            return torch.randint(max(1, size or 1), tuple(shape), generator=generator)
        case "address":
            return torch.randint(2, tuple(shape), generator=generator).double()
        case "prob" | "probs":
            return torch.rand(tuple(shape), generator=generator, dtype=torch.float64)
    value = torch.randn(tuple(shape), generator=generator, dtype=torch.float64)
    return value.softmax(-1) if kind.name == "pointer" else value


def axes(kind: Type) -> tuple[Dim, ...]:
    """The sizes of a value's axes, in the order of its tensor."""
    if kind.name == "tokens":
        return kind.dims[:1]
    if kind.name == "pointer":
        steps, slots, pointers = kind.dims
        return steps, pointers, slots
    return kind.dims


def shape(kind: Type, sizes: Sizes) -> tuple[int, ...]:
    """The shape of a value without its batch, at these lengths."""
    return tuple(length(size, sizes) for size in axes(kind))


def length(size: Dim, sizes: Sizes) -> int:
    """A size as a number."""
    number = size.substitute({name: Dim.of(value) for name, value in sizes.items()}).constant
    assert number is not None, f"the size {size} is not known from {dict(sizes)}"
    return number


def longest(samples: Sequence[Sample]) -> dict[str, int]:
    """The lengths that a batch needs at least."""
    return {name: max(sample.sizes[name] for sample in samples) for name in samples[0].sizes}


def collate(kinds: Sequence[Type], samples: Sequence[Sample], padded: Sizes) -> list[Tensor]:
    """One tensor for each input, padded to these lengths."""
    return [
        torch.stack([_padded(sample, index, shape(kind, padded)) for sample in samples])
        for index, kind in enumerate(kinds)
    ]


def _padded(sample: Sample, index: int, size: Sequence[int]) -> Tensor:
    value = sample.values[index]
    if value.shape == tuple(size):
        return value
    whole = sample.padding[index][tuple(slice(0, count) for count in size)].clone()
    whole[tuple(slice(0, count) for count in value.shape)] = value
    return whole


def mask(size: Dim, samples: Sequence[Sample], padded: Sizes) -> Tensor | None:
    """[b, n]: which positions of a length are real; None for a length that is the same in all samples by its type."""
    if size.constant is not None:
        return None
    real = torch.tensor([length(size, sample.sizes) for sample in samples])
    return torch.arange(length(size, padded)) < real[:, None]


def as_argument(kind: Type, value: Tensor, real: Tensor | None) -> object:
    """A value as a block takes it: `chunks` are a list of parts with their masks."""
    if kind.name != "chunks":
        return value
    parts = torch.split(value, _CHUNK, dim=1)
    masks = [None] * len(parts) if real is None else torch.split(real, _CHUNK, dim=1)
    return list(zip(parts, masks, strict=True))


def described(sizes: Sizes) -> str:
    """Lengths as a message says them."""
    return reduce(lambda text, part: f"{text}, {part}" if text else part, (f"{k} = {v}" for k, v in sizes.items()), "")
