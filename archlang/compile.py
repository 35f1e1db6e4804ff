"""The compiler: parse, resolve, elaborate, optimize, build, one phase after another."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from archlang.graph.graph import Graph
from archlang.graph.prune import normalize
from archlang.names.load import load_file
from archlang.passes import optimize
from archlang.plan.from_file import has_recipe, plan_recipe
from archlang.plan.model_graph import model_graph
from archlang.plan.overrides import model_statics_of
from archlang.types.statics import Interval, StaticValue, Symbol

if TYPE_CHECKING:
    from archlang.backend.architecture import Architecture


def load(
    path: str | Path,
    model: str | None = None,
    recipe: str | None = None,
    *,
    plugins: bool = False,
    without_passes: Collection[str] = (),
    **statics: object,
) -> Architecture:
    """Compiles a model of a file: the one that `recipe` trains; else the one called `model`; else the one that the
    file's first recipe trains; else the file's first.

    `statics` are the model's own (`d=128`, `attend="attention"`), and without a recipe the sizes that a task would give
    (`vocab=21, classes=10`). `plugins` allows the file to name Python outside of archlang's blocks, which is then run.
    `without_passes` leaves out passes by the names that `archlang show --passes` prints.

        module = load("gut.arch", "gut", vocab=21, classes=10, depth=6)
        logits = module(tokens, lengths=lengths)

    Raises:
        ProgramError: the file has mistakes.
        BuildError: a size is unknown, or a block's Python is missing or not allowed."""
    values = {name: _static(value) for name, value in statics.items()}
    if recipe is not None or (model is None and has_recipe(path)):
        graph = plan_recipe(path, recipe, {f"model.{name}": _text(value) for name, value in values.items()}).graph
    else:
        graph = compile_graph(path, model, values)
    return build(graph, plugins=plugins, without=without_passes)


def compile_graph(
    path: str | Path, model: str | None = None, statics: Mapping[str, StaticValue] | None = None
) -> Graph:
    """The graph of a model without a recipe: of the one called `model`, or the first of the file. `statics` are its
    own, and the sizes that a task would give, `vocab` and `classes`.

    Raises:
        ProgramError: the file has mistakes, or no such model or static."""
    resolved = load_file(path)  # parses too, as files that the program uses are parsed when their names are needed
    return model_graph(resolved, model, statics or {})


def build(graph: Graph, *, plugins: bool = False, without: Collection[str] = ()) -> Architecture:
    """Optimizes a graph and builds its module. `plugins` allows Python outside of `archlang.blocks`, which is then
    imported. `without` names passes that are left out.

    Raises:
        BuildError: a size is unknown, or a block's Python is missing or not allowed.
        ValueError: there is no such pass, or it cannot be left out."""
    from archlang.backend.build import build_module  # imports torch, which no phase before needs

    optimized = optimize(graph, without)
    # A pass may make weights needless; the module has all weights of the model, whatever passes run.
    instances = normalize(graph).instances
    return build_module(replace(optimized, instances=instances), plugins=plugins, ahead="ahead" not in without)


def named_graph(path: Path, model: str | None, recipe: str | None, sets: Mapping[str, str]) -> Graph:
    """The graph that a command line names: of a recipe of a file (its first if neither is given), or of a model with
    `sets`, such as `{"model.d": "128"}`.

    Raises:
        ProgramError: the file has mistakes, or no such model or recipe."""
    if recipe is not None or (model is None and has_recipe(path)):
        return plan_recipe(path, recipe, sets).graph
    return compile_graph(path, model, model_statics_of(sets))


def _static(value: object) -> StaticValue:
    """A Python value as a static: a string is a symbol, a Python range excludes its end."""
    match value:
        case str():
            return Symbol(value)
        case range(start=low, stop=stop, step=1):
            return Interval(low, stop - 1)
        case list() | tuple():
            return tuple(map(_static, value))
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
