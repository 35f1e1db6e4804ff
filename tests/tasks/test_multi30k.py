"""Multi30k: the published sentences, the splits by length, and the vocabularies of the two languages."""

from collections import Counter
from collections.abc import Callable

import numpy as np
import pytest

from archlang.tasks.kit.lexicon import split_sentence
from archlang.tasks.kit.mistakes import TaskError
from archlang.tasks.multi30k import FILES, Multi30k
from tests.tasks.conftest import Offer
from tests.tasks.every import answers_of

SIZES = {"train": 29_000, "valid": 1_014, "test": 1_000, "test_2017": 1_000, "mscoco": 461}
TINY = {"multi30k/train.en": "A dog.\nTwo dogs run.\n", "multi30k/train.de": "Ein Hund.\nZwei Hunde laufen.\n"}


@pytest.fixture
def published_files(published_bytes: Callable[[str], bytes], offer: Offer) -> None:
    """Provides the published files."""
    names = [f"multi30k/{file}.{side}" for file in FILES.values() for side in ("en", "de")]
    offer({name: published_bytes(name) for name in names})


def tiny(offer: Offer, **changed: str) -> None:
    """Provides two pairs for train, and one each for valid and test."""
    rest = {f"multi30k/{file}.{side}": "Dogs.\n" for file in FILES.values() if file != "train" for side in ("en", "de")}
    offer({**TINY, **rest, **{f"multi30k/{name.replace('_', '.')}": text for name, text in changed.items()}})


@pytest.mark.usefixtures("published_files")
def test_published_splits_have_the_published_sizes() -> None:
    task = Multi30k(split="published")
    assert {split: len(task.generate(split, 0)) for split in task.split_names()} == SIZES


@pytest.mark.usefixtures("published_files")
@pytest.mark.parametrize(("share", "trained"), [(0.8, 24_811), (0.5, 15_507)])
def test_test_sentences_are_longer_than_training_sentences(share: float, trained: int) -> None:
    task = Multi30k(share=share)
    train, test = (task.generate(split, 0) for split in task.split_names())
    assert (len(train), len(test)) == (trained, 31_014 - trained)
    assert train.inputs["source"].lengths.max() <= test.inputs["source"].lengths.min()


@pytest.mark.usefixtures("published_files")
def test_each_language_has_its_own_words(published: Callable[[str], list[str]]) -> None:
    task = Multi30k(split="published")
    items = task.generate("test", 0)
    sources, targets = (published(f"multi30k/test_2016_flickr.{side}") for side in ("en", "de"))
    source_words, target_words = set(task.source_vocabulary), set(task.vocabulary)
    for index in range(50):
        read = [task.source_vocabulary[token] for token in items.inputs["source"][index]]
        answer = [task.vocabulary[token] for token in answers_of(items)[index]]
        assert read == [
            "[B]",
            *(word if word in source_words else "<unk>" for word in split_sentence(sources[index])),
            "[E]",
        ]
        assert answer == [
            *(word if word in target_words else "<unk>" for word in split_sentence(targets[index])),
            "[E]",
        ]
    share = np.mean(answers_of(items).values == task.vocabulary.index("<unk>"))
    assert 0 < share < 0.05


@pytest.mark.usefixtures("published_files")
def test_the_most_frequent_words_come_first(published: Callable[[str], list[str]]) -> None:
    task = Multi30k(split="published", target_words=50)
    counts = Counter(word for line in published("multi30k/train.de") for word in split_sentence(line))
    assert list(task.vocabulary[:50]) == [
        word for word, _ in sorted(counts.items(), key=lambda entry: (-entry[1], entry[0]))[:50]
    ]
    assert task.vocabulary[50:] == ("<unk>", "[E]", "[B]")
    assert (task.vocabulary[task.end], task.vocabulary[task.begin]) == ("[E]", "[B]")


def test_each_language_has_its_own_begin_and_end(offer: Offer) -> None:
    tiny(offer)
    task = Multi30k(split="published", source_words=2, target_words=9)
    train = task.generate("train", 0)
    assert [task.source_vocabulary[token] for token in train.inputs["source"][0]] == ["[B]", "a", "<unk>", ".", "[E]"]
    assert [task.vocabulary[token] for token in train.inputs["target"][0]] == ["[B]", "ein", "hund", "."]
    assert [task.vocabulary[token] for token in answers_of(train)[1]] == ["zwei", "hunde", "laufen", ".", "[E]"]
    german = (".", "ein", "hund", "hunde", "laufen", "zwei")
    assert task.vocabulary == (*german, "<unused>0", "<unused>1", "<unused>2", "<unk>", "[E]", "[B]")


def test_files_with_different_numbers_of_lines_are_refused(offer: Offer) -> None:
    tiny(offer, train_de="Ein Hund.\n")
    with pytest.raises(TaskError, match=r"train.en of multi30k has 2 lines and train.de has 1"):
        Multi30k().generate("train", 0)
