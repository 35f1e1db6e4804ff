"""Mathematics: answers against a second implementation, for generated and published questions."""

import re
from collections.abc import Callable
from decimal import getcontext
from fractions import Fraction

import numpy as np
import pytest

from archlang.tasks.kit.mistakes import TaskError
from archlang.tasks.kit.split import digest
from archlang.tasks.mathematics import CHARACTERS, Mathematics, question, read
from tests.tasks.conftest import Offer
from tests.tasks.every import generated

MODULES = ("add_or_sub", "place_value")
PLACES = ["unit", "ten", "hundred"]
PLACES += [f"{much}{name}" for name in ("thousand", "million", "billion") for much in ("", "ten ", "hundred ")]
FILES = {
    "train": ("train-easy", "train-medium", "train-hard"),
    "interpolate": ("interpolate",),
    "extrapolate": ("extrapolate",),
}


def small(module: str) -> Mathematics:
    return Mathematics(module=module, draws=4_000, test_size=500)


def asked(module: str, split: str) -> list[tuple[str, str]]:
    items = generated(small(module), split)
    return [question(small(module), items, index) for index in range(len(items))]


def answer(text: str) -> Fraction:
    """Returns the answer to a question."""
    place = re.fullmatch(r"What is the (.+)s digit of (\d+)\?", text)
    if place:
        return Fraction(int(place[2]) // 10 ** PLACES.index(place[1]) % 10)
    first, second = (Fraction(number) for number in re.findall(r"(?<![\d.])-?\d+(?:\.\d+)?", text))
    if "distance" in text or "difference" in text:
        return abs(first - second)
    if "less than" in text or text.startswith("Subtract"):
        return second - first
    if re.search(r" - | minus | take away ", text):
        return first - second
    assert re.search(r"\+|Add|Put together|Sum|Total|plus", text), text
    return first + second


def written(name: str, module: str) -> str:
    ending = "_big" if name == "extrapolate" else ""
    prefix = "arithmetic" if module == "add_or_sub" else "numbers"
    return f"dm_math/{name}__{prefix}__{module}{ending}.txt"


@pytest.mark.parametrize("module", MODULES)
@pytest.mark.parametrize("split", ["train", "iid", "interpolate", "extrapolate"])
def test_answers_are_correct(module: str, split: str) -> None:
    for text, written_answer in asked(module, split):
        assert Fraction(written_answer) == answer(text), text
        assert not re.search(r"^-0$|\.0*$|\.\d*0$|^0\d", written_answer), written_answer


@pytest.mark.parametrize("module", MODULES)
@pytest.mark.parametrize("split", FILES)
def test_questions_have_the_statistics_of_the_published_generator(
    module: str, split: str, published: Callable[[str], list[str]]
) -> None:
    theirs = [pair for name in FILES[split] for pair in read(name, published(written(name, module)))]
    assert len(theirs) == (2_001 if split == "train" else 1_000)
    assert all(Fraction(written_answer) == answer(text) for text, written_answer in theirs)
    ours = asked(module, split)

    def shapes(pairs: list[tuple[str, str]]) -> set[str]:
        return {re.sub(r"-?\d+(\.\d+)?", "N", text) for text, _ in pairs}

    # Hundred billions are too rare among 500.
    assert len(shapes(theirs) ^ shapes(ours)) <= (1 if module == "place_value" else 0)
    for side in (0, 1):
        their_lengths, our_lengths = ([len(pair[side]) for pair in pairs] for pairs in (theirs, ours))
        error = np.std(their_lengths) * (1 / len(theirs) + 1 / len(ours)) ** 0.5
        # Repeated questions are short, and dropped here.
        assert abs(np.mean(their_lengths) - np.mean(our_lengths)) < 4 * error + 0.15


def test_difficulties_are_in_order() -> None:
    train = generated(small("place_value"), "train")
    digits, difficulty = train.groups["digits"], train.groups["difficulty"]
    assert np.unique(difficulty).tolist() == [0, 1, 2]
    assert [digits[difficulty == number].max() for number in range(3)] == [6, 8, 10]


def test_the_decimal_context_of_the_user_has_no_effect(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(getcontext(), "prec", 3)
    again = small("add_or_sub").generate("extrapolate", 0)
    assert digest(again) == digest(generated(small("add_or_sub"), "extrapolate"))


def test_a_question_without_an_answer_is_refused() -> None:
    assert list(read("x", ["1 + 1", "2"])) == [("1 + 1", "2")]
    with pytest.raises(TaskError, match="is malformed"):
        list(read("x", ["1 + 1", "2", "1 + 2"]))
    with pytest.raises(TaskError, match="line 2 of dm_math/x"):
        list(read("x", ["1 + 1", "2 €"]))


def test_published_files_are_read(published_bytes: Callable[[str], bytes], offer: Offer) -> None:
    parts = [name for names in FILES.values() for name in names]
    offer({
        written(name, "place_value"):
            published_bytes(written(name, "place_value"))
        for name in parts
    })  # fmt: skip
    task = Mathematics(module="place_value", data="files")
    splits = {split: task.generate(split, 0) for split in task.split_names()}
    texts = {split: [question(task, items, index) for index in range(len(items))] for split, items in splits.items()}
    flat = [text for pairs in texts.values() for text, _ in pairs]
    # Repeated questions are dropped.
    assert len(set(flat)) == len(flat)
    assert 3_900 < len(flat) <= 2_001 + 2_000
    assert all(Fraction(written_answer) == answer(text) for pairs in texts.values() for text, written_answer in pairs)
    # Of the sample, which is smaller than what the paper holds out, a half.
    assert abs(len(texts["iid"]) - len(texts["train"])) <= 3
    assert np.unique(splits["iid"].groups["difficulty"]).tolist() == [0, 1, 2]
    assert len(texts["interpolate"]) <= 1_000


def test_the_vocabulary_has_every_character() -> None:
    assert set(
        "".join(text + written_answer for module in MODULES for text, written_answer in asked(module, "train"))
    ) <= set(CHARACTERS)
