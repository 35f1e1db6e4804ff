"""Mix answers with the middle symbol and the first symbol alternately."""

import pytest

from archlang.tasks.kit.ragged import Ragged
from archlang.tasks.mix import Mix
from tests.tasks.every import answers_of, replace

SMALL = Mix(train_size=500, valid_size=20, test_size=5)


def expected_answer(symbols: list[int], even: str) -> list[int]:
    """Section 3.1, with positions t from 1; or as in Table 6."""
    length = len(symbols)
    middle = symbols[-(-length // 2) - 1]
    return [middle if t % 2 else symbols[0] if even == "first" else symbols[t - 1] for t in range(1, length + 1)]


@pytest.mark.parametrize("even", ["first", "same"])
@pytest.mark.parametrize("split", SMALL.split_names())
def test_answers_agree_with_the_paper(split: str, even: str) -> None:
    items = replace(SMALL, even=even).generate(split, 0)
    for index in range(len(items)):
        symbols = items.inputs["source"][index][1:-1].tolist()
        assert answers_of(items)[index].tolist() == expected_answer(symbols, even)
        assert items.inputs["target"][index].tolist() == [11, *expected_answer(symbols, even)[:-1]]


def test_the_example_of_the_paper_has_the_same_symbols_at_even_positions() -> None:
    # Table 6: $%&&$%^@%# becomes $%$&$%$@$#
    symbols = "~!@#$%^&*("
    source = Ragged.of([[symbols.index(symbol) for symbol in "$%&&$%^@%#"]])
    answer = Mix(even="same").answers(source)
    assert "".join(symbols[token] for token in answer[0]) == "$%$&$%$@$#"
