"""COGS: the published sentences and their categories, and other files."""

from collections.abc import Callable

import numpy as np
import pytest

from archlang.tasks.cogs import CATEGORIES, Cogs, read
from archlang.tasks.kit.mistakes import TaskError
from archlang.tasks.kit.task import spell
from tests.tasks.conftest import Offer
from tests.tasks.every import answers_of

NAMES = ("train", "dev", "test", "gen")
ROW = "A cat ran .\t* cat ( x _ 1 )\tin_distribution"


@pytest.fixture
def task(published_bytes: Callable[[str], bytes], offer: Offer) -> Cogs:
    """The task with the published files."""
    offer({f"cogs/{name}.tsv": published_bytes(f"cogs/{name}.tsv") for name in NAMES})
    return Cogs()


def test_splits_have_the_published_sizes(task: Cogs) -> None:
    splits = {name: task.generate(name, 0) for name in task.split_names()}
    assert {name: len(split) for name, split in splits.items()} == {
        "train": 24_155, "valid": 3_000, "test": 3_000, "gen": 21_000,
    }  # fmt: skip
    numbers, counts = np.unique(splits["gen"].groups["category"], return_counts=True)
    assert numbers.tolist() == list(range(21))
    assert counts.tolist() == [1_000] * 21
    assert splits["gen"].groups["structural"].sum() == 3_000
    numbers, counts = np.unique(splits["train"].groups["category"], return_counts=True)
    assert {CATEGORIES[number]: int(count) for number, count in zip(numbers, counts, strict=True)} == {
        "in_distribution": 24_000, "primitive": 143, "exposure_example": 12,
    }  # fmt: skip
    assert splits["gen"].groups["length"].max() == 480


def test_items_spell_the_published_lines(task: Cogs, published: Callable[[str], list[str]]) -> None:
    for split, name in (("valid", "dev"), ("gen", "gen")):
        items = task.generate(split, 0)
        for index, line in enumerate(published(f"cogs/{name}.tsv")[:300]):
            sentence, form, category = line.split("\t")
            assert spell(task, items.inputs["source"][index]) == f"[B] {sentence} [E]"
            assert spell(task, answers_of(items)[index]) == f"{form} [E]"
            assert spell(task, items.inputs["target"][index]) == f"[B] {form}"
            assert CATEGORIES[items.groups["category"][index]] == category


def test_the_vocabulary_is_that_of_all_files(task: Cogs) -> None:
    assert len(task.vocabulary) == 873
    assert (task.vocabulary[task.begin], task.vocabulary[task.end]) == ("[B]", "[E]")
    # Seen in gen only: deeper nesting asks for larger numbers of variables.
    assert {"41", "59", "monastery"} <= set(task.vocabulary)


def test_files_with_other_words_are_refused(offer: Offer) -> None:
    offer({f"cogs/{name}.tsv": ROW for name in NAMES})
    with pytest.raises(TaskError, match="have 10 different words, and the published files have 871"):
        Cogs().generate("train", 0)


@pytest.mark.parametrize("line", ["", "A cat ran .", ROW.replace("in_distribution", "unheard_of"), f"{ROW}\tmore"])
def test_the_error_names_a_malformed_line(line: str, offer: Offer) -> None:
    offer({f"cogs/{name}.tsv": f"{ROW}\n{line}\n" for name in NAMES})
    with pytest.raises(TaskError, match=r"line 2 of cogs/train.tsv"):
        Cogs().generate("gen", 0)
    with pytest.raises((ValueError, KeyError)):
        read(line)
