"""Images show one shape, as geometry defines it, in a colour that differs from that of the ground."""

from math import hypot
from pathlib import Path

import numpy as np
import pytest
import torch

import archlang
from archlang.plan.from_file import plan_recipe
from archlang.tasks.kit.split import Split
from archlang.tasks.shapes import Shapes
from archlang.train.runs.training import train
from archlang.types.statics import Interval
from tests.closeness import close
from tests.tiny_run import StopAfter, latest_weights

PAGE = Path(archlang.__file__).parent / "recipes" / "shapes.arch"
NAMES = ("square", "circle", "triangle", "cross", "diamond", "ring")


def is_inside(name: str, width: int, row: int, column: int) -> bool:
    """Whether the centre of a pixel of a square of `width` pixels is in a shape, which fills the square."""
    half = width / 2
    down, across = row + 0.5 - half, abs(column + 0.5 - half)
    match name:
        case "square":
            return True
        case "circle":
            return hypot(down, across) <= half
        case "triangle":  # its tip is half a pixel above the square
            return across / half <= (row + 1) / width
        case "cross":
            return min(abs(down), across) <= width / 6
        case "diamond":
            return abs(down) + across <= half
    return half / 2 <= hypot(down, across) <= half


def drawn(name: str, width: int) -> np.ndarray:
    return np.array([[is_inside(name, width, row, column) for column in range(width)] for row in range(width)])


def images(task: Shapes, split: str) -> list[tuple[np.ndarray, str, int]]:
    """The shades [rows, columns, channels] of each image, its shape, and the width of that."""
    items: Split = task.generate(split, 3)
    assert isinstance(items.targets, np.ndarray)
    assert np.array_equal(items.targets, items.groups["shape"])
    facts = zip(items.groups["rows"], items.targets, items.groups["width"], strict=True)
    return [
        (items.inputs["x"][index].reshape(rows, task.columns, task.channels), task.class_names[shape], int(width))
        for index, (rows, shape, width) in enumerate(facts)
    ]


@pytest.mark.parametrize("channels", [1, 3])
def test_an_image_shows_its_shape_and_nothing_else(channels: int) -> None:
    task = Shapes(
        rows=12, columns=14, channels=channels, shapes=6, width=Interval(5, 10), noise=0, test_rows=(13, 20),
        train_size=300, valid_size=20, test_size=100,
    )  # fmt: skip
    assert {name for _, name, _ in images(task, "train")} == {*NAMES}
    places = set()
    for image, name, width in (found for split in task.split_names() for found in images(task, split)):
        colours, counts = np.unique(image.reshape(-1, channels), axis=0, return_counts=True)
        assert len(colours) == 2
        assert (abs(np.diff(colours.astype(int), axis=0)) >= 96).all()
        expected = drawn(name, width)
        marks = (image == colours[list(counts).index(expected.sum())]).all(2)
        top, left = (int(np.flatnonzero(marks.any(axis))[0]) for axis in (1, 0))
        # The corners of a shape may lie outside of it, but not its whole sides.
        assert np.array_equal(marks[top : top + width, left : left + width], expected), (name, width)
        assert marks.sum() == expected.sum()
        places.add((len(image), top, left))
    assert max(top for rows, top, _ in places if rows == 20) > 12
    assert len(places) > 100


def test_noise_is_uniform_and_shades_stay_shades() -> None:
    sizes = {"train_size": 500, "valid_size": 0, "test_size": 0}
    quiet, noisy = (Shapes(noise=noise, **sizes).generate("train", 1).inputs["x"] for noise in (0, 9))
    change = noisy[0].astype(int) - quiet[0]  # the colours and the place are drawn before the noise
    assert set(np.unique(change)) == {*range(-9, 10)}
    loud = Shapes(noise=255, **sizes).generate("train", 1).inputs["x"].values
    assert loud.dtype == np.uint8
    assert (loud.min(), loud.max()) == (0, 255)


SMALL = {
    "task.train_size": "64", "task.valid_size": "8", "task.test_size": "4", "train.batch": "8", "train.every": "2",
    "train.steps": "6",
}  # fmt: skip


@pytest.mark.parametrize("recipe", ["cnn", "vit"])
def test_a_stopped_run_resumes_bit_for_bit_and_padding_changes_nothing(recipe: str, tmp_path: Path) -> None:
    plan = plan_recipe(PAGE, recipe, SMALL)
    train(plan, tmp_path / "whole", device="cpu")
    stopped = train(plan, tmp_path / "parts", device="cpu", stop=StopAfter(7))
    assert stopped.stopped
    assert 0 < stopped.step < 6
    train(plan, tmp_path / "parts", device="cpu")
    whole, parts = (latest_weights(tmp_path / name) for name in ("whole", "parts"))
    assert all(torch.equal(whole[name], parts[name]) for name in whole)
    run = archlang.load_run(tmp_path / "whole")
    test = run.samples("test")
    together = run.predict(test)  # images of 24 rows beside images of 48
    alone = [run.predict(test.select([index]))[0] for index in range(len(test))]
    for one, other in zip(together, alone, strict=True):
        assert one.answer == other.answer
        close(torch.tensor(one.probability), torch.tensor(other.probability))
