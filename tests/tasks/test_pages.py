"""The tasks that are pages agree with their definitions, written with loops."""

from collections import Counter
from collections.abc import Callable
from itertools import pairwise
from math import ceil, isqrt

import numpy as np
import pytest

from archlang.tasks.kit.split import Ragged
from tests.tasks.every import Drawn, answers_of, marks_of, page, task_of

Question = Callable[[list[str]], list[str]]


def binary(digits: list[str]) -> int:
    """The number whose digits begin with the lowest."""
    return sum(int(digit) << place for place, digit in enumerate(digits))


def low_first(number: int) -> list[str]:
    return list(f"{number:b}")[::-1]


def of_two(words: list[str], sign: str, compute: Callable[[int, int], int], alone: Question) -> list[str]:
    if sign not in words:
        return [*alone(words), "[E]"]
    place = words.index(sign)
    return [*low_first(compute(binary(words[:place]), binary(words[place + 1 :]))), "[E]"]


def missing(words: list[str]) -> list[str]:
    if words == ["1"]:
        return ["1"]
    words = [word for word in words if word != "#"]
    place, half = words.index("_"), len(words) // 2
    assert all(words[i] == words[i + half] for i in range(half) if place not in (i, i + half))
    return [words[place - half if place >= half else place + half]]


def root(words: list[str]) -> list[str]:
    assert int("".join(words), 2) > 0
    return list(f"{isqrt(int(''.join(words), 2)):0{ceil(len(words) / 2)}b}")


def final_stack(words: list[str]) -> list[str]:
    """The stack from its top after its bits, which stand before the actions, and the end."""
    bits = [word in ("0", "1") for word in words]
    assert bits == sorted(bits, reverse=True)
    assert bits[0]
    assert not bits[-1] or len(words) == 1
    stack: list[str] = []
    for word in words:
        if word == "pop":
            stack = stack[:-1]
        else:
            stack.append(word[-1])
    return [*reversed(stack), "[E]"]


# What stands before the `?` of the answer, and the answer, or its class.
TAPES: dict[str, Question] = {
    "reverse_string": lambda words: words[::-1],
    "duplicate_string": lambda words: words + words,
    "odds_first": lambda words: words[1::2] + words[::2],
    "binary_addition": lambda words: of_two(words, "+", int.__add__, lambda alone: low_first(binary(alone))),
    "binary_multiplication": lambda words: of_two(words, "*", int.__mul__, lambda alone: ["0"] * (len(alone) - 1)),
    "compute_sqrt": root,
    "bucket_sort": sorted,
    "bucket_sort[symbols = 2]": sorted,
    "stack_manipulation": final_stack,
    "set_complement[symbols = 12, train = 1..8, test = 9..12]": lambda words: [
        str(symbol) for symbol in range(12) if str(symbol) not in words
    ],
    "phone_book[names = 20, digits = 3, train = 1..9, test = 10..20]": lambda words: looked_up(words),
    "selective_copying[length = 20, tokens = 5, test_length = [30]]": lambda words: [w for w in words if w != "_"],
}


def looked_up(words: list[str]) -> list[str]:
    """The number after the first place of the last word, in a book of names from 10 on."""
    *book, name = words
    return book[book.index(name) + 1 : book.index(name) + 4]


def following(words: list[str]) -> list[str]:
    text, gram = words[: words.index(":")], words[words.index(":") + 1 :]
    first = next(place for place in range(len(text)) if text[place : place + len(gram)] == gram)
    return [text[first + len(gram)]]


def enclosed(words: list[str]) -> list[str]:
    assert (words[0], words[-1]) == ("[B]", "[E]")
    return words[1:-1]


def odd_or_even(bits: list[str]) -> list[str]:
    assert set(bits) <= {"0", "1"}
    return [("even", "odd")[bits.count("1") % 2]]


def computed(words: list[str], modulus: int) -> list[str]:
    assert set(words[1::2]) <= set("+-*")
    return [str(eval("".join(words)) % modulus)]  # of digits and operators


