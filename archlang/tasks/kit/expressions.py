"""Expressions as tokens with their values and depths: the items of `arithmetic` and `listops` before they are split."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from archlang.tasks.kit.ragged import Integers, Ragged, Truths, join


@dataclass(frozen=True, eq=False)
class Expressions:
    """N expressions: their tokens, their values [N] and their depths [N]."""

    x: Ragged
    values: Integers
    depths: Integers

    def __len__(self) -> int:
        return len(self.x)

    def select(self, chosen: Truths | Integers) -> Expressions:
        return Expressions(self.x.select(chosen), self.values[chosen], self.depths[chosen])

    def within(self, room: Integers) -> Truths:
        """Marks the first `room[depth]` expressions of each depth."""
        ranks = np.zeros(len(self), dtype=np.int64)
        for depth in np.unique(self.depths):
            same = self.depths == depth
            ranks[same] = np.arange(same.sum())
        return np.asarray(ranks < room[self.depths])


def join_expressions(parts: Sequence[Expressions]) -> Expressions:
    """Returns the expressions of all parts, one part after another."""
    empty = np.zeros(0, dtype=np.int64)
    return Expressions(
        join([part.x for part in parts]),
        np.concatenate([empty, *(part.values for part in parts)]),
        np.concatenate([empty, *(part.depths for part in parts)]),
    )
