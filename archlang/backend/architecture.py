"""The torch module of a model."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from jaxtyping import Float, Int, Shaped
from torch import Tensor

import archlang
from archlang.backend import mistakes
from archlang.backend.attach import attach_program
from archlang.backend.decode.greedy import Decoded, decode
from archlang.backend.decode.sampling import Choose
from archlang.backend.lower.code import add_source_notes
from archlang.backend.lower.regions import PythonProgram
from archlang.backend.runtime.call_cache import call_scope
from archlang.backend.runtime.inputs import Lengths, check_fields, check_lengths
from archlang.backend.runtime.loops import DEPTH, PONDER, EmittingLoop, ModuleGroup, ObservedLoop, StepResults
from archlang.backend.runtime.masks import code_inputs
from archlang.graph.graph import loop_of_results
from archlang.graph.operations import LOSSES


class Architecture(ModuleGroup):
    """A compiled model.

        logits = module(tokens)
        logits = module(source, target, lengths={"source": source_lengths, "target": target_lengths})

    Tokens are Int64[b n] and sequences Float[b n d], padded at the end. `lengths`, Int64[b] or a list of integers, has
    the number of real positions of each sample; if all fields share one length, it needs no name. Without lengths, all
    positions are real.

    After a call, `ponder` is what halting loops add to the loss, averaged over the batch (0 without such loops).
    `mean_depth` is the number of steps of the outermost halting loops, averaged over the batch, and `sample_depth` [b]
    that of each sample (None without such loops). `losses` has the auxiliary losses by their names, averaged over the
    batch. `sample_losses` has those of each sample, [b], without gradients.

    A module can be copied, pickled, and sent to other processes. The copy has the weights and the program, whose Python
    it compiles again."""

    ponder: Float[Tensor, ""]
    mean_depth: Float[Tensor, ""] | None
    sample_depth: Float[Tensor, " b"] | None
    losses: Mapping[str, Float[Tensor, ""]]
    sample_losses: Mapping[str, Float[Tensor, " b"]]

    def __init__(self, program: PythonProgram) -> None:
        super().__init__()
        self.program = program
        self.ponder = torch.zeros(())
        self.mean_depth = None
        self.sample_depth = None
        self.losses = {}
        self.sample_losses = {}

    def forward(
        self, *fields: Shaped[Tensor, "b *_"], lengths: Lengths | Mapping[str, Lengths] | None = None
    ) -> Float[Tensor, "b *classes"]:
        """Returns the result for a batch of `fields`, [b n] or [b n d] each.

        Raises:
            TypeError: the number of fields, or the type of a field or of its lengths, is wrong.
            ValueError: a shape, a token or a length does not fit the program."""
        program = self.program
        name = program.graph.name
        if len(fields) != len(program.fields):
            raise mistakes.wrong_fields(name, program.fields, len(fields))
        check_fields(name, program.inputs, fields)
        return self._run(fields, check_lengths(name, program.inputs, fields, lengths))

    def _run(
        self, fields: Sequence[Shaped[Tensor, "b *_"]], lengths: Mapping[str, Int[Tensor, " b"]]
    ) -> Float[Tensor, "b *classes"]:
        program = self.program
        inputs = code_inputs(program, fields, lengths)
        with call_scope():
            try:
                results = program.code.function(self, *inputs)
            except (Exception, SystemExit) as error:
                add_source_notes(error, program.code)
                raise
        if not program.code.extras:
            result: Float[Tensor, "b *classes"] = results
            return result
        result, *extras = results
        if torch.compiler.is_exporting():  # an exported model has no attributes
            return result
        costs = dict(zip(program.code.extras, extras, strict=True))
        if PONDER in costs:
            self.ponder = costs.pop(PONDER).mean()
        if DEPTH in costs:
            self.sample_depth = costs.pop(DEPTH).detach()
            self.mean_depth = self.sample_depth.mean()
        losses = {name.removeprefix(LOSSES): cost for name, cost in costs.items()}
        self.losses = {name: loss.mean() for name, loss in losses.items()}
        self.sample_losses = {name: loss.detach() for name, loss in losses.items()}
        return result

    @contextmanager
    def keeping_steps(self) -> Iterator[StepResults]:
        """Yields the results of the steps of the loop whose emission the model returns, as the last call within the
        context leaves them; they are empty if the result is another value."""
        results = StepResults()
        loop = self.loop_of_results()
        if loop is None:
            yield results
            return
        loop.step_results = results
        try:
            yield results
        finally:
            loop.step_results = None

    def loop_of_results(self) -> EmittingLoop | None:
        """Returns the loop whose emission is the result; None if the result is another value."""
        node = loop_of_results(self.program.graph)
        names = [loop.name for loop in self.program.code.loops if node is not None and loop.node.id == node.id]
        loop = self.__dict__[names[0]] if names else None
        return loop.runtime if isinstance(loop, ObservedLoop) else loop

    def decode(
        self,
        *fields: Shaped[Tensor, "b *_"],
        lengths: Lengths | Mapping[str, Lengths] | None = None,
        begin: int | Int[Tensor, "b _k"],
        end: int | None = None,
        limit: int | None = None,
        answer_lengths: Lengths | None = None,
        cache: bool = True,
        choose: Choose | None = None,
    ) -> Decoded:
        """Decodes: returns the answers that result from choosing the likeliest token at each step, or what `choose`
        returns of the logits [b vocab]. The model must not see the future of the field that it writes.

            decoded = module.decode(source, lengths=source_lengths, begin=12, end=12, limit=50)
            decoded = module.decode(source, lengths=source_lengths, begin=12, end=12, answer_lengths=true_lengths)
            drawn = module.decode(begin=tokens, limit=50, choose=Sampling(top_p=0.9).of_items(range(len(tokens))))

        `fields` and `lengths` are those of `forward`, without the written field. The written field begins with the
        token `begin`, or with the tokens [b k]. A sample's answer stops before its first `end`. Decoding stops when all
        answers have ended, or after `limit` tokens. The default limit is 1,000 tokens if there is an `end`.

        `answer_lengths`, Int64[b] or a list of integers, sets the length of each answer, and `limit` is ignored. An
        answer then contains the likeliest token other than `end`, but the next step reads the likeliest token, which
        may be `end`. If there is an `end`, decoding takes one step more than the longest answer has tokens. Source: the
        oracle length of Csordás et al., "The Devil is in the Detail", 2021, as its program measures it.

        The module is in evaluation mode during decoding. With `cache`, each step computes new positions only; without
        it, the whole model.

        Raises:
            TypeError: the model writes no sequence, there is no limit, or an argument has the wrong type.
            ValueError: a shape, a token or a length does not fit the program."""
        return decode(self, self.program, fields, lengths, begin, end, limit, answer_lengths, cache, choose)

    def _repr_html_(self) -> str:
        # The public function: pictures are a later layer, and a module that was unpickled has imported none.
        return archlang.picture(self)

    def __getstate__(self) -> dict[str, Any]:  # Any: the state of a module
        # The results of the last call belong to its autograd graph, which cannot be copied.
        state = {**super().__getstate__(), "ponder": torch.zeros(()), "losses": {}, "sample_losses": {}}
        return {**state, "mean_depth": None, "sample_depth": None}

    def __setstate__(self, state: dict[str, Any]) -> None:  # Any: as above
        super().__setstate__(state)  # type: ignore[no-untyped-call]  # torch's own
        attach_program(self, self.program)
