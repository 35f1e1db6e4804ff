"""Computes the position of every box and edge: a box is as large as its content, which stands in rows that are ordered
by the method of Sugiyama.

`picture.js` starts from these positions when a box is folded, so this file is the only layout."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from math import inf

from archlang.reports.pictures.box import PADDING, Box, BoxLabel, Edge

RANK_SWEEPS = 12
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
    for sweep in range(RANK_SWEEPS):
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


# In pixels. `picture.js` keeps the same gap between neighbours.
GAP = 18.0  # between neighbours of a row
ROW_GAP = 20.0
LANE_WIDTH = 16.0  # of a back edge
BEND_WIDTH = 2.0  # of an edge that passes a row
SWEEPS = 6

LOOPS = ("repeat", "stack", "halting", "scan")


@dataclass(frozen=True)
class Route:
    """The points of an edge, from the bottom of its source to the top of its target."""

    source: str
    target: str
    points: tuple[tuple[float, float], ...]
    back: bool = False


@dataclass(frozen=True)
class PlacedBox:
    """A box with its size and its upper left corner, relative to that of its parent."""

    box: Box
    label: BoxLabel
    width: float
    height: float
    x: float = 0.0
    y: float = 0.0
    children: tuple[PlacedBox, ...] = ()
    routes: tuple[Route, ...] = ()

    @property
    def centre(self) -> float:
        return self.x + self.width / 2

    @property
    def bottom(self) -> float:
        return self.y + self.height

    @property
    def can_fold(self) -> bool:
        return bool(self.children) and self.box.kind != "model"

    @property
    def classes(self) -> str:
        """The CSS classes, separated by spaces."""
        names = [self.box.kind, "loop" * (self.box.kind in LOOPS), "shared" * bool(self.box.badge), self.box.change]
        return " ".join(filter(None, names))

    @property
    def description(self) -> str:
        """The text for screen readers."""
        output = f"computes {self.box.output}" if self.box.output else ""
        return ". ".join(filter(None, (self.box.title, output, *self.box.notes, self.box.location)))

    @property
    def hover(self) -> str:
        """The text under the mouse."""
        return "\n".join([self.box.title, *self.box.details, f"{self.box.location}  {self.box.source}"])


def place_boxes(box: Box, widest: float = inf) -> PlacedBox:
    """Places a box at the origin and everything inside it, in rows of about `widest` pixels at most."""
    label = BoxLabel.of(box)
    if not box.boxes:
        return PlacedBox(box, label, label.width, label.height)
    return _BoxLayout(box, label, widest).placed()


class _BoxLayout:
    """The layout inside one box. Coordinates are relative to its upper left corner."""

    def __init__(self, box: Box, label: BoxLabel, widest: float) -> None:
        self.box = box
        self.label = label
        inside = widest - 2 * PADDING - GAP - LANE_WIDTH * sum(edge.back for edge in box.edges)
        self.children = {child.id: place_boxes(child, inside) for child in box.boxes}
        self.ranks = rank(box, {id: child.width + GAP for id, child in self.children.items()}, inside)
        self.row_of = {id: number for number, row in enumerate(self.ranks.rows) for id in row}
        centres = _centres(self.ranks, {id: child.width for id, child in self.children.items()}, inside)
        left = min(centre - self._width(id) / 2 for id, centre in centres.items())
        shift = PADDING + GAP / 2 - left
        self.centres = {id: centre + shift for id, centre in centres.items()}
        self.right = max(centre + self._width(id) / 2 for id, centre in self.centres.items())
        self.tops: list[float] = []
        self.bottoms: list[float] = []
        y = label.height + ROW_GAP / 2
        for row in self.ranks.rows:
            self.tops.append(y)
            y += max(self.children[id].height if id in self.children else 0.0 for id in row)
            self.bottoms.append(y)
            y += ROW_GAP
        self.height = y - ROW_GAP / 2

    def placed(self) -> PlacedBox:
        for id, child in self.children.items():
            x, y = self.centres[id] - child.width / 2, self.tops[self.row_of[id]]
            self.children[id] = replace(child, x=x, y=y)
        routes = [self._route(chain) for chain in self.ranks.chains]
        back = [edge for edge in self.box.edges if edge.back]
        routes += [self._back_route(edge, lane) for lane, edge in enumerate(back)]
        width = max(self.label.width, self._lane(len(back)) + PADDING)
        children = tuple(self.children[id] for row in self.ranks.rows for id in row if id in self.children)
        return PlacedBox(self.box, self.label, width, self.height, children=children, routes=tuple(routes))

    def _width(self, id: str) -> float:
        return self.children[id].width if id in self.children else BEND_WIDTH

    def _lane(self, number: int) -> float:
        return self.right + GAP / 2 + LANE_WIDTH * number

    def _route(self, chain: Sequence[str]) -> Route:
        """Routes an edge vertically through rows and diagonally between them, so that it crosses no other box."""
        source, target = self.children[chain[0]], self.children[chain[-1]]
        points = [(source.centre, source.bottom), (source.centre, self.bottoms[self.row_of[chain[0]]])]
        for bend in chain[1:-1]:
            x, row = self.centres[bend], self.row_of[bend]
            points += [(x, self.tops[row]), (x, self.bottoms[row])]
        points.append((target.centre, target.y))
        return Route(chain[0], chain[-1], tuple(points))

    def _back_route(self, edge: Edge, number: int) -> Route:
        """Routes an edge from below a result, up a lane at the right, to above a state. Lanes have distinct heights."""
        source, target = self.children[edge.source], self.children[edge.target]
        distance = 3.0 + 2.0 * min(number, 3)
        low, high, x = source.bottom + distance, target.y - distance, self._lane(number)
        points = (
            (source.centre, source.bottom), (source.centre, low), (x, low),
            (x, high), (target.centre, high), (target.centre, target.y),
        )  # fmt: skip
        return Route(edge.source, edge.target, points, back=True)


def _centres(ranks: Ranks, widths: Mapping[str, float], widest: float) -> dict[str, float]:
    """Returns the x of the centre of every box and bend: as near to its neighbours in other rows as its row allows, and
    within `widest`, or the width of the widest row if that is more."""
    linked: dict[str, list[list[str]]] = {id: [[], []] for row in ranks.rows for id in row}
    for chain in ranks.chains:
        for upper, lower in pairwise(chain):
            linked[lower][0].append(upper)
            linked[upper][1].append(lower)
    centres: dict[str, float] = {}
    offsets_of = {row: _tight_offsets(row, widths) for row in ranks.rows}
    half = max(widest, *(offsets[-1] for offsets in offsets_of.values())) / 2
    for row, offsets in offsets_of.items():
        centres.update({id: offset - offsets[-1] / 2 for id, offset in zip(row, offsets, strict=True)})
    for sweep in range(SWEEPS):
        side = sweep % 2
        for row in ranks.rows if side == 0 else ranks.rows[::-1]:
            targets = []
            for id in row:
                neighbours = linked[id][side] or linked[id][1 - side]
                near = [centres[neighbour] for neighbour in neighbours] or [centres[id]]
                targets.append(sum(near) / len(near))
            centres.update(zip(row, _spread(targets, offsets_of[row], half), strict=True))
    return centres


def _tight_offsets(row: Sequence[str], widths: Mapping[str, float]) -> list[float]:
    offsets = [0.0]
    for left, right in pairwise(row):
        offsets.append(offsets[-1] + (widths.get(left, BEND_WIDTH) + widths.get(right, BEND_WIDTH)) / 2 + GAP)
    return offsets


def _spread(targets: Sequence[float], offsets: Sequence[float], half: float) -> list[float]:
    """Returns the positions between `-half` and `half` that are nearest to the targets, by least squares, and keep at
    least the distances of `offsets` (pool adjacent violators)."""
    pools: list[tuple[float, int]] = []  # mean and count
    for target, offset in zip(targets, offsets, strict=True):
        mean, count = target - offset, 1
        while pools and pools[-1][0] > mean:
            pool_mean, pool_count = pools.pop()
            mean = (pool_mean * pool_count + mean * count) / (pool_count + count)
            count += pool_count
        pools.append((mean, count))
    means = [min(max(mean, -half), half - offsets[-1]) for mean, count in pools for _ in range(count)]
    return [mean + offset for mean, offset in zip(means, offsets, strict=True)]


# In pixels: with the margins of an SVG, 1,400, which most screens show whole.
WIDEST = 1380.0
_WIDEST_ROW = 800.0  # of boxes, without the edges that pass it


def place_readably(box: Box) -> PlacedBox:
    """Places a box for a picture that does not fold, in columns if it is too wide otherwise."""
    placed = place_boxes(box.without_repeats())
    is_pair = any(child.kind == "model" for child in box.boxes)
    return placed if placed.width <= WIDEST or is_pair else _placed_in_columns(box)


def _placed_in_columns(box: Box) -> PlacedBox:
    """Returns the model with its blocks inside it, each as far up as it has a place beside or below those before."""
    drawing = _Blocks()
    content = drawing.without_blocks(box)
    model, *blocks = (place_boxes(each, _WIDEST_ROW) for each in (content, *drawing.blocks))
    widest = max(WIDEST, *(each.width + 2 * PADDING for each in (model, *blocks)))
    placed = [model]
    for block in blocks:
        edges = (PADDING, *(each.x + each.width + GAP for each in placed))
        fitting = [x for x in edges if x == PADDING or x + block.width + PADDING <= widest]
        y, x = min((_bottom(placed, x, block.width), x) for x in fitting)
        placed.append(replace(block, x=x, y=y))
    width = max(each.x + each.width for each in placed) + PADDING
    height = max(each.bottom for each in placed) + GAP
    return replace(model, width=width, height=height, children=(*model.children, *placed[1:]))


def _bottom(boxes: Sequence[PlacedBox], x: float, width: float) -> float:
    touched = (box for box in boxes if box.x < x + width + GAP and x < box.x + box.width + GAP)
    return max((box.bottom + GAP for box in touched), default=GAP)


@dataclass
class _Blocks:
    """Collects the blocks of a picture, in the order of their first use."""

    blocks: list[Box] = field(default_factory=list)

    def without_blocks(self, box: Box) -> Box:
        """Returns a box in which the blocks that it uses are empty."""
        return replace(box, boxes=tuple(self._empty(child) for child in box.boxes))

    def _empty(self, box: Box) -> Box:
        if box.kind != "apply" or not box.boxes:
            return self.without_blocks(box)
        if not box.repeats:
            place = len(self.blocks)
            self.blocks.insert(place, self.without_blocks(replace(box, output="")))
        return replace(box, notes=(*box.notes, "drawn separately"), boxes=(), edges=())
