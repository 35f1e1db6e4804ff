"""What a task is: the protocol that every task class implements, and the enums that describe a task."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import Enum
from typing import Protocol, runtime_checkable

import numpy as np

from archlang.tasks.kit.ragged import Reals
from archlang.tasks.kit.split import Form, Split


class Kind(Enum):
    """What a task asks of a model. The signature beside the task says the same by its fields and its result."""

    CLASSIFICATION = "classification"
    PAIRS = "classification of pairs"
    TAGGING = "tagging"
    LANGUAGE_MODEL = "language model"
    SEQ2SEQ = "sequence to sequence"
    SETS = "prediction of sets"
    SPANS = "spans"

    @property
    def form(self) -> Form:
        match self:
            case Kind.CLASSIFICATION | Kind.PAIRS:
                return Form.CLASSES
            case Kind.SETS:
                return Form.SETS
            case Kind.SPANS:
                return Form.SPANS
        return Form.POSITIONS


class LossRule(Enum):
    """How far logits are from targets: cross entropy, of each member of a set alone where sets are asked for; or the
    squared error of the sigmoids."""

    ENTROPY = "entropy"
    SQUARES = "squares"


class Unit(Enum):
    """What `accuracy` counts: right samples, right scored positions, or sequences right at every scored position."""

    SAMPLE = "sample"
    POSITION = "position"
    SEQUENCE = "sequence"


class Task(Protocol):
    """A task with its statics bound.

    Splits are disjoint. A split depends only on the statics and the seed, never on the size of another split. The
    optional parts of a task are in `DecodableTask`, `JudgedTask` and `loss_rule`."""

    @property
    def kind(self) -> Kind:
        """What is asked of a model."""

    @property
    def vocabulary(self) -> tuple[str, ...]:
        """The text of every token, by id. No id is padding: sequences are ragged."""

    @property
    def breakdown(self) -> str:
        """The group that reports use first: what the task generalizes by."""

    @property
    def in_distribution(self) -> tuple[str, ...]:
        """The splits whose items are drawn as those of `train` are. All others ask for generalization."""

    @property
    def unit(self) -> Unit:
        """What `accuracy` counts."""

    @property
    def metrics(self) -> tuple[str, ...]:
        """Names of `archlang.tasks.kit.metrics`, the most important first."""

    @property
    def version(self) -> int:
        """Rises when the same statics and seed begin to give other items, so that caches notice."""

    def split_names(self) -> tuple[str, ...]: ...

    def generate(self, split: str, seed: int) -> Split: ...


@runtime_checkable
class DecodableTask(Protocol):
    """A task whose answers are sequences that a model may write by itself, token after token: it is given `begin`
    first, and stops after `end`; where that is None, it is told how long its answer is."""

    @property
    def begin(self) -> int: ...
    @property
    def end(self) -> int | None: ...


@runtime_checkable
class JudgedTask(Protocol):
    """A task that measures some of its metrics itself, where they are more than a comparison of tokens."""

    def judge(self, split: Split, predictions: np.ndarray) -> Mapping[str, Reals]:
        """For metrics of the task, the merit of each item between 0 and 1. `predictions` are classes [N], spans
        [N, 2], or one for each place of `split.targets.values`."""


def loss_rule(task: Task) -> LossRule:
    """How a task's loss is measured: its `rule`, or else cross entropy."""
    rule: LossRule = getattr(task, "rule", LossRule.ENTROPY)
    return rule


def spell(task: Task, tokens: Iterable[int]) -> str:
    """Tokens as text."""
    return " ".join(task.vocabulary[token] for token in tokens)
