"""`costs`, `maps`, `records` and halting: compares a class with what its signature states beside its result."""

from itertools import pairwise
from typing import Any

import torch
from torch import Tensor, nn

from archlang.backend.mistakes import raised
from archlang.contracts import mistakes, samples
from archlang.contracts.cases import Case
from archlang.contracts.mistakes import Broken, Facts, Skipped
from archlang.contracts.results import changed, difference
from archlang.contracts.subject import Subject
from archlang.graph.facts import LinearMap

# Enough steps for most positions to halt.
_STEPS = 12
_CONSTANT = ("mixture", "ponder", "steps", "remaining")


def costs(subject: Subject) -> None:
    """Counts the weights of the block, and the features of its result that differ from 0.

    Raises:
        Broken: the weights are not as many as `parameters`, or the features are more than `nonzero`.
        Skipped: the signature states neither."""
    case = subject.case
    stated = {cost.quantity for cost in case.item.costs}
    parameters, nonzero = case.instance.costs.parameters, case.instance.costs.nonzero
    if parameters is not None and "parameters" in stated:
        counted = sum(weights.numel() for weights in subject.block.parameters())
        if counted != parameters:
            raise _wrong_cost(case, "parameters", parameters, f"the block has {counted} parameters", subject.facts())
    elif nonzero is None:
        raise Skipped("states no `parameters`")
    if nonzero is not None:
        sample = subject.sample(subject.sizes()[-1])
        for field in subject.evaluate(sample).values():
            counted = int((field.value != 0).sum(-1).max())
            if counted > nonzero:
                reason = f"{counted} features of a position of the result differ from 0"
                raise _wrong_cost(case, "nonzero", nonzero, reason, subject.facts([sample], sample.sizes))


def _wrong_cost(case: Case, quantity: str, stated: int, counted: str, facts: Facts) -> Broken:
    clause = next(cost.span for cost in case.item.costs if cost.quantity == quantity)
    values = {"clause": clause, "quantity": quantity, "stated": stated, "counted": counted}
    return mistakes.broken("wrong_cost", case, facts, **values)


def maps(subject: Subject) -> None:
    """Checks each linear map, and runs the block with `products` computed outside of it.

    Raises:
        Broken: a map is missing, is not linear or has another width, or passing its product changes the result.
        Skipped: the signature states no maps."""
    case = subject.case
    if not case.instance.maps:
        raise Skipped("states no maps")
    for linear in case.instance.maps:
        reason = _misfit(getattr(subject.block, linear.name, None), linear)
        if reason:
            raise _wrong_map(case, linear.name, reason, subject.facts())
    sample = subject.sample(subject.sizes()[-1])
    facts = subject.facts([sample], sample.sizes)
    with torch.no_grad():
        (joined,) = subject.run(subject.root, [sample], join=True)
    change = changed(subject.evaluate(sample), joined)
    if change:
        names = ", ".join(linear.name for linear in case.instance.maps)
        raise _wrong_map(case, names, f"is misapplied: {change} with its product precomputed", facts)


def _wrong_map(case: Case, name: str, reason: str, facts: Facts) -> Broken:
    return mistakes.broken("wrong_map", case, facts, clause=case.item.maps[0].span, name=name, reason=reason)


def _misfit(part: object, linear: LinearMap) -> str:
    if not isinstance(part, nn.Module):
        return "is not a module of the class"
    if not isinstance(part, nn.Linear):
        return f"is a {type(part).__module__}.{type(part).__name__}, not a torch.nn.Linear"
    return "" if part.out_features == linear.width else f"has width {part.out_features}, not {linear.width}"


def records(subject: Subject) -> None:
    """Compares the shape of the recorded attention with [b h n m], without a mask of the keys and with one.

    Raises:
        Broken: its method `weights` raises an error or returns another shape than [b h n m].
        Skipped: the signature records no attention."""
    case = subject.case
    if all(record.kind != "attention" or record.input is not None for record in case.instance.records):
        raise Skipped("records no attention")
    sample = subject.sample(subject.sizes()[0])
    facts = subject.facts([sample], sample.sizes)
    block: Any = subject.block
    values = samples.collate(case.inputs, [sample], sample.sizes)
    arguments = [values[index] for index in case.arguments]
    masks = subject.masks([sample], sample.sizes, masked=True)
    of_keys = {name: masks[name] for name in (f"mask_{axis}" for axis in case.instance.axes[-1]) if name in masks}
    for options in ({}, of_keys):
        try:
            with torch.no_grad():
                weights = block.weights(*arguments, **options)
        except Exception as error:  # the block may raise any error
            takes = " and ".join(["the inputs", *(f"`{name}`" for name in options)])
            remedy = f"write a method that takes {takes}, or delete the clause"
            raise _wrong_record(case, f"raises {raised(error)}", remedy, facts) from error
        sizes = [arguments[0].shape[1], arguments[-1].shape[1]]
        if not isinstance(weights, Tensor) or weights.dim() != 4 or [*weights.shape[2:]] != sizes:
            actual = list(weights.shape) if isinstance(weights, Tensor) else f"a {type(weights).__name__}"
            reason = f"returns {actual}, but attention has the shape [1, h, {sizes[0]}, {sizes[1]}]"
            remedy = "return a weight for each sample, head, query and key"
            raise _wrong_record(case, reason, remedy, facts)


def _wrong_record(case: Case, reason: str, remedy: str, facts: Facts) -> Broken:
    clause = next(record.span for record in case.item.records if record.kind == "attention")
    return mistakes.broken("wrong_record", case, facts, clause=clause, reason=reason, remedy=remedy)


def halting(subject: Subject) -> None:
    """Checks every step of a loop: `accepted` and `live` are true only at positions that were live before, and the
    mixture, ponder, steps and remaining probability of a sample are constant once none of its positions is live.

    Raises:
        Broken: a step violates this.
        Skipped: the block is not a halting block."""
    if not subject.halts:
        raise Skipped("is not a halting block")
    case = subject.case
    names = case.lengths
    batch = [subject.sample(dict.fromkeys(names, size), salt) for salt, size in enumerate((1, 5, 0, 2))]
    facts = subject.facts(batch, samples.longest(batch))
    halting_states = subject.halting_states(batch, _STEPS)
    for step, (before, after) in enumerate(pairwise(halting_states), start=1):
        for name in ("accepted", "live"):
            now: Tensor = getattr(after, name)
            if (now & ~before.live).any():
                raise mistakes.broken("accepts_after_halting", case, facts, step=step, field=name)
        halted = ~before.live.reshape(len(batch), -1).any(1)
        for name in _CONSTANT:
            if getattr(before, name) is None or getattr(after, name) is None:
                continue
            gap = difference(getattr(before, name)[halted], getattr(after, name)[halted])
            if gap:
                raise mistakes.broken("changes_after_halting", case, {**facts, "step": str(step)}, name=name, gap=gap)
