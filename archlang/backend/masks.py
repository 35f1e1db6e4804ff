"""Which positions of a batch are real."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from jaxtyping import Bool, Int, Shaped
from torch import Tensor

from archlang.backend import mistakes
from archlang.backend.lower import Program


def make_masks(
    program: Program,
    fields: Sequence[Shaped[Tensor, "b _n *_d"]],
    lengths: Int[Tensor, " b"] | Mapping[str, Int[Tensor, " b"]],
) -> list[Bool[Tensor, "b _n"] | None]:
    """The masks that a program's code takes: each from the first field of its length whose lengths are given."""
    name, names = program.graph.name, program.fields
    if isinstance(lengths, Tensor):
        if len(names) > 1:
            raise mistakes.lengths_of_which(name, names)
        lengths = {names[0]: lengths}
    if unknown := lengths.keys() - set(names):
        raise mistakes.lengths_of_no_field(name, unknown, names)
    masks: list[Bool[Tensor, "b _n"] | None] = []
    for candidates in program.masked:
        field = next((index for index in candidates if names[index] in lengths), None)
        if field is None:
            masks.append(None)
        else:
            tokens, real = fields[field], lengths[names[field]]
            masks.append(torch.arange(tokens.shape[1], device=tokens.device) < real[:, None])
    return masks
