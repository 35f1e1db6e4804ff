"""SQuAD 1.1: find the answer to a question in a paragraph.

Rajpurkar et al. (2016); the split by length is that of Pointer-Augmented Neural Memory (Le et al., 2024, section 3.4).

>>> normalised("The  Broncos' “line”, an edge!"), exact_match("the 308 points", "308 points.")
('broncos “line” edge', 1.0)
>>> round(f1("gave up 308 points", "308"), 2), f1("ranking sixth", "308")
(0.4, 0.0)
"""

from __future__ import annotations

import json
import re
import string
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from archlang.data import store
from archlang.tasks.kit import mistakes
from archlang.tasks.kit.checks import check_bounds, check_choice, check_share, check_split
from archlang.tasks.kit.lexicon import BEGIN, END, UNKNOWN, Lexicon, filled, most_frequent
from archlang.tasks.kit.ragged import Ragged, Reals, offsets_of
from archlang.tasks.kit.split import Split
from archlang.tasks.kit.task import Kind, Unit

__all__ = ["Asked", "Squad", "exact_match", "f1", "normalised", "read"]

FILES = ("train-v1.1.json", "dev-v1.1.json")
SPLITS = ("length", "published")
PARTED = "[S]"
_WORD = re.compile(r"\w+|[^\w\s]")
_ARTICLE = re.compile(r"\b(?:a|an|the)\b")
_PUNCTUATION = str.maketrans("", "", string.punctuation)
# Between the answers of a question, in the notes of a split; no text holds it.
_BREAK = "\0"


@dataclass(frozen=True)
class Asked:
    """A question about a paragraph. `answers` are those of all people who were asked; the first of them begins at the
    character `start`."""

    paragraph: str
    question: str
    answers: tuple[str, ...]
    start: int


def read(document: Any) -> Iterator[Asked]:  # Any: JSON
    """The questions of a published file.

    Raises:
        ValueError: an answer does not stand where the file says it does.
        KeyError, TypeError, IndexError: the file has another form."""
    for article in document["data"]:
        for paragraph in article["paragraphs"]:
            text = str(paragraph["context"])
            for asked in paragraph["qas"]:
                answers = tuple(str(answer["text"]) for answer in asked["answers"])
                start = int(asked["answers"][0]["answer_start"])
                if not answers[0] or text[start : start + len(answers[0])] != answers[0]:
                    raise ValueError(f"the answer {answers[0]!r} does not stand at character {start} of its paragraph")
                yield Asked(text, str(asked["question"]), answers, start)


def normalised(text: str) -> str:
    """An answer as it is compared: in small letters, without punctuation, articles and superfluous spaces."""
    return " ".join(_ARTICLE.sub(" ", text.lower().translate(_PUNCTUATION)).split())


def exact_match(found: str, answer: str) -> float:
    return float(normalised(found) == normalised(answer))


def f1(found: str, answer: str) -> float:
    """The harmonic mean of precision and recall over words."""
    ours, theirs = normalised(found).split(), normalised(answer).split()
    common = sum((Counter(ours) & Counter(theirs)).values())
    return 2.0 * common / (len(ours) + len(theirs)) if common else 0.0


@dataclass(frozen=True, eq=False)
class _Cut:
    """A text in words, in small letters, and the characters where each begins and stops."""

    words: tuple[str, ...]
    starts: np.ndarray
    stops: np.ndarray

    @staticmethod
    def of(text: str) -> _Cut:
        found = list(_WORD.finditer(text))
        places = np.asarray([one.span() for one in found], dtype=np.int32).reshape(-1, 2)
        return _Cut(tuple(one.group().lower() for one in found), places[:, 0], places[:, 1])

    def span(self, start: int, stop: int) -> tuple[int, int]:
        """The first and the last word that stand in a range of characters, or around it."""
        first = int(np.searchsorted(self.stops, start, side="right"))
        last = int(np.searchsorted(self.starts, stop, side="left")) - 1
        return min(first, len(self.words) - 1), max(last, min(first, len(self.words) - 1))


