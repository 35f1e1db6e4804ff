"""For any statics, a task raises TaskError or generates complete items."""

from collections.abc import Callable
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from archlang.tasks import arithmetic
from archlang.tasks.argsort import Argsort
from archlang.tasks.arithmetic import Arithmetic
from archlang.tasks.bucket_sort import BucketSort
from archlang.tasks.copy import Copy
from archlang.tasks.dyck import Dyck
from archlang.tasks.dynamic_recall import DynamicRecall
from archlang.tasks.graph_distance import GraphDistance
from archlang.tasks.id_sort import IdSort
from archlang.tasks.in_context_regression import InContextRegression
from archlang.tasks.kit.mistakes import TaskError
from archlang.tasks.kit.ragged import Ragged
from archlang.tasks.kit.task import Task, group_values
from archlang.tasks.maze import Maze
from archlang.tasks.mix import Mix
from archlang.tasks.modular_arithmetic import ModularArithmetic
from archlang.tasks.mqar import Mqar
from archlang.tasks.parity import Parity
from archlang.tasks.priority_sort import PrioritySort
from archlang.tasks.stack_manipulation import StackManipulation
from archlang.tasks.sudoku import Sudoku
from archlang.types.statics import Interval

Statics = dict[str, object]
SIZES = {name: st.integers(0, 12) for name in ("train_size", "valid_size", "test_size")}
# Mostly ranges that are one, and that do not overlap.
RANGE = st.tuples(st.integers(-1, 12), st.integers(-1, 3)).map(lambda pair: Interval(pair[0], sum(pair)))
BLANKS = st.tuples(st.integers(-1, 7), st.integers(-1, 2)).map(lambda pair: Interval(pair[0], sum(pair)))
NUMBERS = st.lists(st.integers(0, 14), max_size=3).map(tuple)
TRUTH = st.booleans()


def statics(**own: st.SearchStrategy[object]) -> st.SearchStrategy[Statics]:
    return st.fixed_dictionaries({}, optional={**SIZES, **own}).map(lambda drawn: {**SMALL, **drawn})


SMALL: Statics = {"train_size": 5, "valid_size": 5, "test_size": 5}
COPIED = {"train": RANGE, "valid": RANGE, "test": NUMBERS, "symbols": st.integers(-1, 12), "eos": TRUTH}
BY_LENGTH = {"train": RANGE, "test": RANGE}
TASKS: dict[Callable[..., Task], st.SearchStrategy[Statics]] = {
    Argsort: statics(train=RANGE, test=NUMBERS, numbers=st.integers(0, 14)),
    Copy: statics(**COPIED),
    Mix: statics(**COPIED, even=st.sampled_from(["first", "same", "none"])),
    DynamicRecall: statics(**COPIED, answer=st.sampled_from(["neighbour", "rest"])),
    PrioritySort: statics(**COPIED),
    IdSort: statics(**COPIED, id_size=st.integers(-1, 3)),
    Dyck: statics(
        pairs=st.integers(0, 8),
        p=st.floats(-0.1, 1.1),
        q=st.floats(-0.1, 1.1),
        train=RANGE,
        test=st.lists(RANGE, max_size=2).map(tuple),
        distinct=TRUTH,
        loss=st.sampled_from(["squares", "entropy"]),
    ),
    Arithmetic: statics(
        train=RANGE,
        valid=RANGE,
        test=RANGE,
        max_length=st.integers(0, 60),
        iid_size=st.integers(0, 9),
        train_size=st.integers(190, 220),
        balanced=TRUTH,
        begin_end=TRUTH,
    ),
    Mqar: statics(
        words=st.integers(0, 40),
        length=st.integers(0, 30),
        pairs=st.integers(0, 8),
        test_length=NUMBERS,
        test_pairs=NUMBERS,
        power=st.floats(-0.5, 1.5),
    ),
    Parity: statics(**BY_LENGTH, begin_end=TRUTH),
    ModularArithmetic: statics(**BY_LENGTH, modulus=st.integers(0, 12), begin_end=TRUTH),
    BucketSort: statics(**BY_LENGTH, symbols=st.integers(0, 9)),
    StackManipulation: statics(**BY_LENGTH),
    Sudoku: statics(train=BLANKS, test=BLANKS, side=st.sampled_from([4, 4, 4, 5]), puzzles=st.integers(0, 3)),
    Maze: statics(**BY_LENGTH, side=st.integers(2, 9)),
    InContextRegression: statics(
        function=st.sampled_from(["linear", "sparse_linear", "relu_network", "decision_tree", "cubic"]),
        inputs=st.integers(-1, 5),
        points=st.integers(-1, 5),
        test=NUMBERS,
        nonzero=st.integers(-1, 5),
        hidden=st.integers(-1, 5),
        depth=st.integers(-1, 4),
    ),
    GraphDistance: statics(**BY_LENGTH, names=st.integers(0, 14), degree=st.floats(-1, 20), farthest=st.integers(0, 4)),
}


@pytest.mark.parametrize("task_class", TASKS, ids=lambda task_class: task_class.__name__)
@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_statics_are_refused_or_give_whole_items(task_class: Callable[..., Task], data: st.DataObject) -> None:
    chosen = data.draw(TASKS[task_class])
    try:
        task = task_class(**chosen)
        # Ten levels of a thousand trees at once would be what takes the time.
        with patch.object(arithmetic, "_BATCH", 1 << 8):
            splits = {name: task.generate(name, data.draw(st.integers(0, 3))) for name in task.split_names()}
    except TaskError:
        return
    for name, items in splits.items():
        assert items.form is task.kind.form
        assert {len(field) for field in items.inputs.values()} == {len(items)}, name
        assert {len(group) for group in items.groups.values()} == {len(items)}
        for group, values in group_values(task, name).items():
            assert set(items.groups[group].tolist()) <= set(values)
        fields = [field for field in items.inputs.values() if field.values.ndim == 1]
        assert all(field.values.max(initial=0) < len(task.vocabulary) for field in fields)
        if isinstance(items.targets, Ragged):
            # What is answered stands at the places of the last field.
            *_, followed = items.inputs.values()
            assert np.array_equal(items.targets.offsets, followed.offsets)
            assert items.scored is None or np.array_equal(items.scored.offsets, followed.offsets)
