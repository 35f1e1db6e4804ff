"""Files of images, read some images at a time: IDX, the form of MNIST, and the binary version of CIFAR.

An error names the file and quotes none of its pixels and labels: a path may come from somebody else's run folder."""

import os
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, NamedTuple

import numpy as np
import numpy.typing as npt

from archlang.data.stored import ENDINGS, Stored
from archlang.disk.readable import ReadableFolders
from archlang.tasks.kit import mistakes
from archlang.tasks.kit.user_files import naming_file

Bytes = npt.NDArray[np.uint8]

_SIDE, _CHANNELS = 32, 3  # of CIFAR
_READ = 1 << 20  # bytes at a time
_LARGEST = 1 << 24  # pixels of an image
_PICKLES = tuple(bytes((0x80, protocol)) for protocol in range(2, 6))
_ANEW = "fetch the file again, or unpack its archive"


class _Form(NamedTuple):
    """So many `images`; each has `label_bytes`, and then `pixels` of each of its channels."""

    images: int
    label_bytes: int
    channels: int
    pixels: int
    columns: int


def is_image_file(path: str) -> bool:
    """Returns whether a file has images, by its name."""
    return _is_cifar(path) or "idx3" in os.path.basename(path)


def labels_of(path: str) -> str:
    """Returns the path of the labels of an IDX file; empty for a file of CIFAR, which has its own."""
    folder, name = os.path.split(path)
    return "" if _is_cifar(path) else os.path.join(folder, name.replace("images", "labels").replace("idx3", "idx1"))


def check_form(path: str, columns: int, channels: int) -> None:
    """Raises TaskError if the name of a file says that it has no labels, or images of another form."""
    if _is_cifar(path) and (columns, channels) != (_SIDE, _CHANNELS):
        remedy = f"write columns = {_SIDE}, channels = {_CHANNELS}"
        raise mistakes.bad_images(path, "the images of CIFAR have other columns or channels", remedy)
    if labels_of(path) == path:
        reason = "it is named neither as an IDX file of images nor as one of the binary version of CIFAR"
        remedy = (
            "name images such as train-images-idx3-ubyte.gz, beside train-labels-idx1-ubyte.gz, or data_batch_1.bin; "
        )
        raise mistakes.bad_images(path, reason, f"{remedy}pickles, such as data_batch_1, can run code and are not read")
    if not _is_cifar(path) and channels != 1:
        raise mistakes.bad_images(path, "the images of an IDX file have one channel", "write channels = 1")


