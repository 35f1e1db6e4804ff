"""Decoding: a model writes its answer token by token, and chooses the likeliest token at each step, or draws it."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int, Shaped
from torch import Tensor, nn

from archlang.backend import mistakes
from archlang.backend.decode.incremental import Extension
from archlang.backend.decode.sampling import Choose
from archlang.backend.lower.regions import PythonProgram
from archlang.backend.runtime.inputs import Lengths, check_fields, check_lengths, sample_lengths
from archlang.backend.runtime.masks import code_inputs
from archlang.graph.causality import horizon
from archlang.graph.graph import Graph

LIMIT = 1_000
"""The default limit of the tokens of an answer: a model may never choose the end."""


@dataclass(frozen=True, eq=False)
class Decoded:
    """The answers that a model has written.

    `tokens` [b t] are the answers without their ends, padded with the end, or with 0 if there is none. `lengths` [b]
    are the numbers of their tokens. `choices` [b t] are the chosen tokens of all steps, which the model read in
    the next steps; they include an end and the tokens after it. `logits` [b t vocab] are those of all steps."""

    tokens: Int[Tensor, "b t"]
    lengths: Int[Tensor, " b"]
    choices: Int[Tensor, "b t"]
    logits: Float[Tensor, "b t vocab"]


def target_of(graph: Graph) -> int | None:
    """Returns the index of the field that a model writes, or None if it writes none.

    That field has the length and the vocabulary of the result, no other field has that length, and a position of the
    result does not depend on later positions of the field."""
    region = graph.region
    result = region.types()[region.results[0]]
    same = [index for index, value in enumerate(region.inputs) if value.type.lengths[:1] == result.lengths[:1] != ()]
    if len(same) != 1:
        return None
    field = region.inputs[same[0]]
    writes = field.type.name == "tokens" and field.type.feature == result.feature
    return same[0] if writes and not horizon(graph, field.name).sees_future else None


@torch.no_grad()
def decode(
    module: nn.Module,
    program: PythonProgram,
    fields: Sequence[Shaped[Tensor, "b *_"]],
    lengths: Lengths | Mapping[str, Lengths] | None,
    begin: int | Int[Tensor, "b _k"],
    end: int | None,
    limit: int | None,
    answer_lengths: Lengths | None,
    cache: bool,
    choose: Choose | None = None,
    watch: Callable[[float], None] = lambda share: None,
    steps: int | None = None,
) -> Decoded:
    """Implements `Architecture.decode`. Calls `watch` after each step with the share of the most possible steps
    that are done, above 0 and at most 1. `steps` is the number of steps that answers of given lengths
    take; with it, the host reads no value of the device."""
    name, target = program.graph.name, target_of(program.graph)
    if target is None:
        raise mistakes.writes_nothing(name)
    inputs = [field for index, field in enumerate(program.inputs) if index != target]
    if len(fields) != len(inputs):
        raise mistakes.wrong_other_fields(
            name, tuple(field.name for field in inputs), program.fields[target], len(fields)
        )
    if lengths is not None and not inputs:
        raise mistakes.no_lengths(name, program.fields[target])
    check_fields(name, inputs, fields)
    checked_lengths = check_lengths(name, inputs, fields, lengths)
    tokens = _first_tokens(module, fields, begin)
    values = [*fields[:target], tokens, *fields[target:]]
    check_fields(name, program.inputs, values)
    if not tokens.shape[1]:
        raise mistakes.empty_begin(name, program.fields[target])
    # `target_of` accepts only a field of tokens, which has a vocabulary.
    vocabulary = program.inputs[target].vocabulary
    assert vocabulary is not None
    for argument, value in (("end", end), ("limit", limit)):
        if value is not None and (isinstance(value, bool) or not isinstance(value, int)):
            raise mistakes.not_an_integer(argument, value)
    if end is not None and not 0 <= end < vocabulary:
        raise mistakes.not_a_token(end, name, program.fields[target], vocabulary)
    if answer_lengths is not None:
        answer_lengths = sample_lengths(name, "answer_lengths", answer_lengths, tokens)
        # One step more than the longest answer shows whether the model writes its end.
        if steps is None:
            steps = int(answer_lengths.max()) + (end is not None) if len(answer_lengths) else 0
    elif limit is not None:
        if limit < 0:
            raise mistakes.not_in_bounds("limit", limit, 0, torch.inf)
        steps = limit
    elif end is not None:
        steps = LIMIT
    else:
        raise mistakes.no_limit()
    with _evaluating(module):
        step = (
            Extension(module, program, target, code_inputs(program, values, checked_lengths), last=True)
            if cache
            else _FullModel(module, values, target, checked_lengths)
        ).extend
        # Answers of given lengths are written in full: an end that the model chooses early does not stop them.
        last = None if answer_lengths is not None else end
        choices, logits = [], []
        for choice, scores in _choices_and_logits(step, tokens, steps, last, choose or _likeliest):
            choices.append(choice)
            logits.append(scores)
            watch(len(choices) / steps)
    if not choices:
        no_logits = torch.zeros(len(tokens), 0, vocabulary, device=tokens.device)
        return _answers(no_logits.argmax(-1), no_logits, end, answer_lengths)
    return _answers(torch.stack(choices, 1), torch.stack(logits, 1), end, answer_lengths)


@torch.no_grad()
def stream(
    module: nn.Module,
    program: PythonProgram,
    prompt: Int[Tensor, "1 _k"],
    end: int | None,
    limit: int,
    choose: Choose | None,
) -> Iterator[int]:
    """Yields the tokens with which a language model continues a prompt, each as soon as it is chosen; an end is the
    last. They are those of `decode`.

    Raises:
        ValueError: a token does not fit the program."""
    check_fields(program.graph.name, program.inputs, [prompt])
    with _evaluating(module):
        step = Extension(module, program, 0, code_inputs(program, [prompt], {}), last=True).extend
        for choice, _ in _choices_and_logits(step, prompt, limit, end, choose or _likeliest):
            yield int(choice)


def _likeliest(logits: Float[Tensor, "b vocab"]) -> Int[Tensor, " b"]:
    return logits.argmax(-1)


def _choices_and_logits(
    step: Callable[[Tensor], Tensor], tokens: Tensor, steps: int, end: int | None, choose: Choose
) -> Iterator[tuple[Tensor, Tensor]]:
    """Yields the chosen token [b] and the logits [b vocab] of each step, until each sample has had its end."""
    ended = torch.zeros(len(tokens), dtype=torch.bool, device=tokens.device)
    for _ in range(steps):
        scores = step(tokens)[:, -1]
        tokens = choose(scores)[:, None]
        yield tokens[:, 0], scores
        if end is not None:
            ended = ended | (tokens[:, 0] == end)
            if ended.all():
                return


class _FullModel:
    """Runs the full model on all written tokens at each step: the slow reference.

    A model that draws random numbers in evaluation mode draws the same ones at each step."""

    def __init__(self, module: nn.Module, fields: Sequence[Tensor], target: int, lengths: Mapping[str, Tensor]) -> None:
        self._module = module
        self._fields = list(fields)
        self._fields[target] = fields[target][:, :0]
        self._target = target
        self._lengths = lengths
        self._random = torch.get_rng_state()

    def extend(self, tokens: Tensor) -> Tensor:
        self._fields[self._target] = torch.cat((self._fields[self._target], tokens), 1)
        torch.set_rng_state(self._random)
        logits: Tensor = self._module(*self._fields, lengths=self._lengths)
        return logits


def _first_tokens(module: nn.Module, fields: Sequence[Tensor], begin: int | Tensor) -> Int[Tensor, "b k"]:
    if not isinstance(begin, int):
        return begin
    if fields:
        return torch.full((len(fields[0]), 1), begin, device=fields[0].device)
    weights = next(module.parameters(), None)
    return torch.full((1, 1), begin, device=None if weights is None else weights.device)


def _answers(
    choices: Int[Tensor, "b t"],
    logits: Float[Tensor, "b t vocab"],
    end: int | None,
    answer_lengths: Int[Tensor, " b"] | None,
) -> Decoded:
    steps = choices.shape[1]
    if answer_lengths is not None:
        lengths, tokens = answer_lengths, choices
        if end is not None:
            without_end = logits.clone()
            without_end[..., end] = -torch.inf
            tokens = torch.where(choices == end, without_end.argmax(-1), choices)
    else:
        tokens, lengths = choices, torch.full((len(choices),), steps, device=choices.device)
        if end is not None:
            positions = torch.arange(steps, device=choices.device)
            lengths = torch.where(choices == end, positions, steps).amin(1) if steps else lengths
    is_padding = torch.arange(steps, device=choices.device) >= lengths[:, None]
    return Decoded(tokens.masked_fill(is_padding, 0 if end is None else end), lengths, choices, logits)


@contextmanager
def _evaluating(module: nn.Module) -> Iterator[None]:
    training = module.training
    module.eval()
    try:
        yield
    finally:
        module.train(training)