CLASSES: dict[str, Question] = {
    "parity": lambda words: odd_or_even(enclosed(words)),
    "parity[begin_end = false]": odd_or_even,
    "modular_arithmetic": lambda words: computed(enclosed(words), 5),
    "modular_arithmetic[modulus = 2, begin_end = false]": lambda words: computed(words, 2),
    "modular_arithmetic[modulus = 13, begin_end = false]": lambda words: computed(words, 13),
    "even_pairs": lambda words: [("even", "odd")[sum(a != b for a, b in pairwise(words)) % 2]],
    "cycle_navigation[cycle = 7]": lambda words: [str(sum(int(word) - 1 for word in words) % 7)],
    "missing_duplicate_string": missing,
    "n_gram_lookup[symbols = 3, gram = 3, train = 5..12, test = 13..20]": following,
    "modular_arithmetic_brackets[products = true]": lambda words: [str(eval("".join(words)) % 5)],
}
SMALL = {"train_size": 800, "valid_size": 40, "test_size": 60}


def small(text: str) -> str:
    sizes = ", ".join(f"{name} = {size}" for name, size in SMALL.items())
    return f"{text.removesuffix(']')}{', ' if ']' in text else '['}{sizes}]"


@pytest.mark.parametrize("text", TAPES)
@pytest.mark.parametrize("split", ["train", "valid", "test"])
def test_the_answer_follows_the_question(text: str, split: str) -> None:
    task = task_of(small(text))
    items = task.generate(split, 0)
    assert isinstance(items.targets, Ragged)
    assert items.scored is not None
    for index in range(len(items)):
        words = [task.vocabulary[token] for token in items.inputs["x"][index]]
        question = [word for word in words if word != "?"]
        assert words[len(question) :] == ["?"] * (len(words) - len(question))
        answer = [task.vocabulary[token] for token in items.targets[index][items.scored[index]]]
        assert answer == TAPES[text](question), question
        marks = items.scored[index].tolist()
        assert not any(marks[: len(question)])
        assert marks[len(question) :] == sorted(marks[len(question) :], reverse=True)


@pytest.mark.parametrize("text", CLASSES)
@pytest.mark.parametrize("split", ["train", "valid", "test"])
def test_the_class_is_that_of_the_definition(text: str, split: str) -> None:
    task = task_of(small(text))
    items = task.generate(split, 0)
    names = getattr(task, "class_names", ())
    for index in range(len(items)):
        words = [task.vocabulary[token] for token in items.inputs["x"][index]]
        assert [names[items.targets[index]]] == CLASSES[text](words), words


