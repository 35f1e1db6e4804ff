"""Settings of a command line or of Python, such as `--set model.d=128`, as syntax trees and as statics."""

from collections.abc import Mapping
from dataclasses import replace

from archlang.errors import ProgramError
from archlang.syntax.parser import parse_setting
from archlang.syntax.tree import Boolean, ListOf, Number, Setting, String
from archlang.types.statics import Interval, StaticValue, Symbol


def parse_overrides(sets: Mapping[str, str] | None) -> dict[str, Setting]:
    """Parses settings such as `{"model.d": "128"}`.

    Raises:
        ProgramError: a value is not an expression."""
    return {path: _parse(path, text) for path, text in (sets or {}).items()}


def model_statics_of(sets: Mapping[str, str]) -> dict[str, StaticValue]:
    """Settings such as `{"model.d": "128"}` as statics of a model by name.

    Raises:
        ProgramError: a value is not an expression."""
    statics: dict[str, StaticValue] = {}
    for path, text in sets.items():
        match _parse(path, text).value:
            case Number(value=value) | Boolean(value=value):
                statics[path.removeprefix("model.")] = value
            case _:
                statics[path.removeprefix("model.")] = Symbol(text)
    return statics


def static_from_python(value: object) -> StaticValue:
    """A Python value as a static: a string is a symbol, a Python range excludes its end."""
    match value:
        case str():
            return Symbol(value)
        case range(start=low, stop=stop, step=1):
            return Interval(low, stop - 1)
        case list() | tuple():
            return tuple(map(static_from_python, value))
        case bool() | int() | float() | Interval() | Symbol():
            return value
    raise TypeError(f"a static cannot be {value!r}")


def static_text(value: StaticValue) -> str:
    """A static as the language writes it."""
    match value:
        case bool():
            return "true" if value else "false"
        case tuple():
            return f"[{', '.join(map(static_text, value))}]"
    return str(value)


def static_setting(path: str, value: StaticValue) -> Setting:
    """A setting with the value of a static. A text may hold any characters, which the language cannot write."""
    texts = value if isinstance(value, tuple) else (value,)
    if not texts or not all(isinstance(text, str) for text in texts):
        return _parse(path, static_text(value))
    setting = _parse(path, '""')
    strings = tuple(String(value=str(text), span=setting.span) for text in texts)
    expression = ListOf(items=strings, span=setting.span) if isinstance(value, tuple) else strings[0]
    return replace(setting, value=expression)


def _parse(path: str, text: str) -> Setting:
    setting, diagnostics = parse_setting(path, text)
    if setting is None:
        raise ProgramError(diagnostics)
    return setting
