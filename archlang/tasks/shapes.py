"""Shapes in images: name the shape that an image shows.

>>> task = Shapes(rows=6, columns=8, width=Interval(5, 5), noise=0, train_size=12)
>>> train = task.generate("train", seed=0)
>>> def show(index):
...     image = train.inputs["x"][index].reshape(6, 8)
...     print(task.class_names[train.targets[index]], image.min(), image.max())
...     print("\\n".join("".join("#" if shade else "." for shade in row) for row in image > image.mean()))
>>> show(2)
triangle 137 238
...#....
..###...
..###...
.#####..
.#####..
........
>>> show(9)
circle 6 125
########
##...###
#.....##
#.....##
#.....##
##...###
"""

from collections.abc import Collection, Mapping
from functools import partial

import numpy as np

from archlang.tasks.kit.drawing import Fingerprints, RandomStream, draw_distinct, table_fingerprints
from archlang.tasks.kit.split import Integers, Ragged, Split, Truths, join_splits
from archlang.tasks.kit.task import Kind, ShippedTask
from archlang.types.statics import Interval

_NAMES = ("square", "circle", "triangle", "cross", "diamond", "ring")
_NARROWEST = 5  # so that shapes differ
_COLOURS = (0, 256), (96, 64)  # shades of the ground, and their contrast: the least, and how many
_SHADES = 1 << 20  # drawn at a time


class Shapes(ShippedTask):
    rows: int
    columns: int
    channels: int
    shapes: int
    width: Interval
    noise: int
    test_rows: tuple[int, ...]

    # Images of different heights are different.
    disjoint = ("rows", "test_rows")
    kind = Kind.CLASSIFICATION
    vocabulary = ()
    breakdown = "rows"
    groups = ("rows", "width", "shape")

    @property
    def class_names(self) -> tuple[str, ...]:
        return _NAMES[: self.shapes]

    @property
    def group_names(self) -> dict[str, tuple[str, ...]]:
        return {"shape": self.class_names}

    def check(self) -> None:
        self.check_ranges(("width",), _NARROWEST, min(self.rows, self.columns, *self.test_rows))

    def group_values(self, split: str) -> Mapping[str, Collection[int]]:
        width = self.width.values()
        return {"rows": self._rows(split), "width": width, "shape": range(self.shapes)}

    def make(self, split: str, seed: int) -> Split:
        parts = []
        for rows in self._rows(split):
            draw = partial(self._draw, RandomStream(self.name, split, rows, seed), rows)
            batch = max(1, _SHADES // (rows * self.columns * self.channels))
            parts.append(draw_distinct(self.name, split, self.size(split), draw, batch, "draw more noise"))
        return join_splits(parts)

    def _rows(self, split: str) -> tuple[int, ...]:
        return self.test_rows if split == "test" else (self.rows,)

    def _draw(self, rng: RandomStream, rows: int, count: int) -> tuple[Split, Fingerprints]:
        shape = rng.below(self.shapes, count)
        width = self.width.low + rng.below(len(self.width.values()), count)
        # Twice the distance of each pixel from the centre of the shape, which may be between two pixels.
        down, across = (
            2 * (np.arange(side) - rng.below(side - width + 1, count)[:, None]) - width[:, None] + 1
            for side in (rows, self.columns)
        )
        inside = _inside(shape[:, None, None], down[:, :, None], across[:, None], width[:, None, None])
        ground, contrast = (low + rng.below(bound, (count, 1, 1, self.channels)) for low, bound in _COLOURS)
        # Lighter, or where that is too light, darker by the rest of 256.
        images = np.where(inside[..., None], (ground + contrast) % 256, ground)
        noisy = images + rng.below(2 * self.noise + 1, images.shape) - self.noise
        shades = np.clip(noisy, 0, 255).astype(np.uint8).reshape(count, -1)
        offsets = np.arange(count + 1) * rows * self.columns
        groups = {"rows": np.full(count, rows), "width": width, "shape": shape}
        x = Ragged(shades.reshape(-1, self.channels), offsets)
        return Split({"x": x}, shape, groups=groups), table_fingerprints(shades)


def _inside(shape: Integers, u: Integers, v: Integers, width: Integers) -> Truths:
    """Returns whether pixels are inside of a shape; u and v are twice their distances from its centre, down and to the
    right."""
    squares, farthest, nearest = u**2 + v**2, np.maximum(abs(u), abs(v)), np.minimum(abs(u), abs(v))
    circle = squares <= width**2
    shapes = (
        width > 0, circle, 2 * abs(v) <= u + width + 1, 3 * nearest <= width, abs(u) + abs(v) <= width,
        circle & (4 * squares >= width**2),
    )  # fmt: skip
    return np.asarray((farthest < width) & np.choose(shape, shapes))
