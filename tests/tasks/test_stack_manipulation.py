"""Stack manipulation agrees with a list after the same actions."""

import numpy as np
import pytest

from tests.tasks.every import Drawn, answers_of, marks_of, page

StackManipulation = page("stack_manipulation")

SMALL = StackManipulation(train_size=2_000, valid_size=50, test_size=60)
WORDS = SMALL.vocabulary


def expected_answer(words: list[str]) -> list[str]:
    """Returns the final stack from its top, the end, and zeros up to one more than the length of the input."""
    stack: list[str] = []
    for word in words:
        if word == "pop":
            stack = stack[:-1]
        else:
            stack.append(word[-1])
    answer = [*reversed(stack), "[E]"]
    return answer + ["0"] * (len(words) + 1 - len(answer))


@pytest.mark.parametrize("split", SMALL.split_names())
def test_the_answer_is_the_final_stack(split: str) -> None:
    items = SMALL.generate(split, 0)
    for index in range(len(items)):
        row = [WORDS[token] for token in items.inputs["x"][index]]
        half = len(row) // 2
        inputs, answer = row[:half], expected_answer(row[:half])
        assert row[half:] == ["?"] * (half + 1)
        assert [WORDS[token] for token in answers_of(items)[index][half:]] == answer
        marks = marks_of(items)[index].tolist()
        assert marks == [False] * half + [place <= answer.index("[E]") for place in range(half + 1)]
        bits = [word in ("0", "1") for word in inputs]
        assert bits == sorted(bits, reverse=True), "the stack stands before the actions"
        assert bits[0]
        assert not bits[-1] or half == 1


def test_the_published_examples() -> None:
    for inputs, answer in (
        ("0 1 1 0 push1 pop pop", "1 1 0 [E] 0 0 0 0"),
        ("1 1 0 pop pop pop pop", "[E] 0 0 0 0 0 0 0"),
    ):
        words = inputs.split()
        tokens, bits = [WORDS.index(word) for word in words], sum(word in "01" for word in words)
        drawn = Drawn([bits - 1], tokens, [max(token - 3, 0) for token in tokens])
        items = StackManipulation().items(drawn, np.array([len(words)]))
        assert " ".join(WORDS[token] for token in answers_of(items)[0][len(words) :]) == answer
        assert marks_of(items).values.sum() == answer.split().index("[E]") + 1


def test_actions_and_heights_of_the_stack_are_uniform() -> None:
    items = StackManipulation(train_size=20_000).generate("train", 0)
    counts = np.bincount(items.inputs["x"].values, minlength=7)
    assert np.allclose(counts[3:6] / counts[3:6].sum(), 1 / 3, atol=0.01)
    lengths = items.inputs["x"].lengths // 2
    stacked = np.array([int((items.inputs["x"][int(i)] < 2).sum()) for i in np.flatnonzero(lengths == 5)])
    assert np.allclose(np.bincount(stacked, minlength=5)[1:] / len(stacked), 1 / 4, atol=0.06)
