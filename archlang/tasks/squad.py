"""SQuAD 1.1: find the answer to a question in a paragraph.

Rajpurkar et al. (2016). The split by length is from Pointer-Augmented Neural Memory (Le et al., 2024, section 3.4).

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
from typing import TYPE_CHECKING, Any

import numpy as np

from archlang.data import store
from archlang.tasks.kit import mistakes
from archlang.tasks.kit.lexicon import BEGIN, END, UNKNOWN, Lexicon, filled, most_frequent
from archlang.tasks.kit.split import Ragged, Reals, Split
from archlang.tasks.kit.task import Kind, ShippedTask
from archlang.tasks.kit.tokenizer import load_tokenizer, texts_of

if TYPE_CHECKING:
    from tokenizers import Tokenizer

FILES = ("train-v1.1.json", "dev-v1.1.json")
SEPARATOR = "[S]"
_MARKS = (BEGIN, SEPARATOR, END)
_PIECE_MARKS = ("[CLS]", "[SEP]", "[SEP]")
_WORD = re.compile(r"\w+|[^\w\s]")
_ARTICLE = re.compile(r"\b(?:a|an|the)\b")
_PUNCTUATION = str.maketrans("", "", string.punctuation)
# Separates the answers to a question in the notes of a split. No text contains it.
_ANSWER_BREAK = "\0"


def word_pieces(path: str) -> Tokenizer:
    """Returns the tokenizer in a file.

    Raises:
        TaskError: the file is missing or describes no tokenizer with BERT's special tokens.
        MachineError: the package is not installed."""
    tokenizer = load_tokenizer("squad", path)
    for special in ("[UNK]", *_PIECE_MARKS):
        if tokenizer.token_to_id(special) is None:
            raise mistakes.no_tokenizer(path, "squad", f"it has no token {special}")
    return tokenizer


@dataclass(frozen=True)
class Question:
    """A question about a paragraph. `answers` are those of all annotators; the first one begins at the character
    `start`."""

    paragraph: str
    question: str
    answers: tuple[str, ...]
    start: int


def read(document: Any) -> Iterator[Question]:  # Any: JSON
    """Yields the questions of a published file.

    Raises:
        ValueError: an answer is not at its stated position.
        KeyError, TypeError, IndexError: the structure of the file differs."""
    for article in document["data"]:
        for paragraph in article["paragraphs"]:
            text = str(paragraph["context"])
            for entry in paragraph["qas"]:
                answers = tuple(str(answer["text"]) for answer in entry["answers"])
                start = int(entry["answers"][0]["answer_start"])
                if not answers[0] or text[start : start + len(answers[0])] != answers[0]:
                    raise ValueError(f"the answer {answers[0]!r} is not at character {start} of its paragraph")
                yield Question(text, str(entry["question"]), answers, start)


def normalised(text: str) -> str:
    """Returns an answer for comparison: in lower case, without punctuation, articles and extra spaces."""
    return " ".join(_ARTICLE.sub(" ", text.lower().translate(_PUNCTUATION)).split())


def exact_match(prediction: str, answer: str) -> float:
    """Returns 1 if the normalised texts are equal, else 0."""
    return float(normalised(prediction) == normalised(answer))


def f1(prediction: str, answer: str) -> float:
    """Returns the harmonic mean of precision and recall over the words of the normalised texts."""
    predicted, expected = normalised(prediction).split(), normalised(answer).split()
    common = sum((Counter(predicted) & Counter(expected)).values())
    return 2.0 * common / (len(predicted) + len(expected)) if common else 0.0


@dataclass(frozen=True, eq=False)
class _Words:
    """The words or word pieces of a text, and the characters where each begins and stops: [words]."""

    words: tuple[str, ...]
    starts: np.ndarray
    stops: np.ndarray

    @staticmethod
    def of(text: str) -> _Words:
        matches = list(_WORD.finditer(text))
        return _Words._at([match.group().lower() for match in matches], [match.span() for match in matches])

    @staticmethod
    def pieces_of(text: str, tokenizer: Tokenizer) -> _Words:
        encoding = tokenizer.encode(text, add_special_tokens=False)
        return _Words._at(encoding.tokens, encoding.offsets)

    @staticmethod
    def _at(words: Sequence[str], characters: Sequence[tuple[int, int]]) -> _Words:
        spans = np.asarray(characters, dtype=np.int32).reshape(-1, 2)
        return _Words(tuple(words), spans[:, 0], spans[:, 1])

    def first(self, count: int) -> _Words:
        """Returns the first words, at most `count`."""
        return _Words(self.words[:count], self.starts[:count], self.stops[:count])

    def span(self, start: int, stop: int) -> tuple[int, int]:
        """Returns the indices of the first and the last word that overlap a range of characters."""
        first = int(np.searchsorted(self.stops, start, side="right"))
        last = int(np.searchsorted(self.starts, stop, side="left")) - 1
        return min(first, len(self.words) - 1), max(last, min(first, len(self.words) - 1))


class Squad(ShippedTask):
    split: str
    share: float
    word_limit: int
    tokenizer: str
    longest: int

    splits = ("train", "test")
    kind = Kind.SPANS
    breakdown = "length"
    metrics = ("exact_match", "f1")

    @property
    def in_distribution(self) -> tuple[str, ...]:
        return ("train",) if self.split == "length" else self.split_names()

    @cached_property
    def _words(self) -> dict[str, _Words]:
        """The words of every paragraph and question. Several questions share a paragraph."""
        words: dict[str, _Words] = {}
        pieces = self._pieces
        for questions in self._files:
            for question in questions:
                for text in (question.paragraph, question.question):
                    if text not in words:
                        words[text] = _Words.of(text) if pieces is None else _Words.pieces_of(text, pieces)
        return words

    @cached_property
    def _files(self) -> tuple[list[Question], ...]:
        return tuple(_read_file(member) for member in FILES)

    @cached_property
    def _pieces(self) -> Tokenizer | None:
        return word_pieces(self.tokenizer) if self.tokenizer else None

    @cached_property
    def _lexicon(self) -> Lexicon:
        """The pieces of the tokenizer; or the words of the train split, where each paragraph counts once."""
        if self._pieces is not None:
            pieces = texts_of(self._pieces)
            if len(pieces) > self.word_limit:
                raise mistakes.vocabulary_too_small("word_limit", self.word_limit, "squad", len(pieces))
            return Lexicon(filled(pieces, self.word_limit))
        questions = self._questions("train")
        texts = dict.fromkeys(text for question in questions for text in (question.paragraph, question.question))
        counts = Counter(word for text in texts for word in self._words[text].words)
        words = most_frequent(counts, self.word_limit)
        return Lexicon((*filled(words, self.word_limit), UNKNOWN, END, SEPARATOR, BEGIN), unknown=self.word_limit)

    @property
    def vocabulary(self) -> tuple[str, ...]:
        return self._lexicon.texts

    def files(self) -> tuple[str, ...]:
        return (self.tokenizer,) if self.tokenizer else ()

    def reads(self) -> tuple[tuple[str, str], ...]:
        return tuple(("squad", member) for member in FILES)

    def make(self, split: str, seed: int) -> Split:
        questions = self._questions(split)
        if split == "train" and self.longest:
            questions = [question for question in questions if self._is_answerable(question)]
        texts = [self._cut(question) for question in questions]
        wordings, paragraphs = [wording for wording, _ in texts], [paragraph for _, paragraph in texts]
        begin, separator, end = _MARKS if self._pieces is None else _PIECE_MARKS
        x = self._lexicon.encode(
            (begin, *wording.words, separator, *paragraph.words, end) for wording, paragraph in texts
        )
        # The position where the paragraph begins.
        firsts = np.asarray([len(wording.words) + 2 for wording in wordings], dtype=np.int64)
        lengths = np.asarray([len(paragraph.words) for paragraph in paragraphs], dtype=np.int64)
        answer_spans = [
            paragraph.span(question.start, question.start + len(question.answers[0]))
            for question, paragraph in zip(questions, paragraphs, strict=True)
        ]
        spans = np.asarray(answer_spans, dtype=np.int64).reshape(-1, 2)
        notes = {
            "paragraph": Ragged.of_bytes(question.paragraph.encode() for question in questions),
            "answers": Ragged.of_bytes(_ANSWER_BREAK.join(question.answers).encode() for question in questions),
            "starts": Ragged.of_rows([paragraph.starts for paragraph in paragraphs], np.int32),
            "stops": Ragged.of_rows([paragraph.stops for paragraph in paragraphs], np.int32),
            "first": Ragged.table(firsts[:, None]),
        }
        word_counts = np.asarray([len(self._words[question.paragraph].words) for question in questions], dtype=np.int64)
        groups = {"length": word_counts // 100 * 100}
        return Split({"x": x}, spans + firsts[:, None], _in_paragraph(x, firsts, lengths), groups, notes)

    def judge(self, split: Split, predictions: np.ndarray) -> Mapping[str, Reals]:
        """Scores the text of each predicted span against its best answer, as the published program does."""
        scores = {"exact_match": np.zeros(len(split)), "f1": np.zeros(len(split))}
        notes = split.notes
        for index, (first, last) in enumerate(predictions):
            paragraph = bytes(notes["paragraph"][index]).decode()
            starts, stops, offset = notes["starts"][index], notes["stops"][index], int(notes["first"][index][0])
            prediction = paragraph[starts[first - offset] : stops[last - offset]] if first <= last else ""
            answers = bytes(notes["answers"][index]).decode().split(_ANSWER_BREAK)
            for name, score in (("exact_match", exact_match), ("f1", f1)):
                scores[name][index] = max(score(prediction, answer) for answer in answers)
        return scores

    def _cut(self, question: Question) -> tuple[_Words, _Words]:
        """Returns the words of a question and of its paragraph, without those that `longest` cuts off: first of a
        question that would fill half of the item, then of the paragraph."""
        wording, paragraph = self._words[question.question], self._words[question.paragraph]
        if not self.longest:
            return wording, paragraph
        wording = wording.first(self.longest // 2 - 2)
        return wording, paragraph.first(self.longest - 3 - len(wording.words))

    def _is_answerable(self, question: Question) -> bool:
        _, paragraph = self._cut(question)
        return bool(question.start + len(question.answers[0]) <= paragraph.stops[-1])

    def _questions(self, split: str) -> list[Question]:
        train, test = self._files
        if self.split == "published":
            return train if split == "train" else test
        # The sort is stable: questions about equally long paragraphs keep the order of the files.
        ordered = sorted((*train, *test), key=lambda question: len(self._words[question.paragraph].words))
        trained = round(len(ordered) * self.share)
        return ordered[:trained] if split == "train" else ordered[trained:]


def _read_file(member: str) -> list[Question]:
    with store.open_binary("squad", member) as stream:
        try:
            return list(read(json.load(stream)))
        except (ValueError, KeyError, TypeError, IndexError) as error:
            raise mistakes.damaged_file(member, "squad", error) from error


def _in_paragraph(x: Ragged, firsts: np.ndarray, lengths: np.ndarray) -> Ragged:
    positions = np.arange(len(x.values)) - np.repeat(x.offsets[:-1], x.lengths)
    first = np.repeat(firsts, x.lengths)
    return Ragged((positions >= first) & (positions < first + np.repeat(lengths, x.lengths)), x.offsets)
