"""What a task is: the protocol that every task class implements, and the enums that describe a task."""

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Mapping, Sequence
from enum import Enum
from itertools import combinations
from typing import ClassVar, Protocol, Self, runtime_checkable

import numpy as np

from archlang.elaborate.binding import Binding, sizes_of_task
from archlang.elaborate.static_arguments import evaluated, parameter_kind, plain
from archlang.errors import Diagnostic
from archlang.resolve import library
from archlang.resolve import mistakes as name_mistakes
from archlang.resolve.resolve import Declaration, prelude
from archlang.resolve.values import MISFIT, Bound, coerce
from archlang.tasks.kit import mistakes
from archlang.tasks.kit.lexicon import BEGUN, ENCLOSED, Lexicon
from archlang.tasks.kit.split import Integers, Ragged, Reals, Split, TargetForm, append, enclose, shift
from archlang.types.statics import Interval, StaticValue, Symbol


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
    def form(self) -> TargetForm:
        match self:
            case Kind.CLASSIFICATION | Kind.PAIRS:
                return TargetForm.CLASSES
            case Kind.SETS:
                return TargetForm.SETS
            case Kind.SPANS:
                return TargetForm.SPANS
            case Kind.POINTING:
                return TargetForm.POINTERS
            case Kind.REGRESSION:
                return TargetForm.NUMBERS
        return TargetForm.POSITIONS


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


# What `accuracy` counts, and the metrics, unless a class says otherwise.
_UNITS = {
    **dict.fromkeys((Kind.CLASSIFICATION, Kind.PAIRS, Kind.SPANS), Unit.SAMPLE),
    **dict.fromkeys((Kind.LANGUAGE_MODEL, Kind.POINTING, Kind.REGRESSION), Unit.POSITION),
    **dict.fromkeys((Kind.SEQ2SEQ, Kind.SETS), Unit.SEQUENCE),
}
_METRICS = {
    Unit.SAMPLE: ("accuracy",), Unit.POSITION: ("accuracy", "sequence_accuracy"),
    Unit.SEQUENCE: ("accuracy", "token_accuracy"),
}  # fmt: skip


class Task(Protocol):
    """A task with its statics bound.

    Splits are disjoint. A split depends only on the statics and the seed, never on the size of another split. The
    optional parts of a task are in `DecodableTask`, `JudgedTask`, `TaskWithKnownGroups`, `TaskWithVocabulary`,
    `loss_rule`, `class_names`, `groups`, `group_names`, `field_vocabulary`, `marks`, `lexicons`, `streamed_splits` and
    `empty_splits`."""

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

    def restored(self, lexicon: Lexicon, classes: Sequence[str], groups: Mapping[str, Sequence[str]]) -> Task:
        """Returns the task with the words, and the names of classes and groups, that a run has recorded."""


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
    """Returns the text of each token of a field. A field may have a vocabulary of its own, as the field `source` the
    task's `source_vocabulary`."""
    own: tuple[str, ...] | None = getattr(task, f"{field}_vocabulary", None)
    return tuple(task.vocabulary if own is None else own)


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


def streamed_splits(task: Task) -> tuple[str, ...]:
    """Returns the splits that are read while a model trains, which are the task's `streamed_splits`. Their parts are
    instances of `StreamPart`; `generate` returns the first one."""
    return tuple(getattr(task, "streamed_splits", ()))


def empty_splits(task: Task) -> tuple[str, ...]:
    """Returns the splits that have no items because their statics, such as `valid_size`, are 0; none if 0 means the
    published size, as the task's `has_published_sizes` says."""
    if getattr(task, "has_published_sizes", False):
        return ()
    return tuple(split for split in task.split_names() if getattr(task, f"{split}_size", None) == 0)


def spell(task: Task, tokens: Iterable[int]) -> str:
    """Returns tokens as text, separated by spaces."""
    return " ".join(task.vocabulary[token] for token in tokens)


