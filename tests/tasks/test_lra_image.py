"""Image of the Long Range Arena: batches of the published format, and other pickles."""

import os
import pickle
from typing import Any

import numpy as np
import pytest

from archlang.tasks import lra_image
from archlang.tasks.kit.mistakes import TaskError
from archlang.tasks.lra_image import LraImage, batch, shades
from tests.tasks.conftest import Offer
from tests.tasks.test_lra_text import archive

RANDOM = np.random.RandomState(0)


def packed(pictures: np.ndarray, shown: list[int]) -> bytes:
    """Returns a batch as pickled by Python 2: the keys are bytes."""
    return pickle.dumps({b"data": pictures, b"labels": shown, b"batch_label": b"one"}, protocol=2)


def random_batch(count: int) -> tuple[np.ndarray, list[int]]:
    return RANDOM.randint(0, 256, (count, 3_072)).astype(np.uint8), RANDOM.randint(0, 10, count).tolist()


def test_a_batch_is_read() -> None:
    pictures, shown = random_batch(3)
    parsed = batch(packed(pictures, shown))
    assert parsed[0].tolist() == pictures.tolist()
    assert parsed[1].tolist() == shown


def test_shades_are_weighted_and_rounded_down() -> None:
    pictures, _ = random_batch(5)
    red, green, blue = pictures.reshape(5, 3, 1_024).transpose(1, 0, 2).astype(float)
    exact = (0.2989 * red + 0.587 * green + 0.114 * blue) / 255 * 255.5
    rounded = shades(pictures)
    assert rounded.dtype == np.uint8
    # Single precision may fall on the other side of a whole number.
    assert np.abs(rounded - np.floor(exact)).max() <= 1
    assert (rounded == np.floor(exact)).mean() > 0.999
    assert shades(np.full((1, 3_072), 255, dtype=np.uint8)).max() == 255


class Attack:
    """An object that runs a command when unpickled."""

    def __reduce__(self) -> tuple[Any, tuple[str]]:  # Any: a function
        return os.system, ("echo unpickled",)


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (pickle.dumps(Attack()), "system, which is not part of an array"),
        (pickle.dumps({b"data": Attack()}), "system, which is not part of an array"),
        (b"", "expected a batch of pictures"),
        (b"text", "expected a batch of pictures"),
        (packed(*random_batch(2))[:-50], "expected a batch of pictures"),
        (pickle.dumps({b"labels": [1]}, protocol=2), "expected a batch of pictures"),
        (pickle.dumps([1], protocol=2), "expected a batch of pictures"),
        (packed(np.zeros((2, 3_071), dtype=np.uint8), [1, 2]), "have the shape"),
        (packed(np.zeros((2, 3_072)), [1, 2]), "have the shape"),
        (packed(np.zeros((2, 3_072), dtype=np.uint8), [1]), "have the shape"),
        (packed(np.zeros((2, 3_072), dtype=np.uint8), [1, 10]), "not one of the ten classes"),
    ],
)
def test_other_pickles_are_refused(data: bytes, reason: str, capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(ValueError, match=reason):
        batch(data)
    assert "unpickled" not in capfd.readouterr().out


def test_splits_are_cut_from_the_batches(offer: Offer, monkeypatch: pytest.MonkeyPatch) -> None:
    batches = {f"data_batch_{number}": random_batch(4) for number in range(1, 6)} | {"test_batch": random_batch(4)}
    content = {f"cifar-10-batches-py/{name}": packed(*arrays) for name, arrays in batches.items()}
    # The order in the archive does not matter.
    files = {"cifar-10-batches-py/readme.html": b"<html>", **dict(reversed(content.items()))}
    offer({"cifar10/cifar-10-python.tar.gz": archive(files)})
    monkeypatch.setattr(lra_image, "PUBLISHED_TRAIN", 18)
    monkeypatch.setattr(lra_image, "PUBLISHED_BATCH", 4)
    task = LraImage()
    splits = {name: task.generate(name, 0) for name in task.split_names()}
    assert {name: len(split) for name, split in splits.items()} == {"train": 18, "valid": 2, "test": 4}
    pictures, shown = (np.concatenate([arrays[part] for arrays in batches.values()]) for part in (0, 1))
    rows = np.concatenate([split.inputs["x"].values.reshape(-1, 1_024) for split in splits.values()])
    assert rows.tolist() == shades(pictures).tolist()
    assert [int(answer) for split in splits.values() for answer in np.asarray(split.targets)] == shown.tolist()


@pytest.mark.parametrize("files", [{}, {"data_batch_1": packed(*random_batch(2))}, {"test_batch": b"text"}])
def test_an_incomplete_archive_is_refused(files: dict[str, bytes], offer: Offer) -> None:
    offer({"cifar10/cifar-10-python.tar.gz": archive(files)})
    for split in ("train", "test"):
        with pytest.raises(TaskError, match="cifar-10-python.tar.gz of cifar10 is malformed"):
            LraImage().generate(split, 0)


def test_too_few_pictures_are_refused(offer: Offer) -> None:
    offer({"cifar10/cifar-10-python.tar.gz": archive({"test_batch": packed(*random_batch(2))})})
    with pytest.raises(TaskError, match="it has 2 pictures of test"):
        LraImage().generate("test", 0)
    with pytest.raises(TaskError, match="its splits are train, valid, test"):
        LraImage().generate("iid", 0)
