"""Files of images are read as their published readers read them, and a bad file is named with its reason and remedy."""

import gzip
import pickle
import struct
from pathlib import Path

import numpy as np
import pytest

from archlang.tasks.kit import image_files
from archlang.tasks.kit.image_files import images_of, is_image_file, labels_of
from archlang.tasks.kit.mistakes import TaskError

RANDOM = np.random.default_rng(0)


def idx(shape: tuple[int, ...], content: bytes) -> bytes:
    """The form that http://yann.lecun.com/exdb/mnist described: a magic number, the sizes, and the bytes."""
    return struct.pack(f">HBB{len(shape)}I", 0, 8, len(shape), *shape) + content


def mnist(folder: Path, count: int = 7, rows: int = 4, columns: int = 3, ending: str = "") -> Path:
    images, labels = RANDOM.integers(0, 256, (count, rows, columns), np.uint8), RANDOM.integers(0, 10, count, np.uint8)
    files = {"images-idx3": idx(images.shape, images.tobytes()), "labels-idx1": idx(labels.shape, labels.tobytes())}
    for kind, content in files.items():
        (folder / f"t-{kind}-ubyte{ending}").write_bytes(gzip.compress(content) if ending else content)
    return folder / f"t-images-idx3-ubyte{ending}"


def cifar(folder: Path, count: int = 7, label_bytes: int = 1) -> Path:
    records = RANDOM.integers(0, 256, (count, label_bytes + 3072), np.uint8)
    records[:, :label_bytes] %= 10
    (folder / "batch.bin").write_bytes(records.tobytes())
    return folder / "batch.bin"


def read(path: Path, columns: int = 3, label_bytes: int = 1, classes: int = 10) -> list[tuple[list[list[int]], int]]:
    """Returns the pixels and the label of each image."""
    pieces = images_of("file_images", str(path), columns, label_bytes, classes)
    return [
        (pixels.tolist(), int(label)) for images, labels in pieces for pixels, label in zip(images, labels, strict=True)
    ]


