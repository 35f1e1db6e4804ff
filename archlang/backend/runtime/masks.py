"""Makes the masks of the real positions of a batch."""

from collections.abc import Mapping, Sequence

import torch
from jaxtyping import Bool, Int, Shaped
from torch import Tensor

from archlang.backend.lower.regions import PythonProgram


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
