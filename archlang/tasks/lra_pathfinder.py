"""Pathfinder of the Long Range Arena: are two marks at the ends of the same dashed path, in a picture read as a
sequence?

Tay et al. (2021), after Linsley et al. (2018), with pictures of 32 x 32 pixels.

>>> task = LraPathfinder(train_size=6, dashes=3, distractors=0)
>>> train = task.generate("train", seed=0)
>>> print(int(train.targets[1]), picture(train, 1), sep="\\n")
1
.................#
##..............##
#######.........#.
##..###.........#.
.....##........#..
...............#..
>>> print(int(train.targets[2]), picture(train, 2), sep="\\n")
0
..#........
..#........
.#...##....
.#..#######
###..##....
###........
"""

import io
import struct
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from math import cos, pi, sin
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from archlang.data import store
from archlang.errors.machine import needs_extra
from archlang.tasks.kit import mistakes
from archlang.tasks.kit.drawing import Drawing, RandomStream, table_fingerprints
from archlang.tasks.kit.split import Integers, Ragged, Split, Truths
from archlang.tasks.kit.task import Kind, ShippedTask

# The share of all pictures that a split may hold, by fingerprint or in the order of the published pictures.
SHARES = {"train": (0.2, 1.0), "valid": (0.0, 0.1), "test": (0.1, 0.2)}
FOLDER = "pathfinder32/curv_contour_length_14"
PUBLISHED_LISTS = 200
_BATCH = 1 << 12

Pixels = npt.NDArray[np.uint8]


class LraPathfinder(ShippedTask):
    data: str
    dashes: int
    distractors: int

    vocabulary = tuple(str(shade) for shade in range(256))
    kind = Kind.CLASSIFICATION
    class_names = ("not joined", "joined")
    in_distribution = ShippedTask.splits
    breakdown = "joined"
    group_names: ClassVar = {"joined": class_names}

    def reads(self) -> tuple[tuple[str, str], ...]:
        # The lists stand for the pictures, which were published together with them.
        numbers = range(PUBLISHED_LISTS) if self.data == "files" else ()
        return tuple(("lra", f"{FOLDER}/metadata/{number}.npy") for number in numbers)

    def make(self, split: str, seed: int) -> Split:
        pixels, joined = self._published(split) if self.data == "files" else self._drawn(split, seed)
        return Split({"x": Ragged.table(pixels)}, joined, groups={"joined": joined})

    def _drawn(self, split: str, seed: int) -> tuple[Pixels, Integers]:
        size = self.size(split)
        rng = RandomStream("lra pathfinder", split, seed)
        search = Drawing(self.name, f"{split}_size", size, "choose fewer `dashes`", share=SHARES[split])
        pictures = np.empty((size, SIDE**2), dtype=np.uint8)
        joined = np.empty(size, dtype=np.int64)
        while search.missing:
            # Enough for the missing pictures, if a third of the drawn ones is usable.
            batch = draw(rng, min(_BATCH, 64 + 3 * search.missing), self.dashes, self.distractors)
            rows = batch.pixels.reshape(len(batch.pixels), -1)
            done, fresh = size - search.missing, search.pick(table_fingerprints(rows))
            end = done + len(fresh)
            pictures[done:end], joined[done:end] = rows[fresh], batch.joined[fresh]
        return pictures, joined

    @cached_property
    def _files(self) -> tuple[Pixels, Integers]:
        """All published pictures and whether their marks are joined, in the order of the lists."""
        names = []
        for number in range(PUBLISHED_LISTS):
            member = f"{FOLDER}/metadata/{number}.npy"
            try:
                names += listed(store.lines("lra", member))
            except ValueError as error:
                raise mistakes.damaged_file(member, "lra", error) from error
        try:
            return pictures(names, _content)
        except ValueError as error:
            raise mistakes.damaged_file(FOLDER, "lra", error) from error

    def _published(self, split: str) -> tuple[Pixels, Integers]:
        pixels, joined = self._files
        low, high = SHARES[split]
        order = np.random.RandomState(42).permutation(len(joined))
        members = order[round(len(order) * low) : round(len(order) * high)]
        return pixels[members], joined[members]


def _content(name: str) -> bytes:
    with store.open_binary("lra", f"{FOLDER}/{name}") as stream:
        return stream.read()


def listed(lines: Iterable[str]) -> list[tuple[str, int]]:
    """Returns the path of each picture in a list (`imgs/0 sample_0.png 0 1 …`), and whether its marks are joined.

    Raises:
        ValueError: a line is malformed."""
    names = []
    for line in lines:
        folder, name, _, joined, *_ = (*line.split(), "", "", "", "")
        if joined not in ("0", "1"):
            raise ValueError(f"expected a picture and its label, found {line!r}")
        names.append((f"{folder}/{name}", int(joined)))
    return names


