"""Linear recurrences by the kernels of flash-linear-attention, where it is installed and asked for."""

import os
from collections.abc import Sequence
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from archlang.backend.runtime.stacking import is_plain, is_stacked

SWITCH = "ARCHLANG_FLA"
"""the environment variable that turns the kernels on, if it is 1: their results have not been compared with ours"""


def is_asked_for(v: Float[Tensor, "b h n v"]) -> bool:
    """Returns whether the kernels compute the recurrence of these values: only half precision on a GPU, as they refuse
    float32 in part, and no transform, for which they have no rules."""
    return (
        os.environ.get(SWITCH) == "1"
        and is_plain()
        and not is_stacked()
        and v.shape[2] > 0
        and v.is_cuda
        and v.dtype in (torch.bfloat16, torch.float16)
        and find_spec("fla") is not None
    )


def flash_recurrence(
    terms: Sequence[Tensor | None], state: Float[Tensor, "b h k v"] | None, mask: Bool[Tensor, "b n"] | None
) -> tuple[Float[Tensor, "b h n v"], Float[Tensor, "b h k v"]]:
    """As `linear_recurrence`; `terms` are q, k, v, g, a and b."""
    q, k, v, g, a, b = (None if term is None else _positions_first(term, mask) for term in terms)
    assert k is not None
    assert v is not None
    if b is not None and b.shape[-1] == 1:
        b = b * k
    arguments = [None if value is None else value.to(v.dtype) for value in (q, k, v, a, b)]
    options: dict[str, Any] = {"scale": 1.0, "output_final_state": True}  # Any: as above
    if state is not None:
        options["initial_state"] = state.float()
    ops: Any = import_module("fla.ops")  # Any: the package has no types
    g = None if g is None else g.float()
    if a is not None:
        g = torch.zeros_like(k, dtype=torch.float32) if g is None else g.expand(k.shape)
        o, last = ops.chunk_dplr_delta_rule(*arguments, g.contiguous(), **options)
    elif g is not None and g.shape[-1] == k.shape[-1]:
        o, last = ops.chunk_gla(*arguments[:3], g, **options)
    else:
        o, last = ops.chunk_simple_gla(*arguments[:3], None if g is None else g[..., 0], **options)
    return o.transpose(1, 2), last.to(o.dtype)


def _positions_first(term: Float[Tensor, "b h n c"], mask: Bool[Tensor, "b n"] | None) -> Float[Tensor, "b n h c"]:
    if mask is not None:  # padding leaves the state as it is
        term = term.masked_fill(~mask[:, None, :, None], 0.0)
    return term.transpose(1, 2).contiguous()