def images_of(
    task: str, path: str, columns: int, label_bytes: int = 1, classes: int = 0
) -> Iterator[tuple[Bytes, Bytes]]:
    """Yields the shades [N, n, channels] of images with n pixels, and their labels [N], some at a time. Without
    `classes`, of which each label is one, there are no labels.

    Raises:
        TaskError: a file is missing or malformed, or its images have other columns."""
    stored = Stored(Path(path), _ending(path))
    with naming_file(task, path), stored.open() as stream:
        form = _cifar_form(path, stored, label_bytes) if _is_cifar(path) else _idx_form(path, stream)
        if form.columns != columns:
            remedy = f"write columns = {form.columns} in the task and in the model"
            raise mistakes.bad_images(path, f"its images have {form.columns} columns, not {columns}", remedy)
        labels = _labels(task, path, form.images) if classes and not form.label_bytes else np.zeros(0, np.uint8)
        size = form.label_bytes + form.pixels * form.channels
        step = max(1, _READ // size)
        for first in range(0, form.images, step):
            count = min(step, form.images - first)
            records = _taken(path, stream, count * size).reshape(count, size)
            answers = records[:, form.label_bytes - 1] if form.label_bytes else labels[first : first + count]
            if classes and (wrong := answers >= classes).any():
                reason = f"the label of image {first + np.argmax(wrong) + 1:,} is not below labels = {classes}"
                raise mistakes.bad_images(labels_of(path) or path, reason, "write a larger number of labels")
            shades = records[:, form.label_bytes :].reshape(count, form.channels, form.pixels)
            yield shades.transpose(0, 2, 1), answers if classes else labels
        _end(path, stream)


def _idx_form(path: str, stream: BinaryIO) -> _Form:
    count, rows, columns = _header(path, stream, 3)
    if not 0 < rows * columns <= _LARGEST or not count:
        raise mistakes.bad_images(path, f"it has {count:,} images with {rows:,} rows of {columns:,} pixels", _ANEW)
    return _Form(count, 0, 1, rows * columns, columns)


def _cifar_form(path: str, stored: Stored, label_bytes: int) -> _Form:
    with stored.open() as stream:
        _refuse_pickle(path, stream.read(2))
    sizes = {number: number + _CHANNELS * _SIDE**2 for number in (1, 2)}
    size = stored.size()
    if not size or size % sizes[label_bytes]:
        other = 3 - label_bytes
        remedy = f"write label_bytes = {other}" if size and size % sizes[other] == 0 else _ANEW
        reason = f"its {size:,} bytes are no records of {sizes[label_bytes]:,} bytes"
        raise mistakes.bad_images(path, reason, remedy)
    return _Form(size // sizes[label_bytes], label_bytes, _CHANNELS, _SIDE**2, _SIDE)


def _labels(task: str, images: str, count: int) -> Bytes:
    path = labels_of(images)
    folder = os.path.realpath(os.path.dirname(images))
    if ReadableFolders((folder,)).find(path) is None:
        raise mistakes.link_outside(path, folder)
    with naming_file(task, path), Stored(Path(path), _ending(path)).open() as stream:
        (counted,) = _header(path, stream, 1)
        if counted != count:
            raise mistakes.bad_images(path, f"it has {counted:,} labels, and {images} has {count:,} images", _ANEW)
        labels = _taken(path, stream, count)
        _end(path, stream)
    return labels


def _header(path: str, stream: BinaryIO, dimensions: int) -> tuple[int, ...]:
    content = stream.read(4 + 4 * dimensions)
    _refuse_pickle(path, content)
    if content[:4] != bytes((0, 0, 8, dimensions)):
        kind, remedy = {
            1: ("labels", "name the images of such a file by `images` and `idx3` in place of `labels` and `idx1`"),
            3: ("images", "name images such as train-images-idx3-ubyte.gz, or data_batch_1.bin; a PNG is none"),
        }[dimensions]
        raise mistakes.bad_images(path, f"it is no IDX file of {kind} in bytes", remedy)
    if len(content) < 4 + 4 * dimensions:
        raise mistakes.bad_images(path, "it is cut short", _ANEW)
    return struct.unpack(f">{dimensions}I", content[4:])


def _refuse_pickle(path: str, content: bytes) -> None:
    if content.startswith(_PICKLES):
        remedy = "name files of CIFAR's binary version, such as data_batch_1.bin of cifar-10-binary.tar.gz"
        raise mistakes.bad_images(path, "it is a Python pickle, which can run code and is not read", remedy)


def _taken(path: str, stream: BinaryIO, size: int) -> Bytes:
    parts = list[bytes]()
    while size and (part := stream.read(min(size, _READ))):
        parts.append(part)
        size -= len(part)
    if size:
        raise mistakes.bad_images(path, "it is cut short", _ANEW)
    return np.frombuffer(b"".join(parts), np.uint8)


def _end(path: str, stream: BinaryIO) -> None:
    if stream.read(1):
        raise mistakes.bad_images(path, "it goes on after the last image or label that it announces", _ANEW)


def _is_cifar(path: str) -> bool:
    return path.removesuffix(_ending(path)).endswith(".bin")


def _ending(path: str) -> str:
    return next((ending for ending in ENDINGS if ending and path.endswith(ending)), "")
