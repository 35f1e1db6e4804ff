"""The values that static expressions evaluate to, and their kinds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from archlang.names.resolve import Declaration
from archlang.source import Span
from archlang.types import Dim
from archlang.types.statics import Interval, Symbol

KINDS = ("int", "float", "bool", "symbol", "range", "list", "block", "path", "file")


@dataclass(frozen=True)
class Unknown:
    """A static of a known kind whose value is not known: a block is checked on its own, without a call."""

    kind: str


@dataclass(frozen=True, eq=False)
class BlockValue:
    """A block as a static, with the statics that are settled already."""

    declaration: Declaration
    settled: Mapping[str, Bound] = field(default_factory=dict)


@dataclass(eq=False)
class InstanceValue:
    """An instance named by `let`: calls of it share the weights at `path`."""

    name: str
    block: BlockValue
    path: str
    span: Span
    features: dict[str, Dim] = field(default_factory=dict)


# Whole numbers are sizes (`Dim`), so that they may be symbolic. None: a mistake was already reported.
Value = Dim | float | bool | str | Symbol | Interval | tuple["Value", ...] | BlockValue | InstanceValue | Unknown | None


@dataclass(frozen=True, eq=False)
class Bound:
    """A static with its value and the place that gave it."""

    value: Value
    span: Span | None


@dataclass(frozen=True)
class Data:
    """A name that flows at run time, as seen from between brackets."""

    span: Span


@dataclass(frozen=True)
class Length:
    """A length, as seen from where a static is expected; `span` is where it was bound."""

    span: Span


def may_be_symbol(value: Value) -> bool:
    """Whether a static is a symbol, as far as is known."""
    return value is None or isinstance(value, Symbol) or (isinstance(value, Unknown) and value.kind == "symbol")


def equal(left: Value, right: Value) -> bool | None:
    if isinstance(left, Dim) and isinstance(right, Dim):
        difference = (left - right).constant
        return None if difference is None else difference == 0
    first, second = as_float(left), as_float(right)
    if first is not None and second is not None:
        return first == second
    if isinstance(left, Dim) or isinstance(right, Dim):
        return None if {type(left), type(right)} <= {Dim, float} else False
    return type(left) is type(right) and left == right


def as_float(value: Value) -> float | None:
    if isinstance(value, bool):
        return None
    if isinstance(value, float):
        return value
    if isinstance(value, Dim) and value.constant is not None:
        return float(value.constant)
    return None


def describe(value: Value) -> str:
    """A value in the user's words, for messages."""
    match value:
        case bool():
            return f"`{str(value).lower()}`"
        case Dim():
            number = value.constant
            return f"the whole number `{value}`" if number is not None else f"the size `{value}`"
        case float():
            return f"the number `{value}`"
        case str():
            return "a text"
        case Symbol():
            return f"the word `{value}`"
        case Interval():
            return f"the range `{value}`"
        case tuple():
            return "a list"
        case BlockValue():
            return f"the block `{value.declaration.name}`"
        case InstanceValue():
            return f"the instance `{value.name}`"
        case Unknown():
            return f"a static of kind `{value.kind}`"
    return "nothing"


def show(value: Value) -> str:
    """A value as it would be written in a program."""
    match value:
        case bool():
            return str(value).lower()
        case str():
            return f'"{value}"'
        case tuple():
            return f"[{', '.join(show(item) for item in value)}]"
        case BlockValue():
            return value.declaration.name
        case InstanceValue():
            return value.name
        case Unknown():
            return "…"
    return str(value)


def coerce(value: Value, kind: str) -> Value | Unknown:
    """The value as one of `kind`; `Unknown("")` if it is of another kind."""
    match kind, value:
        case (_, None) | (_, Unknown()):
            return value
        case "int", Dim():
            return value
        case "float", float():
            return value
        case "float", Dim():
            number = value.constant
            return Unknown("float") if number is None else float(number)
        case ("bool", bool()) | ("symbol", Symbol()) | ("path", Symbol()) | ("range", Interval()) | ("list", tuple()):
            return value
        case "file", str():
            return value
        case "block", BlockValue() | InstanceValue():
            return value
        case "range", Dim():
            number = value.constant
            return Unknown("range") if number is None else Interval(number, number)
    return MISFIT


MISFIT = Unknown("")


def kind_of(value: Value) -> str | None:
    """The kind that a default shows."""
    match value:
        case bool():
            return "bool"
        case Dim():
            return "int"
        case float():
            return "float"
        case Symbol():
            return "path" if "." in value.text else "symbol"
        case Interval():
            return "range"
        case tuple():
            return "list"
        case BlockValue() | InstanceValue():
            return "block"
    return None
