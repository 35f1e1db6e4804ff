"""Greedy decoding: a model writes its answer token by token, each time the likeliest one."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int, Shaped
from torch import Tensor, nn

from archlang.backend import mistakes
from archlang.backend.extending import Extension
from archlang.backend.lower import Program
from archlang.backend.masks import make_masks
from archlang.graph.causality import horizon
from archlang.graph.graph import Graph

LIMIT = 1_000
"""So many tokens an answer has at most, where nothing else is said: a model may never choose the end."""


@dataclass(frozen=True, eq=False)
class Decoded:
    """What a model has written.

    `tokens` [b t] are the answers, without an end, and `lengths` [b] how long they are; behind an answer stands the
    end, or 0 if there is none. `choices` [b t] are the tokens as they were chosen one after another, an end and what is
    behind it too; each is what the model saw next. `logits` [b t vocab] are those that it chose by."""

    tokens: Int[Tensor, "b t"]
    lengths: Int[Tensor, " b"]
    choices: Int[Tensor, "b t"]
    logits: Float[Tensor, "b t vocab"]


def target_of(graph: Graph) -> int | None:
    """Which field a model writes: it has the length and the vocabulary of the result, no other field has that length,
    and the result at a position sees nothing of the field behind it. None if there is no such field."""
    region = graph.region
    types = {value.id: value.type for value in region.inputs}
    types |= {node.id: node.type for node in region.nodes if len(node.types) == 1}
    result = types[region.results[0]]
    same = [index for index, value in enumerate(region.inputs) if value.type.lengths[:1] == result.lengths[:1] != ()]
    if len(same) != 1:
        return None
    field = region.inputs[same[0]]
    writes = field.type.name == "tokens" and field.type.feature == result.feature
    return same[0] if writes and not horizon(graph, field.name).sees_future else None


@torch.no_grad()
def decode(
    module: nn.Module,
    program: Program,
    fields: Sequence[Shaped[Tensor, "b _n *_d"]],
    lengths: Int[Tensor, " b"] | Mapping[str, Int[Tensor, " b"]] | None,
    begin: int | Int[Tensor, "b _k"],
    end: int | None,
    limit: int | None,
    answer_lengths: Int[Tensor, " b"] | None,
    cache: bool,
    watch: Callable[[float], None] = lambda share: None,
) -> Decoded:
    """What `Architecture.decode` says. `watch` is told after each step which share of the most possible is done."""
    name, target = program.graph.name, target_of(program.graph)
    if target is None:
        raise mistakes.writes_nothing(name)
    others = tuple(field for index, field in enumerate(program.fields) if index != target)
    if len(fields) != len(others):
        raise mistakes.wrong_other_fields(name, others, program.fields[target], len(fields))
    if isinstance(lengths, Tensor):
        if len(others) != 1:
            raise mistakes.lengths_of_which(name, others)
        lengths = {others[0]: lengths}
    if answer_lengths is not None:
        steps = int(answer_lengths.max()) + (end is not None) if len(answer_lengths) else 0
    elif limit is not None:
        steps = limit
    elif end is not None:
        steps = LIMIT
    else:
        raise mistakes.no_limit()
    tokens = _first(module, fields, begin)
    whole = [*fields[:target], tokens, *fields[target:]]
    masks = make_masks(program, whole, lengths or {})
    with _at_test(module):
        step = (
            Extension(module, program, target, whole, masks) if cache else _Anew(module, whole, target, lengths)
        ).extend
        choices, logits = _write(step, tokens, steps, None if answer_lengths is not None else end, watch)
    if not choices:
        size = program.graph.region.inputs[target].type.feature
        assert size is not None
        assert size.constant
        nothing = torch.zeros(len(tokens), 0, size.constant, device=tokens.device)
        return _answers(nothing.argmax(-1), nothing, end, answer_lengths)
    return _answers(torch.stack(choices, 1), torch.stack(logits, 1), end, answer_lengths)


def _write(
    step: Callable[[Tensor], Tensor], tokens: Tensor, steps: int, end: int | None, watch: Callable[[float], None]
) -> tuple[list[Tensor], list[Tensor]]:
    """The likeliest tokens and their logits, step by step, until each sample has had its end."""
    choices: list[Tensor] = []
    logits: list[Tensor] = []
    ended = torch.zeros(len(tokens), dtype=torch.bool, device=tokens.device)
    while len(choices) < steps:
        scores = step(tokens)[:, -1]
        tokens = scores.argmax(-1, keepdim=True)
        choices.append(tokens[:, 0])
        logits.append(scores)
        watch(len(choices) / steps)
        if end is not None:
            ended = ended | (tokens[:, 0] == end)
            if ended.all():
                break
    return choices, logits


class _Anew:
    """The whole model on everything that was written so far, at each step: slow, and plainly right.

    A model that draws random numbers at test time too draws the same ones at each step."""

    def __init__(
        self, module: nn.Module, fields: Sequence[Tensor], target: int, lengths: Mapping[str, Tensor] | None
    ) -> None:
        self._module = module
        self._fields = list(fields)
        self._fields[target] = fields[target][:, :0]
        self._target = target
        self._lengths = lengths
        self._random = torch.get_rng_state()

    def extend(self, tokens: Tensor) -> Tensor:
        self._fields[self._target] = torch.cat((self._fields[self._target], tokens), 1)
        torch.set_rng_state(self._random)
        logits: Tensor = self._module(*self._fields, lengths=self._lengths or None)
        return logits


def _first(module: nn.Module, fields: Sequence[Tensor], begin: int | Tensor) -> Tensor:
    """The tokens that every answer begins with."""
    if isinstance(begin, Tensor):
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
            others = logits.clone()
            others[..., end] = -torch.inf
            tokens = others.argmax(-1)
    else:
        tokens, lengths = choices, torch.full((len(choices),), steps, device=choices.device)
        if end is not None:
            places = torch.arange(steps, device=choices.device)
            lengths = torch.where(choices == end, places, steps).amin(1) if steps else lengths
    behind = torch.arange(steps, device=choices.device) >= lengths[:, None]
    return Decoded(tokens.masked_fill(behind, 0 if end is None else end), lengths, choices, logits)


@contextmanager
def _at_test(module: nn.Module) -> Iterator[None]:
    training = module.training
    module.eval()
    try:
        yield
    finally:
        module.train(training)
