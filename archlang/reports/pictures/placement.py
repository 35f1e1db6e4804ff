"""Computes the position of every box and edge: a box is as large as its content.

`picture.js` starts from these positions when a box is folded, so this file is the only layout."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from math import inf

from archlang.reports.pictures.box import PADDING, Box, BoxLabel, Edge
from archlang.reports.pictures.ranks import Ranks, rank

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
    return _Region(box, label, widest).placed()


class _Region:
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
    offsets_of = {row: _offsets(row, widths) for row in ranks.rows}
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


def _offsets(row: Sequence[str], widths: Mapping[str, float]) -> list[float]:
    """Returns the distance of each centre from the first one if the row is packed tightly."""
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
    return placed if placed.width <= WIDEST or is_pair else _in_columns(box)


def _in_columns(box: Box) -> PlacedBox:
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
