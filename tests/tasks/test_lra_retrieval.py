"""Retrieval of the Long Range Arena: files of the published format."""

import csv

import numpy as np
import pytest

from archlang.data.mistakes import DataError
from archlang.tasks.kit.mistakes import TaskError
from archlang.tasks.lra_retrieval import LraRetrieval, read
from tests.tasks.conftest import Offer

LINES = ["1.0\tP1\tP2\tOne text.\tAnother text.", '0.0\tP3\tP4\t"A ""big"" one\tand more"\tGröße']


def test_pairs_are_read_as_bytes_and_truncated(offer: Offer) -> None:
    offer({"lra/tsv_data/new_aan_pairs.eval.tsv": "\n".join([*LINES, ""])})
    valid = LraRetrieval(length=12).generate("valid", 0)
    assert [valid.inputs["left"][index].tobytes() for index in range(2)] == [b"One text.", b'A "big" one\t']
    assert [valid.inputs["right"][index].tobytes() for index in range(2)] == [b"Another text", "Größe".encode()]
    assert np.asarray(valid.targets).tolist() == [1, 0]


def test_a_text_may_be_longer_than_the_default_limit_of_csv() -> None:
    before = csv.field_size_limit()
    long = "x" * (before + 1_000)
    assert list(read([f"1.0\ta\tb\t{long}\t{long}"], 5)) == [(1, b"xxxxx", b"xxxxx")]
    # What others read is bounded as before.
    assert csv.field_size_limit() == before


@pytest.mark.parametrize(
    "line", ["1.0\ta\tb\tone", "2.0\ta\tb\tone\ttwo", "1.0\ta\tb\t\ttwo", "1.0\ta\tb\tone\ttwo\tthree", ""]
)
def test_the_error_names_the_malformed_row(line: str, offer: Offer) -> None:
    offer({"lra/tsv_data/new_aan_pairs.train.tsv": f"{LINES[0]}\n{line}\n"})
    with pytest.raises(TaskError, match=r"new_aan_pairs.train.tsv of lra is malformed \(row 2 is not"):
        LraRetrieval().generate("train", 0)


def test_bytes_that_are_not_utf_8_are_refused(offer: Offer) -> None:
    offer({"lra/tsv_data/new_aan_pairs.test.tsv": b"1.0\ta\tb\t\xff\tb\n"})
    with pytest.raises(DataError, match=r"new_aan_pairs.test.tsv is not UTF-8 text"):
        LraRetrieval().generate("test", 0)
