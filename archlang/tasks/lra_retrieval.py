"""Retrieval of the Long Range Arena: are two papers, read as bytes, linked by citations?

Tay et al. (2021), on the ACL Anthology Network of Radev et al. (2013).

>>> list(read(["1.0\\tP1\\tP2\\tOne text.\\tAnother text.\\n"], 5))
[(1, b'One t', b'Anoth')]
>>> list(read(['0.0\\tP1\\tP2\\t"A ""quoted"" text"\\tTwo\\n', "1.0\\tP3\\tP4\\ta\\tb\\n"], 99))
[(0, b'A "quoted" text', b'Two'), (1, b'a', b'b')]
"""

import csv
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import ClassVar

import numpy as np

from archlang.data import store
from archlang.tasks.kit import mistakes
from archlang.tasks.kit.split import Ragged, Split, join_splits
from archlang.tasks.kit.task import Kind, ShippedTask

FILES = {"train": "train", "valid": "eval", "test": "test"}
_LABELS = {"0.0": 0, "1.0": 1}
# Papers are longer than the default limit of csv.
_LONGEST_FIELD = 1 << 26
# The pairs that are read at a time.
_PAIRS = 1 << 10


def read(lines: Iterable[str], length: int) -> Iterator[tuple[int, bytes, bytes]]:
    """Yields the label of each pair and the first `length` bytes of its texts.

    Raises:
        ValueError: a row is malformed."""
    previous_limit = csv.field_size_limit(_LONGEST_FIELD)
    try:
        for number, row in enumerate(csv.reader(lines, delimiter="\t"), 1):
            if len(row) != 5 or row[0] not in _LABELS or not row[3] or not row[4]:
                raise ValueError(f"row {number} is not a label, two identifiers and two texts")
            # A character has at least one byte.
            yield _LABELS[row[0]], row[3][:length].encode()[:length], row[4][:length].encode()[:length]
    except csv.Error as error:
        raise ValueError(str(error)) from error
    finally:
        csv.field_size_limit(previous_limit)


class LraRetrieval(ShippedTask):
    length: int

    vocabulary = tuple(f"<{byte}>" for byte in range(256))
    kind = Kind.PAIRS
    class_names = ("unrelated", "related")
    in_distribution = ShippedTask.splits
    breakdown = "together"
    group_names: ClassVar = {"together": class_names}

    def reads(self) -> tuple[tuple[str, str], ...]:
        return tuple(("lra", _member(split)) for split in FILES)

    def make(self, split: str, seed: int) -> Split:
        return join_splits(self.pieces(split, seed))

    def pieces(self, split: str, seed: int) -> Iterator[Split]:
        """Yields the items of a split in order, some at a time: train is a gigabyte."""
        member = _member(split)
        pairs = read(store.lines("lra", member), self.length)
        try:
            while some := list(islice(pairs, _PAIRS)):
                labels, left, right = zip(*some, strict=True)
                fields = {"left": Ragged.of_bytes(left), "right": Ragged.of_bytes(right)}
                together = np.asarray(labels, dtype=np.int64)
                yield Split(fields, together, groups={"together": together})
        except ValueError as error:
            raise mistakes.damaged_file(member, "lra", error) from error


def _member(split: str) -> str:
    return f"tsv_data/new_aan_pairs.{FILES[split]}.tsv"
