"""A batch that is padded to no position is computed with one position, of which nothing is real."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
import torch.nn.functional as F
from jaxtyping import Int, Shaped
from torch import Tensor

from archlang.backend.runtime.inputs import Field, evaluated
from archlang.types import Axis, Dim, Type


def with_positions(
    fields: Sequence[Field],
    values: Sequence[Shaped[Tensor, "b *_"]],
    lengths: Mapping[str, Int[Tensor, " b"]],
    sizes: Mapping[str, int],
) -> tuple[list[Shaped[Tensor, "b *_"]], dict[str, Int[Tensor, " b"]]]:
    """The fields with a position where a length in `sizes` is 0, and the lengths with those of such fields."""
    padded_sizes = {name: max(1, size) for name, size in sizes.items()}
    padded: list[Tensor] = []
    lengths = dict(lengths)
    for field, value in zip(fields, values, strict=True):
        if not field.is_tensor:
            padded.append(value)
            continue
        wanted = [_padded_size(size, padded_sizes, now) for size, now in zip(field.sizes, value.shape[1:], strict=True)]
        missing = [size - now for size, now in zip(wanted, value.shape[1:], strict=True)]
        if field.length is not None and missing[0] and field.name not in lengths:
            lengths[field.name] = value.new_full((len(value),), value.shape[1], dtype=torch.int64)
        # torch pads the last axis first.
        padded.append(F.pad(value, [end for size in reversed(missing) for end in (0, size)]) if any(missing) else value)
    return padded, lengths


def without_padding(result: Shaped[Tensor, "b *_"], kind: Type, sizes: Mapping[str, int]) -> Shaped[Tensor, "b *_"]:
    """A result of a type, cut to the lengths that it has for the sizes of the fields before they were padded."""
    for axis, (dim, what) in enumerate(zip(kind.dims, kind.axes, strict=True), start=1):
        if what is Axis.LENGTH and dim.names and dim.names <= sizes.keys():
            result = result.narrow(axis, 0, min(result.shape[axis], evaluated(dim, sizes)))
    return result


def _padded_size(size: int | str | Dim, sizes: Mapping[str, int], now: int) -> int:
    if isinstance(size, str):
        return sizes[size]
    return evaluated(size, sizes) if isinstance(size, Dim) and size.names <= sizes.keys() else now
