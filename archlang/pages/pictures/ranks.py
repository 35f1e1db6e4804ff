"""The order of the boxes of a box: ranks from top to bottom, and who stands beside whom (Sugiyama's method)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import networkx as nx

from archlang.pages.pictures.box import Box

SWEEPS = 12


@dataclass(frozen=True)
class Ranks:
    """`rows` are ids from left to right; `chains` gives, for each edge that is not a back edge, the ids that it runs
    through, one in each row: bends (`~3.1`) stand between the ends of one that skips rows."""

    rows: tuple[tuple[str, ...], ...]
    chains: tuple[tuple[str, ...], ...]


def rank(box: Box) -> Ranks:
    """The rows of what is in a box. Edges lead down; inputs are the first row, results the last."""
    flow: nx.DiGraph[str] = nx.DiGraph()
    flow.add_nodes_from(one.id for one in box.boxes)
    forward = [edge for edge in box.edges if not edge.back]
    flow.add_edges_from((edge.source, edge.target) for edge in forward)
    place = _places(box, flow)
    rows: list[list[str]] = [[] for _ in range(max(place.values(), default=-1) + 1)]
    for one in box.boxes:
        rows[place[one.id]].append(one.id)
    chains = []
    for number, edge in enumerate(forward):
        bends = [f"~{number}.{row}" for row in range(place[edge.source] + 1, place[edge.target])]
        for row, bend in enumerate(bends, place[edge.source] + 1):
            rows[row].append(bend)
        chains.append((edge.source, *bends, edge.target))
    rows = [row for row in rows if row]
    return Ranks(_uncrossed(rows, chains), tuple(chains))


def _places(box: Box, flow: nx.DiGraph[str]) -> dict[str, int]:
    place: dict[str, int] = {}
    order = list(nx.lexicographical_topological_sort(flow, {one.id: i for i, one in enumerate(box.boxes)}.__getitem__))
    for one in order:
        place[one] = max((place[before] + 1 for before in flow.predecessors(one)), default=0)
    first = {one.id for one in box.boxes if one.kind in ("input", "state", "memory", "chunk", "captured", "mean")}
    for one in reversed(order):
        # What asks for nothing, such as a learned memory, stands right above its first user.
        if not flow.in_degree(one) and one not in first:
            for value in flow.successors(one):
                users = [place[user] for user in flow.successors(value)]
                if users:
                    place[value] = min(users) - 1
            place[one] = max(0, min((place[value] for value in flow.successors(one)), default=1) - 1)
    results = [one.id for one in box.boxes if one.kind == "result"]
    bottom = max((place[one] for one in place if one not in results), default=-1) + 1
    # A row of its own: what a loop gives on stands below all that it does.
    place.update(dict.fromkeys(results, bottom))
    used = {row: index for index, row in enumerate(sorted(set(place.values())))}
    return {one: used[row] for one, row in place.items()}


def _uncrossed(rows: Sequence[Sequence[str]], chains: Sequence[Sequence[str]]) -> tuple[tuple[str, ...], ...]:
    """The rows in the order with the fewest crossings that barycentres find, going down and up in turn."""
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
        numbers = range(1, len(current)) if down else range(len(current) - 2, -1, -1)
        for number in numbers:
            beside = current[number - 1 if down else number + 1]
            current[number] = _by_barycentre(current[number], beside, above if down else below)
        crossings = _crossings(current, below)
        if crossings < fewest:
            best, fewest = current, crossings
    return tuple(map(tuple, best))


def _by_barycentre(row: Sequence[str], beside: Sequence[str], linked: Mapping[str, Sequence[str]]) -> list[str]:
    at = {one: index for index, one in enumerate(beside)}

    def centre(index: int) -> float:
        places = [at[one] for one in linked.get(row[index], ()) if one in at]
        return sum(places) / len(places) if places else float(index)

    return [row[index] for index in sorted(range(len(row)), key=centre)]


def _crossings(rows: Sequence[Sequence[str]], below: Mapping[str, Sequence[str]]) -> int:
    total = 0
    for upper, lower in pairwise(rows):
        at = {one: index for index, one in enumerate(lower)}
        ends = [end for one in upper for end in sorted(at[to] for to in below.get(one, ()))]
        total += sum(left > right for i, left in enumerate(ends) for right in ends[i + 1 :])
    return total
