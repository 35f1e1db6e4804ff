"""How the states of scans grow from part to part, and the lengths that they have afterwards."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from archlang.graph.graph import Node, loop_layout
from archlang.graph.operations import Scan
from archlang.types import Dim


class Growth(NamedTuple):
    """What a state grows by in each step of a scan: `each` positions, and `per_position` for each position of the
    chunk."""

    each: Dim
    per_position: int

    @staticmethod
    def of(before: Dim, after: Dim, chunk: Dim | None) -> Growth | None:
        """Returns the growth of a state from one length to another. `chunk` is the length of the chunk, None where
        the scan takes positions. Returns None if the state does not grow, or by another length."""
        each = after - before
        per_position = 0 if chunk is None else dict(each.terms).get((chunk.symbol or "",), 0)
        if chunk is not None:
            each = each - chunk * Dim.of(per_position)
        is_length = any("." in name for name in each.names) or each.names != {n for m, _ in each.terms for n in m}
        least = 0 if each.constant is None else each.constant
        if is_length or least < 0 or per_position < 0 or (each.constant == 0 and not per_position):
            return None
        return Growth(each, per_position)

    def total(self, scanned: Dim, chunk: Dim | None) -> Dim:
        """Returns what the state has grown by after all parts of a sequence of the length `scanned`."""
        if chunk is None:
            return self.each * scanned
        return self.each * chunk_count(chunk) + scanned * Dim.of(self.per_position)


def own_length(name: str, count: int) -> Dim:
    """Returns the `count`-th length of this name that only the body of a scan has. No name of a program has a dot."""
    return Dim.of(f"{name}.length" if count == 1 else f"{name}.length_{count}")


def chunk_count(chunk: Dim) -> Dim:
    """Returns the number of chunks of a scan, of the length of its chunk in the body."""
    return Dim.of((chunk.symbol or "").replace(".length", ".count"))


def growths(loop: Node) -> Mapping[int, Growth]:
    """Returns how the states of a loop grow, by their indices; only those of a scan do. Such a state has a length of
    its own in the body."""
    if not isinstance(loop.operation, Scan):
        return {}
    (body,), layout = loop.regions, loop_layout(loop)
    types = body.types()
    (chunk,) = body.inputs[0].type.lengths or (None,)
    growing = {}
    for index, state in enumerate(body.inputs[layout.inner : layout.inner + layout.states]):
        if state.type != loop.types[index]:
            growth = Growth.of(state.type.lengths[0], types[body.results[index]].lengths[0], chunk)
            assert growth is not None, "the verifier refuses such a state"
            growing[index] = growth
    return growing
