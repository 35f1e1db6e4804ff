"""Random samples of inputs, and padded batches of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from archlang.types import Dim, Type

# The most positions of padding that a sample has.
_MOST_PADDING = 8
# Padding is much larger than values at real positions, so that reading it changes results visibly.
_PADDING_SCALE = 30.0

Sizes = Mapping[str, int]


@dataclass(frozen=True, eq=False)
class Sample:
    """The lengths of a sample by name, a value without padding for each input, and a longer tensor for each input,
    whose end is its padding."""

    sizes: Sizes
    values: tuple[Tensor, ...]
    padding: tuple[Tensor, ...]

    def with_value(self, index: int, value: Tensor) -> Sample:
        """Returns a copy of the sample with another value of one input."""
        values = list(self.values)
        values[index] = value
        return replace(self, values=tuple(values))


def draw(kinds: Sequence[Type], sizes: Sizes, generator: torch.Generator) -> Sample:
    """Returns a random sample of these lengths, in float64."""
    values = tuple(random_value(kind, shape(kind, sizes), generator) for kind in kinds)
    return repad(Sample(sizes, values, ()), kinds, generator)


def repad(sample: Sample, kinds: Sequence[Type], generator: torch.Generator, content: float | None = None) -> Sample:
    """Returns a copy of the sample with other padding: random numbers, or `content`."""
    longest = {name: size + _MOST_PADDING for name, size in sample.sizes.items()}
    padding = []
    for kind, value in zip(kinds, sample.values, strict=True):
        filler = random_value(kind, shape(kind, longest), generator)
        if kind.name in ("seq", "map", "probs"):
            filler = filler * _PADDING_SCALE if content is None else torch.full_like(filler, content)
        if kind.name == "pointer":
            filler[..., value.shape[-1] :] = 0.0  # pointers to padded slots have no weight
        padding.append(filler)
    return replace(sample, padding=tuple(padding))


def random_value(kind: Type, shape: Sequence[int], generator: torch.Generator) -> Tensor:
    """Returns a random value of a type: normal numbers, tokens, bits, probabilities, or weights that sum to 1."""
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


def shape(kind: Type, sizes: Sizes) -> tuple[int, ...]:
    """Returns the shape of a value at these lengths, without the batch axis."""
    return tuple(length(size, sizes) for size in kind.tensor_dims)


def length(size: Dim, sizes: Sizes) -> int:
    """Evaluates a size at these lengths."""
    number = size.substitute({name: Dim.of(value) for name, value in sizes.items()}).constant
    assert number is not None, f"the size {size} is not known from {dict(sizes)}"
    return number


def longest(samples: Sequence[Sample]) -> dict[str, int]:
    """Returns the largest of each length in a batch."""
    return {name: max(sample.sizes[name] for sample in samples) for name in samples[0].sizes}


def collate(kinds: Sequence[Type], samples: Sequence[Sample], padded: Sizes) -> list[Tensor]:
    """Returns one tensor for each input, padded to these lengths."""
    return [
        torch.stack([_padded(sample, index, shape(kind, padded)) for sample in samples])
        for index, kind in enumerate(kinds)
    ]


def _padded(sample: Sample, index: int, size: Sequence[int]) -> Tensor:
    value = sample.values[index]
    if value.shape == tuple(size):
        return value
    padded = sample.padding[index][tuple(slice(0, count) for count in size)].clone()
    padded[tuple(slice(0, count) for count in value.shape)] = value
    return padded


def mask(size: Dim, samples: Sequence[Sample], padded: Sizes) -> Tensor | None:
    """Returns a mask [b n], true at real positions; None for a constant length."""
    if size.constant is not None:
        return None
    real = torch.tensor([length(size, sample.sizes) for sample in samples])
    return torch.arange(length(size, padded)) < real[:, None]
