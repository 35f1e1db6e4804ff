"""Image of the Long Range Arena: classify a greyscale picture, read as a sequence of pixels.

Tay et al. (2021), on CIFAR-10 (Krizhevsky, 2009).

>>> shades(np.array([[255] * 3072, [0] * 1024 + [255] * 1024 + [0] * 1024], dtype=np.uint8))[:, :3].tolist()
[[255, 255, 255], [149, 149, 149]]
>>> shades(np.zeros((1, 3072), dtype=np.uint8)).shape
(1, 1024)
"""

import io
import pickle
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from archlang.data import store
from archlang.tasks.kit import mistakes
from archlang.tasks.kit.split import Integers, Ragged, Split
from archlang.tasks.kit.task import Kind, ShippedTask

ARCHIVE = "cifar-10-python.tar.gz"
BATCHES = tuple(f"data_batch_{number}" for number in range(1, 6))
TEST_BATCH = "test_batch"
PUBLISHED_TRAIN, PUBLISHED_BATCH = 45_000, 10_000
SIDE = 32
# Rec. 601 in the precision of TensorFlow, which the published loader uses.
_WEIGHTS = (0.2989, 0.5870, 0.1140)

Bytes = npt.NDArray[np.uint8]


class _OnlyArrays(pickle.Unpickler):
    """Unpickles numpy arrays and refuses everything that could run code."""

    _ALLOWED = frozenset({
        ("numpy.core.multiarray", "_reconstruct"), ("numpy._core.multiarray", "_reconstruct"),
        ("numpy", "ndarray"), ("numpy", "dtype"), ("_codecs", "encode"),
    })  # fmt: skip

    def find_class(self, module: str, name: str) -> Any:  # Any: the object of this name
        if (module, name) not in self._ALLOWED:
            raise pickle.UnpicklingError(f"it refers to {module}.{name}, which is not part of an array")
        if name == "_reconstruct":
            # numpy has moved it and warns about the old name.
            return np.ndarray.__reduce__(np.zeros(0))[0]
        return super().find_class(module, name)


def batch(data: bytes) -> tuple[Bytes, Integers]:
    """Returns the pictures [N, 3072] of a published batch and their classes [N].

    Raises:
        ValueError: the batch is malformed."""
    try:
        content = _OnlyArrays(io.BytesIO(data), encoding="bytes").load()
        pictures, classes = np.asarray(content[b"data"]), np.asarray(content[b"labels"], dtype=np.int64)
    except (pickle.UnpicklingError, EOFError, KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
        raise ValueError(f"expected a batch of pictures: {error}") from error
    if pictures.dtype != np.uint8 or pictures.shape != (len(classes), 3 * SIDE**2):
        raise ValueError(f"its pictures have the shape {pictures.shape}, for {len(classes)} labels")
    if len(classes) and not 0 <= classes.min() <= classes.max() <= 9:
        raise ValueError("a label is not one of the ten classes")
    return pictures, classes


def shades(pictures: Bytes) -> Bytes:
    """Converts pictures [N, 3072] of three channels to greyscale [N, 1024], rounded down."""
    channels = pictures.reshape(len(pictures), 3, SIDE**2).astype(np.float32) / np.float32(255)
    grey = sum(channels[:, number] * np.float32(weight) for number, weight in enumerate(_WEIGHTS))
    # TensorFlow converts back to integers with this factor.
    return np.minimum(np.asarray(grey) * np.float32(255.5), 255).astype(np.uint8)


class LraImage(ShippedTask):
    vocabulary = tuple(str(shade) for shade in range(256))
    kind = Kind.CLASSIFICATION
    class_names = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")
    in_distribution = ShippedTask.splits
    breakdown = "shown"
    group_names: ClassVar = {"shown": class_names}

    def reads(self) -> tuple[tuple[str, str], ...]:
        return (("cifar10", ARCHIVE),)

    def make(self, split: str, seed: int) -> Split:
        names = (TEST_BATCH,) if split == "test" else BATCHES
        files: Mapping[str, bytes] = {
            name.rpartition("/")[2]: content
            for name, content in store.contents("cifar10", ARCHIVE)
            if name.rpartition("/")[2] in names
        }
        try:
            parts = [batch(files[name]) for name in names]
        except (KeyError, ValueError) as error:
            raise mistakes.damaged_file(ARCHIVE, "cifar10", error) from error
        pixels = shades(np.concatenate([pictures for pictures, _ in parts]))
        classes = np.concatenate([classes for _, classes in parts])
        if len(classes) != PUBLISHED_BATCH * len(names):
            raise mistakes.damaged_file(ARCHIVE, "cifar10", f"it has {len(classes)} pictures of {split}")
        items = Split({"x": Ragged.table(pixels)}, classes, groups={"shown": classes})
        if split == "test":
            return items
        first = np.arange(len(items)) < PUBLISHED_TRAIN
        return items.select(first if split == "train" else ~first)
