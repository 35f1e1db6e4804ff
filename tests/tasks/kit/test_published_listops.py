"""ListOps: the published labels, and malformed lines."""

from collections.abc import Callable

import numpy as np
import pytest

from archlang.tasks.kit.published_listops import LEXICON, columns, parse, read


def value(tokens: list[str]) -> int:
    """Removes the list at the front of the tokens and returns its value."""
    token = tokens.pop(0)
    if token.isdigit():
        return int(token)
    numbers = []
    while tokens[0] != "]":
        numbers.append(value(tokens))
    tokens.pop(0)
    match token:
        case "[MIN":
            return min(numbers)
        case "[MAX":
            return max(numbers)
        case "[SM":
            return sum(numbers) % 10
    return int(np.median(numbers))


def test_every_published_label_is_reproduced(published: Callable[[str], list[str]]) -> None:
    lines = published("listops/test_d20s.tsv")
    items = [read(line) for line in lines]
    assert len(items) == 10_000
    for line, item in zip(lines, items, strict=True):
        label, _, written = line.partition("\t")
        tokens = [token for token in written.split() if token not in "()"]
        assert list(item.tokens) == tokens
        assert item.value == int(label) == value(tokens)
        assert not tokens
    _, depths, arguments = columns(items)
    lengths = LEXICON.encode([item.tokens for item in items]).lengths
    assert (lengths.max(), depths.max(), arguments.max(), round(lengths.mean(), 1)) == (939, 19, 5, 42.8)


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("7", (7, 0, 0)), ("( ( ( [MAX 2 ) 9 ) ] )", (9, 1, 2)), ("( ( ( [MED 2 ) 9 ) ] )", (5, 1, 2)),
        ("[SM 8 [MIN 4 5 6 ] 9 ]", (1, 2, 3)),
    ],
)  # fmt: skip
def test_literal_lists(written: str, expected: tuple[int, int, int]) -> None:
    item = parse(written)
    assert (item.value, item.depth, item.arguments) == expected


@pytest.mark.parametrize(
    "line",
    ["", "7", "8\t7", "x\t7", "7\t[AVG 7 ]", "7\t[MAX 7", "7\t7 7", "7\t]", "0\t[MAX ]", "77\t77", "Source\tTarget"],
)
def test_a_malformed_line_is_refused(line: str) -> None:
    with pytest.raises(ValueError, match=r".+"):
        read(line)
