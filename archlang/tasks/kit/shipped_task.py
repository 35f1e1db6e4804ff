"""The class of a shipped task: its statics are those of its signature, with its defaults, checked by its `where`."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from itertools import combinations
from typing import ClassVar, Self

from archlang.diagnostics import Diagnostic
from archlang.elaborate.binding import Binding, sizes_of_task
from archlang.elaborate.static_arguments import evaluated, plain
from archlang.names import library, static_mistakes
from archlang.names.resolve import prelude
from archlang.names.values import MISFIT, Bound, coerce
from archlang.tasks.kit import mistakes
from archlang.tasks.kit.ragged import Integers, Ragged, append, enclose, shift
from archlang.tasks.kit.split import Split
from archlang.tasks.kit.task import PAIR_MARKS, Kind, Unit
from archlang.types.statics import Interval, StaticValue, Symbol


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
    splits: ClassVar[tuple[str, ...]] = ("train", "valid", "test")
    # Statics, numbers and ranges of numbers, of which no two may overlap, because items of two splits could be equal.
    disjoint: ClassVar[tuple[str, ...]] = ()
    version = 1

    def __init_subclass__(cls) -> None:
        cls.name = cls.__module__.rpartition(".")[2]

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
        item = library.task(self.name)
        assert item is not None, f"{self.name}.arch declares it"
        parameters = {parameter.name: parameter for parameter in item.signature.statics}
        bounds = {}
        for name, static in statics.items():
            if name not in parameters:
                _refuse(static_mistakes.unknown_static(item.span, name, self.name, parameters, item.name_span))
            kind = parameters[name].kind or ""
            value = coerce(evaluated(static, kind), kind)
            if value is MISFIT:
                _refuse(static_mistakes.wrong_kind(item.span, name, kind, f"`{static}`", None))
            bounds[name] = Bound(value, None)
        binding = Binding(prelude(item), item.span, bounds, _refuse, lambda call, target: None)
        for name in parameters:
            bound = binding.lookup(name)
            assert isinstance(bound, Bound)
            setattr(self, name, python_value(plain(bound.value)))
        self.sizes = sizes_of_task(binding)
        return binding

    def check_overlaps(self, statics: Iterable[str]) -> None:
        """Raises TaskError if two of the numbers and ranges that these statics have overlap."""
        parts: list[tuple[str, Interval | int]] = []
        for static in statics:
            value = getattr(self, static)
            parts += [(static, part) for part in (value if isinstance(value, tuple) else (value,))]
        for (first, part), (second, other) in combinations(parts, 2):
            (low, high), (other_low, other_high) = _ends(part), _ends(other)
            if low <= other_high and other_low <= high:
                raise mistakes.ranges_overlap(self.name, first, part, second, other)

    def check_ranges(self, statics: Iterable[str], low: int, high: int) -> None:
        """Raises TaskError if a range leaves `low`..`high`."""
        for static in statics:
            interval = getattr(self, static)
            if not low <= interval.low <= interval.high <= high:
                raise mistakes.range_out_of_bounds(self.name, static, interval, low, high)

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
    unit = Unit.SEQUENCE
    metrics: ClassVar[tuple[str, ...]] = ("accuracy", "token_accuracy")

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


def _refuse(diagnostic: Diagnostic) -> None:
    raise mistakes.TaskError(diagnostic.message, diagnostic.remedy or "`archlang tasks` shows the signature")
