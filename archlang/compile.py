"""The compiler, phase after phase: parse, resolve, elaborate, optimize, build.

`load_file` parses a file, resolves its names and checks its signatures; the first two are one call, because `use` lines
name further files to parse.
`elaborate` makes a graph of a model, with the statics of a recipe or of the caller. `build` optimizes a graph by the
passes, and builds its torch module."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from archlang.elaborate.signature_check import load_file
from archlang.errors import Source
from archlang.graph.graph import Graph
from archlang.graph.passes import optimize
from archlang.graph.prune import normalize
from archlang.plan.from_file import plan_first_point, plugins_of
from archlang.plan.model_graphs import model_graph
from archlang.plan.overrides import model_statics_of, static_from_python, static_text
from archlang.plan.plan import Plan
from archlang.plugins import NO_PLUGINS, Plugins
from archlang.resolve.resolve import ResolvedFile
from archlang.types.statics import StaticValue

if TYPE_CHECKING:
    from archlang.backend.architecture import Architecture


def load(
    path: str | Path,
    model: str | None = None,
    recipe: str | None = None,
    *,
    plugins: Iterable[str | Path] = (),
    without_passes: Collection[str] = (),
    allow: Iterable[str | Path] = (),
    **statics: object,
) -> Architecture:
    """Compiles a model of a file, with the arguments of `archlang.load`.

    Raises:
        ProgramError: the file has mistakes.
        BuildError: a size is unknown, or a block's class is missing or its constructor raises.
        PluginError: a block's class is in no plugin, or its plugin cannot be imported."""
    values = {name: static_from_python(value) for name, value in statics.items()}
    sets = {f"model.{name}": static_text(value) for name, value in values.items()}
    resolved = load_file(path, allow)
    graph = elaborate(resolved, model, recipe, sets, values)
    module = build(graph, plugins_of(resolved, plugins), without=without_passes)
    program, *used = resolved.sources
    settings = {f"model.{name}": value for name, value in values.items()}
    if recipe is None and model is None:
        recipe = next(iter(resolved.recipes), None)
    add_origin(module, program, used, settings, recipe)
    return module


def load_named(
    path: str | Path | Source,
    model: str | None,
    recipe: str | None,
    sets: Mapping[str, str],
    *,
    plugins: Iterable[str | Path] = (),
    allow: Iterable[str | Path] = (),
    without: Collection[str] = (),
) -> Architecture:
    """Builds what a command line names, with arguments as of `compile_named`, and `plugins` and `without` as of
    `archlang.load`. Its origin has all settings of its recipe.

    Raises:
        ProgramError: the file has mistakes, or no such model, recipe or static.
        BuildError: a size is unknown, or a block's class is missing or its constructor raises.
        PluginError: a block's class is in no plugin, or its plugin cannot be imported."""
    resolved = load_file(path, allow)
    trusted = plugins_of(resolved, plugins)
    if recipe is None and (model is not None or not resolved.recipes):
        settings: Mapping[str, StaticValue] = model_statics_of(sets)
        module = build(model_graph(resolved, model, settings), trusted, without=without)
        settings = {f"model.{name}": value for name, value in settings.items()}
    else:
        plan = plan_first_point(resolved, recipe, sets)
        module = build(plan.graph, trusted, without=without)
        recipe, settings = plan.recipe, plan.settings
    program, *used = resolved.sources
    add_origin(module, program, used, settings, recipe)
    return module


def add_origin(
    module: Architecture,
    program: Source,
    used: Iterable[Source],
    settings: Mapping[str, StaticValue],
    recipe: str | None,
) -> None:
    """Adds to the origin of a built module the file of its model, the files that it uses, its settings, and the recipe
    that trains it."""
    origin = module.program.origin
    assert origin is not None
    origin = replace(origin, program=program, used=tuple(used), settings=settings, recipe=recipe)
    module.program = replace(module.program, origin=origin)


def compile_graph(
    path: str | Path, model: str | None = None, statics: Mapping[str, StaticValue] | None = None
) -> Graph:
    """Compiles a model of a file to its graph without a recipe: the model called `model`, or the first. `statics` are
    its own, and the sizes that a task would give, `vocab` and `classes`.

    Raises:
        ProgramError: the file has mistakes, or no such model or static."""
    return model_graph(load_file(path), model, statics or {})


def plan_named(
    path: str | Path | Source,
    model: str | None,
    recipe: str | None,
    sets: Mapping[str, str],
    allow: Iterable[str | Path] = (),
) -> Plan | None:
    """The first point of the recipe that a command line means, with arguments as of `compile_named`; None if it means a
    model without a recipe."""
    resolved = load_file(path, allow)
    means_recipe = recipe is not None or (model is None and resolved.recipes)
    return plan_first_point(resolved, recipe, sets, is_bounded=False) if means_recipe else None


def compile_named(
    path: str | Path | Source,
    model: str | None,
    recipe: str | None,
    sets: Mapping[str, str],
    allow: Iterable[str | Path] = (),
) -> Graph:
    """Compiles what a command line names to its graph. `sets` are settings such as `{"model.d": "128"}`; `allow` as of
    `load`.

    Raises:
        ProgramError: the file has mistakes, or no such model, recipe or static."""
    return elaborate(load_file(path, allow), model, recipe, sets, model_statics_of(sets))


def elaborate(
    resolved: ResolvedFile,
    model: str | None,
    recipe: str | None,
    sets: Mapping[str, str],
    statics: Mapping[str, StaticValue],
) -> Graph:
    """The graph of the model that a recipe trains, with `sets`; or of a model without a recipe, with `statics`. If
    neither `model` nor `recipe` is named, the file's first recipe is meant, if it has any.

    Raises:
        ProgramError: the model has mistakes, or the file has no such model or recipe."""
    if recipe is not None or (model is None and resolved.recipes):
        return plan_first_point(resolved, recipe, sets, is_bounded=False).graph
    return model_graph(resolved, model, statics)


def build(graph: Graph, plugins: Plugins = NO_PLUGINS, *, without: Collection[str] = ()) -> Architecture:
    """Optimizes a graph and builds its module, whose classes are those of archlang's blocks and of `plugins`. `without`
    names passes that are left out.

    Raises:
        BuildError: a size is unknown, or a block's class is missing or its constructor raises.
        PluginError: a block's class is in no plugin, or its plugin cannot be imported.
        ValueError: there is no such pass, or it cannot be left out."""
    # These import torch, which no phase before needs.
    from archlang.backend import mistakes
    from archlang.backend.architecture import Architecture
    from archlang.backend.attach import attach_program
    from archlang.backend.lower.instances import add_instances, classes_of
    from archlang.backend.lower.regions import Origin, lower

    optimized = optimize(graph, without)
    # A pass may make weights needless; the module has all weights of the model, whatever passes run.
    instances = normalize(graph).instances
    optimized = replace(optimized, instances=instances)
    # Features must be constant here; lengths may vary.
    if unknown := optimized.unknown_sizes:
        raise mistakes.unknown_sizes(graph.name, unknown)
    classes = classes_of(optimized, plugins)
    module = Architecture(lower(optimized, without, classes=classes))
    add_instances(module, optimized, classes)
    attach_program(module, module.program)
    used = plugins if graph.has_own_python else NO_PLUGINS  # those of a task are not of the model
    module.program = replace(module.program, origin=Origin(graph, tuple(sorted({*without})), used))
    return module
