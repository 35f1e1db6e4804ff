"""Dynamic recall answers with a neighbour of the queried symbol."""

import pytest

from archlang.tasks.dynamic_recall import DynamicRecall
from tests.tasks.every import answers_of, replace

SMALL = DynamicRecall(train_size=1_000, valid_size=20, test_size=5)


def expected_answer(symbols: list[int], query: int, answer: str) -> list[int]:
    """Appendix D.1: the left neighbour if the input has an odd length, else the right one."""
    place = symbols.index(query)
    place += -1 if (len(symbols) + 1) % 2 else 1
    ring = [*symbols, symbols[0]]
    return [ring[place]] if answer == "neighbour" and place >= 0 else _rest(symbols, place, answer)


def _rest(symbols: list[int], place: int, answer: str) -> list[int]:
    rest = symbols[place:] if place < len(symbols) else symbols
    return rest[:1] if answer == "neighbour" else rest


@pytest.mark.parametrize("answer", ["neighbour", "rest"])
@pytest.mark.parametrize("split", SMALL.split_names())
@pytest.mark.parametrize("eos", [False, True])
def test_answers_agree_with_the_paper(split: str, answer: str, eos: bool) -> None:
    items = replace(SMALL, answer=answer, eos=eos).generate(split, 0)
    for index in range(len(items)):
        begin, *symbols, query, end = items.inputs["source"][index].tolist()
        asked = expected_answer(symbols, query, answer) + [10] * eos
        assert (begin, end) == (11, 10)
        assert answers_of(items)[index].tolist() == asked
        assert items.inputs["target"][index].tolist() == [11, *asked[:-1]]
        assert items.groups["length"][index] == len(symbols)


def test_literal_cases() -> None:
    assert expected_answer([6, 2, 7, 8], 7, "neighbour") == [2]
    assert expected_answer([6, 2, 7], 7, "neighbour") == [6]
    assert expected_answer([6, 2, 7, 8], 6, "neighbour") == [8]
    assert expected_answer([6, 2, 7, 2], 2, "rest") == [6, 2, 7, 2]
    assert expected_answer([6, 2, 7], 2, "rest") == [7]
    # Table 6: of the ten symbols $(&&$#^@%# the query is %, and the answer @.
    assert expected_answer(list(map(ord, "$(&&$#^@%#")), ord("%"), "neighbour") == [ord("@")]


def test_every_symbol_may_be_the_query() -> None:
    items = replace(SMALL, symbols=100, train_size=3_000).generate("train", 0)
    places = set()
    for index in range(len(items)):
        _, *symbols, query, _ = items.inputs["source"][index].tolist()
        if len(symbols) == 9:
            places.add(symbols.index(query))
    assert places == set(range(9))
