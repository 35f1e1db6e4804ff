"""What a task is: the protocol that every task class implements, and the enums that describe a task."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from enum import Enum
from typing import Protocol, runtime_checkable

import numpy as np

from archlang.tasks.kit.lexicon import BEGUN, ENCLOSED, Lexicon
from archlang.tasks.kit.ragged import Reals
from archlang.tasks.kit.split import Form, Split


class Kind(Enum):
    """What a task asks of a model. The fields and the result of its signature agree with it."""

    CLASSIFICATION = "classification"
    PAIRS = "classification of pairs"
    TAGGING = "tagging"
    LANGUAGE_MODEL = "language model"
    SEQ2SEQ = "sequence to sequence"
    SETS = "prediction of sets"
    SPANS = "spans"
    POINTING = "pointing"
    REGRESSION = "regression"

    @property
    def form(self) -> Form:
        match self:
            case Kind.CLASSIFICATION | Kind.PAIRS:
                return Form.CLASSES
            case Kind.SETS:
                return Form.SETS
            case Kind.SPANS:
                return Form.SPANS
            case Kind.POINTING:
                return Form.POINTERS
            case Kind.REGRESSION:
                return Form.NUMBERS
        return Form.POSITIONS


PAIR_MARKS = {"source": ENCLOSED, "target": BEGUN}
X_MARKS = {"x": ENCLOSED}


class LossRule(Enum):
    """The loss between logits and targets: cross entropy, which is binary for each member of a set, or the squared
    error of the sigmoids. Numbers have the squared error of the results themselves."""

    ENTROPY = "entropy"
    SQUARES = "squares"


class Unit(Enum):
    """What `accuracy` counts: correct samples, correct scored positions, or sequences correct at every scored
    position."""

    SAMPLE = "sample"
    POSITION = "position"
    SEQUENCE = "sequence"


class Task(Protocol):
    """A task with its statics bound.

    Splits are disjoint. A split depends only on the statics and the seed, never on the size of another split. The
    optional parts of a task are in `DecodableTask`, `JudgedTask`, `TaskWithKnownGroups`, `TaskWithVocabulary`,
    `loss_rule`, `class_names`, `groups`, `group_names`, `field_vocabulary`, `marks`, `lexicons` and `empty_splits`."""

    @property
    def kind(self) -> Kind:
        """What the task asks of a model."""

    @property
    def vocabulary(self) -> tuple[str, ...]:
        """The text of every token, by id. Sequences are ragged, so no id is padding."""

    @property
    def breakdown(self) -> str:
        """The group by which reports break results down first, such as length."""

    @property
    def in_distribution(self) -> tuple[str, ...]:
        """The splits with the distribution of `train`. All others test generalization."""

    @property
    def unit(self) -> Unit:
        """What `accuracy` counts."""

    @property
    def metrics(self) -> tuple[str, ...]:
        """Names from `archlang.tasks.kit.metrics`, the most important first."""

    @property
    def version(self) -> int:
        """Raised when the same statics and seed generate other items, so that cached splits are generated again."""

    def split_names(self) -> tuple[str, ...]:
        """Returns the names of the splits, `train` first."""

    def generate(self, split: str, seed: int) -> Split:
        """Returns a split.

        Raises:
            TaskError: there is no such split, or its items cannot be drawn or read.
            DataError: a published file is missing or damaged."""


@runtime_checkable
class DecodableTask(Protocol):
    """A task whose answers a model can decode token by token, from `begin` until `end`. If `end` is None, decoding
    stops at the length of the target."""

    @property
    def begin(self) -> int: ...
    @property
    def end(self) -> int | None: ...


@runtime_checkable
class TaskWithVocabulary(Protocol):
    """A task whose vocabulary, classes and groups depend on the user's own files."""

    def restored(self, words: Sequence[str], classes: Sequence[str], groups: Mapping[str, Sequence[str]]) -> Task:
        """Returns the task with the words and with the names of classes and groups that a run has recorded."""


