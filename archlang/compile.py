"""The whole compiler: text to tree to graph to plan, one phase after another."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from archlang.diagnostics import Diagnostic, ProgramError
from archlang.diagnostics.effort import TooMuchWork, limited
from archlang.diagnostics.log import DiagnosticLog
from archlang.elaborate import mistakes as elaborate_mistakes
from archlang.elaborate.elaborator import elaborate
from archlang.elaborate.signature import TASK_SIZES, parameter_kind
from archlang.elaborate.signature_check import check_signature
from archlang.graph.graph import Graph
from archlang.names import mistakes as name_mistakes
from archlang.names.mistakes import too_much_work
from archlang.names.resolve import Declaration, Loader, ResolvedFile
from archlang.names.unused import unused_names
from archlang.names.values import (
    BlockValue,
    Bound,
    Value,
)
from archlang.plan import mistakes
from archlang.plan.plan import Chosen, Plan
from archlang.plan.recipe import Planner, model_sizes, parts_of
from archlang.plan.search import SearchPlan, SearchPlanner
from archlang.plan.table import TablePlan, TablePlanner
from archlang.source import Source, Span
from archlang.syntax.parser import parse_setting
from archlang.syntax.tree import Boolean, Definition, Extern, Name, Number, Recipe, Setting, Table
from archlang.syntax.walk import walk
from archlang.types import Dim
from archlang.types.statics import Interval, StaticValue, Symbol

# Steps of work that a check may take for blocks, models and the first point of each recipe, and with all other points.
MOST_STEPS = 250_000
MOST_STEPS_WITH_POINTS = 450_000


def check(path: str | Path) -> tuple[Diagnostic, ...]:
    """Every mistake of a file: of each block and model on its own, and of the points of each recipe."""
    loader = Loader()
    try:
        resolved = loader.load(path)
    except ProgramError as error:
        return error.diagnostics
    return _check(resolved, loader.diagnostics)


def check_text(text: str, path: str = "<text>") -> tuple[Diagnostic, ...]:
    """Every mistake of a program that is in hand; `use "./…"` looks beside `path`."""
    loader = Loader()
    resolved = loader.load_source(Source(path, text))
    return _check(resolved, loader.diagnostics)


def _check(resolved: ResolvedFile, diagnostics: Iterable[Diagnostic]) -> tuple[Diagnostic, ...]:
    """`diagnostics` are those of loading."""
    report = DiagnosticLog()
    try:
        report.add(diagnostics)
        if not report.has("E0210"):  # a circle of blocks cannot be unfolded
            _check_file(resolved, report)
        if any(diagnostic.code.startswith("E01") for diagnostic in diagnostics):
            # What is missing may stand where the text could not be read.
            return tuple(diagnostic for diagnostic in report.sorted() if diagnostic.code != "E0214")
    except ProgramError as error:
        return error.diagnostics  # there are more errors than are shown
    return report.sorted()


def _check_file(resolved: ResolvedFile, report: DiagnosticLog) -> None:
    later: list[Callable[[], None]] = []
    item: Definition | Extern | Recipe | Table | None = None
    try:
        with limited(MOST_STEPS) as budget:
            for declaration in (*resolved.own.values(), *resolved.used.values()):
                item = declaration.item
                check_signature(declaration, report)
            if report.has("E0425"):
                return  # sizes that have two meanings would lead to further mistakes
            for declaration in resolved.own.values():
                item = declaration.item
                _check_body(declaration, report)
                if report.has("E0421"):
                    return  # what is built on a block that is too large is too large
            report.settle()
            for item in resolved.tasks.values():
                check_signature(Declaration(item, resolved), report)
            for item in resolved.recipes.values():
                planner = Planner(resolved, parts_of(item, report), report)
                search = SearchPlanner(planner)
                planner.check()
                search.check()
                later += [planner.check_points] if planner.parts.vary else []
                later += [search.check_points] if planner.parts.search else []
            tables = TablePlanner(resolved, report)
            for item in resolved.tables.values():
                tables.check(item)
                later.append(partial(tables.check_points, item))
    except TooMuchWork:
        assert item is not None, "an empty program takes no work"
        report(too_much_work(item.name_span, item.name, MOST_STEPS))
        return
    left = MOST_STEPS_WITH_POINTS - budget.spent
    for number, check_points in enumerate(later):
        # What one does not need is left to the others.
        with limited(left // (len(later) - number)) as budget:
            check_points()
        left -= budget.spent


def _check_body(declaration: Declaration, report: DiagnosticLog) -> None:
    if isinstance(declaration.item, Definition):
        ambient = model_sizes({}) if declaration.item.word == "model" else {}
        elaborate(declaration, {}, ambient, declaration.span, report, generic=True)
        report.add(unused_names(declaration.item))


def plan(path: str | Path, recipe: str | None = None, sets: Mapping[str, str] | None = None) -> Plan:
    """The first point of a recipe, with settings such as `{"model.d": "128"}` on top.

    Raises:
        ProgramError: the file has mistakes, or names no such recipe."""
    planner, report = _planner(path, recipe, sets)
    point = planner.plan(planner.first_point())
    report.stop_at_errors()
    assert point is not None, "a plan fails without a mistake"
    return point


def _planner(path: str | Path, recipe: str | None, sets: Mapping[str, str] | None) -> tuple[Planner, DiagnosticLog]:
    """A recipe, taken apart, with settings on top."""
    report = DiagnosticLog()
    loader = Loader()
    resolved = loader.load(path)
    report.add(loader.diagnostics)
    report.stop_at_errors()
    chosen = resolved.recipes.get(recipe) if recipe else next(iter(resolved.recipes.values()), None)
    if chosen is None:
        start = Span(resolved.program.source, 0, 0)
        if recipe and resolved.recipes:
            raise ProgramError([mistakes.unknown_recipe(start, recipe, resolved.recipes)])
        raise ProgramError([mistakes.no_recipe(start, str(path))])
    settings = {name: _setting(name, text) for name, text in (sets or {}).items()}
    planner = Planner(resolved, parts_of(chosen, report), report, settings)
    report.stop_at_errors()
    planner.check_paths()
    return planner, report


def table(
    path: str | Path,
    name: str | None = None,
    sets: Mapping[str, str] | None = None,
    seeds: Sequence[int] = (),
    recipes: Sequence[str] = (),
) -> TablePlan:
    """A table of a file: the one called `name`, or its first. A file without one gives a row for each point that its
    recipes vary, or those of `recipes`. `sets` are settings of every recipe; `seeds` go before those that are varied.

    Raises:
        ProgramError: the file has mistakes, names no such table, or has no recipe."""
    report = DiagnosticLog()
    loader = Loader()
    resolved = loader.load(path)
    report.add(loader.diagnostics)
    report.stop_at_errors()
    start = Span(resolved.program.source, 0, 0)
    if not resolved.recipes:
        raise ProgramError([mistakes.no_recipe(start, str(path))])
    if name and name not in resolved.tables:
        raise ProgramError([mistakes.unknown_table(start, name, resolved.tables)])
    settings = {path: _setting(path, text) for path, text in (sets or {}).items()}
    planner = TablePlanner(resolved, report, settings, seeds)
    chosen = resolved.tables.get(name) if name else next(iter(resolved.tables.values()), None)
    found = planner.of_recipes(recipes) if recipes or chosen is None else planner.plan(chosen)
    report.stop_at_errors()
    assert found is not None, "a table fails without a mistake"
    return found


def search(path: str | Path, recipe: str | None = None, sets: Mapping[str, str] | None = None) -> SearchPlan:
    """Where a recipe's statics are looked for, and the plan of any place there.

    Raises:
        ProgramError: the file has mistakes, names no such recipe, or the recipe looks for nothing."""
    planner, report = _planner(path, recipe, sets)
    found = SearchPlanner(planner).plan()
    report.stop_at_errors()
    assert found is not None, "a search fails without a mistake"
    return found


def task(text: str, sets: Mapping[str, str] | None = None, beside: str | Path | None = None) -> Chosen:
    """A task as a recipe names it, such as `scan[split = length]`, with settings such as `{"split": "jump"}` on top.
    `beside` is a program whose own tasks are known too.

    Raises:
        ProgramError: there is no such task, or it has no such statics."""
    report = DiagnosticLog()
    loader = Loader()
    own = loader.load(beside) if beside is not None else None
    resolved = loader.load_source(Source("<command line>", f"recipe shown {{\n    task {text}\n}}\n"))
    report.add(loader.diagnostics)
    report.stop_at_errors()
    if own is not None:
        resolved = replace(
            resolved, program=replace(resolved.program, items=(*resolved.program.items, *own.tasks.values()))
        )
    parts = parts_of(next(iter(resolved.recipes.values())), lambda missing: None)
    settings = {f"task.{name.removeprefix('task.')}": text for name, text in (sets or {}).items()}
    planner = Planner(resolved, parts, report, {name: _setting(name, text) for name, text in settings.items()})
    report.stop_at_errors()
    found = planner.task()
    report.stop_at_errors()
    assert found is not None, "a task fails without a mistake"
    return found


def recipes(path: str | Path) -> tuple[str, ...]:
    """The names of a file's recipes.

    Raises:
        ProgramError: it cannot be read."""
    return tuple(Loader().load(path).recipes)


def has_recipe(path: str | Path) -> bool:
    """Whether a file has a recipe; one that cannot be read has none."""
    try:
        return bool(Loader().load(path).recipes)
    except ProgramError:
        return False


def _setting(name: str, text: str) -> Setting:
    setting, found = parse_setting(name, text)
    if setting is None:
        raise ProgramError(found)
    return setting


def graph(path: str | Path, model: str | None = None, statics: Mapping[str, StaticValue] | None = None) -> Graph:
    """The graph of a model without a recipe: of the one called `model`, or the first of the file. `statics` are its
    own and the sizes that a task would give, `vocab` and `classes`.

    Raises:
        ProgramError: the file has mistakes, or no such model."""
    report = DiagnosticLog()
    loader = Loader()
    resolved = loader.load(path)
    report.add(loader.diagnostics)
    report.stop_at_errors()
    declaration = _find_model(resolved, model)
    given = dict(statics or {})
    _require_statics(declaration, given)
    gives = {name: size for name in ("vocab", "classes") if isinstance(size := given.pop(name, None), int)}
    bound = {name: Bound(_value(value), None) for name, value in given.items()}
    for parameter in declaration.item.signature.statics:
        value = given.get(parameter.name)
        if isinstance(value, Symbol) and parameter_kind(parameter, resolved) == "block":
            block = resolved.find(value.text)
            if block is not None:
                bound[parameter.name] = Bound(BlockValue(block), None)
    found, _, _ = elaborate(declaration, bound, model_sizes(gives), declaration.span, report)
    report.stop_at_errors()
    if found is None:
        raise ProgramError([elaborate_mistakes.needs_task(declaration.span, declaration.name, ("vocab", "classes"))])
    return found


def _require_statics(declaration: Declaration, given: Mapping[str, StaticValue]) -> None:
    """Refuses what is neither a static of a model nor a size that a task gives.

    Raises:
        ProgramError: there is such a thing, or a size is no whole number."""
    signature, start, name = declaration.item.signature, declaration.span, declaration.name
    known = {*TASK_SIZES, *(parameter.name for parameter in signature.statics)}
    types = [*(parameter.type for parameter in signature.inputs), *filter(None, [signature.result])]
    known |= {node.text for written in types for node in walk(written) if isinstance(node, Name)}
    for unknown in sorted(given.keys() - known):
        raise ProgramError([name_mistakes.unknown_static(start, unknown, name, known, start)])
    for size in TASK_SIZES:
        if size in given and (isinstance(given[size], bool) or not isinstance(given[size], int)):
            raise ProgramError([name_mistakes.wrong_kind(start, size, "int", f"`{given[size]}`", None)])


def statics_of(settings: Mapping[str, str]) -> dict[str, StaticValue]:
    """Settings of a command line, such as `{"model.d": "128"}`, as statics of a model."""
    statics: dict[str, StaticValue] = {}
    for name, text in settings.items():
        setting = _setting(name, text)
        match setting.value:
            case Number(value=value) | Boolean(value=value):
                statics[name.removeprefix("model.")] = value
            case _:
                statics[name.removeprefix("model.")] = Symbol(text)
    return statics


def _find_model(resolved: ResolvedFile, name: str | None) -> Declaration:
    definitions = {
        key: declaration
        for key, declaration in resolved.own.items()
        if isinstance(declaration.item, Definition) and (declaration.item.word == "model" or key == name)
    }
    found = definitions.get(name) if name else next(iter(definitions.values()), None)
    if found is None:
        start = Span(resolved.program.source, 0, 0)
        mistake = name_mistakes.unknown_model(start, name, definitions) if name else name_mistakes.no_model(start)
        raise ProgramError([mistake])
    return found


def _value(value: StaticValue) -> Value:
    match value:
        case bool() | float() | Interval() | Symbol():
            return value
        case int():
            return Dim.of(value)
        case str():
            return Symbol(value)
        case tuple():
            return tuple(_value(item) for item in value)
    raise TypeError(f"a static cannot be a {type(value).__name__}")
