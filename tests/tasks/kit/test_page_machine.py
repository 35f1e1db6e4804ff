"""The values of a page are those of Python, item by item."""

import re
from collections.abc import Callable
from itertools import chain
from math import isqrt
from random import Random
from typing import Any

import numpy as np
import pytest

from archlang.tasks.kit.drawing import RandomStream
from archlang.tasks.kit.mistakes import TaskError
from archlang.tasks.kit.page_machine import PageMachine
from archlang.tasks.kit.pages import PageTask, page_class
from archlang.tasks.kit.split import Ragged
from archlang.tasks.kit.task import field_vocabulary
from tests.tasks.every import Drawn

LENGTHS = [3, 1, 6, 2]
WORDS = [[1, 0, 3], [2], [3, 3, 0, 1, 2, 0], [0, 1]]


def page(body: str, statics: str = "table: list = [5, 3, 4, 9]", result: str = "classes") -> PageTask:
    """A task with a page that binds `x` to a random word over 0 to 3."""
    text = (
        f"task mine[{statics}, k = 2](x: tokens[n]) -> logits[{result}] with length_ranges\n"
        f'    gives vocab = [0..3, "a", "b"], classes = 9 {{\n    x = draw(4, length)\n    {body}\n}}'
    )
    task_class = page_class("mine", text)
    assert task_class is not None
    return task_class.unchecked()


def values(body: str, name: str = "v") -> Any:  # Any: numbers or words of each item
    machine = PageMachine(page(f"{body}\n    return 0")._binding, Drawn([*chain(*WORDS)]), np.array(LENGTHS))
    machine.read()
    value = machine.values[name]
    if isinstance(value, Ragged):
        return [value[index].tolist() for index in range(len(value))]
    return machine.lanes(value).tolist()


