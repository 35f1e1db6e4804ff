"""An automaton is asked for the class of its state."""

import re
from collections.abc import Callable
from itertools import chain, pairwise
from random import Random

import numpy as np
import pytest

from archlang.resolve import library
from archlang.tasks.kit.mistakes import TaskError
from tests.tasks.every import Drawn, answers_of, marks_of, page
from tests.tasks.test_word_problem import WordProblem, table

Automaton = page("automaton")

SIZES = {"train_size": 40, "valid_size": 9, "test_size": 9}
# As Delétang et al. define them.
DEFINITIONS: dict[str, Callable[[list[int]], int]] = {
    "parity": lambda bits: sum(bits) % 2,
    "even pairs": lambda bits: sum(left != right for left, right in pairwise(bits)) % 2,
    "cycle navigation": lambda moves: sum(move - 1 for move in moves) % 5,
}


def documented(name: str) -> dict[str, object]:
    """The statics of a task that the documentation names."""
    item = library.task("automaton")
    assert item is not None
    (line,) = (line for line in item.documentation if line.strip().startswith(name))
    found = re.findall(r"(\w+) = (\[[^\]]*\]|\d+)", line)
    return {
        static: tuple(map(int, re.findall(r"\d+", value))) if "[" in value else int(value) for static, value in found
    }


@pytest.mark.parametrize("name", DEFINITIONS)
def test_the_documented_tables_are_tasks_of_the_chomsky_hierarchy(name: str) -> None:
    task = Automaton(**documented(name), length=9, test_length=(15,), **SIZES)
    for split in task.split_names():
        items = task.generate(split, 0)
        for index in range(len(items)):
            symbols = items.inputs["x"][index].tolist()
            expected = [DEFINITIONS[name](symbols[: end + 1]) for end in range(len(symbols))]
            assert items.targets[index].tolist() == expected


def test_any_table_is_followed_from_state_0() -> None:
    random = Random(0)
    for _ in range(20):
        states, symbols = random.randint(1, 6), random.randint(2, 4)
        table = [[random.randrange(states) for _ in range(symbols)] for _ in range(states)]
        outputs = tuple(random.randrange(3) for _ in range(states))
        flat = tuple(state for row in table for state in row)
        task = Automaton(table=flat, symbols=symbols, labels=3, outputs=outputs, length=8, test_length=(), **SIZES)
        train = task.generate("train", 0)
        state, answers = 0, []
        for symbol in train.inputs["x"][7].tolist():
            state = table[state][symbol]
            answers.append(outputs[state])
        assert train.targets[7].tolist() == answers
        assert task.sizes == {"vocab": symbols, "classes": 3}


def test_the_table_of_a_group_is_its_word_problem() -> None:
    group = WordProblem(group="s3", length=7, **SIZES)
    items = group.generate("train", 0)
    task = Automaton(table=tuple(chain(*table("s3"))), symbols=6, labels=6, length=7, **SIZES)
    same = task.items(Drawn(items.inputs["x"].values.tolist()), np.full(len(items), 7))
    assert np.array_equal(answers_of(same).values, answers_of(items).values)


def test_only_the_end_counts_where_it_alone_is_revealed() -> None:
    marks = marks_of(Automaton(length=7, reveal="end", train_size=10).generate("train", 0))
    assert marks[3].tolist() == [False] * 6 + [True]


@pytest.mark.parametrize(
    ("statics", "message"),
    [
        ({"table": (0, 1, 1)}, "`table[symbols * state + a]` in line 14 of the page of `automaton`: place 3 of a word"),
        ({"table": (0, 2, 1, 0)}, "of a word of 4 symbols"),
        ({"outputs": (0,)}, "`outputs[state]` in line 15 of the page of `automaton`: place 1 of a word of 1 symbols"),
        ({"table": (1, 2, 2, 0, 0, 0)}, "`return` of the page of `automaton` has the number 2, and there are 2"),
    ],
)
def test_a_table_that_fits_nothing_is_refused(statics: dict[str, object], message: str) -> None:
    with pytest.raises(TaskError, match=re.escape(message)):
        Automaton(**statics)
