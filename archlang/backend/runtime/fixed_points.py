"""The gradient of a loop that has settled: that of the fixed point of its step, by the implicit function theorem."""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.autograd.graph import saved_tensors_hooks
from torch.utils._pytree import tree_flatten, tree_unflatten

from archlang.backend.runtime.stacking import is_plain


def at_fixed_point(
    step: Callable[..., Any],  # Any: its results begin with the states
    states: Sequence[Any],  # Any: tensors and numbers
    terms: int,
) -> Any:
    """Returns the results of a step from the states s, with the gradient w of the fixed point.

        w = Σ_t (∂step/∂s)ᵀᵗ u    over t = 0, …, terms - 1, of the gradient u of the step's results

    Backward needs what one step keeps, for any number of terms."""
    if not torch.is_grad_enabled():
        return step(*states)
    if not is_plain():
        return _unrolled(step, states, terms)
    own = [state.detach().requires_grad_() if _is_moved(state) else state for state in states]
    # Each term would repeat a computation that keeps nothing, so its own values are kept.
    with saved_tensors_hooks(lambda value: value, lambda value: value):
        leaves, form = tree_flatten(step(*own))
    moved = [place for place, leaf in enumerate(leaves) if isinstance(leaf, Tensor) and leaf.requires_grad]
    inputs = [place for place in moved if place < len(own) and _is_moved(own[place])]
    outputs = [leaves[place] for place in moved]

    def summed(gradients: Sequence[Tensor]) -> Sequence[Tensor]:
        total = [*gradients]
        for _ in range(terms - 1 if inputs else 0):
            pulled = torch.autograd.grad(
                outputs, [own[place] for place in inputs], total,
                retain_graph=True, allow_unused=True, materialize_grads=True,
            )  # fmt: skip
            for place, term in zip(inputs, pulled, strict=True):
                total[moved.index(place)] = gradients[moved.index(place)] + term
        return total

    if outputs:
        settled = _Settled.apply(summed, *outputs)  # type: ignore[no-untyped-call]
        for place, value in zip(moved, settled, strict=True):
            leaves[place] = value
    return tree_unflatten(leaves, form)


class _Settled(torch.autograd.Function):
    """The same tensors, whose gradients `summed` changes."""

    @staticmethod
    def forward(ctx: Any, summed: Callable[..., Any], *values: Tensor) -> tuple[Tensor, ...]:  # Any: as in torch
        ctx.summed = summed
        return tuple(value.view_as(value) for value in values)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        with torch.no_grad():
            total = ctx.summed(gradients)
        if torch.is_grad_enabled():  # of `create_graph`
            total = _Once.apply(*(each.detach().requires_grad_() for each in total))  # type: ignore[no-untyped-call]  # torch's own
        return (None, *total)


class _Once(torch.autograd.Function):
    """The same tensors without a derivative. `once_differentiable` of torch would give zeros for the step's weights."""

    @staticmethod
    def forward(ctx: Any, *values: Tensor) -> tuple[Tensor, ...]:  # Any: as in torch
        return tuple(value.view_as(value) for value in values)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        raise RuntimeError("a settled loop has no second derivative")


def _unrolled(step: Callable[..., Any], states: Sequence[Any], terms: int) -> Any:
    """The same from as many steps as terms, each at the same states, whose differences are 0 but have gradients."""
    fixed = [*map(_moved_by, states)]
    results = step(*fixed)
    for _ in range(terms - 1):
        last = tree_flatten(results)[0][: len(fixed)]
        results = step(*map(_moved_by, fixed, last))
    return results


def _moved_by(state: Any, last: Any = None) -> Any:
    if not _is_moved(state):
        return state
    return state.detach() if last is None else state + (last - last.detach())


def _is_moved(state: Any) -> bool:
    return isinstance(state, Tensor) and state.is_floating_point()
