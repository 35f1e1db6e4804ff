"""bAbI: answer a question about a story from what was said before it.

Weston et al. (2015), the English tasks of 10,000 questions; the split by length is that of Pointer-Augmented Neural
Memory (Le et al., 2024, section 3.4 and appendix D.4).

>>> story = ["1 Mary moved to the bathroom.", "2 John went to the hallway.", "3 Where is Mary? \\tbathroom\\t1"]
>>> [asked] = read(story)
>>> " ".join(asked.source), asked.answer, asked.words
('mary moved to the bathroom . john went to the hallway . where is mary ?', ('bathroom',), 12)
>>> [(one.source, one.answer) for one in read(["1 Is it?\\tapple,milk\\t", "1 Who?\\tno\\t"])]
[(('is', 'it', '?'), ('apple', 'milk')), (('who', '?'), ('no',))]
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from archlang.data import store
from archlang.tasks.kit import mistakes
from archlang.tasks.kit.checks import check_choice, check_range, check_share, check_split
from archlang.tasks.kit.lexicon import BEGIN, END, Lexicon
from archlang.tasks.kit.sequence_pairs import SequencePairs
from archlang.tasks.kit.split import Split
from archlang.tasks.kit.task import Kind, Unit
from archlang.types.statics import Interval

__all__ = ["Asked", "Babi", "read"]

NAMES = (
    *("single-supporting-fact", "two-supporting-facts", "three-supporting-facts", "two-arg-relations"),
    *("three-arg-relations", "yes-no-questions", "counting", "lists-sets", "simple-negation", "indefinite-knowledge"),
    *("basic-coreference", "conjunction", "compound-coreference", "time-reasoning", "basic-deduction"),
    *("basic-induction", "positional-reasoning", "size-reasoning", "path-finding", "agents-motivations"),
)
# Every word of the twenty tasks and of their answers.
WORDS = (
    ". ? a above afraid after afternoon afterwards and antoine apple are back bathroom bedroom before below "
    "bernhard bigger bill blue bored box brian carrying cat cats chest chocolate chocolates cinema color "
    "container daniel did discarded do does down dropped e east either emily evening fit fits following football "
    "fred frog from garden gave gertrude get give go got grabbed gray green greg hallway handed he how hungry in "
    "inside is jason jeff jessica john journeyed julie julius kitchen left lily lion longer many mary maybe mice "
    "milk morning mouse moved n no none north not nothing objects of office one or pajamas park passed picked "
    "pink put received rectangle red rhino right s sandra school she sheep south sphere square suitcase sumit "
    "swan than that the then there they thirsty this three tired to took travelled triangle two up w was went "
    "west what where white who why will winona wolf wolves yann yellow yes yesterday you"
)
LEXICON = Lexicon((*WORDS.split(), END, BEGIN))
ALL_TASKS = Interval(1, 20)
SPLITS = ("length", "published")
# Of the published train files, which have no validation set.
VALID_SHARE = 0.1
_WORD = re.compile(r"[^\s.?]+|[.?]")


@dataclass(frozen=True)
class Asked:
    """A question behind the story that it is about, and its answer. `words` are those of the story."""

    source: tuple[str, ...]
    answer: tuple[str, ...]
    words: int


def read(lines: Iterable[str]) -> Iterator[Asked]:
    """The questions of a published file. A line is `number sentence`, or `number question<TAB>answer<TAB>facts`; the
    number 1 begins a story, and questions are no part of it.

    Raises:
        ValueError: at a line that is neither."""
    story: list[str] = []
    for line in lines:
        number, _, text = line.partition(" ")
        if int(number) == 1:
            story = []
        sentence, *answer = text.split("\t")
        words = _WORD.findall(sentence.lower())
        if not words or len(answer) > 2:
            raise ValueError(f"{line!r} is no line of a story")
        if answer:
            yield Asked((*story, *words), tuple(answer[0].lower().split(",")), len(story))
        else:
            story += words


@dataclass(frozen=True, kw_only=True)
class Babi:
    """The task. Its splits have the same members for every seed."""

    tasks: Interval = ALL_TASKS
    split: str = "length"
    share: float = 0.8

    vocabulary = LEXICON.texts
    begin, end = LEXICON.ids[BEGIN], LEXICON.ids[END]
    kind = Kind.SEQ2SEQ
    breakdown = "task"
    unit = Unit.SEQUENCE
    metrics = ("accuracy", "token_accuracy")
    version = 1

    def __post_init__(self) -> None:
        check_choice("babi", "split", self.split, SPLITS)
        check_range("babi", "tasks", self.tasks, 1, len(NAMES))
        check_share("babi", "share", self.share)

    @property
    def in_distribution(self) -> tuple[str, ...]:
        return ("train",) if self.split == "length" else self.split_names()

    def split_names(self) -> tuple[str, ...]:
        return ("train", "test") if self.split == "length" else ("train", "valid", "test")

    def reads(self) -> tuple[tuple[str, str], ...]:
        numbers = range(self.tasks.low, self.tasks.high + 1)
        return tuple(("babi", _member(number, part)) for number in numbers for part in ("train", "test"))

    def generate(self, split: str, seed: int) -> Split:
        check_split("babi", split, self.split_names())
        numbers = range(self.tasks.low, self.tasks.high + 1)
        chosen = [self._chosen(number, split) for number in numbers]
        asked = [one for some in chosen for one in some]
        groups = {
            "task": np.repeat(np.asarray(numbers, dtype=np.int64), [len(some) for some in chosen]),
            "words": np.asarray([one.words // 100 for one in asked], dtype=np.int64),
        }
        source = LEXICON.encode([one.source for one in asked])
        target = LEXICON.encode([one.answer for one in asked])
        return SequencePairs(source, target, groups).split(self.begin, self.end)

    def _chosen(self, number: int, split: str) -> list[Asked]:
        """The questions of one task that belong to a split."""
        if self.split == "length":
            every = [*_questions(number, "train"), *_questions(number, "test")]
            # Questions behind equally long stories stay in the order of the files.
            ordered = sorted(every, key=lambda one: one.words)
            trained = round(len(ordered) * self.share)
            return ordered[:trained] if split == "train" else ordered[trained:]
        found = _questions(number, "test" if split == "test" else "train")
        if split == "test":
            return found
        held_out = round(len(found) * VALID_SHARE)
        return found[-held_out:] if split == "valid" else found[:-held_out]


def _member(number: int, part: str) -> str:
    return f"qa{number}_{NAMES[number - 1]}_{part}.txt"


def _questions(number: int, part: str) -> list[Asked]:
    member = _member(number, part)
    try:
        found = list(read(store.lines("babi", member)))
        # An unknown word shows here, where the file has a name.
        LEXICON.encode([words for one in found for words in (one.source, one.answer)])
    except (ValueError, KeyError) as error:
        raise mistakes.damaged_file("babi", member, error) from error
    return found
