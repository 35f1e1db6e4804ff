"""The values of statics: what stands between brackets once it is evaluated."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass


@dataclass(frozen=True)
class Symbol:
    """A bare word such as `xpos` or `graves`, or a dotted one such as `valid.accuracy`."""

    text: str

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True)
class Interval:
    """`low..high`, both included."""

    low: int
    high: int

    def __str__(self) -> str:
        return f"{self.low}..{self.high}"


@dataclass(frozen=True)
class InstanceOf:
    """An instance named by `let` and handed to a block (`unembed[e]`): its path in the graph."""

    path: str


# A static that reaches Python. `Symbol` becomes a plain string there, `Interval` stays.
StaticValue = bool | int | float | str | Symbol | Interval | InstanceOf | tuple["StaticValue", ...]


def instances_in(statics: Iterable[StaticValue]) -> Iterator[str]:
    """Yields the paths of the instances among some statics, also those in lists."""
    for static in statics:
        if isinstance(static, InstanceOf):
            yield static.path
        elif isinstance(static, tuple):
            yield from instances_in(static)
