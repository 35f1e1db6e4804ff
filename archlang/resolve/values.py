"""The values that static expressions evaluate to, and their kinds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from archlang.errors import Span
from archlang.resolve.resolve import Declaration
from archlang.types import Dim
from archlang.types.statics import Interval, Symbol

KINDS = ("int", "float", "bool", "symbol", "range", "list", "block", "path", "file", "files")


@dataclass(frozen=True)
class Unknown:
    """A static of a known kind and an unknown value, as in a block that is checked without a call."""

    kind: str


@dataclass(frozen=True, eq=False)
class BlockValue:
    """A block as a static, with the statics that are already set."""

    declaration: Declaration
    settled: Mapping[str, Bound] = field(default_factory=dict)


@dataclass(eq=False)
class InstanceValue:
    """An instance named by `let`; its calls share the weights at `path`."""

    name: str
    block: BlockValue
    path: str
    span: Span
    features: dict[str, Dim] = field(default_factory=dict)


# Integers are `Dim`, because a size can be symbolic. None: a mistake is already reported.
Value = Dim | float | bool | str | Symbol | Interval | tuple["Value", ...] | BlockValue | InstanceValue | Unknown | None


@dataclass(frozen=True, eq=False)
class Bound:
    """The value of a static and the place that sets it."""

    value: Value
    span: Span | None


@dataclass(frozen=True)
class Data:
    """A name of a run-time value; `span` is the place that binds it."""

    span: Span


@dataclass(frozen=True)
class Length:
    """A name of a length; `span` is the place that binds it."""

    span: Span


def may_be_symbol(value: Value) -> bool:
    """Returns whether a static is a symbol or its kind is unknown."""
    return value is None or isinstance(value, Symbol) or (isinstance(value, Unknown) and value.kind == "symbol")


def equal(left: Value, right: Value) -> bool | None:
    """Returns whether two values are equal, or None if that depends on symbolic sizes."""
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
    """Returns a constant number as a float, or None for any other value."""
    if isinstance(value, bool):
        return None
    if isinstance(value, float):
        return value
    if isinstance(value, Dim) and value.constant is not None:
        return float(value.constant)
    return None


def describe(value: Value) -> str:
    """Returns a phrase for a value, for messages."""
    match value:
        case bool():
            return f"`{str(value).lower()}`"
        case Dim():
            number = value.constant
            return f"the integer `{value}`" if number is not None else f"the size `{value}`"
        case float():
            return f"the number `{value}`"
        case str():
            return "a string"
        case Symbol():
            return f"the symbol `{value}`"
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
    return "an invalid value"


def show(value: Value) -> str:
    """Returns a value in the syntax of a program."""
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


# What `coerce` returns for a value of another kind.
MISFIT = Unknown("")


def coerce(value: Value, kind: str) -> Value | Unknown:
    """Converts a value to `kind`; returns `MISFIT` if the value is of another kind."""
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
        case ("file" | "files", str()):
            return value
        case "files", tuple():
            return value if all(isinstance(item, str | None) for item in value) else MISFIT
        case "block", BlockValue() | InstanceValue():
            return value
        case "range", Dim():
            number = value.constant
            return Unknown("range") if number is None else Interval(number, number)
    return MISFIT
