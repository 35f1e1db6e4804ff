"""bAbI: answer a question about the story before it.

Weston et al. (2015), the English tasks with 10,000 questions. The split by length is from Pointer-Augmented Neural
Memory (Le et al., 2024, section 3.4 and appendix D.4).

>>> story = ["1 Mary moved to the bathroom.", "2 John went to the hallway.", "3 Where is Mary? \\tbathroom\\t1"]
>>> [question] = read(story)
>>> " ".join(question.source), question.answer, question.words
('mary moved to the bathroom . john went to the hallway . where is mary ?', ('bathroom',), 12)
>>> [(question.source, question.answer) for question in read(["1 Is it?\\tapple,milk\\t", "1 Who?\\tno\\t"])]
[(('is', 'it', '?'), ('apple', 'milk')), (('who', '?'), ('no',))]
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from archlang.data import store
from archlang.tasks.kit import mistakes
from archlang.tasks.kit.lexicon import BEGIN, END, Lexicon
from archlang.tasks.kit.split import Split
from archlang.tasks.kit.task import PairTask
from archlang.types.statics import Interval

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
# The share of the published train files that becomes the validation split; none is published.
VALID_SHARE = 0.1
_WORD = re.compile(r"[^\s.?]+|[.?]")


@dataclass(frozen=True)
class StoryQuestion:
    """A story followed by a question about it, the answer, and the number of words in the story."""

    source: tuple[str, ...]
    answer: tuple[str, ...]
    words: int


def read(lines: Iterable[str]) -> Iterator[StoryQuestion]:
    """Yields the questions of a published file. A line is `number sentence`, or `number question<TAB>answer<TAB>facts`.
    The number 1 begins a story. Questions are not part of the story.

    Raises:
        ValueError: a line is malformed."""
    story: list[str] = []
    for line in lines:
        number, _, text = line.partition(" ")
        if int(number) == 1:
            story = []
        sentence, *answer = text.split("\t")
        words = _WORD.findall(sentence.lower())
        if not words or len(answer) > 2:
            raise ValueError(f"malformed line {line!r}")
        if answer:
            yield StoryQuestion((*story, *words), tuple(answer[0].lower().split(",")), len(story))
        else:
            story += words


class Babi(PairTask):
    tasks: Interval
    split: str
    share: float

    vocabulary = LEXICON.texts
    breakdown = "task"
    groups = ("task", "words")

    @property
    def in_distribution(self) -> tuple[str, ...]:
        return ("train",) if self.split == "length" else self.split_names()

    def split_names(self) -> tuple[str, ...]:
        return ("train", "test") if self.split == "length" else ("train", "valid", "test")

    def reads(self) -> tuple[tuple[str, str], ...]:
        numbers = range(self.tasks.low, self.tasks.high + 1)
        return tuple(("babi", _member(number, part)) for number in numbers for part in ("train", "test"))

    def make(self, split: str, seed: int) -> Split:
        numbers = range(self.tasks.low, self.tasks.high + 1)
        by_task = [self._task_questions(number, split) for number in numbers]
        questions = [question for task_questions in by_task for question in task_questions]
        groups = {
            "task": np.repeat(np.asarray(numbers, dtype=np.int64), [len(task_questions) for task_questions in by_task]),
            "words": np.asarray([question.words // 100 for question in questions], dtype=np.int64),
        }
        source = LEXICON.encode([question.source for question in questions])
        target = LEXICON.encode([question.answer for question in questions])
        return self.pairs(source, target, groups)

    def _task_questions(self, number: int, split: str) -> list[StoryQuestion]:
        if self.split == "length":
            questions = [*_questions(number, "train"), *_questions(number, "test")]
            # The sort is stable: questions about equally long stories keep the order of the files.
            ordered = sorted(questions, key=lambda question: question.words)
            trained = round(len(ordered) * self.share)
            return ordered[:trained] if split == "train" else ordered[trained:]
        questions = _questions(number, "test" if split == "test" else "train")
        if split == "test":
            return questions
        held_out = round(len(questions) * VALID_SHARE)
        return questions[-held_out:] if split == "valid" else questions[:-held_out]


def _member(number: int, part: str) -> str:
    return f"qa{number}_{NAMES[number - 1]}_{part}.txt"


def _questions(number: int, part: str) -> list[StoryQuestion]:
    member = _member(number, part)
    try:
        questions = list(read(store.lines("babi", member)))
        # Raises KeyError for an unknown word here, so that the error names the file.
        LEXICON.encode([words for question in questions for words in (question.source, question.answer)])
    except (ValueError, KeyError) as error:
        raise mistakes.damaged_file(member, "babi", error) from error
    return questions
