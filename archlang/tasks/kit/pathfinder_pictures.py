"""Pictures of dashed paths with two marks, for the task `lra_pathfinder`.

All arithmetic is on integers, so that a picture is equal on every machine. The unit of coordinates is 1/256 pixel."""

from dataclasses import dataclass
from itertools import product
from math import cos, pi, sin

import numpy as np
import numpy.typing as npt

from archlang.tasks.kit.ragged import Integers, Truths
from archlang.tasks.kit.random_stream import RandomStream

SIDE = 32
_UNIT = 256
_DIRECTIONS = 48
# The length of a dash, and of a dash with the gap after it, in half pixels; and the largest turn from one dash to the
# next, in directions.
_DASH, _STEP = 2, 4
_TURNS = 4
_MARGIN = 2
_ATTEMPTS = 60

# Rounded, because machines differ in the last bit of a cosine.
_ANGLES = [2 * pi * direction / _DIRECTIONS for direction in range(_DIRECTIONS)]
_VECTORS = tuple((round(_UNIT * cos(angle)), round(_UNIT * sin(angle))) for angle in _ANGLES)

Canvas = npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Pictures:
    """Pictures [N, 32, 32] with the values 0 and 255, and whether their marks are joined [N]."""

    pixels: npt.NDArray[np.uint8]
    joined: Integers


def draw(rng: RandomStream, count: int, dashes: int, distractors: int) -> Pictures:
    """Draws at most `count` pictures; pictures without room for all paths are dropped."""
    drawn, blocked = _blank(count), _blank(count)
    complete = np.ones(count, dtype=np.bool_)
    ends = np.zeros((2, 2, count, 2), dtype=np.int64)
    for number in range(2 + distractors):
        long = number < 2
        path = _grow(rng, blocked, complete, dashes if long else max(dashes // 3, 2))
        if long:
            complete &= path.done
            ends[number] = path.first, path.last
        drawn |= path.drawn & path.done[:, None, None]
        blocked |= _wider(path.drawn & path.done[:, None, None])
    joined = rng.below(2, count)
    rows = np.arange(count)
    first_end, second_end = rng.below(2, count), rng.below(2, count)
    first = ends[0, first_end, rows]
    second = np.where(joined[:, None] == 1, ends[0, 1 - first_end, rows], ends[1, second_end, rows])
    for positions in (first, second):
        drawn |= _mark(positions)
    return Pictures(np.where(drawn, 255, 0).astype(np.uint8)[complete], joined[complete])


@dataclass(frozen=True, eq=False)
class _Path:
    """A path for each of N pictures: its pixels [N, 32, 32], its ends [N, 2], and whether it is complete [N]."""

    drawn: Canvas
    first: Integers
    last: Integers
    done: Truths


def _grow(rng: RandomStream, blocked: Canvas, wanted: Truths, dashes: int) -> _Path:
    """Draws paths that avoid blocked pixels and themselves, for the wanted pictures [N]. A path without a free next
    pixel is drawn again elsewhere."""
    count = len(blocked)
    drawn, done = _blank(count), ~wanted
    first, last = np.zeros((count, 2), dtype=np.int64), np.zeros((count, 2), dtype=np.int64)
    for _ in range(_ATTEMPTS):
        missing = np.flatnonzero(~done)
        if not len(missing):
            break
        attempt = _try(rng, blocked[missing], dashes)
        good, ok = missing[attempt.done], attempt.done
        drawn[good], first[good], last[good] = attempt.drawn[ok], attempt.first[ok], attempt.last[ok]
        done[good] = True
    return _Path(drawn, first, last, done & wanted)


def _try(rng: RandomStream, blocked: Canvas, dashes: int) -> _Path:
    """Attempts to draw a path in each picture."""
    count = len(blocked)
    drawn, closed = _blank(count), blocked.copy()
    alive = np.arange(count)
    position = _MARGIN * _UNIT + rng.below((SIDE - 2 * _MARGIN) * _UNIT, (count, 2))
    direction = rng.below(_DIRECTIONS, count)
    first, last = position.copy(), position.copy()
    latest = np.zeros((count, 0, 2), dtype=np.int64)
    vectors, straight = np.asarray(_VECTORS, dtype=np.int64), np.zeros((1, 1), dtype=np.int64)
    for number in range(dashes):
        # Tries every turn in random order and takes the first one to free pixels.
        turns = np.argsort(rng.words((len(alive), 2 * _TURNS + 1)), axis=1) - _TURNS if number else straight
        turned = np.zeros(len(alive), dtype=np.bool_)
        for turn in turns.T:
            candidate = (direction + turn) % _DIRECTIONS
            fits = _fits(closed, alive, _points(position, candidate)) & ~turned
            direction = np.where(fits, candidate, direction)
            turned |= fits
        # Drops the paths without a free turn.
        alive, position, direction, latest = alive[turned], position[turned], direction[turned], latest[turned]
        points = _points(position, direction) // _UNIT
        drawn[alive[:, None], points[..., 0], points[..., 1]] = True
        # The path avoids all its dashes except the latest one, next to which the next dash begins.
        for down, across in product((-1, 0, 1), repeat=2):
            closed[alive[:, None], latest[..., 0] + down, latest[..., 1] + across] = True
        latest = points
        last[alive] = position + vectors[direction] * _DASH // 2
        position = position + vectors[direction] * _STEP // 2
    done = np.zeros(count, dtype=np.bool_)
    done[alive] = True
    return _Path(drawn, first, last, done)


def _points(position: Integers, direction: Integers) -> Integers:
    """Returns points [N, k, 2] of dashes, half a pixel apart."""
    steps, vectors = np.arange(_DASH + 1), np.asarray(_VECTORS, dtype=np.int64)
    return np.asarray(position[:, None, :] + vectors[direction][:, None, :] * steps[None, :, None] // 2)


def _fits(closed: Canvas, pictures: Integers, points: Integers) -> Truths:
    """Returns whether dashes [N, k, 2] are inside their pictures [N] and on free pixels."""
    pixels = points // _UNIT
    inside = ((pixels >= _MARGIN) & (pixels < SIDE - _MARGIN)).all(axis=(1, 2))
    clipped = np.clip(pixels, 0, SIDE - 1)
    return np.asarray(inside & ~closed[pictures[:, None], clipped[..., 0], clipped[..., 1]].any(axis=1))


def _mark(positions: Integers) -> Canvas:
    """Returns round marks [N, 32, 32]: the pixels within 1.5 pixels of positions [N, 2]."""
    pixels = np.arange(SIDE) * _UNIT + _UNIT // 2
    down, across = pixels[None, :] - positions[:, :1], pixels[None, :] - positions[:, 1:]
    return np.asarray(4 * (down[:, :, None] ** 2 + across[:, None, :] ** 2) <= (3 * _UNIT) ** 2)


def _wider(canvas: Canvas) -> Canvas:
    """Returns the pixels with all their neighbours."""
    tall = canvas.copy()
    tall[:, 1:] |= canvas[:, :-1]
    tall[:, :-1] |= canvas[:, 1:]
    wide = tall.copy()
    wide[:, :, 1:] |= tall[:, :, :-1]
    wide[:, :, :-1] |= tall[:, :, 1:]
    return wide


def _blank(count: int) -> Canvas:
    return np.zeros((count, SIDE, SIDE), dtype=np.bool_)