def pictures(names: Iterable[tuple[str, int]], content: Callable[[str], bytes]) -> tuple[Pixels, Integers]:
    """Returns the pictures as rows of pixels [N, 1024], and whether their marks are joined [N]. Empty files are
    skipped; the published set has one.

    Raises:
        ValueError: a picture is damaged, or of another kind."""
    rows, joined = [], []
    for name, label in names:
        data = content(name)
        if not data:
            continue
        rows.append(grey_pixels(data).reshape(-1))
        joined.append(label)
    return np.asarray(rows, dtype=np.uint8).reshape(-1, SIDE**2), np.asarray(joined, dtype=np.int64)


def picture(split: Split, index: int) -> str:
    """Returns a picture as text, cropped to the pixels that are not black."""
    light = split.inputs["x"][index].reshape(SIDE, SIDE) > 0
    rows, columns = np.flatnonzero(light.any(axis=1)), np.flatnonzero(light.any(axis=0))
    part = light[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1]
    return "\n".join("".join("#" if pixel else "." for pixel in row) for row in part)


def grey_pixels(data: bytes) -> Pixels:
    """Returns the pixels [32, 32] of a PNG picture with one channel of 8 bits.

    Raises:
        ValueError: the picture is of another kind, or damaged."""
    with needs_extra("data"):
        from PIL import Image

    bomb = (Image.DecompressionBombError, Image.DecompressionBombWarning)
    try:
        with Image.open(io.BytesIO(data), formats=["PNG"]) as picture:
            # Refused before a pixel is decoded, whatever size the header states.
            if picture.mode != "L" or picture.size != (SIDE, SIDE):
                raise ValueError(f"expected {SIDE} x {SIDE} shades, found {picture.mode} {picture.size}")
            return np.array(picture, dtype=np.uint8)
    except (OSError, SyntaxError, ValueError, struct.error, *bomb) as error:
        raise ValueError(f"it is no PNG picture, or it is damaged: {error}") from error


# Generated pictures


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
        blocked |= _with_neighbours(path.drawn & path.done[:, None, None])
    joined = rng.below(2, count)
    rows = np.arange(count)
    first_end, second_end = rng.below(2, count), rng.below(2, count)
    first = ends[0, first_end, rows]
    second = np.where(joined[:, None] == 1, ends[0, 1 - first_end, rows], ends[1, second_end, rows])
    for positions in (first, second):
        drawn |= _round_marks(positions)
    return Pictures(np.where(drawn, 255, 0).astype(np.uint8)[complete], joined[complete])


@dataclass(frozen=True, eq=False)
class _DashedPaths:
    """A path for each of N pictures: its pixels [N, 32, 32], its ends [N, 2], and whether it is complete [N]."""

    drawn: Canvas
    first: Integers
    last: Integers
    done: Truths


def _grow(rng: RandomStream, blocked: Canvas, wanted: Truths, dashes: int) -> _DashedPaths:
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
    return _DashedPaths(drawn, first, last, done & wanted)


def _try(rng: RandomStream, blocked: Canvas, dashes: int) -> _DashedPaths:
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
            fits = _are_free(closed, alive, _points(position, candidate)) & ~turned
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
    return _DashedPaths(drawn, first, last, done)


def _points(position: Integers, direction: Integers) -> Integers:
    """Returns points [N, k, 2] of dashes, half a pixel apart."""
    steps, vectors = np.arange(_DASH + 1), np.asarray(_VECTORS, dtype=np.int64)
    return np.asarray(position[:, None, :] + vectors[direction][:, None, :] * steps[None, :, None] // 2)


def _are_free(closed: Canvas, pictures: Integers, points: Integers) -> Truths:
    """Returns whether dashes [N, k, 2] are inside their pictures [N] and on free pixels."""
    pixels = points // _UNIT
    inside = ((pixels >= _MARGIN) & (pixels < SIDE - _MARGIN)).all(axis=(1, 2))
    clipped = np.clip(pixels, 0, SIDE - 1)
    return np.asarray(inside & ~closed[pictures[:, None], clipped[..., 0], clipped[..., 1]].any(axis=1))


def _round_marks(positions: Integers) -> Canvas:
    """Returns round marks [N, 32, 32]: the pixels within 1.5 pixels of positions [N, 2]."""
    pixels = np.arange(SIDE) * _UNIT + _UNIT // 2
    down, across = pixels[None, :] - positions[:, :1], pixels[None, :] - positions[:, 1:]
    return np.asarray(4 * (down[:, :, None] ** 2 + across[:, None, :] ** 2) <= (3 * _UNIT) ** 2)


def _with_neighbours(canvas: Canvas) -> Canvas:
    tall = canvas.copy()
    tall[:, 1:] |= canvas[:, :-1]
    tall[:, :-1] |= canvas[:, 1:]
    wide = tall.copy()
    wide[:, :, 1:] |= tall[:, :, :-1]
    wide[:, :, :-1] |= tall[:, :, 1:]
    return wide


def _blank(count: int) -> Canvas:
    return np.zeros((count, SIDE, SIDE), dtype=np.bool_)
