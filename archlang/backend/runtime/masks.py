"""The masks of the real positions of a batch, and what stands at the others."""

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from jaxtyping import Bool, Int, Shaped
from torch import Tensor

from archlang.backend.lower.regions import PythonProgram
from archlang.types import Dim


def code_inputs(
    program: PythonProgram, fields: Sequence[Shaped[Tensor, "b *_d"]], lengths: Mapping[str, Int[Tensor, " b"]]
) -> list[Any]:  # Any: a number as a field, or None for a mask
    """Returns the fields and masks that a program's code takes. The mask of a length comes from its first field that is
    in `lengths`; it is None if there is none: all positions are real."""
    masks: dict[Dim | None, Bool[Tensor, "b _n"]] = {}
    for field, value in zip(program.inputs, fields, strict=True):
        if field.name in lengths and field.length not in masks:
            masks[field.length] = torch.arange(value.shape[1], device=value.device) < lengths[field.name][:, None]
    filled = [
        filled_padding(value, masks.get(field.length)) for field, value in zip(program.inputs, fields, strict=True)
    ]
    return [*filled, *(masks.get(program.inputs[first].length) for first, *_ in program.masked)]


def filled_padding(x: Shaped[Tensor, "b n *_d"], mask: Bool[Tensor, "b n"] | None) -> Shaped[Tensor, "b n *_d"]:
    """Returns x with a copy of the sample's first position at padding, zeros if it has none. So what a model computes
    of padding is finite where it is for real positions, and so are its derivatives."""
    if mask is None:
        return x
    mask = mask.reshape(*mask.shape, *[1] * (x.dim() - 2))
    return torch.where(mask, x, x[:, :1].detach().masked_fill(~mask[:, :1], 0))
