"""bAbI: the published stories and the splits."""

from collections.abc import Callable

import numpy as np
import pytest

from archlang.tasks.babi import LEXICON, NAMES, Babi, read
from archlang.tasks.kit.mistakes import TaskError
from archlang.tasks.kit.split import Ragged
from archlang.tasks.kit.task import spell
from archlang.types.statics import Interval
from tests.sampling import one_in
from tests.tasks.conftest import Offer
from tests.tasks.every import answers_of

FOLDER = "babi"
# One file of the published forty was not to be had.
MISSING = (3, "train")


def name_of(number: int, part: str) -> str:
    return f"qa{number}_{NAMES[number - 1]}_{part}.txt"


@pytest.mark.parametrize("number", one_in(4, range(1, 21)))
def test_published_files_have_the_known_numbers_of_questions_and_stories(
    number: int, published: Callable[[str], list[str]]
) -> None:
    stories = {4: 10, 15: 2.5, 16: 10, 17: 1.25, 19: 10}.get(number, 2)
    for part, count in (("train", 10_000), ("test", 1_000)):
        if (number, part) == MISSING:
            continue
        lines = published(f"babi/{name_of(number, part)}")
        questions = list(read(lines))
        assert len(questions) == count
        # In tasks 18 and 20 the stories are of different lengths.
        begun = sum(line.startswith("1 ") for line in lines)
        assert begun == {(18, "train"): 1_978, (18, "test"): 199, (20, "train"): 933, (20, "test"): 93}.get(
            (number, part), stories * count / 10
        )
        # Every word is known.
        LEXICON.encode([words for question in questions for words in (question.source, question.answer)])
        assert all(question.source[-1] == "?" for question in questions)
        assert {len(question.answer) for question in questions} <= ({1, 2, 3} if number in (8, 19) else {1})


def test_questions_are_not_part_of_a_story() -> None:
    lines = [
        "1 Mary went there.", "2 Where is Mary? \tthere\t1", "3 John left.", "4 Where is John?\tN,E\t3", "1 It is.",
        "2 Is it?\tyes",
    ]  # fmt: skip
    assert [(" ".join(question.source), question.answer, question.words) for question in read(lines)] == [
        ("mary went there . where is mary ?", ("there",), 4),
        ("mary went there . john left . where is john ?", ("n", "e"), 7),
        ("it is . is it ?", ("yes",), 3),
    ]


@pytest.mark.parametrize("line", ["", "one Mary.", "1", "1 Who?\ta\tb\tc"])
def test_a_malformed_line_is_refused(line: str) -> None:
    with pytest.raises(ValueError, match=r".+"):
        list(read([line]))


@pytest.fixture
def two_tasks(published_bytes: Callable[[str], bytes], offer: Offer) -> Interval:
    """Two tasks with their published files."""
    names = [name_of(number, part) for number in (19, 20) for part in ("train", "test")]
    offer({f"{FOLDER}/{name}": published_bytes(f"babi/{name}") for name in names})
    return Interval(19, 20)


@pytest.mark.parametrize(("share", "trained"), [(0.8, 17_600), (0.5, 11_000)])
def test_test_stories_are_longer_than_training_stories(two_tasks: Interval, share: float, trained: int) -> None:
    task = Babi(tasks=two_tasks, share=share)
    train, test = (task.generate(split, 0) for split in task.split_names())
    assert (len(train), len(test)) == (trained, 22_000 - trained)
    for number in (19, 20):
        shorter, longer = (
            story_lengths(split.inputs["source"], split.groups["task"] == number) for split in (train, test)
        )
        assert shorter.max() <= longer.min()


def story_lengths(source: Ragged, chosen: np.ndarray) -> np.ndarray:
    """Returns the numbers of words before the last sentence."""
    rows = source.select(chosen)
    stop, mark = LEXICON.ids["."], LEXICON.ids["?"]
    lengths = []
    for index in range(len(rows)):
        words = rows[index][1:-1].tolist()
        assert words[-1] == mark
        lengths.append(len(words) - words[::-1].index(stop) if stop in words else 0)
    return np.asarray(lengths)


def test_published_splits_follow_the_files(two_tasks: Interval, published: Callable[[str], list[str]]) -> None:
    task = Babi(tasks=two_tasks, split="published")
    assert [len(task.generate(split, 0)) for split in task.split_names()] == [18_000, 2_000, 2_000]
    first = next(read(published(f"babi/{name_of(19, 'test')}")))
    items = task.generate("test", 0)
    assert spell(task, items.inputs["source"][0]) == f"[B] {' '.join(first.source)} [E]"
    assert spell(task, answers_of(items)[0]) == f"{' '.join(first.answer)} [E]"
    assert np.bincount(items.groups["task"])[19:].tolist() == [1_000, 1_000]


def test_the_error_for_an_unknown_word_names_the_word_and_the_file(offer: Offer) -> None:
    offer({f"{FOLDER}/{name_of(1, part)}": "1 Zaphod moved.\n2 Who moved?\tmary\t1\n" for part in ("train", "test")})
    with pytest.raises(TaskError, match=r"qa1_single-supporting-fact_train.txt of babi is malformed \('zaphod'\)"):
        Babi(tasks=Interval(1, 1)).generate("train", 0)
