"""The values of incremental decoding, and what is cached of them between two new positions."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

import torch
from torch import Tensor

from archlang.backend.decode.block_cache import BlockCache


class Growth(Enum):
    """How a value depends on the growing field."""

    FIXED = "fixed"
    NEW = "new"
    FULL = "full"


@dataclass(frozen=True, eq=False)
class Value:
    """A value. The data of a new one are its new positions, on the second axis of a tensor."""

    growth: Growth
    data: Any  # a tensor, a mask or None for one, a number, chunks; or a pair of these


@dataclass
class RegionCache:
    """What the walk of one region caches, by the names of values in its graph. Fixed values survive a restart."""

    fixed: dict[str, Any] = field(default_factory=dict)  # Any: as in Value; for a loop the list of its results
    block_caches: dict[str, BlockCache] = field(default_factory=dict)
    histories: dict[tuple[str, int], Tensor] = field(default_factory=dict)
    regimes: dict[str, object] = field(default_factory=dict)
    inner: dict[tuple[str, int], RegionCache] = field(default_factory=dict)
    seen: int = 0
    """the number of positions before this walk"""
    total: int = 0
    """the number of positions now"""
    carried: dict[str, list[tuple[Tensor, ...]]] = field(default_factory=dict)
    full_loops: set[str] = field(default_factory=set)
    """the loops that run on all positions"""

    def all_positions(self, name: str, index: int, value: Value) -> Any:
        """Returns the cached positions of an input and its new ones, and caches them."""
        if value.growth is not Growth.NEW:
            return value.data
        before = self.histories.get((name, index))
        self.histories[name, index] = value.data if before is None else torch.cat((before, value.data), 1)
        return self.histories[name, index]

    def step(self, name: str, index: int) -> RegionCache:
        """Returns the cache of a step of a loop."""
        return self.inner.setdefault((name, index), RegionCache())

    def forget(self) -> None:
        """Clears everything except for fixed values."""
        # Values that are fixed in a chunk may depend on states from the chunks before it, which may have changed.
        self.inner = {key: inner for key, inner in self.inner.items() if key[0] not in self.carried}
        for cache in (self.block_caches, self.histories, self.regimes, self.carried):
            cache.clear()
        self.seen = self.total = 0
        for inner in self.inner.values():
            inner.forget()


def joint_growth(values: Iterable[Value]) -> Growth:
    """The growth of a value that depends on all of these."""
    joint = Growth.FIXED
    for value in values:
        if value.growth is Growth.FULL:
            return Growth.FULL
        if value.growth is Growth.NEW:
            joint = Growth.NEW
    return joint
