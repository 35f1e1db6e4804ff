"""The published ListOps files of Nangia & Bowman (2018) and of Long Range Arena, with their labels verified."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from archlang.data import store
from archlang.data.mistakes import DataError
from archlang.tasks.kit import published_files
from archlang.tasks.kit.lexicon import Lexicon
from archlang.tasks.kit.listops_trees import VOCABULARY

TRAIN, TEST = "train_d20s.tsv", "test_d20s.tsv"
# The data set and the test file of Long Range Arena (Tay et al., 2021), whose first line is a header.
ARENA = "lra", "listops-1000/basic_test.tsv"
# The first lines of the train file are the validation split, as in the code of Ray Chowdhury & Caragea.
VALID_LINES = 1_000
LEXICON = Lexicon(VOCABULARY)
CLOSE = "]"

_OPERATORS: Mapping[str, Callable[[list[int]], int]] = {
    "[MIN": min,
    "[MAX": max,
    # The mean of the two middle numbers, rounded down.
    "[MED": lambda numbers: (sorted(numbers)[(len(numbers) - 1) // 2] + sorted(numbers)[len(numbers) // 2]) // 2,
    "[SM": lambda numbers: sum(numbers) % 10,
}


@dataclass(frozen=True)
class ListExpression:
    """A list without its round brackets, its value, the depth of its nesting, and the largest number of arguments of an
    operator."""

    tokens: tuple[str, ...]
    value: int
    depth: int
    arguments: int


def read(line: str) -> ListExpression:
    """Parses a line such as `3<TAB>( ( ( [MAX 2 ) 3 ) ] )`.

    Raises:
        ValueError: the line is malformed, or its label is wrong."""
    label, text = line.split("\t")
    expression = parse(text)
    if expression.value != int(label):
        raise ValueError(f"{text} is {expression.value}, not {label}")
    return expression


def read_of_arena(line: str) -> ListExpression:
    """Parses a line such as `( ( ( [MAX 2 ) 3 ) ] )<TAB>3`.

    Raises:
        ValueError: the line is malformed, or its label is wrong."""
    text, label = line.split("\t")
    return read(f"{label}\t{text}")


def parse(text: str) -> ListExpression:
    """Parses a list, such as `( ( ( [MAX 2 ) 3 ) ] )`.

    Raises:
        ValueError: the list is malformed."""
    tokens = tuple(token for token in text.split() if token not in ("(", ")"))
    # The open operators, and the arguments of each so far; the first entry is for the whole list.
    operators: list[str] = []
    stack: list[list[int]] = [[]]
    depth = arguments = 0
    for token in tokens:
        if token in _OPERATORS:
            operators.append(token)
            stack.append([])
            depth = max(depth, len(operators))
        elif token == CLOSE:
            numbers = stack.pop()
            if not operators or not numbers:
                raise ValueError(f"unexpected `]` in {text}")
            arguments = max(arguments, len(numbers))
            stack[-1].append(_OPERATORS[operators.pop()](numbers))
        elif len(token) == 1 and token.isdigit():
            stack[-1].append(int(token))
        else:
            raise ValueError(f"unexpected {token} in {text}")
    if operators or len(stack[0]) != 1:
        raise ValueError(f"expected one list in {text}")
    return ListExpression(tokens, stack[0][0], depth, arguments)


def expressions(split: str, max_length: int) -> list[ListExpression]:
    """Returns the published lists of a split. `iid` is the test file, `valid` is the first lines of the train file, and
    `train` is its other lines with at most `max_length` tokens."""
    if split == "iid":
        return published_files.parse_lines("listops", TEST, read)
    lines = published_files.parse_lines("listops", TRAIN, read)
    if split == "valid":
        return lines[:VALID_LINES]
    return [expression for expression in lines[VALID_LINES:] if len(expression.tokens) <= max_length]


def has_arena() -> bool:
    """Whether the test file of Long Range Arena, or its archive, is in the folder of published files."""
    try:
        return store.find(*ARENA) is not None
    except DataError:
        return False


def expressions_of_arena() -> list[ListExpression]:
    """Returns the test lists of Long Range Arena."""
    lines = store.lines(*ARENA)
    next(lines, None)
    return list(published_files.parse_each(*ARENA, lines, read_of_arena, first=2))


def columns(lists: list[ListExpression]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Returns the values [N], depths [N] and numbers of arguments [N] of N lists."""
    rows = [(expression.value, expression.depth, expression.arguments) for expression in lists]
    values, depths, arguments = np.asarray(rows, dtype=np.int64).reshape(-1, 3).T
    return values, depths, arguments
