"""The values of statics."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass


@dataclass(frozen=True)
class Symbol:
    """A word such as `xpos`, or a dotted path such as `valid.accuracy`."""

    text: str

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True)
class Interval:
    """`low..high`; both ends are included."""

    low: int
    high: int

    def __str__(self) -> str:
        return f"{self.low}..{self.high}"

    def values(self) -> range:
        """Returns the integers of the interval."""
        return range(self.low, self.high + 1)


@dataclass(frozen=True)
class InstanceOf:
    """An instance named by `let` as the static of a block (`unembed[e]`); `path` is its path in the graph."""

    path: str


# The value of a static in a graph. The constructor of a Python block receives a `Symbol` as a string.
StaticValue = bool | int | float | str | Symbol | Interval | InstanceOf | tuple["StaticValue", ...]


def instances_in(statics: Iterable[StaticValue]) -> Iterator[str]:
    """Yields the paths of the instances among some statics, also those in lists."""
    for static in statics:
        if isinstance(static, InstanceOf):
            yield static.path
        elif isinstance(static, tuple):
            yield from instances_in(static)
