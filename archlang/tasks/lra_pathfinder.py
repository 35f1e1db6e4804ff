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

from collections.abc import Callable, Iterable
from functools import cached_property
from typing import ClassVar

import numpy as np

from archlang.data import store
from archlang.tasks.kit import mistakes, pathfinder_pictures
from archlang.tasks.kit.fingerprints import Patience, Seen, in_share, table_fingerprints
from archlang.tasks.kit.grey_png import PictureError, Pixels, grey_pixels
from archlang.tasks.kit.ragged import Integers, Ragged
from archlang.tasks.kit.random_stream import RandomStream
from archlang.tasks.kit.shipped_task import ShippedTask
from archlang.tasks.kit.split import Split
from archlang.tasks.kit.task import Kind, Unit

__all__ = ["LraPathfinder", "picture"]

# The share of all pictures that a split may hold, by fingerprint or in the order of the published pictures.
SHARES = {"train": (0.2, 1.0), "valid": (0.0, 0.1), "test": (0.1, 0.2)}
FOLDER = "pathfinder32/curv_contour_length_14"
PUBLISHED_LISTS = 200
_BATCH, _WINDOW = 1 << 12, 40


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
        rng, seen, patience = RandomStream("lra pathfinder", split, seed), Seen(), Patience(size, _WINDOW)
        pictures = np.empty((size, pathfinder_pictures.SIDE**2), dtype=np.uint8)
        joined = np.empty(size, dtype=np.int64)
        done = 0
        while done < size:
            # Enough for the missing pictures, if a third of the drawn ones is usable.
            batch = pathfinder_pictures.draw(rng, min(_BATCH, 64 + 3 * (size - done)), self.dashes, self.distractors)
            rows = batch.pixels.reshape(len(batch.pixels), -1)
            prints = table_fingerprints(rows)
            fresh = np.flatnonzero(in_share(prints, *SHARES[split]) & seen.fresh(prints))[: size - done]
            end = done + len(fresh)
            pictures[done:end], joined[done:end] = rows[fresh], batch.joined[fresh]
            done = end
            if patience.is_over(len(fresh)) and done < size:
                raise mistakes.items_too_rare("lra_pathfinder", f"{split}_size", size, done, "choose fewer `dashes`")
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