@dataclass(frozen=True, kw_only=True)
class Squad:
    """The task. Its splits have the same members for every seed."""

    split: str = "length"
    share: float = 0.8
    word_limit: int = 50_000

    kind = Kind.SPANS
    breakdown = "length"
    unit = Unit.SAMPLE
    metrics = ("exact_match", "f1")
    version = 1

    def __post_init__(self) -> None:
        check_choice("squad", "split", self.split, SPLITS)
        check_share("squad", "share", self.share)
        check_bounds("squad", "word_limit", self.word_limit, 1)

    @property
    def in_distribution(self) -> tuple[str, ...]:
        return ("train",) if self.split == "length" else self.split_names()

    def split_names(self) -> tuple[str, ...]:
        return ("train", "test")

    @cached_property
    def _cut(self) -> dict[str, _Cut]:
        """Every paragraph and question in words; each paragraph has several questions."""
        found: dict[str, _Cut] = {}
        for part in self._files:
            for asked in part:
                for text in (asked.paragraph, asked.question):
                    if text not in found:
                        found[text] = _Cut.of(text)
        return found

    @cached_property
    def _files(self) -> tuple[list[Asked], ...]:
        return tuple(_asked(member) for member in FILES)

    @cached_property
    def _lexicon(self) -> Lexicon:
        """The words of the train split, each paragraph counted once."""
        texts = dict.fromkeys(text for asked in self._asked("train") for text in (asked.paragraph, asked.question))
        words = most_frequent((self._cut[text].words for text in texts), self.word_limit)
        return Lexicon((*filled(words, self.word_limit), UNKNOWN, END, PARTED, BEGIN), unknown=self.word_limit)

    @property
    def vocabulary(self) -> tuple[str, ...]:
        return self._lexicon.texts

    def reads(self) -> tuple[tuple[str, str], ...]:
        return tuple(("squad", member) for member in FILES)

    def generate(self, split: str, seed: int) -> Split:
        check_split("squad", split, self.split_names())
        asked = self._asked(split)
        paragraphs, questions = ([self._cut[text] for text in texts] for texts in zip(
            *((one.paragraph, one.question) for one in asked), strict=True
        ))  # fmt: skip
        rows = [
            (BEGIN, *question.words, PARTED, *paragraph.words, END)
            for paragraph, question in zip(paragraphs, questions, strict=True)
        ]
        x = self._lexicon.encode(rows)
        # Where the paragraph begins in each row.
        firsts = np.asarray([len(question.words) + 2 for question in questions], dtype=np.int64)
        lengths = np.asarray([len(paragraph.words) for paragraph in paragraphs], dtype=np.int64)
        spans = np.asarray(
            [cut.span(one.start, one.start + len(one.answers[0])) for one, cut in zip(asked, paragraphs, strict=True)],
            dtype=np.int64,
        ).reshape(-1, 2)
        notes = {
            "paragraph": Ragged.of_bytes(one.paragraph.encode() for one in asked),
            "answers": Ragged.of_bytes(_BREAK.join(one.answers).encode() for one in asked),
            "starts": _joined([paragraph.starts for paragraph in paragraphs]),
            "stops": _joined([paragraph.stops for paragraph in paragraphs]),
            "first": Ragged.table(firsts[:, None]),
        }
        groups = {"length": lengths // 100 * 100}
        return Split({"x": x}, spans + firsts[:, None], _places(x, firsts, lengths), groups, notes)

    def judge(self, split: Split, predictions: np.ndarray) -> Mapping[str, Reals]:
        """As the published program: the best over all answers of the text from the first to the last word."""
        merits = {"exact_match": np.zeros(len(split)), "f1": np.zeros(len(split))}
        notes = split.notes
        for index, (first, last) in enumerate(predictions):
            paragraph = bytes(notes["paragraph"][index]).decode()
            starts, stops, offset = notes["starts"][index], notes["stops"][index], int(notes["first"][index][0])
            found = paragraph[starts[first - offset] : stops[last - offset]] if first <= last else ""
            answers = bytes(notes["answers"][index]).decode().split(_BREAK)
            for name, merit in (("exact_match", exact_match), ("f1", f1)):
                merits[name][index] = max(merit(found, answer) for answer in answers)
        return merits

    def _asked(self, split: str) -> list[Asked]:
        train, test = self._files
        if self.split == "published":
            return train if split == "train" else test
        # Questions about equally long paragraphs stay in the order of the files.
        ordered = sorted((*train, *test), key=lambda one: len(self._cut[one.paragraph].words))
        trained = round(len(ordered) * self.share)
        return ordered[:trained] if split == "train" else ordered[trained:]


def _asked(member: str) -> list[Asked]:
    with store.open_binary("squad", member) as stream:
        try:
            return list(read(json.load(stream)))
        except (ValueError, KeyError, TypeError, IndexError) as error:
            raise mistakes.damaged_file("squad", member, error) from error


def _places(x: Ragged, firsts: np.ndarray, lengths: np.ndarray) -> Ragged:
    """Marks the places of the paragraph in each row."""
    places = np.arange(len(x.values)) - np.repeat(x.offsets[:-1], x.lengths)
    first = np.repeat(firsts, x.lengths)
    return Ragged((places >= first) & (places < first + np.repeat(lengths, x.lengths)), x.offsets)


def _joined(rows: Sequence[np.ndarray]) -> Ragged:
    lengths = np.asarray([len(row) for row in rows], dtype=np.int64)
    return Ragged(np.concatenate([*rows, np.zeros(0, dtype=np.int32)]), offsets_of(lengths))
