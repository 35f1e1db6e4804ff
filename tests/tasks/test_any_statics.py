"""For any statics, a task raises TaskError or generates complete items."""

from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from archlang.tasks import arithmetic
from archlang.tasks.kit import lengths
from archlang.tasks.kit.mistakes import TaskError
from archlang.tasks.kit.split import Ragged
from archlang.tasks.kit.task import field_vocabulary, group_values
from archlang.types.statics import Interval
from tests.tasks.every import build

Statics = dict[str, object]
SIZES = {name: st.integers(0, 12) for name in ("train_size", "valid_size", "test_size")}
# Mostly ranges that are one, and that do not overlap.
RANGE = st.tuples(st.integers(-1, 12), st.integers(-1, 3)).map(lambda pair: Interval(pair[0], sum(pair)))
BLANKS = st.tuples(st.integers(-1, 7), st.integers(-1, 2)).map(lambda pair: Interval(pair[0], sum(pair)))
NUMBERS = st.lists(st.integers(0, 14), max_size=3).map(tuple)
TRUTH = st.booleans()


def statics(**own: st.SearchStrategy[object]) -> st.SearchStrategy[Statics]:
    return st.fixed_dictionaries({}, optional={**SIZES, **own}).map(lambda drawn: {**SMALL, **drawn})


def short(**own: st.SearchStrategy[object]) -> st.SearchStrategy[Statics]:
    """Statics of a task whose default lengths take long."""
    lengths = {"length": st.integers(1, 24), "test_length": st.lists(st.integers(1, 24), max_size=1).map(tuple)}
    return statics(**own).flatmap(lambda drawn: st.fixed_dictionaries(lengths).map(lambda each: {**drawn, **each}))


