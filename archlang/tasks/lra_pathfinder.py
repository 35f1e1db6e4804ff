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
from functools import cached_property
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from archlang.data import store
from archlang.diagnostics.machine import needs_extra
from archlang.tasks.kit import mistakes, pathfinder_pictures
from archlang.tasks.kit.distinct import Search, table_fingerprints
from archlang.tasks.kit.ragged import Integers, Ragged
from archlang.tasks.kit.random_stream import RandomStream
from archlang.tasks.kit.split import Split
from archlang.tasks.kit.task import Kind, ShippedTask, Unit

__all__ = ["LraPathfinder", "picture"]

# The share of all pictures that a split may hold, by fingerprint or in the order of the published pictures.
SHARES = {"train": (0.2, 1.0), "valid": (0.0, 0.1), "test": (0.1, 0.2)}
FOLDER = "pathfinder32/curv_contour_length_14"
PUBLISHED_LISTS = 200
_BATCH = 1 << 12

Pixels = npt.NDArray[np.uint8]


class LraPathfinder(ShippedTask):
    """The task."""

    data: str
    dashes: int
    distractors: int

    vocabulary = tuple(str(shade) for shade in range(256))
    kind = Kind.CLASSIFICATION
    class_names = ("not joined", "joined")
    in_distribution = ShippedTask.splits
    breakdown = "joined"
    group_names: ClassVar = {"joined": class_names}
    unit = Unit.SAMPLE
    metrics = ("accuracy",)

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
        search = Search(self.name, f"{split}_size", size, "choose fewer `dashes`", share=SHARES[split])
        pictures = np.empty((size, pathfinder_pictures.SIDE**2), dtype=np.uint8)
        joined = np.empty(size, dtype=np.int64)
        while search.missing:
            # Enough for the missing pictures, if a third of the drawn ones is usable.
            batch = pathfinder_pictures.draw(rng, min(_BATCH, 64 + 3 * search.missing), self.dashes, self.distractors)
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
                raise mistakes.damaged_file("lra", member, error) from error
        try:
            return pictures(names, _content)
        except PictureError as error:
            raise mistakes.damaged_file("lra", FOLDER, error) from error

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
        PictureError: a picture is damaged or not 32 pixels wide and high."""
    rows, joined = [], []
    for name, label in names:
        data = content(name)
        if not data:
            continue
        pixels = grey_pixels(data)
        if pixels.shape != (pathfinder_pictures.SIDE, pathfinder_pictures.SIDE):
            raise PictureError(f"{name} has {pixels.shape[0]} rows of {pixels.shape[1]} pixels")
        rows.append(pixels.reshape(-1))
        joined.append(label)
    return np.asarray(rows, dtype=np.uint8).reshape(-1, pathfinder_pictures.SIDE**2), np.asarray(joined, dtype=np.int64)


def picture(split: Split, index: int) -> str:
    """Returns a picture as text, cropped to the pixels that are not black."""
    light = split.inputs["x"][index].reshape(pathfinder_pictures.SIDE, pathfinder_pictures.SIDE) > 0
    rows, columns = np.flatnonzero(light.any(axis=1)), np.flatnonzero(light.any(axis=0))
    part = light[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1]
    return "\n".join("".join("#" if pixel else "." for pixel in row) for row in part)


# Published pictures


# Refused before a pixel is decoded, whatever size the header states.
_MOST_PIXELS = 1 << 24


class PictureError(Exception):
    """Bytes that are not a PNG picture of the expected kind."""


def grey_pixels(data: bytes) -> Pixels:
    """Returns the pixels [height, width] of a PNG picture with one channel of 8 bits that is not interlaced.

    Raises:
        PictureError: the picture is of another kind, too large, or damaged."""
    with needs_extra("data"):
        from PIL import Image, UnidentifiedImageError

    too_large = (Image.DecompressionBombError, Image.DecompressionBombWarning)
    try:
        with Image.open(io.BytesIO(data), formats=["PNG"]) as picture:
            if picture.mode != "L" or "interlace" in picture.info:
                raise PictureError("expected one channel of 8 bits that is not interlaced")
            if picture.width * picture.height > _MOST_PIXELS:
                raise PictureError(f"{picture.height} rows of {picture.width} pixels are more than {_MOST_PIXELS}")
            # Decoding ignores the checksums of the pixels.
            picture.verify()
        with Image.open(io.BytesIO(data), formats=["PNG"]) as picture:
            return np.array(picture, dtype=np.uint8)
    except UnidentifiedImageError as error:
        raise PictureError("the file is not a PNG picture, or its header is damaged") from error
    except (OSError, SyntaxError, ValueError, struct.error, *too_large) as error:
        raise PictureError(f"the PNG picture is damaged: {error}") from error
