"""Compositional table lookup agrees with the published set and with a slow lookup."""

import numpy as np
import pytest

from archlang.tasks.ctl import Ctl
from archlang.tasks.kit.split import Split
from archlang.types.statics import Interval
from tests.tasks.every import generated, replace, words_of

SMALL = Ctl(
    symbols=4, functions=4, new_functions=0, reserved=0, train=Interval(1, 4), valid=Interval(5, 5),
    test=Interval(6, 7), train_size=900, iid_size=100, valid_size=200, test_size=200,
)  # fmt: skip
TABLES = {
    "a": "61570423", "b": "65732041", "c": "15730462", "d": "42150736", "e": "75640321", "f": "46032571",
    "g": "51042673", "h": "23014567", "i": "65042371", "j": "74253106", "k": "46213057",
}  # fmt: skip


def looked_up(words: tuple[str, ...], order: str) -> int:
    """Returns the answer by the published tables."""
    assert (words[0], words[-1]) == ("[B]", "[E]")
    inner = words[1:-1] if order == "forward" else words[-2:0:-1]
    symbol = int(inner[0], 2)
    for function in inner[1:]:
        symbol = int(TABLES[function][symbol])
    return symbol


@pytest.mark.parametrize("order", ["forward", "backward"])
@pytest.mark.parametrize("split", ["train", "iid", "valid", "test"])
def test_every_label_agrees_with_the_tables(order: str, split: str) -> None:
    task = Ctl(order=order)
    targets = generated(task, split).targets
    assert isinstance(targets, np.ndarray)
    for words, target in zip(words_of(task, split), targets.tolist(), strict=True):
        assert looked_up(words, order) == target


def test_the_tables_are_the_published_ones() -> None:
    assert ["".join(map(str, row)) for row in Ctl().tables] == list(TABLES.values())


def test_other_tables_are_fixed_permutations() -> None:
    tables = replace(SMALL, new_functions=1).tables
    assert all(sorted(row) == [0, 1, 2, 3] for row in tables)
    assert tables.tolist() == [[2, 0, 1, 3], [1, 3, 0, 2], [2, 1, 3, 0], [3, 0, 2, 1], [0, 3, 2, 1]]


def test_the_published_train_set_has_the_published_counts() -> None:
    items = generated(Ctl(), "train")
    lengths = np.bincount(items.groups["length"])
    assert len(items) == 53_704
    assert len(set(words_of(Ctl(), "train"))) == 53_224
    assert lengths[:2].tolist() == [0, 568]
    # Published: about 420, 3,770, 20,900 and 28,000.
    assert np.allclose(lengths[2:], [420, 3_770, 20_900, 28_000], rtol=0.06)


def test_ids_are_the_published_ones() -> None:
    task = Ctl()
    assert task.vocabulary[:8] == tuple(f"{symbol:03b}" for symbol in range(8))
    assert task.vocabulary[8:] == (*"abcdefghijk", "[E]", "[B]")
    x = generated(task, "valid").inputs["x"]
    assert set(x.values[x.offsets[:-1]].tolist()) == {20}
    assert set(x.values[x.offsets[1:] - 1].tolist()) == {19}


def test_without_begin_and_end_only_symbols_and_functions_remain() -> None:
    bare, full = words_of(replace(SMALL, begin_end=False), "test"), words_of(SMALL, "test")
    assert bare == [words[1:-1] for words in full]


def test_forward_is_the_mirror_image_of_backward() -> None:
    forward = words_of(replace(SMALL, order="forward"), "iid")
    backward = words_of(replace(SMALL, order="backward"), "iid")
    assert [words[::-1] for words in backward] == [("[E]", *words[1:-1], "[B]") for words in forward]


def test_new_functions_occur_only_alone() -> None:
    new = [words for words in words_of(Ctl(), "train") if {"j", "k"} & set(words)]
    assert len(new) == 2 * 8 * 31
    assert all(len(words) == 4 for words in new)
    assert not any({"j", "k"} & set(words) for split in ("iid", "valid", "test") for words in words_of(Ctl(), split))


def test_splits_are_disjoint_even_across_seeds_and_only_train_repeats_items() -> None:
    for split in ("iid", "valid", "test"):
        assert len(set(words_of(Ctl(), split))) == len(words_of(Ctl(), split))
    parts = [set(words_of(Ctl(), split, seed)) for split, seed in (("train", 0), ("iid", 1), ("valid", 0), ("test", 2))]
    assert len(set.union(*parts)) == sum(map(len, parts))


def test_reserved_compositions_are_in_no_item_of_the_train_lengths() -> None:
    def compositions(reserved: int) -> set[tuple[str, ...]]:
        task = replace(SMALL, reserved=reserved, train_size=300, iid_size=20)
        return {words[1:-2] for split in ("train", "iid") for words in words_of(task, split) if len(words) == 5}

    # 16 compositions of two functions, of which a quarter is kept out.
    assert len(compositions(0)) == 16
    assert len(compositions(200)) == 12


def test_balanced_lengths_are_as_even_as_the_items_permit() -> None:
    items = Ctl(balanced=True).generate("train", seed=0)
    lengths = np.bincount(items.groups["length"])
    assert len(items) == 53_704
    assert lengths[4] == lengths[5] == 24_444
    assert lengths[1] == 568


def test_a_split_may_have_all_existing_items() -> None:
    task = replace(SMALL, valid=Interval(5, 5), valid_size=4 * 4**5)
    assert len(set(words_of(task, "valid"))) == 4 * 4**5


def test_repeated_makes_all_lengths_equally_frequent_without_new_items() -> None:
    evened = Ctl(
        symbols=4, functions=3, new_functions=0, reserved=0, balanced=True, repeated=True,
        train=Interval(1, 4), valid=Interval(5, 5), test=Interval(6, 7),
        train_size=300, iid_size=20, valid_size=20, test_size=20,
    )  # fmt: skip
    plain = replace(evened, repeated=False).generate("train", 0)
    again = evened.generate("train", 0)
    assert len(set(np.bincount(again.groups["length"])[1:].tolist())) == 1

    def items(split: Split) -> set[bytes]:
        return {split.inputs["x"][index].tobytes() for index in range(len(split))}

    assert items(plain) == items(again)
