"""Text of the Long Range Arena: is a film review, read as bytes, positive?

Tay et al. (2021), on the reviews of Maas et al. (2011).

>>> reviews({"aclImdb/train/pos/1_9.txt": b"Great!", "aclImdb/train/neg/0_2.txt": b"Dull."}.items(), "train", 4)
([b'Dull', b'Grea'], [0, 1])
>>> reviews([("aclImdb/train/unsup/2_0.txt", b"?"), ("aclImdb/test/pos/0_8.txt", b"Fine.")], "test", 9)
([b'Fine.'], [1])
"""

import re
from collections.abc import Iterable
from typing import ClassVar

import numpy as np

from archlang.data import store
from archlang.tasks.kit import mistakes
from archlang.tasks.kit.split import Ragged, Split
from archlang.tasks.kit.task import Kind, ShippedTask

ARCHIVE = "aclImdb_v1.tar.gz"
PUBLISHED_SIZE = 25_000
_NAME = re.compile(r"(?:.*/)?(train|test)/(pos|neg)/(\d+)_\d+\.txt")


def reviews(files: Iterable[tuple[str, bytes]], split: str, length: int) -> tuple[list[bytes], list[int]]:
    """Returns the first `length` bytes of the reviews of a split, and whether they are positive. Their order does not
    depend on the order of the files."""
    rated = []
    for name, content in files:
        parts = _NAME.fullmatch(name)
        if parts is not None and parts[1] == split:
            rated.append((parts[2] == "pos", int(parts[3]), content[:length]))
    rated.sort(key=lambda review: review[:2])
    return [content for _, _, content in rated], [int(positive) for positive, _, _ in rated]


class LraText(ShippedTask):
    length: int

    vocabulary = tuple(f"<{byte}>" for byte in range(256))
    kind = Kind.CLASSIFICATION
    class_names = ("negative", "positive")
    splits = in_distribution = ("train", "test")
    breakdown = "favour"
    group_names: ClassVar = {"favour": class_names}

    def reads(self) -> tuple[tuple[str, str], ...]:
        return (("imdb", ARCHIVE),)

    def make(self, split: str, seed: int) -> Split:
        texts, labels = reviews(store.contents("imdb", ARCHIVE), split, self.length)
        if len(texts) != PUBLISHED_SIZE:
            raise mistakes.damaged_file(
                ARCHIVE, "imdb", f"it has {len(texts)} reviews of {split}, expected {PUBLISHED_SIZE}"
            )
        positive = np.asarray(labels, dtype=np.int64)
        return Split({"x": Ragged.of_bytes(texts)}, positive, groups={"favour": positive})