class ShippedTask(ABC):
    """A task of this folder. The signature in the `.arch` file beside its module declares its statics, which are its
    attributes; a class annotates the types of its own. `sizes` are those that the signature gives.

    Raises:
        TaskError: a static is unknown, has another kind, or violates a condition of `where` or of `check`."""

    train: Interval
    train_size: int
    iid_size: int
    valid_size: int
    test_size: int
    begin_end: bool

    name: ClassVar[str]
    kind: ClassVar[Kind]
    unit: ClassVar[Unit]
    metrics: ClassVar[tuple[str, ...]]
    splits: ClassVar[tuple[str, ...]] = ("train", "valid", "test")
    # Statics, numbers and ranges of numbers, of which no two may overlap, because items of two splits could be equal.
    disjoint: ClassVar[tuple[str, ...]] = ()
    version = 1

    def __init_subclass__(cls) -> None:
        if cls.__module__.startswith("archlang.tasks."):  # a subclass elsewhere keeps the signature of its base
            cls.name = cls.__module__.rpartition(".")[2]
            own = vars(cls)
            if "kind" in own and not hasattr(cls, "unit"):
                cls.unit = _UNITS[cls.kind]
            if "unit" in own and "metrics" not in own:
                cls.metrics = _METRICS[cls.unit]

    def __init__(self, **statics: object) -> None:
        self._bind(statics).finish()
        self.check_overlaps(self.disjoint)
        self.check()

    @classmethod
    def unchecked(cls, **statics: object) -> Self:
        """Returns the task with statics that are not checked."""
        task = cls.__new__(cls)
        task._bind(statics)
        return task

    def _bind(self, statics: Mapping[str, object]) -> Binding:
        declaration = self.declared()
        item = declaration.item
        parameters = {parameter.name: parameter for parameter in item.signature.statics}
        bounds = {}
        for name, static in statics.items():
            if name not in parameters:
                refuse(name_mistakes.unknown_static(item.span, name, self.name, parameters, item.name_span))
            kind = parameter_kind(parameters[name], declaration.file) or ""
            value = coerce(evaluated(static, kind), kind)
            if value is MISFIT:
                refuse(name_mistakes.wrong_kind(item.span, name, kind, f"`{static}`", None))
            bounds[name] = Bound(value, None)
        binding = Binding(declaration, item.span, bounds, refuse)
        values = {name: bound.value for name in parameters if isinstance(bound := binding.lookup(name), Bound)}
        self.keep({name: python_value(plain(value)) for name, value in values.items()}, binding)
        self.sizes = sizes_of_task(binding)
        return binding

    @classmethod
    def declared(cls) -> Declaration:
        """Returns the signature of the task."""
        item = library.task(cls.name)
        assert item is not None, f"{cls.name}.arch declares it"
        return prelude(item)

    def keep(self, statics: Mapping[str, object], binding: Binding) -> None:
        """Makes the values of statics attributes."""
        for name, value in statics.items():
            setattr(self, name, value)

    def check_overlaps(self, statics: Iterable[str]) -> None:
        """Raises TaskError if two of the numbers and ranges that these statics have overlap."""
        parts: list[tuple[str, Interval | int]] = []
        for static in statics:
            value = getattr(self, static)
            parts += [(static, part) for part in (value if isinstance(value, tuple) else (value,))]
        for (first, part), (second, other) in combinations(parts, 2):
            (low, high), (other_low, other_high) = _ends(part), _ends(other)
            if low <= other_high and other_low <= high:
                raise mistakes.ranges_overlap(first, part, second, other, self.name)

    def check_ranges(self, statics: Iterable[str], low: int, high: int) -> None:
        """Raises TaskError if a range leaves `low`..`high`."""
        for static in statics:
            interval = getattr(self, static)
            if not low <= interval.low <= interval.high <= high:
                raise mistakes.range_out_of_bounds(static, interval, self.name, low, high)

    def check_even(self, statics: Iterable[str]) -> None:
        """Raises TaskError if a range has no even number."""
        for static in statics:
            value = getattr(self, static)
            for interval in value if isinstance(value, tuple) else (value,):
                if interval.low == interval.high and interval.low % 2:
                    raise mistakes.no_even_number(static, interval)

    def check_available(self, available: Mapping[str, int], remedy: str) -> None:
        """Raises TaskError, which names all of them, if splits are larger than the numbers of items that there are;
        `remedy` says what makes more."""
        sizes = {
            f"{split}_size": (self.size(split), most) for split, most in available.items() if self.size(split) > most
        }
        if sizes:
            raise mistakes.too_many_items(self.name, sizes, remedy)

    def check(self) -> None:  # noqa: B027 # most tasks have no such condition
        """Raises TaskError if the statics violate a condition that `where` cannot state."""

    @property
    def in_distribution(self) -> tuple[str, ...]:
        return ("train", "valid")

    def split_names(self) -> tuple[str, ...]:
        """Returns the names of the splits, `train` first."""
        return self.splits

    def generate(self, split: str, seed: int) -> Split:
        """Returns a split, as `Task.generate` says."""
        if split not in self.split_names():
            raise mistakes.unknown_split(self.name, split, self.split_names())
        return self.make(split, seed)

    def spell(self, tokens: Iterable[int]) -> str:
        """Returns tokens as text, separated by spaces."""
        return spell(self, tokens)  # type: ignore[arg-type] # a subclass is a `Task`

    def enclosed(self, x: Ragged) -> Ragged:
        """Returns sequences between `[B]` and `[E]`, which are the last tokens, if `begin_end` asks for these."""
        vocab = self.sizes["vocab"]
        return enclose(x, begin=vocab - 1, end=vocab - 2) if self.begin_end else x

    @abstractmethod
    def make(self, split: str, seed: int) -> Split:
        """Returns one of the splits."""

    def size(self, split: str) -> int:
        """The number of items that the statics ask of a split."""
        number: int = getattr(self, f"{split}_size")
        return number


class PairTask(ShippedTask):
    """A task whose answers are texts, and whose vocabulary ends with `[E]` and `[B]`."""

    kind = Kind.SEQ2SEQ
    marks = PAIR_MARKS

    @property
    def begin(self) -> int:
        return self.sizes["vocab"] - 1

    @property
    def end(self) -> int:
        return self.sizes["vocab"] - 2

    def pairs(
        self,
        source: Ragged,
        target: Ragged,
        groups: Mapping[str, Integers],
        source_marks: tuple[int, int] | None = None,
    ) -> Split:
        """Returns pairs of sequences [N] with their groups [N] as a split: `source` is `[B] words [E]`, the decoder's
        input `target` is `[B] words`, and the targets are `words [E]`. `source_marks` are the `[B]` and `[E]` of a
        source with its own vocabulary."""
        first, last = source_marks or (self.begin, self.end)
        targets = append(target, self.end)
        fields = {"source": enclose(source, begin=first, end=last), "target": shift(targets, self.begin)}
        return Split(fields, targets, groups=groups)


def _ends(part: Interval | int) -> tuple[int, int]:
    return (part.low, part.high) if isinstance(part, Interval) else (part, part)


def python_value(value: StaticValue | None) -> object:
    """Returns a static as the class of a task receives it, with texts in place of symbols."""
    if isinstance(value, tuple):
        return tuple(python_value(item) for item in value)
    return value.text if isinstance(value, Symbol) else value


def refuse(diagnostic: Diagnostic) -> None:
    raise mistakes.TaskError(diagnostic.message, diagnostic.remedy or "`archlang tasks` shows the signature")
