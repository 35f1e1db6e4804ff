"""The task over a user's own images: its splits, and what commands do with it."""

from pathlib import Path

import numpy as np
import pytest

from archlang.tasks.file_images import FileImages
from archlang.tasks.kit.cache import load
from archlang.tasks.kit.mistakes import TaskError
from archlang.tasks.kit.split import Split
from archlang.types.statics import StaticValue
from tests.tasks.kit.test_image_files import cifar, idx, mnist, read


def rows(split: Split) -> list[tuple[list[list[int]], int]]:
    assert isinstance(split.targets, np.ndarray)
    x = split.inputs["x"]
    return [(x[index].tolist(), int(label)) for index, label in enumerate(split.targets)]


def test_train_and_valid_are_the_images_of_the_file_and_test_is_a_file_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "test").mkdir()
    path, test = mnist(tmp_path, 400), mnist(tmp_path / "test", 9, ending=".gz")
    task = FileImages(path=str(path), test=str(test), columns=3, valid_share=0.2)
    assert task.split_names() == ("train", "valid", "test")
    train, valid, tested = (rows(task.generate(split, 1)) for split in task.split_names())
    assert sorted(train + valid) == sorted(read(path))
    assert 50 < len(valid) < 110
    assert tested == read(test)
    assert rows(task.generate("valid", 2)) != valid, "the seed draws the images"
    assert [Path(file).name for file in task.files()] == [
        "t-images-idx3-ubyte", "t-labels-idx1-ubyte", "t-images-idx3-ubyte.gz", "t-labels-idx1-ubyte.gz",
    ]  # fmt: skip
    assert FileImages(path=str(path), columns=3, valid_share=0.0).split_names() == ("train",)


def test_equal_images_are_in_one_split(tmp_path: Path) -> None:
    content = bytes(number % 50 for number in range(400) for _ in range(12))
    (tmp_path / "images").write_bytes(idx((400, 4, 3), content))
    (tmp_path / "labels").write_bytes(idx((400,), bytes(400)))
    task = FileImages(path=str(tmp_path / "images"), columns=3, valid_share=0.3)
    shades = [{pixels[0][0] for pixels, _ in rows(task.generate(split, 0))} for split in ("train", "valid")]
    assert shades[0] | shades[1] == {*range(50)}
    assert not shades[0] & shades[1]


def test_batches_of_cifar_follow_each_other(tmp_path: Path) -> None:
    expected = list[tuple[list[list[int]], int]]()
    for number in (2, 1):
        expected[:0] = read(path := cifar(tmp_path), 32)
        path.rename(tmp_path / f"data_batch_{number}.bin")
    statics: dict[str, StaticValue] = {
        "path": str(tmp_path / "data_batch_*.bin"),
        "columns": 32,
        "channels": 3,
        "valid_share": 0.0,
    }
    task = FileImages(**statics)
    assert rows(task.generate("train", 0)) == expected
    assert rows(load("file_images", statics, task, "train", 0)) == expected
    cifar(tmp_path, 1).rename(tmp_path / "data_batch_3.bin")
    assert len(load("file_images", statics, task, "train", 0)) == 15, "the cache sees the new file"
    with pytest.raises(TaskError, match="no file matches"):
        FileImages(**{**statics, "path": str(tmp_path / "none_*.bin")}).generate("train", 0)
