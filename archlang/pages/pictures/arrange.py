"""Where every box and edge of a picture stands: nested boxes are as large as what is in them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from archlang.pages.pictures.picture import Box
from archlang.pages.pictures.ranks import Ranks, rank

# All in pixels. `page.js` computes the same when a box is folded: change both.
CHARACTER = 7.3  # the width of one, in a monospaced font of 12 px
LINE = 16.0
PADDING = 10.0
GAP = 22.0  # between neighbours of a row
RISE = 26.0  # between rows
LANE = 16.0  # of a back edge
BEND = 2.0  # the width of an edge that passes a row
SWEEPS = 6
LONGEST = 56  # characters of a source line


@dataclass(frozen=True)
class Route:
    """An edge: its points, from the bottom of its source to the top of its target."""

    source: str
    target: str
    points: tuple[tuple[float, float], ...]
    back: bool = False


@dataclass(frozen=True)
class Placed:
    """A box with its left upper corner, relative to that of the box around it, and its size."""

    box: Box
    x: float
    y: float
    width: float
    height: float
    inside: tuple[Placed, ...] = ()
    routes: tuple[Route, ...] = ()
    ranks: Ranks | None = None


def lines(box: Box) -> tuple[str, ...]:
    """The lines that are written on a box."""
    title = f"{box.title}  ⚭{box.badge}" if box.badge else box.title
    source = box.source if len(box.source) <= LONGEST else box.source[: LONGEST - 1] + "…"
    return (title, *box.notes, source) if source and box.kind != "value" else (title, *box.notes)


def written(box: Box) -> tuple[float, float]:
    """The size of what is written on a box."""
    texts = lines(box)
    padding = PADDING if box.kind != "value" else 3.0
    return max(map(len, texts)) * CHARACTER + 2 * padding, len(texts) * LINE + 2 * padding


def arrange(box: Box) -> Placed:
    """The picture with a place for everything in it."""
    width, height = written(box)
    if not box.boxes:
        return Placed(box, 0.0, 0.0, width, height)
    ranks = rank(box)
    children = {one.id: arrange(one) for one in box.boxes}
    sizes = {id: (one.width, one.height) for id, one in children.items()}
    centres = _centres(ranks, {id: size[0] for id, size in sizes.items()})
    back = [edge for edge in box.edges if edge.back]
    left = min(centres[id] - _width(sizes, id) / 2 for row in ranks.rows for id in row)
    shift = PADDING + GAP / 2 - left
    tops: list[float] = []
    bottoms: list[float] = []
    y = height + RISE / 2
    for row in ranks.rows:
        tops.append(y)
        y += max(sizes[id][1] if id in sizes else 0.0 for id in row)
        bottoms.append(y)
        y += RISE
    inside = {}
    right = 0.0
    at = {}
    for number, row in enumerate(ranks.rows):
        for id in row:
            at[id] = number
            right = max(right, centres[id] + shift + _width(sizes, id) / 2)
            if id in sizes:
                one = children[id]
                x = centres[id] + shift - one.width / 2
                inside[id] = Placed(one.box, x, tops[number], one.width, one.height, one.inside, one.routes, one.ranks)
    routes = [_route(chain, inside, at, centres, shift, tops, bottoms) for chain in ranks.chains]
    for lane, edge in enumerate(back):
        routes.append(_back(inside[edge.source], inside[edge.target], right + GAP / 2 + LANE * lane, lane))
    total = max(width, right + GAP / 2 + LANE * len(back) + PADDING)
    return Placed(box, 0.0, 0.0, total, y - RISE / 2, tuple(inside.values()), tuple(routes), ranks)


def _route(
    chain: Sequence[str],
    inside: Mapping[str, Placed],
    at: Mapping[str, int],
    centres: Mapping[str, float],
    shift: float,
    tops: Sequence[float],
    bottoms: Sequence[float],
) -> Route:
    """Straight down through a row, aslant between two: an edge never touches a box that is not its own."""
    source, target = chain[0], chain[-1]
    start = inside[source]
    points = [(centres[source] + shift, start.y + start.height), (centres[source] + shift, bottoms[at[source]])]
    for bend in chain[1:-1]:
        points += [(centres[bend] + shift, tops[at[bend]]), (centres[bend] + shift, bottoms[at[bend]])]
    points.append((centres[target] + shift, inside[target].y))
    return Route(source, target, tuple(points))


def _back(source: Placed, target: Placed, lane: float, number: int) -> Route:
    """From below a result, up a lane at the right, to above a state; lanes keep apart in their rows too."""
    apart = 3.0 + 2.0 * min(number, 3)
    start, end = source.x + source.width / 2, target.x + target.width / 2
    low, high = source.y + source.height + apart, target.y - apart
    points = (start, source.y + source.height), (start, low), (lane, low), (lane, high), (end, high), (end, target.y)
    return Route(source.box.id, target.box.id, points, back=True)


def _width(sizes: Mapping[str, tuple[float, float]], id: str) -> float:
    return sizes[id][0] if id in sizes else BEND


def _centres(ranks: Ranks, widths: Mapping[str, float]) -> dict[str, float]:
    """The middle of everything in its row: as near to that of its neighbours as the row allows."""
    linked: dict[str, list[list[str]]] = {id: [[], []] for row in ranks.rows for id in row}
    for chain in ranks.chains:
        for upper, lower in pairwise(chain):
            linked[lower][0].append(upper)
            linked[upper][1].append(lower)
    centre: dict[str, float] = {}
    for row in ranks.rows:
        offsets = _offsets(row, widths)
        centre.update({id: offset - offsets[-1] / 2 for id, offset in zip(row, offsets, strict=True)})
    for sweep in range(SWEEPS):
        side = sweep % 2
        for row in ranks.rows if side == 0 else ranks.rows[::-1]:
            wanted = []
            for id in row:
                near = linked[id][side] or linked[id][1 - side]
                wanted.append(sum(centre[one] for one in near) / len(near) if near else centre[id])
            centre.update(zip(row, _spread(wanted, _offsets(row, widths)), strict=True))
    return centre


def _offsets(row: Sequence[str], widths: Mapping[str, float]) -> list[float]:
    """How far the middle of each is from that of the first where they stand as close as they may."""
    offsets = [0.0]
    for left, right in pairwise(row):
        offsets.append(offsets[-1] + (widths.get(left, BEND) + widths.get(right, BEND)) / 2 + GAP)
    return offsets


def _spread(wanted: Sequence[float], offsets: Sequence[float]) -> list[float]:
    """The places nearest to those wanted, in least squares, that keep their distances (pool adjacent violators)."""
    pools: list[list[float]] = []  # mean, how many
    for want, offset in zip(wanted, offsets, strict=True):
        pools.append([want - offset, 1.0])
        while len(pools) > 1 and pools[-2][0] > pools[-1][0]:
            mean, count = pools.pop()
            before, many = pools[-1]
            pools[-1] = [(before * many + mean * count) / (many + count), many + count]
    means = [mean for mean, count in pools for _ in range(int(count))]
    return [mean + offset for mean, offset in zip(means, offsets, strict=True)]