EXPRESSIONS: dict[str, Callable[[list[int]], object]] = {
    "3 + length * k - 1": lambda w: 3 + len(w) * 2 - 1,
    "-length / 2": lambda w: -len(w) // 2,
    "-length % 3": lambda w: -len(w) % 3,
    "length == 3 or length > 4": lambda w: int(len(w) == 3 or len(w) > 4),
    "not length == 3": lambda w: int(len(w) != 3),
    "length >= 2 and x[1] == 1": lambda w: int(len(w) >= 2 and w[1] == 1),
    "length < 2 or x[1] == 1": lambda w: int(len(w) < 2 or w[1] == 1),
    "x[length - 1]": lambda w: w[-1],
    "table[x]": lambda w: [[5, 3, 4, 9][symbol] for symbol in w],
    "table[length / 2]": lambda w: [5, 3, 4, 9][len(w) // 2],
    "x + 10 * indices(x)": lambda w: [symbol + 10 * place for place, symbol in enumerate(w)],
    "x[indices(x) - 1] when indices(x) > 0 else 7": lambda w: [7, *w[:-1]],
    "6 / x when x > 0 else 0": lambda w: [6 // symbol if symbol else 0 for symbol in w],
    "reverse(x) when length > 2 else append(x, 9)": lambda w: w[::-1] if len(w) > 2 else [*w, 9],
    "append(x, length, [8, 9])": lambda w: [*w, len(w), 8, 9],
    "append([], [length])": lambda w: [len(w)],
    "fill(k, length - 1)": lambda w: [2] * (len(w) - 1),
    "2..length": lambda w: list(range(2, len(w) + 1)),
    "slice(x, length / 2, length - length / 2)": lambda w: w[len(w) // 2 :],
    "put(x, length - 1, 8)": lambda w: [*w[:-1], 8],
    "sort(x)": sorted,
    "order(x)": lambda w: sorted(range(len(w)), key=lambda place: w[place]),
    "x |> sort |> reverse": lambda w: sorted(w)[::-1],
    "sum(x)": sum,
    "size(append(x, x))": lambda w: 2 * len(w),
    "max(x) - min(x)": lambda w: max(w) - min(w),
    "max(x, 1)": lambda w: [max(symbol, 1) for symbol in w],
    "min(length, 2)": lambda w: min(len(w), 2),
    "digits(length * 5, 3, 4)": lambda w: [len(w) * 5 // 3**place % 3 for place in range(4)],
    "power(3, 60 * length) % 1_000_003": lambda w: pow(3, 60 * len(w), 1_000_003),
    "sqrt(power(2, 63 + length)) % 1_000": lambda w: isqrt(2 ** (63 + len(w))) % 1000,
    "power(10, 20) * length / power(10, 19)": lambda w: 10 * len(w),
    '"b" - "a"': lambda w: 1,
    "true + 1": lambda w: 2,
    "1 when k == 2 else x[99]": lambda w: 1,
    "5 when table[k] == 4 else 6": lambda w: 5,
    "5 when k else 6": lambda w: 5,
    "(k > 1) * 3": lambda w: 3,
    "5 when 7 / k == 3 else 6": lambda w: 5,
    "-7 / k == -4": lambda w: 1,
    "7 / -k == -4": lambda w: 1,
    "digits(6, 2, 4)": lambda w: [0, 1, 1, 0],
    "digits(6, 2, length)": lambda w: [6 // 2**place % 2 for place in range(len(w))],
    "sum(fill(9 * power(10, 17), 20)) % 17": lambda w: 20 * 9 * 10**17 % 17,
    "sum(fill(-power(2, 60), 4 + length)) / power(2, 58)": lambda w: -4 * (4 + len(w)),
    "size([])": lambda w: 0,
    "power(1, power(2, 70)) + power(power(2, 70), 0)": lambda w: 2,
    "x[power(2, 70)] when length > 9 else 1": lambda w: 1,
    "slice(x, power(2, 70 * length), 1) when length > 9 else x": lambda w: w,
    "put(x, 0 when length < 3 else power(2, 70), 7) when length < 3 else x": lambda w: [7, *w[1:]] if len(w) < 3 else w,
    "put(x, 0, 7 when length < 3 else power(2, 70)) when length < 3 else x": lambda w: [7, *w[1:]] if len(w) < 3 else w,
}


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_an_expression_is_that_of_python(expression: str) -> None:
    assert values(f"v = {expression}") == [EXPRESSIONS[expression](list(word)) for word in WORDS]


def test_loops_and_branches_decide_for_each_item() -> None:
    body = """
    v = fill(0, length)
    total = 0
    most = 0
    scan a in x carry v, total, most {
        total <- total + a
        if a > 1 { most <- most + 1 } else {
            if a == 0 { v <- put(v, most % length, total) }
        }
    }
    """

    def expected(word: list[int]) -> tuple[list[int], int]:
        v, total, most = [0] * len(word), 0, 0
        for a in word:
            total += a
            if a > 1:
                most += 1
            elif a == 0:
                v[most % len(word)] = total
        return v, most

    assert values(body) == [expected(word)[0] for word in WORDS]
    assert values(body, "most") == [expected(word)[1] for word in WORDS]


def test_a_scan_emits_a_symbol_for_each_symbol_and_repeat_counts_for_each_item() -> None:
    assert values("s = 0\n    v = scan a in x carry s {\n s <- s + a\n emit 2 * s\n}") == [
        [2 * sum(word[: end + 1]) for end in range(len(word))] for word in WORDS
    ]
    assert values("v = scan a in x, b in reverse(x), c in x { emit a + 10 * b + 100 * c }") == [
        [101 * a + 10 * b for a, b in zip(word, word[::-1], strict=True)] for word in WORDS
    ]
    assert values("v = 1\n    repeat length { v <- 2 * v }") == [2 ** len(word) for word in WORDS]
    assert values("v = 1\n    repeat 70 { v <- 2 * v }\n    w = v / power(2, 69)", "w") == [2] * 4


def test_a_word_that_two_names_have_changes_under_one_of_them() -> None:
    body = "v = x\n w = v\n repeat 1 { v <- put(v, 0, 9) }\n y = scan a in v carry v {\n v <- put(v, 0, 5)\n emit a\n}"
    assert values(body, "x") == values(body, "w") == WORDS
    assert values(body, "y") == [[9, *word[1:]] for word in WORDS]
    assert values(body) == [[5, *word[1:]] for word in WORDS]


def test_numbers_are_drawn_below_bounds_of_any_size() -> None:
    machine = PageMachine(page("return 0")._binding, RandomStream("large"), np.full(2_000, 4))
    bound = 10**30
    drawn = [int(number) / bound for number in machine._drawn(np.array(bound, dtype=object), None, machine.item)]
    assert 0 <= min(drawn) <= max(drawn) < 1
    assert np.histogram(drawn, 10, (0, 1))[0].min() > 150


def test_shuffled_symbols_are_the_same_and_in_any_order() -> None:
    machine = PageMachine(page("return 0")._binding, RandomStream("order"), np.full(600, 3))
    word = Ragged.table(np.tile([0, 1, 2], (600, 1)))
    shuffled = machine.call("shuffle", [word], machine.item, "").values.reshape(-1, 3)  # type: ignore[arg-type] # a place
    assert (np.sort(shuffled) == [0, 1, 2]).all()
    orders, counts = np.unique(shuffled, axis=0, return_counts=True)
    assert len(orders) == 6
    assert counts.min() > 60


def test_normal_numbers_have_units_of_a_power_of_two() -> None:
    machine = PageMachine(page("return 0")._binding, RandomStream("normal"), np.full(500, 4))
    drawn = machine.call("normal", [np.array(4)], machine.item, "")  # type: ignore[arg-type] # a place
    expected = RandomStream("normal").normal(2_000).astype(np.float32)
    assert ((drawn.values / 2**57).astype(np.float32) == expected).all()
    assert abs(expected.mean()) < 0.1
    assert abs(expected.std() - 1) < 0.1


MISTAKES = {
    "v = x[3]": "`x[3]` in line 4 of the page of `mine`: place 3 of a word of 3 symbols",
    "v = table[x + 2]": "place 5 of a word of 4 symbols",
    "v = 1 / (length - 3)": "`1 / (length - 3)` in line 4 of the page of `mine`: it divides by zero",
    "v = x % x": "it divides by zero",
    "v = x + append(x, 1)": "one word has 3 symbols, and another 4",
    "v = slice(x, 1, 3)": "it takes 3 symbols from place 1, and the word has 3",
    "v = fill(1, length - 2)": "the word has -1 symbols",
    "v = fill(1, 2_000_000)": "the word has 2000000 symbols",
    "v = draw(length - 1)": "a number is drawn below 0",
    "v = max(slice(x, 0, 0))": "the word is empty",
    "v = digits(length, 3 - length, 2)": "it divides by zero",
    "v = sqrt(-length)": "it is the root of -3",
    "v = power(2, -length)": "the exponent is -3",
    "v = power(2, 20_000)": "a number has more than 16384 bits",
    "v = 3\n    repeat 40 { v <- v * v }": "a number has more than 16384 bits",
    "v = fill(power(2, 70), 1)": "`fill(power(2, 70), 1)` in line 4 of the page of `mine`: a symbol of a word is",
    "v = [9_000_000_000_000_000_000]": "`[9_000_000_000_000_000_000]` in line 4 of the page of `mine`: a symbol of",
    "v = 1..power(2, 70)": "`1..power(2, 70)` in line 4 of the page of `mine`: the word has 1180591620717411303424",
    "v = power(2, 70)..power(2, 70) + 2": "`power(2, 70)..power(2, 70) + 2` in line 4 of the page of `mine`: a symbol",
    "v = append(x, power(2, 70))": "`append(x, power(2, 70))` in line 4 of the page of `mine`: a symbol of",
    "v = fill(1, 900_000)\n    w = append(v, v)": "`append(v, v)` in line 5 of the page of `mine`: the word has 1800",
    "v = x when x == 1 else [1, 2]": "`x when x == 1 else [1, 2]` in line 4 of the page of `mine`: one word has 3",
    "v = scan a in x { emit a + power(2, 70) }": "`v = scan a in x { emit a + power(2, 70) }` in line 4 of the",
    "v = scan a in x, b in append(x, 1) { emit a + b }": "one word has 3 symbols, and another 4",
    "repeat 2_000_000 { y = 1 }": "the loops of the page take more than 1000000 steps",
    "repeat 2_000 { repeat 2_000 { y = 1 } }": "the loops of the page take more than 1000000 steps",
}


@pytest.mark.parametrize("body", MISTAKES)
def test_a_mistake_of_a_run_names_its_line(body: str) -> None:
    with pytest.raises(TaskError) as raised:
        values(body)
    assert MISTAKES[body] in str(raised.value)


@pytest.mark.parametrize(
    ("body", "result", "message"),
    [
        ("return power(2, 70)", "classes", "`return power(2, 70)` in line 4 of the page of `mine`: a symbol of a word"),
        ("x <- slice(x, 0, 0)\n    return 1", "classes", "`x` of the page of `mine` has no symbol in some items"),
        ("return 9", "classes", "`return` of the page of `mine` has the number 9, and there are 9 of them"),
        ("return x - 1", "n, classes", "has the number -1"),
        ("return append(x, 1)", "n, classes", "the answer of `mine` has 2 symbols, and `x` has 1"),
        ("scored = [1, 2]\n    return x", "n, classes", "`scored` in line 4 of the page of `mine`: one word has 1"),
    ],
)
def test_a_wrong_answer_is_refused(body: str, result: str, message: str) -> None:
    with pytest.raises(TaskError, match=re.escape(message)):
        page(body, result=result).items(RandomStream("wrong"), np.array([1, 1]))


def test_further_fields_stand_at_the_positions_of_the_first() -> None:
    text = (
        "task mine[k = 2](x: tokens[n], place: tokens[n, 50], weight: seq[n, k]) -> logits[n, classes]\n"
        "    with length_ranges gives vocab = 3, classes = 3 {\n    x = draw(3, length)\n"
        "    place = 40 + indices(x)\n    weight = power(2, 56) * (fill(0, 2 * length) + 3)\n    return x\n}"
    )
    made = page_class("mine", text)
    assert made is not None
    task = made.unchecked()
    items = task.items(RandomStream("fields"), np.array([2, 3]))
    assert list(items.inputs) == ["x", "place", "weight"]
    assert items.inputs["place"][1].tolist() == [40, 41, 42]
    assert items.inputs["weight"][0].tolist() == [[1.5, 1.5], [1.5, 1.5]]
    assert len(field_vocabulary(task, "place")) == 50
    short = page_class("mine", text.replace("fill(0, 2 *", "fill(0, 3 *"))
    assert short is not None
    with pytest.raises(TaskError, match="one word has 2 symbols, and another 3"):
        short.unchecked().items(RandomStream("fields"), np.array([1, 1]))
    beyond = page_class("mine", text.replace("40 +", "48 +"))
    assert beyond is not None
    with pytest.raises(TaskError, match="`place` of the page of `mine` has the number 50, and there are 50 of them"):
        beyond.unchecked().items(RandomStream("fields"), np.array([3, 3]))


def test_a_model_reads_at_least_one_symbol() -> None:
    text = (
        "task mine(source: tokens[n], target: tokens[m]) -> logits[m, vocab] with listed_lengths\n"
        '    gives vocab = [0..symbols - 1, "[E]", "[B]"] causal {\n'
        "    source = draw(symbols, length)\n    return slice(source, 1, length - 1)\n}"
    )
    task_class = page_class("mine", text)
    assert task_class is not None
    with pytest.raises(TaskError, match="`return` of the page of `mine` has no symbol in some items"):
        task_class()


# Expressions of each kind, from numbers `n`, words `w`, and values of the same kind `v`.
FORMS = {
    "n": (
        "x[n % size(x)]", "table[n % 3]", "sum(w)", "size(w)", "max(append(w, n))", "min(n, n)", "sqrt(n * n)",
        "(n % 7 > 1 and n != 0)", "(n > 2 or n < 0)", "(n * power(9, 25))",
    ),
    "w": (
        "reverse(w)", "n..n + 2", "sort(w)", "order(w)", "append(w, n)",
        "fill(n, n % 5)", "slice(w, 0, 1)", "x[w % size(x)]", "put(w, 0, n)",
        "digits(n * n, 3, 4)", "indices(w)", "table[w % 3]",
    ),
}  # fmt: skip
BOTH = ("(v + n)", "(v - v)", "(v * n)", "v % 5", "v / 2", "(v {} n)", "(v when n {} length else v)", "(-v)", "(not v)")
OPERATORS = ("==", "<", ">=", "!=")


class Writer:
    """Writes random pages whose values are of the right kinds."""

    def __init__(self, seed: int) -> None:
        self.dice, self.kinds = Random(seed), {"x": "w", "s": "n", "length": "n"}

    def value(self, kind: str, depth: int = 0) -> str:
        if depth > 2 or self.dice.random() < 0.25:
            names = [name for name, own in self.kinds.items() if own == kind]
            leaves: list[str] = [*names, *(("table",) if kind == "w" else ("0", "1", "2", "k"))]
            return self.dice.choice(leaves)
        form: str = self.dice.choice((*FORMS[kind], *BOTH)).format(self.dice.choice(OPERATORS))
        kinds = {"n": "n", "w": "w", "v": kind}
        return re.sub(r"\b[nwv]\b", lambda name: self.value(kinds[str(name[0])], depth + 1), form)

    def page(self) -> str:
        lines = ["s = 1"]
        for place in range(4):
            kind = self.dice.choice("nw")
            lines.append(f"v{place} = {self.value(kind)}")
            self.kinds[f"v{place}"] = kind
        name = self.dice.choice([name for name in self.kinds if name not in ("length", "s")])
        updates = f"s <- (s + {self.value('n')}) % 7", f"{name} <- {self.value(self.kinds[name])}"
        lines.append(f"if {self.value('n')} > 1 {{ {updates[1]} }} else {{ {updates[0]} }}")
        lines.append(f"scan a in {self.value('w')} carry s, {name} {{\n{updates[0]}\n{updates[1]}\n}}")
        return "\n    ".join(lines)


@pytest.mark.parametrize("seed", range(120))
def test_items_together_are_those_of_each_alone(seed: int) -> None:
    written = Writer(seed)
    task = page(f"{written.page()}\n    return 0", "table: list = [1, 0, 2]")

    def run(words: list[list[int]]) -> list[list[Any]] | None:
        machine = PageMachine(task._binding, Drawn([*chain(*words)]), np.array([len(word) for word in words]))
        try:
            machine.read()
        except TaskError:
            return None
        found = [machine.values[name] for name in written.kinds]
        are_words = [machine.kind(value) == "a word" for value in found]
        return [
            [
                machine.word(value)[index].tolist() if is_word else int(machine.lanes(value)[index])
                for value, is_word in zip(found, are_words, strict=True)
            ]
            for index in range(len(words))
        ]

    alone = [run([word]) for word in WORDS]
    together = run(WORDS)
    assert together == (None if None in alone else [items[0] for items in alone if items is not None])