SMALL: Statics = {"train_size": 5, "valid_size": 5, "test_size": 5}
COPIED = {"train": RANGE, "valid": RANGE, "test": NUMBERS, "symbols": st.integers(-1, 12), "eos": TRUTH}
BY_LENGTH = {"train": RANGE, "test": RANGE}
TASKS: dict[str, st.SearchStrategy[Statics]] = {
    "argsort": statics(train=RANGE, test=NUMBERS, numbers=st.integers(0, 14)),
    "copy": statics(**COPIED),
    "mix": statics(**COPIED, even=st.sampled_from(["first", "same", "none"])),
    "dynamic_recall": statics(**COPIED, answer=st.sampled_from(["neighbour", "rest"])),
    "priority_sort": statics(**COPIED),
    "id_sort": statics(**COPIED, id_size=st.integers(-1, 3)),
    "dyck": statics(
        pairs=st.integers(0, 8), p=st.floats(-0.1, 1.1), q=st.floats(-0.1, 1.1), train=RANGE,
        test=st.lists(RANGE, max_size=2).map(tuple), distinct=TRUTH, loss=st.sampled_from(["squares", "entropy"]),
    ),
    "arithmetic": statics(
        train=RANGE, valid=RANGE, test=RANGE, max_length=st.integers(0, 60), iid_size=st.integers(0, 9),
        train_size=st.integers(190, 220), balanced=TRUTH, begin_end=TRUTH,
    ),
    "mqar": statics(
        words=st.integers(0, 40), length=st.integers(0, 30), pairs=st.integers(0, 8), test_length=NUMBERS,
        test_pairs=NUMBERS, power=st.floats(-0.5, 1.5),
    ),
    "mqar_variants": statics(
        words=st.integers(0, 40), length=st.integers(0, 30), pairs=st.integers(0, 8), test_length=NUMBERS,
        test_pairs=NUMBERS, more_length=NUMBERS, more_pairs=NUMBERS, more_size=st.integers(0, 12),
        updates=st.integers(0, 3), compound=TRUTH,
    ).map(lambda drawn: {"more_size": 5, **drawn}),
    "parity": statics(**BY_LENGTH, begin_end=TRUTH),
    "automaton": statics(
        table=st.lists(st.integers(-1, 4), max_size=8).map(tuple), symbols=st.integers(0, 3), labels=st.integers(1, 4),
        outputs=st.lists(st.integers(0, 3), max_size=4).map(tuple), length=st.integers(0, 9), test_length=NUMBERS,
        reveal=st.sampled_from(["every", "end"]),
    ),
    "word_problem": short(
        group=st.sampled_from(["s3", "a4_x_z5", "z60"]),
        reveal=st.sampled_from(["every", "end"]),
    ),
    "modular_arithmetic": statics(**BY_LENGTH, modulus=st.integers(0, 12), begin_end=TRUTH),
    "bucket_sort": statics(**BY_LENGTH, symbols=st.integers(0, 9)),
    "stack_manipulation": statics(**BY_LENGTH),
    "cycle_navigation": statics(**BY_LENGTH, cycle=st.integers(0, 9)),
    "modular_arithmetic_brackets": statics(**BY_LENGTH, modulus=st.integers(0, 9), products=TRUTH, unknown=TRUTH),
    "missing_duplicate_string": statics(**BY_LENGTH),
    "binary_addition": statics(**BY_LENGTH),
    "binary_multiplication": statics(**BY_LENGTH),
    "compute_sqrt": statics(**BY_LENGTH),
    "addition": statics(**BY_LENGTH, base=st.integers(0, 12), reversed=TRUTH, padded=TRUTH),
    "multiplication": statics(**BY_LENGTH, base=st.integers(0, 12), second=st.integers(0, 4), padded=TRUTH),
    "set_complement": statics(**BY_LENGTH, symbols=st.integers(0, 14)),
    "selective_copying": statics(
        symbols=st.integers(0, 4), tokens=st.integers(0, 9), length=st.integers(0, 9), test_length=NUMBERS,
    ),
    "phone_book": statics(**BY_LENGTH, names=st.integers(0, 14), digits=st.integers(0, 3)),
    "n_gram_lookup": statics(**BY_LENGTH, symbols=st.integers(1, 4), gram=st.integers(0, 4)),
    "in_context_recall": short(
        symbols=st.integers(0, 9), noise=st.integers(-1, 100), noise_symbols=st.integers(0, 4),
    ),
    "fuzzy_in_context_recall": short(
        symbols=st.integers(0, 9), most=st.integers(0, 4),
    ),
    "compression": short(symbols=st.integers(0, 9)),
    "memorization": short(keys=st.integers(0, 9)),
    "mano": statics(**BY_LENGTH, modulus=st.integers(0, 9)),
    "depo": statics(
        **BY_LENGTH, symbols=st.integers(0, 9), size=st.integers(0, 3), depth=st.integers(0, 4),
        questions=st.integers(0, 4),
    ),
    "brevo": statics(**BY_LENGTH, names=st.integers(0, 14)),
    "regbench": short(
        symbols=st.integers(0, 6), states=st.integers(0, 5), edges=st.integers(0, 4), longest=st.integers(0, 6),
    ),
    "shortest_paths": statics(
        **BY_LENGTH, names=st.integers(0, 14), degree=st.integers(0, 4), weights=st.integers(0, 4),
        farthest=st.integers(0, 5),
    ),
    "countdown": statics(**BY_LENGTH, most=st.integers(0, 9)),
    "coupled_addition": statics(**BY_LENGTH, base=st.integers(0, 12), most=st.integers(0, 30)),
    "lego": statics(**BY_LENGTH, variables=st.integers(0, 14)),
    "sudoku": statics(train=BLANKS, test=BLANKS, side=st.sampled_from([4, 4, 4, 5]), puzzles=st.integers(0, 3)),
    "maze": statics(**BY_LENGTH, side=st.integers(2, 9)),
    "in_context_regression": statics(
        function=st.sampled_from(["linear", "sparse_linear", "relu_network", "decision_tree", "cubic"]), test=NUMBERS,
        inputs=st.integers(-1, 5), points=st.integers(-1, 5), nonzero=st.integers(-1, 5), hidden=st.integers(-1, 5),
        depth=st.integers(-1, 4),
    ),
    "shapes": statics(
        rows=st.integers(4, 9), columns=st.integers(4, 9), channels=st.integers(0, 5), shapes=st.integers(1, 7),
        width=RANGE, noise=st.integers(-1, 256), test_rows=NUMBERS,
    ),
    "graph_distance": statics(
        **BY_LENGTH, names=st.integers(0, 14), degree=st.floats(-1, 20), farthest=st.integers(0, 4),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", TASKS)
@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_statics_are_refused_or_give_whole_items(name: str, data: st.DataObject) -> None:
    chosen = data.draw(TASKS[name])
    try:
        task = build(name, **chosen)
        # Many items at once would be what takes the time.
        with patch.object(arithmetic, "_BATCH", 1 << 8), patch.object(lengths, "_BATCH_SYMBOLS", 1 << 11):
            splits = {split: task.generate(split, data.draw(st.integers(0, 3))) for split in task.split_names()}
    except TaskError:
        return
    for split, items in splits.items():
        assert items.form is task.kind.form
        assert {len(field) for field in items.inputs.values()} == {len(items)}, split
        assert {len(group) for group in items.groups.values()} == {len(items)}
        for group, values in group_values(task, split).items():
            assert set(items.groups[group].tolist()) <= set(values)
        for name, field in items.inputs.items():
            assert field.values.ndim > 1 or field.values.max(initial=0) < len(field_vocabulary(task, name))
        if isinstance(items.targets, Ragged):
            # What is answered stands at the places of the last field.
            *_, followed = items.inputs.values()
            assert np.array_equal(items.targets.offsets, followed.offsets)
            assert items.scored is None or np.array_equal(items.scored.offsets, followed.offsets)
