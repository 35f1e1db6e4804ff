"""Computes a batch that is padded to no position with one position of padding."""

from collections.abc import Mapping, Sequence

import torch
import torch.nn.functional as F
from jaxtyping import Int, Shaped
from torch import Tensor

from archlang.backend.runtime.inputs import Field, evaluate_length
from archlang.types import Axis, Dim, Type


def pad_empty_axes(
    fields: Sequence[Field],
    values: Sequence[Shaped[Tensor, "b *_"]],
    lengths: Mapping[str, Int[Tensor, " b"]],
    sizes: Mapping[str, int],
) -> tuple[list[Shaped[Tensor, "b *_"]], dict[str, Int[Tensor, " b"]]]:
    """Returns the fields, padded to one position where a length in `sizes` is 0, and the lengths of all samples, which
    include those of the padded fields."""
    padded_sizes = {name: max(1, size) for name, size in sizes.items()}
    padded: list[Tensor] = []
    lengths = dict(lengths)
    for field, value in zip(fields, values, strict=True):
        if not field.is_tensor:
            padded.append(value)
            continue
        counts = value.shape[1:]
        missing = [
            _padded_size(size, padded_sizes, count) - count for size, count in zip(field.sizes, counts, strict=True)
        ]
        if field.length is not None and missing[0] and field.name not in lengths:
            lengths[field.name] = value.new_full((len(value),), value.shape[1], dtype=torch.int64)
        # torch pads the last axis first.
        padded.append(F.pad(value, [end for size in reversed(missing) for end in (0, size)]) if any(missing) else value)
    return padded, lengths


def remove_padding(result: Shaped[Tensor, "b *_"], kind: Type, sizes: Mapping[str, int]) -> Shaped[Tensor, "b *_"]:
    """Returns a result of a type, narrowed to the lengths that follow from `sizes`, those before padding."""
    for axis, (dim, axis_kind) in enumerate(zip(kind.dims, kind.axes, strict=True), start=1):
        if axis_kind is Axis.LENGTH and dim.names and dim.names <= sizes.keys():
            result = result.narrow(axis, 0, min(result.shape[axis], evaluate_length(dim, sizes)))
    return result


def _padded_size(size: int | str | Dim, sizes: Mapping[str, int], count: int) -> int:
    """The size of an axis of `count` positions after padding."""
    if isinstance(size, str):
        return sizes[size]
    return evaluate_length(size, sizes) if isinstance(size, Dim) and size.names <= sizes.keys() else count
