"""A claim is compared with the measurement that it is about; a stored model that fails is named."""

import errno
from pathlib import Path

import numpy as np
import pytest

from archlang.plan.from_file import plan_recipe
from archlang.tasks.kit.metrics import Tally
from archlang.train.record.mistakes import RunError
from archlang.train.record.schemas import Results
from archlang.train.runs.evaluation import explaining_stored_model, measured_claims
from archlang.train.score import Score

# Four items: right, right, wrong, right.
TALLIES = {"accuracy": Tally(np.array([1, 1, 0, 1]), np.ones(4, dtype=np.int64))}
GROUPS = {"length": np.array([5, 5, 6, 6]), "ignore": np.array([10, 98, 10, 98])}
SPLIT = Score("test", 0.5, TALLIES, GROUPS, 4).result()
RESULTS = Results(best_step=1, breakdown="length", splits={"test": SPLIT})


@pytest.mark.parametrize(
    ("claim", "measured"),
    [
        ("test.accuracy = 1.00", "0.750"),
        ("test.accuracy[5] = 1.00", "1.000"),
        ("test.accuracy[7] = 1.00", "no such group"),
        ("test.accuracy[6] = 1.00 at test.ignore = 0.98", "1.000"),
        ("test.accuracy = 1.00 at test.ignore = 0.1", "0.500"),
        ("test.accuracy = 1.00 at task.order = forward", "0.750"),
        ("test.accuracy = 1.00 at task.order = backward", "not run"),
        ("test.accuracy = 1.00 at task.order = forward, test.length = 6", "0.500"),
        ("test.accuracy = 1.00 at model.steps = 2, task.train_size = 30", "0.750"),
        ("test.last_accuracy = 1.00", "not run"),
        ("test.last_accuracy[7] = 1.00", "not run"),
        ("valid.accuracy = 1.00", "not run"),
        ("valid.accuracy[5] = 1.00", "not run"),
        ("test.loss = 0.50", "0.500"),
    ],
)
def test_a_claim_finds_its_measurement_or_says_why_there_is_none(claim: str, measured: str, program: Path) -> None:
    text = program.read_text()
    program.write_text(text[: text.index("claim")] + f'claim {claim} from "nobody"\n}}\n')
    (comparison,) = measured_claims(plan_recipe(program), RESULTS)
    assert comparison.measured_text == measured


def test_a_claim_reads_as_the_recipe_writes_it(program: Path) -> None:
    of_split, of_group = measured_claims(plan_recipe(program), RESULTS)
    assert (of_split.metric, of_group.metric) == ("test.accuracy", "test.accuracy[5]")
    assert of_split.deviation == 0.02


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
