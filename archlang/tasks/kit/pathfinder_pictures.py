"""Pictures of dashed paths with two marks: what the task `lra_pathfinder` draws.

Only whole numbers are used, so that a picture is the same on every machine. A place is counted in 1/256 of a pixel."""

from __future__ import annotations

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
# A dash, and a dash with the gap behind it, in half pixels; and how far a path may turn from one dash to the next, in
# directions.
_DASH, _STEP = 2, 4
_TURNS = 4
_MARGIN = 2
_ATTEMPTS = 60

# Rounded, so that a machine's last bit of a cosine does not matter.
_ANGLES = [2 * pi * direction / _DIRECTIONS for direction in range(_DIRECTIONS)]
_VECTORS = np.asarray([(round(_UNIT * cos(angle)), round(_UNIT * sin(angle))) for angle in _ANGLES], dtype=np.int64)

_STRAIGHT = np.zeros((1, 1), dtype=np.int64)

Canvas = npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Pictures:
    """Pictures [N, 32, 32] of 0 and 255, and whether their marks are joined [N]."""

    pixels: npt.NDArray[np.uint8]
    joined: Integers


def draw(rng: RandomStream, count: int, dashes: int, distractors: int) -> Pictures:
    """At most so many pictures: those that no room was left in are given up."""
    drawn, blocked = _blank(count), _blank(count)
    whole = np.ones(count, dtype=np.bool_)
    ends = np.zeros((2, 2, count, 2), dtype=np.int64)
    for number in range(2 + distractors):
        long = number < 2
        # What is given up is not drawn on.
        path = _grow(rng, blocked, whole, dashes if long else max(dashes // 3, 2))
        if long:
            whole &= path.done
            ends[number] = path.first, path.last
        drawn |= path.drawn & path.done[:, None, None]
        blocked |= _wider(path.drawn & path.done[:, None, None])
    joined = rng.below(2, count)
    rows = np.arange(count)
    mine, theirs = rng.below(2, count), rng.below(2, count)
    first = ends[0, mine, rows]
    second = np.where(joined[:, None] == 1, ends[0, 1 - mine, rows], ends[1, theirs, rows])
    for places in (first, second):
        drawn |= _mark(places)
    return Pictures(np.where(drawn, 255, 0).astype(np.uint8)[whole], joined[whole])


@dataclass(frozen=True, eq=False)
class _Path:
    """A path for each picture: its pixels, the places of its ends, and whether there was room for it."""

    drawn: Canvas
    first: Integers
    last: Integers
    done: Truths


def _grow(rng: RandomStream, blocked: Canvas, wanted: Truths, dashes: int) -> _Path:
    """Paths that keep clear of what is blocked and of themselves. Where one cannot go on it begins anew elsewhere."""
    count = len(blocked)
    drawn, done = _blank(count), ~wanted
    first, last = np.zeros((count, 2), dtype=np.int64), np.zeros((count, 2), dtype=np.int64)
    for _ in range(_ATTEMPTS):
        missing = np.flatnonzero(~done)
        if not len(missing):
            break
        tried = _try(rng, blocked[missing], dashes)
        good = missing[tried.done]
        drawn[good], first[good], last[good] = tried.drawn[tried.done], tried.first[tried.done], tried.last[tried.done]
        done[good] = True
    return _Path(drawn, first, last, done & wanted)


def _try(rng: RandomStream, blocked: Canvas, dashes: int) -> _Path:
    """One attempt at a path for each picture."""
    count = len(blocked)
    drawn, closed = _blank(count), blocked.copy()
    alive = np.arange(count)
    place = _MARGIN * _UNIT + rng.below((SIDE - 2 * _MARGIN) * _UNIT, (count, 2))
    direction = rng.below(_DIRECTIONS, count)
    first, last = place.copy(), place.copy()
    latest = np.zeros((count, 0, 2), dtype=np.int64)
    for number in range(dashes):
        # Every turn in random order; the first that leads to free ground is taken.
        turns = np.argsort(rng.words((len(alive), 2 * _TURNS + 1)), axis=1) - _TURNS if number else _STRAIGHT
        found = np.zeros(len(alive), dtype=np.bool_)
        for turn in turns.T:
            candidate = (direction + turn) % _DIRECTIONS
            fits = _fits(closed, alive, _points(place, candidate)) & ~found
            direction = np.where(fits, candidate, direction)
            found |= fits
        # What cannot go on is left behind; the turns that were tried in vain there do not matter.
        alive, place, direction, latest = alive[found], place[found], direction[found], latest[found]
        points = _points(place, direction) // _UNIT
        drawn[alive[:, None], points[..., 0], points[..., 1]] = True
        # The path keeps clear of all its dashes but the latest, beside which the next one begins.
        for down, across in product((-1, 0, 1), repeat=2):
            closed[alive[:, None], latest[..., 0] + down, latest[..., 1] + across] = True
        latest = points
        last[alive] = place + _VECTORS[direction] * _DASH // 2
        place = place + _VECTORS[direction] * _STEP // 2
    done = np.zeros(count, dtype=np.bool_)
    done[alive] = True
    return _Path(drawn, first, last, done)


def _points(place: Integers, direction: Integers) -> Integers:
    """Points of a dash [N, k, 2], half a pixel from one another."""
    steps = np.arange(_DASH + 1)
    return np.asarray(place[:, None, :] + _VECTORS[direction][:, None, :] * steps[None, :, None] // 2)


def _fits(closed: Canvas, pictures: Integers, points: Integers) -> Truths:
    """Whether these dashes are inside their pictures, and on free ground."""
    pixels = points // _UNIT
    inside = ((pixels >= _MARGIN) & (pixels < SIDE - _MARGIN)).all(axis=(1, 2))
    safe = np.clip(pixels, 0, SIDE - 1)
    return np.asarray(inside & ~closed[pictures[:, None], safe[..., 0], safe[..., 1]].any(axis=1))


def _mark(places: Integers) -> Canvas:
    """A round mark: the pixels within one and a half of a place."""
    pixels = np.arange(SIDE) * _UNIT + _UNIT // 2
    down, across = pixels[None, :] - places[:, :1], pixels[None, :] - places[:, 1:]
    return np.asarray(4 * (down[:, :, None] ** 2 + across[:, None, :] ** 2) <= (3 * _UNIT) ** 2)


def _wider(canvas: Canvas) -> Canvas:
    """The pixels and all beside them."""
    tall = canvas.copy()
    tall[:, 1:] |= canvas[:, :-1]
    tall[:, :-1] |= canvas[:, 1:]
    wide = tall.copy()
    wide[:, :, 1:] |= tall[:, :, :-1]
    wide[:, :, :-1] |= tall[:, :, 1:]
    return wide


def _blank(count: int) -> Canvas:
    return np.zeros((count, SIDE, SIDE), dtype=np.bool_)
