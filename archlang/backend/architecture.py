"""The module that a model becomes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from jaxtyping import Bool, Float, Int, Shaped
from torch import Tensor

from archlang.backend import mistakes
from archlang.backend.loops import Group
from archlang.backend.lower import Program
from archlang.backend.origins import explain


class Architecture(Group):
    """A model, compiled.

        logits = module(tokens)
        logits = module(source, target, lengths={"source": source_lengths, "target": target_lengths})

    Tokens are Int64[b n] and sequences Float[b n d], padded behind; `lengths`, Int64[b], say how many of them are real, and may stand alone where
    the model has one field. Without lengths all are real.

    After a call, `ponder` is what halting loops add to the loss (the batch mean; 0 without such loops), and
    `mean_depth` how many steps the outermost of them took (None without)."""

    ponder: Float[Tensor, ""]
    mean_depth: Float[Tensor, ""] | None

    def __init__(self, program: Program) -> None:
        super().__init__()
        self.program = program
        self.ponder = torch.zeros(())
        self.mean_depth = None

    def forward(
        self,
        *fields: Shaped[Tensor, "b _n *_d"],
        lengths: Int[Tensor, " b"] | Mapping[str, Int[Tensor, " b"]] | None = None,
    ) -> Float[Tensor, "b *classes"]:
        program = self.program
        if len(fields) != len(program.fields):
            raise mistakes.wrong_fields(program.graph.name, program.fields, len(fields))
        masks = [None] * len(program.masked) if lengths is None else make_masks(program, fields, lengths)
        try:
            results = program.code.function(self, *fields, *masks)
        except Exception as error:
            explain(error, program.code)
            raise
        if not program.code.extras:
            result: Float[Tensor, "b *classes"] = results
            return result
        result, ponder, depth = results
        self.ponder = ponder.mean()
        self.mean_depth = depth.mean().detach()
        return result

    def __getstate__(self) -> dict[str, Any]:  # Any: the state of a module
        # What the last call left hangs on its autograd graph, which cannot be copied.
        return {**self.__dict__, "ponder": torch.zeros(()), "mean_depth": None}


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
