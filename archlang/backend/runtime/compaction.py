"""Removes halted samples from a halting loop's batch, and restores them at its end."""

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from archlang.backend.runtime.halting import Tally
from archlang.backend.runtime.stacking import in_any_model

# The least share of rows that are removed at a time: copying the remaining rows has a cost.
_LEAST_SHARE = 0.1


@dataclass(frozen=True, eq=False)
class RowSplit:
    """The rows of a batch that remain in it and those that leave, as indices."""

    remaining: Int[Tensor, " remaining"]
    leaving: Int[Tensor, " leaving"]


class Compaction:
    """The samples that remain in the batch of a loop, and the results of those that left.

    A sample leaves when none of its positions is live. The body must compute each sample independently of the others,
    and the halting block must not change what it holds of a halted sample."""

    def __init__(self) -> None:
        self._indices: Int[Tensor, " r"] | None = None  # of the rows in the full batch; None before rows leave
        self._left: list[tuple[Int[Tensor, " r"], tuple[Tensor, ...]]] = []

    def split(self, live: Bool[Tensor, "r *_n"]) -> RowSplit | None:
        """Returns which rows remain and which leave, or None if no row is live. No row leaves if too few would."""
        is_live = in_any_model(live if live.dim() == 1 else live.flatten(1).any(1))
        remaining = is_live.nonzero()[:, 0]
        if not len(remaining):
            return None
        enough = len(is_live) - len(remaining) >= max(1, _LEAST_SHARE * len(is_live))
        return RowSplit(remaining, (~is_live).nonzero()[:, 0] if enough else remaining[:0])

    def remove(self, rows: RowSplit, results: Sequence[Tensor], values: Sequence[Any]) -> list[Any]:
        """Stores the results of the leaving rows. Returns the values of the remaining rows."""  # Any: values of a loop
        size = len(rows.remaining) + len(rows.leaving)
        indices = torch.arange(size, device=rows.remaining.device) if self._indices is None else self._indices
        self._left.append((indices[rows.leaving], tuple(result.index_select(0, rows.leaving) for result in results)))
        self._indices = indices[rows.remaining]
        return [select_rows(value, rows.remaining, size) for value in values]

    def restore(self, results: Sequence[Tensor]) -> list[Tensor]:
        """Returns the results of all samples in their order; `results` are those of the remaining rows."""
        if self._indices is None:
            return list(results)
        parts = [*self._left, (self._indices, tuple(results))]
        order = torch.cat([indices for indices, _ in parts]).argsort()
        return [torch.cat(columns).index_select(0, order) for columns in zip(*(part for _, part in parts), strict=True)]


def select_rows(value: Any, rows: Int[Tensor, " r"], batch: int) -> Any:  # Any: a tensor, a mask, a number, chunks
    """Returns some rows of a value of a loop; a value without the batch axis is returned unchanged."""
    match value:
        case Tensor() if value.dim() and len(value) == batch:
            return value.index_select(0, rows)
        case Tally():
            # A field without a row for each sample is a number of the loop.
            return replace(
                value, **{item.name: select_rows(getattr(value, item.name), rows, batch) for item in fields(value)}
            )
        case tuple() | list():
            return type(value)(select_rows(item, rows, batch) for item in value)
    return value
