"""A stored model that fails is named."""

import errno
from pathlib import Path

import pytest

from archlang.train.record.mistakes import RunError
from archlang.train.runs.evaluation import explaining_stored_model


@pytest.mark.parametrize(
    "error",
    [
        RuntimeError("can't start new thread"),
        RuntimeError("DefaultCPUAllocator: can't allocate memory"),
        MemoryError(),
        OSError(errno.EMFILE, "Too many open files"),
    ],
    ids=repr,
)
def test_an_error_of_the_machine_is_not_blamed_on_the_graph(error: Exception) -> None:
    with pytest.raises(type(error)), explaining_stored_model(Path("graph.txt")):
        raise error


def test_an_error_of_the_model_names_its_graph() -> None:
    message = "graph.txt cannot be computed: IndexError: out of range: restore"
    with pytest.raises(RunError, match=message), explaining_stored_model(Path("run/graph.txt")):
        raise IndexError("out of range\nand more")
