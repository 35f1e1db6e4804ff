"""The masks of the real positions of a batch, and what stands at the others."""

from collections.abc import Mapping, Sequence

import torch
from jaxtyping import Bool, Int, Shaped
from torch import Tensor

from archlang.backend.lower.regions import PythonProgram
from archlang.backend.runtime.inputs import Field


def make_masks(
    program: PythonProgram, fields: Sequence[Shaped[Tensor, "b _n *_d"]], lengths: Mapping[str, Int[Tensor, " b"]]
) -> list[Bool[Tensor, "b _n"] | None]:
    """Returns the masks that a program's code takes. Each comes from the first field of its length that is in
    `lengths`, and is None if there is none: all positions are real."""
    names = program.fields
    masks: list[Bool[Tensor, "b _n"] | None] = []
    for candidates in program.masked:
        field = next((index for index in candidates if names[index] in lengths), None)
        if field is None:
            masks.append(None)
        else:
            tokens, real = fields[field], lengths[names[field]]
            masks.append(torch.arange(tokens.shape[1], device=tokens.device) < real[:, None])
    return masks


def without_padding_content(
    inputs: Sequence[Field], fields: Sequence[Shaped[Tensor, "b _n *_d"]], lengths: Mapping[str, Int[Tensor, " b"]]
) -> list[Shaped[Tensor, "b _n *_d"]]:
    """Returns the fields with a copy of each sample's first position at its padding, and zeros if it has none. So what
    a model computes of padding is finite where it is finite for real positions, and so are its derivatives."""
    filled = list(fields)
    for index, (field, value) in enumerate(zip(inputs, fields, strict=True)):
        same = (other.name for other in inputs if other.length == field.length is not None and other.name in lengths)
        name = field.name if field.name in lengths else next(same, None)
        if name is not None and value.shape[1]:
            real = torch.arange(value.shape[1], device=value.device) < lengths[name].to(value.device)[:, None]
            filled[index] = filled_padding(value, real)
    return filled


def filled_padding(x: Shaped[Tensor, "b n *_d"], mask: Bool[Tensor, "b n"]) -> Shaped[Tensor, "b n *_d"]:
    """Returns x with a constant at padding: the first position of the sample, or zeros if it has no real one."""
    mask = mask.reshape(*mask.shape, *[1] * (x.dim() - 2))
    return torch.where(mask, x, x[:, :1].detach().masked_fill(~mask[:, :1], 0))
