"""The values of statics."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from math import isfinite
from typing import Annotated, Any

from archlang.disk.limits import LARGEST_INTEGER


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


class _AsJson:
    """How pydantic reads and writes a static: it cannot derive a schema from the recursive union."""

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> Any:  # Any: pydantic's
        from pydantic_core import core_schema

        return core_schema.no_info_plain_validator_function(
            static_from_json, serialization=core_schema.plain_serializer_function_ser_schema(static_to_json)
        )


# The value of a static in a graph. The constructor of a Python block receives a `Symbol` as a string.
StaticValue = Annotated[
    bool | int | float | str | Symbol | Interval | InstanceOf | tuple["StaticValue", ...], _AsJson()
]


def static_to_json(value: StaticValue) -> Any:  # Any: JSON
    """Returns a static as JSON that `static_from_json` reads back."""
    match value:
        case Symbol(text=text):
            return {"symbol": text}
        case Interval(low=low, high=high):
            return {"range": [low, high]}
        case InstanceOf(path=path):
            return {"instance": path}
        case tuple():
            return [static_to_json(item) for item in value]
    return value


def static_from_json(value: Any) -> StaticValue:  # Any: JSON
    """Returns the static that `static_to_json` wrote, or a static unchanged.

    Raises:
        ValueError: `value` is neither."""
    match value:
        case {"symbol": str(text)}:
            return Symbol(text)
        case {"range": [int(low), int(high)]}:
            return Interval(low, high)
        case {"instance": str(path)}:
            return InstanceOf(path)
        case list() | tuple():
            return tuple(static_from_json(item) for item in value)
        case int() if not -LARGEST_INTEGER <= value <= LARGEST_INTEGER:
            raise ValueError("the number is out of range")
        case float() if not isfinite(value):
            raise ValueError("the number is out of range")
        case bool() | int() | float() | str() | Symbol() | Interval() | InstanceOf():
            return value
    raise ValueError("it is not a static")


def instances_in(statics: Iterable[StaticValue]) -> Iterator[str]:
    """Yields the paths of the instances among some statics, also those in lists.

    >>> list(instances_in([1, InstanceOf("a"), (2, (InstanceOf("b"),))]))
    ['a', 'b']"""
    for static in statics:
        if isinstance(static, InstanceOf):
            yield static.path
        elif isinstance(static, tuple):
            yield from instances_in(static)
