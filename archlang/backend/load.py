"""From a file to a module in one call."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from archlang import compile as compiler
from archlang.backend.architecture import Architecture
from archlang.backend.build import build
from archlang.types.statics import Interval, StaticValue, Symbol


def load(
    path: str | Path,
    model: str | None = None,
    recipe: str | None = None,
    *,
    plugins: bool = False,
    without_passes: Collection[str] = (),
    **statics: object,
) -> Architecture:
    """The module of a model: of the one that `recipe` trains; else of the one called `model`; else of the one that the
    file's first recipe trains; else of the file's first.

    `statics` are the model's own (`d=128`, `attend="attention"`), and without a recipe the sizes that a task would give
    (`vocab=21, classes=10`). `plugins` lets the file name Python outside of archlang's blocks, which is then run.
    `without_passes` leaves passes of the compiler out, by the names that `archlang show --passes` prints.

        module = load("gut.arch", "gut", vocab=21, classes=10, depth=6)
        logits = module(tokens, lengths=lengths)

    Raises:
        ProgramError: the file has mistakes.
        BuildError: it has none, but no module can be made of it as it is."""
    given = {name: _static(value) for name, value in statics.items()}
    if recipe is not None or (model is None and compiler.has_recipe(path)):
        sets = {f"model.{name}": _text(value) for name, value in given.items()}
        return build(compiler.plan(path, recipe, sets).graph, plugins=plugins, without=without_passes)
    return build(compiler.graph(path, model, given), plugins=plugins, without=without_passes)


def _static(value: object) -> StaticValue:
    """A value of Python as a static: a string is a symbol, a range of Python has its end excluded."""
    match value:
        case str():
            return Symbol(value)
        case range(start=low, stop=stop, step=1):
            return Interval(low, stop - 1)
        case list() | tuple():
            return tuple(_static(one) for one in value)
        case bool() | int() | float() | Interval() | Symbol():
            return value
    raise TypeError(f"a static cannot be {value!r}")


def _text(value: StaticValue) -> str:
    """A static as the language writes it."""
    match value:
        case bool():
            return "true" if value else "false"
        case tuple():
            return f"[{', '.join(map(_text, value))}]"
    return str(value)
