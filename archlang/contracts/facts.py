"""`costs`, `maps` and `records`: the class has the weights, linear maps and records that its signature states."""

from typing import Any

import torch
from torch import Tensor, nn

from archlang.backend.runtime.joined_linear import Joinable
from archlang.contracts import mistakes, samples
from archlang.contracts.independence import changed
from archlang.contracts.subject import Subject
from archlang.contracts.verdict import Broken, Skipped
from archlang.graph.facts import LinearMap


def costs(subject: Subject) -> None:
    """Counts the weights of the block.

    Raises:
        Broken: there are not as many as `parameters` states.
        Skipped: the signature does not state `parameters`."""
    case = subject.case
    stated = case.instance.costs.parameters
    if stated is None or all(cost.quantity != "parameters" for cost in case.item.costs):
        raise Skipped("states no `parameters`")
    counted = sum(weights.numel() for weights in subject.block.parameters())
    if counted != stated:
        raise Broken(mistakes.wrong_parameters(case, stated, counted, subject.facts()))


def maps(subject: Subject) -> None:
    """Looks at each linear map, and runs the block with the products of its maps as with its own.

    Raises:
        Broken: a map is missing, cannot be joined or has another width, or its product changes the result.
        Skipped: the signature states no maps."""
    case = subject.case
    if not case.instance.maps:
        raise Skipped("states no maps")
    for linear in case.instance.maps:
        reason = _misfit(getattr(subject.block, linear.name, None), linear)
        if reason:
            raise Broken(mistakes.wrong_map(case, linear.name, reason, subject.facts()))
    sample = subject.sample(subject.sizes()[-1])
    facts = subject.facts([sample], sample.sizes)
    with torch.no_grad():
        (joined,) = subject.run(subject.root, [sample], join=True)
    change = changed(subject.one(sample), joined)
    if change:
        names = ", ".join(linear.name for linear in case.instance.maps)
        raise Broken(mistakes.wrong_map(case, names, f"{change} with the product from outside", facts))


def _misfit(part: object, linear: LinearMap) -> str:
    """What keeps an attribute of a block from being the linear map that its signature states."""
    if not isinstance(part, nn.Module):
        return "is no module of the class"
    if not isinstance(part, Joinable):
        return f"is a {type(part).__module__}.{type(part).__name__}, which cannot be joined"
    return "" if part.out_features == linear.width else f"gives {part.out_features} numbers, not {linear.width}"


def records(subject: Subject) -> None:
    """Computes the attention of the block.

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
    try:
        with torch.no_grad():
            weights = block.weights(*arguments)
    except Exception as error:
        raise Broken(mistakes.raises(case, "its method `weights`", error, facts)) from error
    sizes = [arguments[0].shape[1], arguments[-1].shape[1]]
    if not isinstance(weights, Tensor) or weights.dim() != 4 or [*weights.shape[2:]] != sizes:
        found = list(weights.shape) if isinstance(weights, Tensor) else f"a {type(weights).__name__}"
        raise Broken(mistakes.wrong_record(case, f"[1, h, {sizes[0]}, {sizes[1]}]", str(found), facts))
