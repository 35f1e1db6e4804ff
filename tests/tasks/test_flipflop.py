"""Flip-flop sequences obey their grammar, read by read."""

import numpy as np
import pytest

from archlang.tasks.flipflop import FlipFlop
from archlang.tasks.kit.split import Split
from tests.tasks.every import answers_of, generated, marks_of, replace

SMALL = FlipFlop(
    length=20, ignore=0.5, test_length=(20, 24), test_ignore=(0.1, 0.5), train_size=3_000, iid_size=300, valid_size=200,
    test_size=300,
)  # fmt: skip


def sequences(split: Split) -> list[str]:
    return ["".join("wir01"[token] for token in answers_of(split)[index]) for index in range(len(split))]


@pytest.mark.parametrize("split", SMALL.split_names())
def test_every_read_returns_the_last_write(split: str) -> None:
    items = generated(SMALL, split)
    for index, text in enumerate(sequences(items)):
        assert text[0] == "w"
        assert text[-2] == "r"
        memory = ""
        for place in range(0, len(text), 2):
            instruction, bit = text[place], text[place + 1]
            assert instruction in "wir"
            assert bit in "01"
            memory = bit if instruction == "w" else memory
            assert instruction != "r" or bit == memory
        read = [place % 2 == 1 and text[place - 1] == "r" for place in range(len(text))]
        assert marks_of(items)[index].tolist() == read


def test_the_input_is_the_shifted_sequence_and_begins_with_ignore() -> None:
    items = generated(SMALL, "test")
    for index in range(len(items)):
        assert items.inputs["x"][index].tolist() == [1, *answers_of(items)[index].tolist()[:-1]]


def test_each_setting_of_test_and_valid_has_its_items() -> None:
    tested = {(10, 20): 300, (10, 24): 300, (50, 20): 300, (50, 24): 300}
    for split, counts in (("test", tested), ("valid", {**dict.fromkeys(tested, 200), (50, 20): 400})):
        groups = generated(SMALL, split).groups
        pairs = list(zip(groups["ignore"].tolist(), groups["length"].tolist(), strict=True))
        assert {pair: pairs.count(pair) for pair in pairs} == counts


def test_reads_have_the_published_frequency() -> None:
    task = FlipFlop(test_size=400, test_length=(512,))
    items = generated(task, "test")
    reads = marks_of(items).values.reshape(-1, 512).sum(axis=1)
    means = [reads[items.groups["ignore"] == ignore].mean() for ignore in (10, 80, 98)]
    assert np.allclose(means, [115, 26.4, 3.5], rtol=0.05)


def test_an_empty_split_is_empty() -> None:
    assert len(generated(replace(SMALL, iid_size=0), "iid")) == 0