@pytest.mark.parametrize("ending", ["", ".gz"])
@pytest.mark.parametrize("bytes_at_a_time", [1, 40, 1 << 20])
def test_idx_has_the_images_row_by_row(
    ending: str, bytes_at_a_time: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(image_files, "_READ", bytes_at_a_time)
    path = mnist(tmp_path, ending=ending)
    content, labels = (
        gzip.decompress(file.read_bytes()) if ending else file.read_bytes()
        for file in (path, Path(labels_of(str(path))))
    )
    found = read(path)
    assert len(found) == 7
    for index, (pixels, label) in enumerate(found):
        assert pixels == [[content[16 + 12 * index + place]] for place in range(12)]
        assert label == labels[8 + index]


@pytest.mark.parametrize("label_bytes", [1, 2])
@pytest.mark.parametrize("bytes_at_a_time", [1, 9_000])
def test_cifar_has_the_red_green_and_blue_of_each_pixel(
    label_bytes: int, bytes_at_a_time: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(image_files, "_READ", bytes_at_a_time)
    path = cifar(tmp_path, label_bytes=label_bytes)
    content, size = path.read_bytes(), label_bytes + 3072
    found = read(path, 32, label_bytes)
    assert len(found) == 7
    for index, (pixels, label) in enumerate(found):
        record = content[size * index : size * (index + 1)]
        assert label == record[label_bytes - 1]
        assert pixels == [[record[label_bytes + 1024 * colour + place] for colour in range(3)] for place in range(1024)]


def test_files_are_told_by_their_names() -> None:
    names = ("train-images-idx3-ubyte.gz", "t10k-images.idx3-ubyte", "images", "data_batch_1.bin", "a.bin.xz", "a.png")
    assert [is_image_file(f"idx3/{name}") for name in names] == [True, True, False, True, True, False]
    assert [Path(labels_of(f"images/{name}")).name for name in names] == [
        "train-labels-idx1-ubyte.gz", "t10k-labels.idx1-ubyte", "labels", "", "", "a.png",
    ]  # fmt: skip
    assert labels_of("images/images").startswith("images/")


IMAGES, LABELS = "t-images-idx3-ubyte", "t-labels-idx1-ubyte"


@pytest.mark.parametrize(
    ("name", "content", "reason", "remedy"),
    [
        (IMAGES, b"\x89PNG\r\n\x1a\n" + bytes(20), "it is no IDX file of images", "data_batch_1.bin; a PNG is none"),
        (IMAGES, b"", "it is no IDX file of images", "train-images-idx3-ubyte.gz"),
        (IMAGES, struct.pack(">HBBIII", 0, 0xD, 3, 7, 4, 3), "it is no IDX file of images in bytes", "name images"),
        (IMAGES, pickle.dumps({b"data": 1}, 2), "it is a Python pickle, which can run code", "CIFAR's binary version"),
        (IMAGES, idx((7, 4, 3), bytes(84))[:9], "it is cut short", "fetch the file again"),
        (IMAGES, idx((7, 4, 3), bytes(83)), "it is cut short", "fetch the file again"),
        (IMAGES, idx((7, 4, 3), bytes(85)), "it goes on after the last image", "fetch the file again"),
        (IMAGES, idx((0, 4, 3), b""), "it has 0 images with 4 rows of 3 pixels", "fetch the file again"),
        (IMAGES, idx((7, 2**31, 3), bytes(84)), "it has 7 images with 2,147,483,648 rows", "fetch the file again"),
        (IMAGES, idx((7, 3, 4), bytes(84)), "its images have 4 columns, not 3", "write columns = 4 in the task"),
        (LABELS, idx((7, 4, 3), bytes(84)), "it is no IDX file of labels", "in place of `labels`"),
        (LABELS, idx((6,), bytes(6)), "it has 6 labels, and ", "fetch the file again"),
        (LABELS, idx((7,), bytes(6)), "it is cut short", "fetch the file again"),
        (LABELS, idx((7,), bytes(8)), "it goes on after the last image or label", "fetch the file again"),
        (LABELS, idx((7,), bytes([0, 0, 10, 0, 0, 0, 0])), "the label of image 3 is not below labels = 10", "labels"),
        (LABELS, None, f"{LABELS} is missing", "put the file of `file_images` there"),
        ("batch.bin", bytes(3 * 3073 - 1), "its 9,218 bytes are no records of 3,073", "fetch the file again"),
        ("batch.bin", bytes(3 * 3074), "its 9,222 bytes are no records of 3,073", "write label_bytes = 2"),
        ("batch.bin", b"", "its 0 bytes are no records", "fetch the file again"),
        ("batch.bin", bytes(3073) + b"\x0a" + bytes(3072), "the label of image 2 is not below labels = 10", "labels"),
        ("batch.bin", pickle.dumps(bytes(9_000), 4), "it is a Python pickle", "cifar-10-binary.tar.gz"),
    ],
)  # fmt: skip
def test_a_bad_file_is_named_with_its_reason_and_remedy(
    name: str, content: bytes | None, reason: str, remedy: str, tmp_path: Path
) -> None:
    mnist(tmp_path)
    (tmp_path / name).unlink(missing_ok=True)
    if content is not None:
        (tmp_path / name).write_bytes(content)
    is_cifar = name.endswith(".bin")
    with pytest.raises(TaskError) as error:
        read(tmp_path / (name if is_cifar else IMAGES), 32 if is_cifar else 3)
    assert error.value.message.startswith(str(tmp_path / name))
    assert reason in error.value.message
    assert remedy in error.value.remedy


def test_a_damaged_archive_is_named(tmp_path: Path) -> None:
    path = mnist(tmp_path, ending=".gz")
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(TaskError, match=r"t-images-idx3-ubyte.gz cannot be read or decompressed"):
        read(path)


def test_a_link_to_labels_elsewhere_is_refused(tmp_path: Path) -> None:
    (tmp_path / "here").mkdir()
    path = mnist(tmp_path / "here")
    labels = Path(labels_of(str(path)))
    labels.rename(tmp_path / "labels")
    labels.symlink_to(tmp_path / "labels")
    with pytest.raises(TaskError, match=r"t-labels-idx1-ubyte is a link that leads out of"):
        read(path)
