"""The module that a model becomes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from jaxtyping import Float, Int, Shaped
from torch import Tensor

from archlang.backend import mistakes
from archlang.backend.decode.greedy import Decoded, decode
from archlang.backend.lower.regions import Program
from archlang.backend.origins import explain
from archlang.backend.runtime.empty_batches import with_positions, without_padding
from archlang.backend.runtime.inputs import Lengths, check_fields, check_lengths
from archlang.backend.runtime.loops import Group
from archlang.backend.runtime.masks import make_masks
from archlang.backend.runtime.step_cache import one_call


class Architecture(Group):
    """A model, compiled.

        logits = module(tokens)
        logits = module(source, target, lengths={"source": source_lengths, "target": target_lengths})

    Tokens are Int64[b n] and sequences Float[b n d], padded behind; `lengths`, Int64[b] or a list of integers, say how
    many of them are real, and may stand alone where the model has one field. Without lengths all are real.

    After a call, `ponder` is what halting loops add to the loss (the batch mean; 0 without such loops), and
    `mean_depth` how many steps the outermost of them took, `sample_depth` for each sample (None without)."""

    ponder: Float[Tensor, ""]
    mean_depth: Float[Tensor, ""] | None
    sample_depth: Float[Tensor, " b"] | None

    def __init__(self, program: Program) -> None:
        super().__init__()
        self.program = program
        self.ponder = torch.zeros(())
        self.mean_depth = None
        self.sample_depth = None

    def forward(
        self,
        *fields: Shaped[Tensor, "b *_"],
        lengths: Lengths | Mapping[str, Lengths] | None = None,
    ) -> Float[Tensor, "b *classes"]:
        """The result for a batch.

        Raises:
            TypeError: a field or its lengths have the wrong kind.
            ValueError: a shape, a token or a length does not fit the program."""
        program = self.program
        name = program.graph.name
        if len(fields) != len(program.fields):
            raise mistakes.wrong_fields(name, program.fields, len(fields))
        sizes = check_fields(name, program.inputs, fields)
        known = check_lengths(name, program.inputs, fields, lengths)
        if 0 in sizes.values():
            padded, known = with_positions(program.inputs, fields, known, sizes)
            return without_padding(self._run(padded, known), program.result, sizes)
        return self._run(fields, known)

    def _run(
        self, fields: Sequence[Shaped[Tensor, "b *_"]], lengths: Mapping[str, Int[Tensor, " b"]]
    ) -> Float[Tensor, "b *classes"]:
        program = self.program
        masks = make_masks(program, fields, lengths)
        with one_call():
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
        self.sample_depth = depth.detach()
        self.mean_depth = self.sample_depth.mean()
        return result

    def decode(
        self,
        *fields: Shaped[Tensor, "b *_"],
        lengths: Lengths | Mapping[str, Lengths] | None = None,
        begin: int | Int[Tensor, "b _k"],
        end: int | None = None,
        limit: int | None = None,
        answer_lengths: Lengths | None = None,
        cache: bool = True,
    ) -> Decoded:
        """Writes answers, each time the likeliest token; for models that see the answer only up to where they write.

            written = module.decode(source, lengths=source_lengths, begin=12, end=12, limit=50)
            written = module.decode(source, lengths=source_lengths, begin=12, end=12, answer_lengths=true_lengths)

        `fields` are all but the one that is written, which begins with the token `begin` (or with tokens, [b k]). A
        sample's answer stops before its first `end`. When all have had theirs, or after `limit` tokens (1,000, if there
        is an end and nothing else is said), decoding stops.

        With `answer_lengths`, Int64[b] or a list of integers, each answer is as long as it says, and `limit` has no
        say: `end` is out of the question in it, but the model goes on from what it has chosen itself, which may be the
        end. If there is an end, decoding takes one step more than the longest answer has tokens. Source: the oracle
        length of Csordás et al., "The Devil is in the Detail", 2021, as its program measures it.

        The module is in evaluation mode meanwhile. With `cache` each step computes only what is new; without it, the
        whole model.

        Raises:
            TypeError: the model writes nothing, nothing says when to stop, or an argument has the wrong kind.
            ValueError: a shape, a token or a length does not fit the program."""
        return decode(self, self.program, fields, lengths, begin, end, limit, answer_lengths, cache)

    def __getstate__(self) -> dict[str, Any]:  # Any: the state of a module
        # What the last call left hangs on its autograd graph, which cannot be copied.
        return {**self.__dict__, "ponder": torch.zeros(()), "mean_depth": None, "sample_depth": None}
