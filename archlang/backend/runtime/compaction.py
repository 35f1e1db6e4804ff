"""Samples that leave a halting loop's batch when they have halted, and come back at its end."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from archlang.backend.runtime.halting import Tally
from archlang.backend.runtime.stacking import anywhere

# Some rows of a batch are taken out where at least this share of them has halted: to copy the others costs a little.
_WORTH = 0.1


@dataclass(frozen=True, eq=False)
class Rows:
    """Of a batch, the rows that stay and those that go."""

    stay: Int[Tensor, " stay"]
    go: Int[Tensor, " go"]


class Compaction:
    """Which samples are still in the batch of a loop, and what the others left with.

    A sample leaves when none of its positions is live. Nothing that a body computes for one sample may depend on the
    others, and nothing that the halting block keeps of it may change any more."""

    def __init__(self) -> None:
        self._places: Int[Tensor, " r"] | None = None  # of the rows, in the whole batch; None: they are all of it
        self._left: list[tuple[Int[Tensor, " r"], tuple[Tensor, ...]]] = []

    def rows(self, live: Bool[Tensor, "r *_n"]) -> Rows | None:
        """Which rows stay and which go; none goes where it is not worth it. None if none would stay."""
        stays = anywhere(live if live.dim() == 1 else live.flatten(1).any(1))
        stay = stays.nonzero()[:, 0]
        if not len(stay):
            return None
        worth = len(stays) - len(stay) >= max(1, _WORTH * len(stays))
        return Rows(stay, (~stays).nonzero()[:, 0] if worth else stay[:0])

    def take(self, rows: Rows, results: Sequence[Tensor], given: Sequence[Any]) -> list[Any]:  # Any: values of a loop
        """Keeps the results of the rows that go, and gives what is given of those that stay."""
        size = len(rows.stay) + len(rows.go)
        places = torch.arange(size, device=rows.stay.device) if self._places is None else self._places
        self._left.append((places[rows.go], tuple(one.index_select(0, rows.go) for one in results)))
        self._places = places[rows.stay]
        return [narrow(one, rows.stay, size) for one in given]

    def together(self, results: Sequence[Tensor]) -> list[Tensor]:
        """The results of all samples, in their order: those of the rows that are left are given."""
        if self._places is None:
            return list(results)
        parts = [*self._left, (self._places, tuple(results))]
        back = torch.cat([places for places, _ in parts]).argsort()
        return [torch.cat(columns).index_select(0, back) for columns in zip(*(part for _, part in parts), strict=True)]


def narrow(value: Any, rows: Int[Tensor, " r"], batch: int) -> Any:  # Any: a tensor, a mask or none, a number, chunks
    """Some rows of a value of a loop. What has no batch is for all of them."""
    match value:
        case Tensor() if value.dim() and len(value) == batch:
            return value.index_select(0, rows)
        case Tally():
            # A field that has no row for each sample is a number of the loop.
            return replace(value, **{one.name: narrow(getattr(value, one.name), rows, batch) for one in fields(value)})
        case tuple() | list():
            return type(value)(narrow(one, rows, batch) for one in value)
    return value
