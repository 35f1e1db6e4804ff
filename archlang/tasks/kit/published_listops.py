"""The published ListOps files of Nangia & Bowman (2018), line by line, with their labels worked out again."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from archlang.tasks.kit import published_files
from archlang.tasks.kit.lexicon import Lexicon
from archlang.tasks.kit.listops_trees import VOCABULARY

TRAIN, TEST = "train_d20s.tsv", "test_d20s.tsv"
# As in the code of Ray Chowdhury & Caragea, the first lines of the train file validate.
VALID_LINES = 1_000
LEXICON = Lexicon(VOCABULARY)
CLOSE = "]"

_OPERATORS: Mapping[str, Callable[[list[int]], int]] = {
    "[MIN": min,
    "[MAX": max,
    # Rounded down between two numbers.
    "[MED": lambda numbers: (sorted(numbers)[(len(numbers) - 1) // 2] + sorted(numbers)[len(numbers) // 2]) // 2,
    "[SM": lambda numbers: sum(numbers) % 10,
}


@dataclass(frozen=True)
class Item:
    """A list, without the round brackets that pair it off, and what it comes to. `depth` is that of its nesting, and
    `arguments` the most that one of its operators has."""

    tokens: tuple[str, ...]
    value: int
    depth: int
    arguments: int


def read(line: str) -> Item:
    """A line such as `3<TAB>( ( ( [MAX 2 ) 3 ) ] )`.

    Raises:
        ValueError: it is none, or the list comes to something else."""
    label, written = line.split("\t")
    item = understood(written)
    if item.value != int(label):
        raise ValueError(f"{written} comes to {item.value} and not to {label}")
    return item


def understood(written: str) -> Item:
    """A list as an item.

    Raises:
        ValueError: it is none."""
    tokens = tuple(token for token in written.split() if token not in ("(", ")"))
    # The operators that are still open, and the arguments that each has so far; the first row is for the whole list.
    operators: list[str] = []
    rows: list[list[int]] = [[]]
    depth = arguments = 0
    for token in tokens:
        if token in _OPERATORS:
            operators.append(token)
            rows.append([])
            depth = max(depth, len(operators))
        elif token == CLOSE:
            numbers = rows.pop()
            if not operators or not numbers:
                raise ValueError(f"nothing is closed by a bracket of {written}")
            arguments = max(arguments, len(numbers))
            rows[-1].append(_OPERATORS[operators.pop()](numbers))
        elif len(token) == 1 and token.isdigit():
            rows[-1].append(int(token))
        else:
            raise ValueError(f"{token} is no part of a list")
    if operators or len(rows[0]) != 1:
        raise ValueError(f"{written} is not one list")
    return Item(tokens, rows[0][0], depth, arguments)


def items(split: str, max_length: int) -> list[Item]:
    """The published items of a split: `iid` is the test file, `valid` the first lines of the train file, and `train`
    those of its other lines that are not too long."""
    if split == "iid":
        return published_files.parse_lines("listops", TEST, read)
    every = published_files.parse_lines("listops", TRAIN, read)
    if split == "valid":
        return every[:VALID_LINES]
    return [item for item in every[VALID_LINES:] if len(item.tokens) <= max_length]


def columns(found: list[Item]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Values, depths and arguments of items."""
    rows = [(item.value, item.depth, item.arguments) for item in found]
    values, depths, arguments = np.asarray(rows, dtype=np.int64).reshape(-1, 3).T
    return values, depths, arguments
