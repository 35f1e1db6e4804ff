"""The tasks that answer symbols with symbols agree with their papers: copy, reverse, mix, dynamic recall, and sorts."""

from collections import Counter
from collections.abc import Callable

import numpy as np
import pytest

from archlang.tasks.kit.lengths import ByLength
from archlang.tasks.kit.pages import DecodedPage
from tests.goldens.files import reference_file
from tests.tasks.every import Drawn, answers_of, page, replace

Copy = page("copy")
DynamicRecall = page("dynamic_recall")
IdSort = page("id_sort")
Mix = page("mix")
PrioritySort = page("priority_sort")
Reverse = page("reverse")

Keys = list[tuple[float, ...]]
"""the numbers of each position, as priorities or ids"""


def mixed(symbols: list[int], even: str) -> list[int]:
    """Section 3.1, with positions t from 1; or as in Table 6."""
    middle = symbols[-(-len(symbols) // 2) - 1]
    return [middle if t % 2 else symbols[0] if even == "first" else symbols[t - 1] for t in range(1, len(symbols) + 1)]


def recalled(asked: list[int], answer: str) -> list[int]:
    """Appendix D.1: the left neighbour of the query, which is last, if the input has an odd length, else the right."""
    *symbols, query = asked
    place = symbols.index(query) + (-1 if len(asked) % 2 else 1)
    if answer == "neighbour" and place >= 0:
        return [[*symbols, symbols[0]][place]]
    rest = symbols[place:] if place < len(symbols) else symbols
    return rest[:1] if answer == "neighbour" else rest


def sorted_by_priority(symbols: list[int], priorities: Keys) -> list[int]:
    return [symbol for _, symbol in sorted(zip(priorities, symbols, strict=True))]


def partners(symbols: list[int], ids: Keys) -> list[int]:
    """At each position the symbol of the same id; at a position whose id is alone, its own."""
    assert [count for count in Counter(ids).values() if count != 2] == [1] * (len(symbols) % 2)
    places = [[other for other in range(len(ids)) if ids[other] == ids[place]] for place in range(len(ids))]
    return [symbols[next((other for other in same if other != place), place)] for place, same in enumerate(places)]


Oracle = Callable[[list[int], Keys], list[int]]
ORACLES: dict[ByLength, Oracle] = {
    Copy(): lambda symbols, _: symbols,
    Reverse(): lambda symbols, _: symbols[::-1],
    Mix(even="first"): lambda symbols, _: mixed(symbols, "first"),
    Mix(even="same"): lambda symbols, _: mixed(symbols, "same"),
    DynamicRecall(answer="neighbour"): lambda symbols, _: recalled(symbols, "neighbour"),
    DynamicRecall(answer="rest"): lambda symbols, _: recalled(symbols, "rest"),
    PrioritySort(): sorted_by_priority,
    IdSort(id_size=3): partners,
}


@pytest.mark.parametrize("task", [pytest.param(task, id=task.name) for task in ORACLES])
@pytest.mark.parametrize("split", Copy().split_names())
@pytest.mark.parametrize("eos", [False, True])
def test_answers_agree_with_the_papers(task: ByLength, split: str, eos: bool) -> None:
    items = replace(task, train_size=1_000, valid_size=50, test_size=10, eos=eos).generate(split, 0)
    source, *numbers, target = items.inputs.values()
    for index in range(len(items)):
        begin, *symbols, end = source[index].tolist()
        assert (begin, end) == (11, 10)
        for ragged in numbers:
            assert not ragged[index][[0, -1]].any()
        keys = [tuple(row) for ragged in numbers for row in ragged[index][1:-1].tolist()]
        answer = ORACLES[task](symbols, keys) + [10] * eos
        assert answers_of(items)[index].tolist() == answer
        assert target[index].tolist() == [11, *answer[:-1]]
        assert items.groups["length"][index] == len(symbols) - isinstance(task, DynamicRecall)


def test_lengths_are_uniform_in_train_and_listed_in_test() -> None:
    task = Copy(train_size=2_000, valid_size=50, test_size=10)
    counts = np.bincount(task.generate("train", 0).groups["length"])
    assert len(counts) == 10
    assert np.allclose(counts[1:], 2_000 / 9, atol=60)
    assert set(task.generate("valid", 0).groups["length"].tolist()) == {10}
    assert np.unique(task.generate("test", 0).groups["length"], return_counts=True)[1].tolist() == [10, 10, 10]


@pytest.mark.parametrize("task", [Copy(), Reverse()], ids=["copy", "reverse"])
def test_items_have_the_published_format(task: DecodedPage) -> None:
    file = reference_file("panm", "task_samples.npz")
    with np.load(file) as golden:
        sources, answers = golden[f"{task.name}.input"].argmax(2).T, golden[f"{task.name}.target"].argmax(2).T
    # There the begin is 10 and the end 11; here it is the other way round.
    assert (sources[:, 0], sources[:, -1]) == (pytest.approx(10), pytest.approx(11))
    rng = Drawn(sources[:, 1:-1].reshape(-1).tolist())
    items = task.items(rng, np.full(len(sources), sources.shape[1] - 2))
    assert answers_of(items).values.reshape(answers.shape).tolist() == answers.tolist()
    assert (task.begin, task.end, replace(task, eos=True).end) == (11, None, 10)


def test_the_longest_trained_length_has_a_split_of_its_own() -> None:
    task = Copy(train_size=5, iid_size=4)
    assert task.split_names() == ("train", "iid", "valid", "test")
    assert task.in_distribution == ("train", "iid")
    assert set(task.generate("iid", seed=0).groups["length"]) == {9}
    assert Copy().split_names() == ("train", "valid", "test")


def test_literal_cases_of_dynamic_recall() -> None:
    assert recalled([6, 2, 7, 8, 7], "neighbour") == [2]
    assert recalled([6, 2, 7, 7], "neighbour") == [6]
    assert recalled([6, 2, 7, 8, 6], "neighbour") == [8]
    assert recalled([6, 2, 7, 2, 2], "rest") == [6, 2, 7, 2]
    assert recalled([6, 2, 7, 2], "rest") == [7]
    # Table 6: of the ten symbols $(&&$#^@%# the query is %, and the answer @.
    assert recalled(list(map(ord, "$(&&$#^@%#%")), "neighbour") == [ord("@")]


def test_every_symbol_may_be_the_query() -> None:
    items = DynamicRecall(symbols=100, train_size=3_000).generate("train", 0)
    places = set()
    for index in range(len(items)):
        _, *symbols, query, _ = items.inputs["source"][index].tolist()
        if len(symbols) == 9:
            places.add(symbols.index(query))
    assert places == set(range(9))


def test_the_example_of_the_paper_has_the_same_symbols_at_even_positions() -> None:
    # Table 6: $%&&$%^@%# becomes $%$&$%$@$#
    symbols = "~!@#$%^&*("
    rng = Drawn([symbols.index(symbol) for symbol in "$%&&$%^@%#"])
    items = Mix(even="same").items(rng, np.array([10]))
    assert "".join(symbols[token] for token in answers_of(items)[0]) == "$%$&$%$@$#"


def test_priorities_are_normal_and_differ_and_lengths_are_the_published_ones() -> None:
    splits = {split: PrioritySort(train_size=1_000, valid_size=20, test_size=5).generate(split, 0)
              for split in ("train", "valid", "test")}  # fmt: skip
    priorities = splits["train"].inputs["priority"].values[:, 0]
    drawn = priorities[priorities != 0]
    assert len(np.unique(drawn)) > 0.999 * len(drawn)
    assert abs(drawn.mean()) < 0.05
    assert abs(drawn.std() - 1) < 0.05
    lengths = [np.unique(items.groups["length"]).tolist() for items in splits.values()]
    assert lengths == [list(range(1, 11)), [11], [21, 41, 81]]


def test_any_two_positions_may_be_a_pair() -> None:
    items = IdSort(train_size=1_000, id_size=3).generate("train", 0)
    pairs = Counter[int]()
    for index in np.flatnonzero(items.groups["length"] == 4):
        ids = [tuple(row) for row in items.inputs["id"][int(index)].tolist()][1:-1]
        pairs[ids.index(ids[0], 1)] += 1
    assert set(pairs) == {1, 2, 3}
    assert min(pairs.values()) > 15
