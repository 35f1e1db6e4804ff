"""Copy answers with its input, and reverse with its input from its end, at every length."""

import numpy as np
import pytest

from archlang.tasks.copy import Copy
from archlang.tasks.kit.ragged import Ragged
from archlang.tasks.reverse import Reverse
from tests.goldens.files import reference_file
from tests.tasks.every import answers_of, replace

SMALL = Copy(train_size=2_000, valid_size=50, test_size=10)


@pytest.mark.parametrize("task_class", [Copy, Reverse])
@pytest.mark.parametrize("split", SMALL.split_names())
@pytest.mark.parametrize("eos", [False, True])
def test_the_answer_is_the_source_or_its_reverse(task_class: type[Copy | Reverse], split: str, eos: bool) -> None:
    items = task_class(train_size=2_000, valid_size=50, test_size=10, eos=eos).generate(split, 0)
    for index in range(len(items)):
        source, seen, asked = items.inputs["source"][index], items.inputs["target"][index], answers_of(items)[index]
        symbols = source[1:-1].tolist()
        assert (source[0], source[-1]) == (11, 10)
        assert asked.tolist() == symbols[:: -1 if task_class is Reverse else 1] + [10] * eos
        assert seen.tolist() == [11, *asked.tolist()[:-1]]
        assert items.groups["length"][index] == len(symbols)


def test_lengths_are_uniform_in_train_and_listed_in_test() -> None:
    counts = np.bincount(SMALL.generate("train", 0).groups["length"])
    assert len(counts) == 10
    assert np.allclose(counts[1:], 2_000 / 9, atol=60)
    assert set(SMALL.generate("valid", 0).groups["length"].tolist()) == {10}
    assert np.unique(SMALL.generate("test", 0).groups["length"], return_counts=True)[1].tolist() == [10, 10, 10]


@pytest.mark.parametrize("task", [Copy(), Reverse()], ids=["copy", "reverse"])
def test_items_have_the_published_format(task: Copy) -> None:
    file = reference_file("panm", "task_samples.npz")
    with np.load(file) as golden:
        sources, answers = golden[f"{task.name}.input"].argmax(2).T, golden[f"{task.name}.target"].argmax(2).T
    # There the begin is 10 and the end 11; here it is the other way round.
    assert (sources[:, 0], sources[:, -1]) == (pytest.approx(10), pytest.approx(11))
    symbols = Ragged.table(sources[:, 1:-1])
    assert task.answers(symbols).values.reshape(answers.shape).tolist() == answers.tolist()
    assert (task.begin, task.end, replace(task, eos=True).end) == (11, None, 10)


def test_the_longest_trained_length_has_a_split_of_its_own() -> None:
    task = Copy(train_size=5, iid_size=4)
    assert task.split_names() == ("train", "iid", "valid", "test")
    assert task.in_distribution == ("train", "iid")
    assert set(task.generate("iid", seed=0).groups["length"]) == {9}
    assert Copy().split_names() == ("train", "valid", "test")
