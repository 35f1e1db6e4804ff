"""Assigns the children of a box to rows and orders each row, by the method of Sugiyama."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import inf

from archlang.reports.pictures.box import Box, Edge

SWEEPS = 12
_FIRST_ROW_KINDS = ("input", "state", "memory", "chunk", "position", "before", "captured", "mean")


@dataclass(frozen=True)
class Ranks:
    """The rows of a box from top to bottom.

    Args:
        rows: The ids in each row, from left to right. Besides boxes, a row holds bends such as `~3`: the points where
            the edges of a value pass the row.
        chains: For each edge that is not a back edge, the ids of its source, its bends and its target: one in each row
            that the edge touches."""

    rows: tuple[tuple[str, ...], ...]
    chains: tuple[tuple[str, ...], ...]


def rank(box: Box, widths: Mapping[str, float] | None = None, widest: float = inf) -> Ranks:
    """Returns the rows of a box. Edges lead down; inputs are in the first row, results in the last. A row whose boxes
    have `widths` of more than `widest` in total becomes several."""
    forward = [edge for edge in box.edges if not edge.back]
    row_of = _split_rows(_assign_rows(box, forward), widths or {}, widest)
    rows: list[list[str]] = [[] for _ in range(max(row_of.values(), default=-1) + 1)]
    for child in box.boxes:
        rows[row_of[child.id]].append(child.id)
    chains = []
    bends: dict[tuple[str, int], str] = {}  # by source and row
    for edge in forward:
        passed = [(edge.source, row) for row in range(row_of[edge.source] + 1, row_of[edge.target])]
        for place in passed:
            if place not in bends:
                bends[place] = f"~{len(bends)}"
                rows[place[1]].append(bends[place])
        chains.append((edge.source, *(bends[place] for place in passed), edge.target))
    return Ranks(_uncrossed(rows, chains), tuple(chains))


def _assign_rows(box: Box, edges: Sequence[Edge]) -> dict[str, int]:
    """Returns the row of each child: below all sources of its edges. The children are in the order of computation."""
    sources: dict[str, list[str]] = {child.id: [] for child in box.boxes}
    targets: dict[str, list[str]] = {child.id: [] for child in box.boxes}
    for edge in edges:
        sources[edge.target].append(edge.source)
        targets[edge.source].append(edge.target)
    row_of: dict[str, int] = {}
    for id in sources:
        row_of[id] = max((row_of[source] + 1 for source in sources[id]), default=0)
    inputs = {child.id for child in box.boxes if child.kind in _FIRST_ROW_KINDS}
    for id in reversed(sources):
        # A block without inputs, such as a learned memory, is moved down to right above its first user.
        if not sources[id] and id not in inputs:
            for value in targets[id]:
                users = [row_of[user] for user in targets[value]]
                if users:
                    row_of[value] = min(users) - 1
            row_of[id] = max(0, min((row_of[value] for value in targets[id]), default=1) - 1)
    # Results have a row of their own, below all that a loop computes.
    results = [child.id for child in box.boxes if child.kind == "result"]
    last = max((row for id, row in row_of.items() if id not in results), default=-1) + 1
    row_of.update(dict.fromkeys(results, last))
    numbers = {row: number for number, row in enumerate(sorted(set(row_of.values())))}
    return {id: numbers[row] for id, row in row_of.items()}


def _split_rows(row_of: Mapping[str, int], widths: Mapping[str, float], widest: float) -> dict[str, int]:
    """Returns rows of a limited width. No edge leads from a box to another of its row, so a row may become several."""
    rows: dict[int, list[list[str]]] = {}
    for id, number in row_of.items():
        parts = rows.setdefault(number, [[]])
        if parts[-1] and sum(widths.get(other, 0.0) for other in (*parts[-1], id)) > widest:
            parts.append([])
        parts[-1].append(id)
    parts = [part for number in sorted(rows) for part in rows[number]]
    return {id: number for number, part in enumerate(parts) for id in part}


def _uncrossed(rows: Sequence[Sequence[str]], chains: Sequence[Sequence[str]]) -> tuple[tuple[str, ...], ...]:
    """Returns the rows in the order with the fewest crossings that sweeps by barycentres, down and up, find."""
    above: dict[str, list[str]] = {}
    below: dict[str, list[str]] = {}
    for chain in chains:
        for upper, lower in pairwise(chain):
            above.setdefault(lower, []).append(upper)
            below.setdefault(upper, []).append(lower)
    current = [list(row) for row in rows]
    best, fewest = current, _crossings(current, below)
    for sweep in range(SWEEPS):
        if not fewest:
            break
        current = [list(row) for row in current]
        down = sweep % 2 == 0
        for number in range(1, len(current)) if down else range(len(current) - 2, -1, -1):
            neighbours = current[number - 1 if down else number + 1]
            current[number] = _by_barycentre(current[number], neighbours, above if down else below)
        crossings = _crossings(current, below)
        if crossings < fewest:
            best, fewest = current, crossings
    return tuple(map(tuple, best))


def _by_barycentre(row: Sequence[str], neighbours: Sequence[str], linked: Mapping[str, Sequence[str]]) -> list[str]:
    """Returns a row sorted by the mean position of the linked ids in a neighbouring row."""
    position = {id: index for index, id in enumerate(neighbours)}

    def centre(index: int) -> float:
        positions = [position[id] for id in linked.get(row[index], ()) if id in position]
        return sum(positions) / len(positions) if positions else float(index)

    return [row[index] for index in sorted(range(len(row)), key=centre)]


def _crossings(rows: Sequence[Sequence[str]], below: Mapping[str, Sequence[str]]) -> int:
    total = 0
    for upper, lower in pairwise(rows):
        position = {id: index for index, id in enumerate(lower)}
        ends = [end for id in upper for end in sorted(position[target] for target in below.get(id, ()))]
        total += sum(left > right for index, left in enumerate(ends) for right in ends[index + 1 :])
    return total
