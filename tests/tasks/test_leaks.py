"""No item of a train split is in another split of its task."""

import pytest

from archlang.tasks.kit.split import Split
from tests.tasks.every import NAMES, SMALL, build, items_of, task_of

# Where the published splits promise no such thing. Elsewhere a new task is held to it without being asked.
SHORT = "short sequences are few, so that a split of the train lengths holds some that train holds too"
OF_SHORT_ITEMS = (
    "parity", "modular_arithmetic", "bucket_sort", "stack_manipulation", "even_pairs", "cycle_navigation",
    "reverse_string", "duplicate_string", "odds_first", "missing_duplicate_string", "binary_addition",
    "binary_multiplication", "compute_sqrt", "modular_arithmetic_brackets", "addition", "multiplication",
    "mano",
)  # fmt: skip
SHARED = {(name, "valid"): SHORT for name in OF_SHORT_ITEMS}


def items(split: Split) -> list[tuple[bytes, ...]]:
    """What a model reads of each item. `target` is left out: it tells the answer, and two items that differ in it alone
    are the same question."""
    fields = [field for name, field in split.inputs.items() if name != "target"]
    return [tuple(field[index].tobytes() for field in fields) for index in range(len(split))]


@pytest.mark.parametrize("name", NAMES)
def test_no_item_of_train_is_in_another_split(name: str) -> None:
    task = build(name, **SMALL.get(name, {}))
    trained = set(items(items_of(task, "train")))
    assert trained
    for split in task.split_names():
        if split != "train" and (name, split) not in SHARED:
            assert trained.isdisjoint(items(items_of(task, split))), split


@pytest.mark.parametrize(("name", "split"), SHARED)
def test_the_listed_exceptions_share_items(name: str, split: str) -> None:
    """Fails if an exception is no longer needed."""
    task = build(name, **{**SMALL[name], "train_size": 2_000})
    assert set(items(items_of(task, "train"))) & set(items(items_of(task, split)))


@pytest.mark.parametrize(
    "text",
    [
        "arithmetic[train_size = 1_000, iid_size = 100, valid_size = 100, test_size = 60]",
        "flipflop[length = 20, ignore = 0.5, test_length = [20, 24], test_ignore = [0.1, 0.5], train_size = 3_000, "
        "iid_size = 300, valid_size = 200, test_size = 300]",
        "listops[train_size = 2_000, iid_size = 200, valid_size = 200, test_size = 20]",
        "listops[source = original, pool = 5_000, test_lengths = [200..300], test_size = 20, lra = true]",
        "listops[source = lra, train_size = 100, valid_size = 50, test_size = 50]",
        "logical_inference[draws = 5_000]",
        *(
            f"mathematics[module = {module}, draws = 2_000, test_size = 300]"
            for module in ("add_or_sub", "place_value")
        ),
        # Nearly all items that there are.
        "mqar[words = 8, length = 8, pairs = 2, test_length = [8], test_pairs = [2], train_size = 900, "
        "valid_size = 90, test_size = 90]",
        # Without noise, images repeat.
        "shapes[noise = 0, width = 7..7, columns = 9, rows = 9, test_rows = [10]]",
        "automaton[length = 13, test_length = [13], train_size = 5_000, valid_size = 900, test_size = 900]",
        "word_problem[length = 5, test_length = [5], train_size = 5_000, valid_size = 900, test_size = 900]",
        *(
            f"pcfg[split = {split}, train_size = 1_500, iid_size = 300, test_size = 300]"
            for split in ("iid", "productivity", "systematicity")
        ),
    ],
)
def test_splits_are_disjoint_across_seeds_and_have_distinct_items(text: str) -> None:
    task = task_of(text)
    rows = [row for seed, split in enumerate(task.split_names()) for row in items(task.generate(split, seed % 2))]
    assert len(set(rows)) == len(rows)


def test_a_leak_is_detected() -> None:
    task = build("copy", train_size=20)
    train = items_of(task, "train")
    assert set(items(train)) & set(items(train.select([3])))
