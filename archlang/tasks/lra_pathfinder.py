"""Pathfinder of the Long Range Arena: do two marks stand at the ends of one dashed path, in a picture read as a row?

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

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from archlang.data import store
from archlang.tasks.kit import mistakes, pathfinder_pictures
from archlang.tasks.kit.checks import check_bounds, check_choice, check_sizes, check_split
from archlang.tasks.kit.fingerprints import Patience, Seen, in_share, table_fingerprints
from archlang.tasks.kit.grey_png import PictureError, Pixels, grey_pixels
from archlang.tasks.kit.ragged import Integers, Ragged
from archlang.tasks.kit.random_stream import RandomStream
from archlang.tasks.kit.split import Split
from archlang.tasks.kit.task import Kind, Unit

__all__ = ["LraPathfinder", "picture"]

SOURCES = ("generated", "files")
SPLITS = ("train", "valid", "test")
# The share of all pictures that a split may hold: by fingerprint, or of the published ones.
SHARES = {"train": (0.2, 1.0), "valid": (0.0, 0.1), "test": (0.1, 0.2)}
FOLDER = "pathfinder32/curv_contour_length_14"
PUBLISHED_LISTS = 200
MOST_DASHES, MOST_DISTRACTORS = 16, 8
_BATCH, _WINDOW = 1 << 12, 40


@dataclass(frozen=True, kw_only=True)
class LraPathfinder:
    """The task."""

    data: str = "generated"
    dashes: int = 14
    distractors: int = 6
    train_size: int = 160_000
    valid_size: int = 20_000
    test_size: int = 20_000

    vocabulary = tuple(str(shade) for shade in range(256))
    kind = Kind.CLASSIFICATION
    in_distribution = SPLITS
    breakdown = "joined"
    unit = Unit.SAMPLE
    metrics = ("accuracy",)
    version = 1

    def __post_init__(self) -> None:
        check_choice("lra_pathfinder", "data", self.data, SOURCES)
        for static, low, high in (("dashes", 3, MOST_DASHES), ("distractors", 0, MOST_DISTRACTORS)):
            check_bounds("lra_pathfinder", static, getattr(self, static), low, high)
        check_sizes("lra_pathfinder", self)

    def split_names(self) -> tuple[str, ...]:
        return SPLITS

    def reads(self) -> tuple[tuple[str, str], ...]:
        # The pictures are as old as their lists.
        numbers = range(PUBLISHED_LISTS) if self.data == "files" else ()
        return tuple(("lra", f"{FOLDER}/metadata/{number}.npy") for number in numbers)

    def generate(self, split: str, seed: int) -> Split:
        check_split("lra_pathfinder", split, SPLITS)
        pixels, joined = self._published(split) if self.data == "files" else self._drawn(split, seed)
        return Split({"x": Ragged.table(pixels)}, joined, groups={"joined": joined})

    def _drawn(self, split: str, seed: int) -> tuple[Pixels, Integers]:
        wanted = getattr(self, f"{split}_size")
        rng, seen, patience = RandomStream("lra pathfinder", split, seed), Seen(), Patience(wanted, _WINDOW)
        found = np.empty((wanted, pathfinder_pictures.SIDE**2), dtype=np.uint8)
        joined = np.empty(wanted, dtype=np.int64)
        done = 0
        while done < wanted:
            # Enough for what is missing, if a third of what is drawn can be kept.
            drawn = pathfinder_pictures.draw(rng, min(_BATCH, 64 + 3 * (wanted - done)), self.dashes, self.distractors)
            rows = drawn.pixels.reshape(len(drawn.pixels), -1)
            prints = table_fingerprints(rows)
            kept = np.flatnonzero(in_share(prints, *SHARES[split]) & seen.fresh(prints))[: wanted - done]
            found[done : done + len(kept)], joined[done : done + len(kept)] = rows[kept], drawn.joined[kept]
            done += len(kept)
            if patience.is_over(len(kept)) and done < wanted:
                raise mistakes.items_too_rare("lra_pathfinder", f"{split}_size", wanted, done, "ask for fewer dashes")
        return found, joined

    @cached_property
    def _files(self) -> tuple[Pixels, Integers]:
        """All published pictures, in the order of their lists."""
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
        chosen = order[round(len(order) * low) : round(len(order) * high)]
        return pixels[chosen], joined[chosen]


def _content(name: str) -> bytes:
    with store.open_binary("lra", f"{FOLDER}/{name}") as stream:
        return stream.read()


def listed(lines: Iterable[str]) -> list[tuple[str, int]]:
    """The pictures of a list (`imgs/0 sample_0.png 0 1 …`), as paths, and whether their marks are joined.

    Raises:
        ValueError: a line is none of a list."""
    found = []
    for line in lines:
        folder, name, _, joined, *_ = (*line.split(), "", "", "", "")
        if joined not in ("0", "1"):
            raise ValueError(f"{line!r} does not name a picture")
        found.append((f"{folder}/{name}", int(joined)))
    return found


def pictures(names: Iterable[tuple[str, int]], content: Callable[[str], bytes]) -> tuple[Pixels, Integers]:
    """The pictures as rows of pixels, and whether their marks are joined. What is empty is left out: the published set
    has a picture without content.

    Raises:
        PictureError: one of them is no picture of the right size."""
    rows, joined = [], []
    for name, answer in names:
        data = content(name)
        if not data:
            continue
        pixels = grey_pixels(data)
        if pixels.shape != (pathfinder_pictures.SIDE, pathfinder_pictures.SIDE):
            raise PictureError(f"{name} has {pixels.shape[0]} rows of {pixels.shape[1]} pixels")
        rows.append(pixels.reshape(-1))
        joined.append(answer)
    return np.asarray(rows, dtype=np.uint8).reshape(-1, pathfinder_pictures.SIDE**2), np.asarray(joined, dtype=np.int64)


def picture(split: Split, index: int) -> str:
    """A picture as text, cut to what is not black."""
    light = split.inputs["x"][index].reshape(pathfinder_pictures.SIDE, pathfinder_pictures.SIDE) > 0
    rows, columns = np.flatnonzero(light.any(axis=1)), np.flatnonzero(light.any(axis=0))
    part = light[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1]
    return "\n".join("".join("#" if pixel else "." for pixel in row) for row in part)
