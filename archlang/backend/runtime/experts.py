"""Experts at run time: several sets of weights, of which each position uses those whose routing weight is not 0."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from archlang.backend.runtime.loops import Loop, StepModules
from archlang.backend.runtime.stacking import is_transformed


@dataclass(eq=False, kw_only=True)
class ExpertLoop(StepModules, Loop):
    """Applies the body with the weights of each step to positions as vectors, and adds up the results times the
    routing weights. A position whose weight is 0 is not computed, unless torch traces or transforms the call; either
    way it adds nothing, and its weight has no gradient."""

    def __call__(
        self,
        values: Float[Tensor, "b *n d"],
        weights: Float[Tensor, "b *n e"],
        *captured: Any,  # Any: as in `Body`
        mask: Bool[Tensor, "b n"] | None = None,
    ) -> Float[Tensor, "b *n k"]:
        if mask is not None:
            weights = weights.masked_fill(~mask.unsqueeze(-1), 0)
        # `Size.numel` would fix a length that is traced.
        positions = values.shape[1] if values.dim() > 2 else 1
        rows, row_weights = values.reshape(-1, values.shape[-1]), weights.reshape(-1, weights.shape[-1])
        dense = torch.compiler.is_compiling() or is_transformed()
        run = self._run_all if dense else self._run_chosen
        results = run(rows, row_weights, captured, positions)
        return results.view(*values.shape[:-1], results.shape[-1])

    def _run_all(
        self,
        rows: Float[Tensor, "r d"],
        weights: Float[Tensor, "r e"],
        captured: Sequence[Any],
        positions: int | torch.SymInt,
    ) -> Float[Tensor, "r k"]:
        """Computes every expert for every row. A sample has `positions` rows."""
        samples = torch.arange(rows.shape[0], device=rows.device) // positions
        own = [_by_row(value, samples) for value in captured]
        results = []
        for index, step in enumerate(self.steps()):
            weight = weights[:, index]
            real = [_where(weight != 0, value) for value in (rows, *own)]
            results.append(_weighed(step(self.body, *real)[0], weight))
        return torch.stack(results).sum(0)

    def _run_chosen(
        self,
        rows: Float[Tensor, "r d"],
        weights: Float[Tensor, "r e"],
        captured: Sequence[Any],
        positions: int | torch.SymInt,
    ) -> Float[Tensor, "r k"]:
        """Computes every expert for the rows that it weighs."""
        counts = (weights != 0).sum(0).tolist()
        chosen = torch.split((weights != 0).t().nonzero()[:, 1], counts)
        total: Tensor | None = None
        for index, (step, indices) in enumerate(zip(self.steps(), chosen, strict=True)):
            # Without rows, the gradients of an expert are zeros; one whose weights are divided (`unshard`) runs in step
            # with the other processes.
            if not (len(indices) or total is None or torch.is_grad_enabled() or hasattr(step, "unshard")):
                continue
            own = [_by_row(value, indices // max(1, positions)) for value in captured]
            weight = weights[:, index].index_select(0, indices)
            result = _weighed(step(self.body, rows.index_select(0, indices), *own)[0], weight)
            if total is None:
                total = result.new_zeros(len(rows), result.shape[-1])
            total = total.index_add(0, indices, result)
        assert total is not None, "there is an expert"
        return total


def _weighed(result: Float[Tensor, "r k"], weight: Float[Tensor, " r"]) -> Float[Tensor, "r k"]:
    """Returns the results times their weights; 0 without a gradient for a weight of 0."""
    column = weight.unsqueeze(-1)
    return result.masked_fill(column == 0, 0) * column


def _where(chosen: Bool[Tensor, " r"], value: Any) -> Any:  # Any: as in `Body`
    """Returns a value of each row, with ones for the rows that an expert does not weigh: what it computes of them has
    no weight, but 0 times an infinite gradient is NaN."""
    match value:
        case Tensor() if value.is_floating_point():
            return torch.where(chosen.view(-1, *[1] * (value.dim() - 1)), value, 1)
        case tuple() | list():
            return type(value)(_where(chosen, item) for item in value)
    return value


def _by_row(value: Any, samples: Int[Tensor, " r"]) -> Any:  # Any: as in `Body`
    match value:
        case Tensor():
            return value.index_select(0, samples)
        case tuple() | list():
            return type(value)(_by_row(item, samples) for item in value)
    return value
