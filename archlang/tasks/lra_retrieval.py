"""Retrieval of the Long Range Arena: are two papers, read as bytes, linked by citations?

Tay et al. (2021), on the ACL Anthology Network of Radev et al. (2013).

>>> list(read(["1.0\\tP1\\tP2\\tOne text.\\tAnother text.\\n"], 5))
[(1, b'One t', b'Anoth')]
>>> list(read(['0.0\\tP1\\tP2\\t"A ""quoted"" text"\\tTwo\\n', "1.0\\tP3\\tP4\\ta\\tb\\n"], 99))
[(0, b'A "quoted" text', b'Two'), (1, b'a', b'b')]
"""

import csv
from collections.abc import Iterable, Iterator
from typing import ClassVar

import numpy as np

from archlang.data import store
from archlang.tasks.kit import mistakes
from archlang.tasks.kit.ragged import Integers, Ragged, offsets_of
from archlang.tasks.kit.split import Split
from archlang.tasks.kit.task import Kind, ShippedTask, Unit

FILES = {"train": "train", "valid": "eval", "test": "test"}
_LABELS = {"0.0": 0, "1.0": 1}
# Papers are longer than the default limit of csv.
_LONGEST_FIELD = 1 << 26


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
    unit = Unit.SAMPLE
    metrics = ("accuracy",)

    def reads(self) -> tuple[tuple[str, str], ...]:
        return tuple(("lra", _member(split)) for split in FILES)

    def make(self, split: str, seed: int) -> Split:
        member = _member(split)
        try:
            fields, labels = collect(read(store.lines("lra", member), self.length))
        except ValueError as error:
            raise mistakes.damaged_file(member, "lra", error) from error
        return Split(fields, labels, groups={"together": labels})


def _member(split: str) -> str:
    return f"tsv_data/new_aan_pairs.{FILES[split]}.tsv"


def collect(pairs: Iterable[tuple[int, bytes, bytes]]) -> tuple[dict[str, Ragged], Integers]:
    """Returns the fields `left` and `right` as bytes, and the labels [N], without a second copy: train is a
    gigabyte."""
    labels: list[int] = []
    texts = {"left": bytearray(), "right": bytearray()}
    lengths: dict[str, list[int]] = {"left": [], "right": []}
    for label, left, right in pairs:
        labels.append(label)
        for name, text in (("left", left), ("right", right)):
            texts[name] += text
            lengths[name].append(len(text))
    fields = {
        name: Ragged(np.frombuffer(texts[name], dtype=np.uint8), offsets_of(np.asarray(lengths[name], dtype=np.int64)))
        for name in texts
    }
    return fields, np.asarray(labels, dtype=np.int64)