@pytest.mark.parametrize(("text", "around"), [("parity", 2), ("parity[begin_end = false]", 0)])
def test_lengths_are_the_published_ones_and_uniform(text: str, around: int) -> None:
    task = task_of(f"{text.removesuffix(']')}{', ' if ']' in text else '['}train_size = 2_000, test_size = 300]")
    splits = {split: task.generate(split, 0) for split in task.split_names()}
    lengths = {split: items.inputs["x"].lengths - around for split, items in splits.items()}
    assert np.allclose(np.bincount(lengths["train"]), [0] + [50] * 40, atol=30)
    assert 41 <= lengths["test"].min() < 60
    assert 480 < lengths["test"].max() <= 500
    for split, items in splits.items():
        shortest = 41 if split == "test" else 1
        assert np.array_equal(items.groups["length"], np.maximum(lengths[split] // 50 * 50, shortest))


def test_lengths_of_modular_arithmetic_are_odd_and_even_ones_are_reduced() -> None:
    task = task_of("modular_arithmetic[begin_end = false, train_size = 2_000, test_size = 200]")
    lengths = task.generate("train", 0).inputs["x"].lengths
    assert set(lengths.tolist()) == set(range(1, 40, 2))
    assert np.mean(lengths == 39) == pytest.approx(2 / 40, abs=0.02)
    assert task.generate("test", 0).inputs["x"].lengths.min() >= 41


@pytest.mark.parametrize(
    ("inputs", "answer"),
    [("0 1 1 0 push1 pop pop", "1 1 0 [E] 0 0 0 0"), ("1 1 0 pop pop pop pop", "[E] 0 0 0 0 0 0 0")],
)
def test_the_published_examples_of_stack_manipulation(inputs: str, answer: str) -> None:
    stack = page("stack_manipulation")()
    tokens = [stack.vocabulary.index(word) for word in inputs.split()]
    drawn = Drawn([sum(token < 2 for token in tokens) - 1], tokens, [max(token - 3, 0) for token in tokens])
    items = stack.items(drawn, np.array([len(tokens)]))
    assert " ".join(stack.vocabulary[token] for token in answers_of(items)[0][len(tokens) :]) == answer
    assert marks_of(items).values.sum() == answer.split().index("[E]") + 1


def test_actions_and_heights_of_the_stack_are_uniform() -> None:
    items = task_of("stack_manipulation[train_size = 20_000]").generate("train", 0)
    counts = np.bincount(items.inputs["x"].values, minlength=7)
    assert np.allclose(counts[3:6] / counts[3:6].sum(), 1 / 3, atol=0.01)
    lengths = items.inputs["x"].lengths // 2
    stacked = np.array([int((items.inputs["x"][int(i)] < 2).sum()) for i in np.flatnonzero(lengths == 5)])
    assert np.allclose(np.bincount(stacked, minlength=5)[1:] / len(stacked), 1 / 4, atol=0.06)


def test_numbers_of_binary_addition_are_uniform_among_those_above_zero() -> None:
    task = task_of("binary_addition[train = 6..6, test = 7..8, train_size = 40_000]")
    x = task.generate("train", 0).inputs["x"]
    counts = Counter("".join(task.vocabulary[token] for token in x[index][:6]) for index in range(len(x)))
    # A number of one to four digits, `+`, and the rest: each with the probability 1 / 4.
    assert len(counts) == sum((2**left - 1) * (2 ** (5 - left) - 1) for left in range(1, 5))
    for text, count in counts.items():
        left = text.index("+")
        assert count == pytest.approx(40_000 / 4 / (2**left - 1) / (2 ** (5 - left) - 1), rel=0.25)


def expression(length: int, draws: list[int]) -> str:
    """An expression with brackets as Delétang et al. draw it: the left length, both parts, and the sign."""
    if length < 5:
        inside = "-" * (length % 2 == 0) + "d"
        return f"({inside})" if length > 2 else inside
    left = 1 + draws.pop(0)
    parts = expression(left, draws), expression(length - 3 - left, draws)
    return f"({parts[0]}s{parts[1]})"


def test_brackets_are_distributed_as_in_the_program() -> None:
    task = task_of("modular_arithmetic_brackets[train = 9..9, test = 10..10, train_size = 30_000]")
    items = task.generate("train", 0)
    shapes, digits, signs = Counter[str](), Counter[str](), Counter[str]()
    for index in range(len(items)):
        text = "".join(task.vocabulary[token] for token in items.inputs["x"][index])
        shape = "".join("d" if word in "01234" else word for word in text)
        digits.update(word for word in text if word in "01234")
        signs.update(["+" if "d+" in shape or ")+" in shape else "-"])
        shapes[shape.replace("d+", "ds").replace(")+", ")s").replace("d-", "ds").replace(")-", ")s")] += 1
    # The first part has 1 to 5 symbols, and a part of 5 has one way only.
    expected = {expression(9, [left, 0]) for left in range(5)}
    assert shapes.keys() == expected
    assert all(count == pytest.approx(6_000, rel=0.06) for count in shapes.values())
    assert all(count == pytest.approx(sum(digits.values()) / 5, rel=0.06) for count in digits.values())


def test_an_unknown_is_a_digit_at_or_after_a_random_place() -> None:
    task = task_of("modular_arithmetic_brackets[unknown = true, train = 1..20, test = 21..22, train_size = 2_000]")
    items = task.generate("train", 0)
    lengths = Counter[int]()
    for index in range(len(items)):
        text = "".join(task.vocabulary[token] for token in items.inputs["x"][index])
        left, _, value = text.partition("=")
        assert left.count("x") == 1
        assert eval(left.replace("x", str(items.targets[index]))) % 5 == int(value)
        lengths[len(text)] += 1
    assert set(lengths) == set(range(3, 21))
    # Of "(d)" the place is at, before or behind the digit, so that it is always this one; of two, each follows half.
    whole = task_of("modular_arithmetic_brackets[unknown = true, train = 7..7, test = 8..8, train_size = 8_000]")
    x = whole.generate("train", 0).inputs["x"].values.reshape(-1, 7)[:, :5]
    first = (x[:, 1] == whole.vocabulary.index("x")).mean()
    # The places 4 and 0 and 1 of "(d+d)" lead to the first digit.
    assert first == pytest.approx(3 / 5, abs=0.02)


@pytest.mark.parametrize("base", [2, 10])
@pytest.mark.parametrize("is_reversed", ["true", "false"])
@pytest.mark.parametrize("padded", ["true", "false"])
@pytest.mark.parametrize(("name", "sign"), [("addition", "+"), ("multiplication", "*")])
def test_results_follow_their_numbers(name: str, sign: str, base: int, is_reversed: str, padded: str) -> None:
    task = task_of(small(f"{name}[base = {base}, reversed = {is_reversed}, padded = {padded}, test = 30..70]"))
    for split in task.split_names():
        items = task.generate(split, 0)
        assert isinstance(items.targets, Ragged)
        assert items.scored is not None
        for index in range(len(items)):
            words = [task.vocabulary[token] for token in items.inputs["x"][index]]
            text = " ".join(words).replace("=", sign).split(sign)
            parts = [part.split()[:: -1 if is_reversed == "true" else 1] for part in text]
            left, right, result = (int("".join(part), base) for part in parts)
            assert result == (left + right if sign == "+" else left * right)
            first, second, third = map(len, parts)
            if padded == "true":
                assert (second, third) == ((first, first + 1) if sign == "+" else (1, first + 1))
                assert max(first // 50 * 50, 30 if split == "test" else 1) == items.groups["length"][index]
            else:
                assert all(part[0] != "0" or len(part) == 1 for part in parts)
            scored = items.targets[index][items.scored[index]]
            assert [task.vocabulary[token] for token in scored] == [*words[words.index("=") + 1 :], "[E]"]
            assert items.scored[index].tolist().index(True) == words.index("=")


def test_values_of_variables_follow_their_chain() -> None:
    task = task_of(small("lego[variables = 12, train = 1..8, test = 9..12]"))
    orders = set[tuple[int, ...]]()
    for split in task.split_names():
        items = task.generate(split, 0)
        assert isinstance(items.targets, Ragged)
        assert items.scored is not None
        for index in range(len(items)):
            words = [task.vocabulary[token] for token in items.inputs["x"][index]]
            clauses = [words[start : start + 5] for start in range(0, len(words), 5)]
            assert all((clause[1], clause[4]) == ("=", ";") for clause in clauses)
            of = {clause[0]: (clause[2], clause[3]) for clause in clauses}
            assert len(of) == len(clauses)

            def value(name: str, of: dict[str, tuple[str, str]] = of) -> int:
                sign, other = of[name]
                return (-1 if sign == "-" else 1) * (1 if other == "one" else value(other))

            answers = [value(clause[0]) for clause in clauses]
            scored = items.targets[index][items.scored[index]].tolist()
            assert scored == [0 if answer == 1 else 1 for answer in answers]
            assert items.scored[index].tolist() == [False, False, False, False, True] * len(clauses)
            orders.add(tuple(place for place, clause in enumerate(clauses) if clause[3] == "one"))
    assert len(orders) == 12


def test_places_of_copied_symbols_are_uniform() -> None:
    task = task_of("selective_copying[symbols = 2, tokens = 3, length = 8, test_length = [], train_size = 300]")
    x = task.generate("train", 0).inputs["x"].values.reshape(-1, 11)[:, :8]
    counts = (x < 2).sum(axis=0)
    assert np.allclose(counts / 300, 3 / 8, atol=0.09)