@runtime_checkable
class JudgedTask(Protocol):
    """A task that computes some of its metrics itself, because they are more than a comparison of tokens."""

    def judge(self, split: Split, predictions: np.ndarray) -> Mapping[str, Reals]:
        """Returns scores [N] between 0 and 1 for some metrics of the task. `predictions` holds classes [N], spans [N,
        2], or a class, a set or a row of numbers for each value of `split.targets`."""


@runtime_checkable
class TaskWithKnownGroups(Protocol):
    """A task whose statics say which values some of its groups have."""

    def group_values(self, split: str) -> Mapping[str, Collection[int]]:
        """Returns the values that a group can have in a split, by its name."""


def loss_rule(task: Task) -> LossRule:
    """Returns the task's `rule`, or cross entropy if it has none."""
    rule: LossRule = getattr(task, "rule", LossRule.ENTROPY)
    return rule


def class_names(task: Task) -> tuple[str, ...]:
    """Returns the text of each class, which is the task's `class_names`; empty if the task has none."""
    return tuple(getattr(task, "class_names", ()))


def class_text(names: Sequence[str], number: int) -> str:
    """Returns the name of a class, or `class 3` if it has none."""
    return names[number] if 0 <= number < len(names) else f"class {number}"


def row_text(numbers: Sequence[float]) -> str:
    """Returns a row of numbers as text.

    >>> row_text([0.12345]), row_text([1.0, -2.5])
    ('0.1235', '(1, -2.5)')"""
    texts = [f"{number:.4g}" for number in numbers]
    return texts[0] if len(texts) == 1 else f"({', '.join(texts)})"


def groups(task: Task) -> tuple[str, ...]:
    """Returns the groups that the splits of a task may have: the task's `groups`, or else only its breakdown."""
    return tuple(getattr(task, "groups", (task.breakdown,)))


def group_values(task: Task, split: str) -> Mapping[str, Collection[int]]:
    """Returns the values that groups of a split can have, as far as they follow from the statics: those of the task's
    `group_values`. A group is missing if its values depend on the items."""
    if not isinstance(task, TaskWithKnownGroups):
        return {}
    return task.group_values(split)


def group_names(task: Task) -> dict[str, tuple[str, ...]]:
    """Returns the texts of the values 0, 1, … of each group whose values are names, which are the task's
    `group_names`."""
    return {group: tuple(names) for group, names in getattr(task, "group_names", {}).items()}


def group_text(names: Mapping[str, Sequence[str]], group: str, value: int) -> str:
    """Returns the text of a value of a group; the number if it has no name."""
    return names[group][value] if 0 <= value < len(names.get(group, ())) else str(value)


def field_vocabulary(task: Task, field: str) -> tuple[str, ...]:
    """Returns the text of each token of a field. The field `source` may have a vocabulary of its own, the task's
    `source_vocabulary`."""
    return tuple(getattr(task, "source_vocabulary", task.vocabulary) if field == "source" else task.vocabulary)


def marks(task: Task, field: str) -> tuple[int | None, int | None]:
    """Returns the tokens at which every item of a field begins and ends, which the task's `marks` declare by their
    texts, such as `{"source": ("[B]", "[E]")}`; None for none. The marks of a field of numbers are zeros."""
    first, last = getattr(task, "marks", {}).get(field, (None, None))
    # A word of a text may look like a mark, which comes after all words.
    ids = {text: token for token, text in enumerate(field_vocabulary(task, field))}
    return ids.get(first), ids.get(last)


def lexicons(task: Task) -> Mapping[str, Lexicon]:
    """Returns the lexicons of the fields whose items are texts, which are the task's `lexicons`."""
    return getattr(task, "lexicons", {})


def empty_splits(task: Task) -> tuple[str, ...]:
    """Returns the splits that have no items because their statics, such as `valid_size`, are 0; none if 0 means the
    published size, as the task's `has_published_sizes` says."""
    if getattr(task, "has_published_sizes", False):
        return ()
    return tuple(split for split in task.split_names() if getattr(task, f"{split}_size", None) == 0)


def spell(task: Task, tokens: Iterable[int]) -> str:
    """Returns tokens as text, separated by spaces."""
    return " ".join(task.vocabulary[token] for token in tokens)
