"""The recipes, tables, searches and tasks of a file, planned."""

import os.path
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TypeVar

from archlang.elaborate.binding import sizes_of_task
from archlang.elaborate.signature_check import load_file
from archlang.errors import ProgramError, ignore
from archlang.errors.log import DiagnosticLog
from archlang.errors.source import Span, on_command_line
from archlang.plan import mistakes
from archlang.plan.cells import CellPlanner, plan_derived_table
from archlang.plan.overrides import parse_overrides, static_setting
from archlang.plan.plan import BoundExtern, Plan, TablePlan
from archlang.plan.planner import Planner, joined_recipe
from archlang.plan.recipe import read_parts, resolve_recipe
from archlang.plan.search import SearchPlan, plan_spaces
from archlang.plan.statics import bind, bound_extern
from archlang.plan.written_table import WrittenTable
from archlang.plugins import Plugins
from archlang.resolve.resolve import ProgramLoader, ResolvedFile, load_command_line
from archlang.syntax.tree import PAGE, Setting

Planned = TypeVar("Planned")


def plan_recipe(
    path: str | Path,
    recipe: str | None = None,
    sets: Mapping[str, str] | None = None,
    allow: Iterable[str | Path] = (),
    plugins: Iterable[str | Path] = (),
) -> Plan:
    """The first point of a recipe of a file, of its first recipe if `recipe` is None. `sets`, such as
    `{"model.d": "128"}`, override the recipe's settings. The file may also name files of the folders of `allow`, and
    classes of the Python files `plugins`, which are not run yet.

    Raises:
        ProgramError: the file has mistakes, or no such recipe.
        PluginError: a plugin cannot be read."""
    return plan_first_point(load_file(path, allow), recipe, sets, plugins)


class UnreadLine(AssertionError):
    """There is no plan, because a line of the program could not be read. Only an editor plans such a program."""


def plan_first_point(
    resolved: ResolvedFile,
    recipe: str | None,
    sets: Mapping[str, str] | None,
    plugins: Iterable[str | Path] = (),
    *,
    is_bounded: bool = True,
) -> Plan:
    """As `plan_recipe`, of a file that is already resolved; `is_bounded` as of `Planner.plan`."""
    planner, report = _planner(resolved, recipe, sets, plugins)
    return _without_errors(planner.plan(planner.first_point(), is_bounded=is_bounded), report)


def plan_search(
    path: str | Path,
    recipe: str | None = None,
    sets: Mapping[str, str] | None = None,
    allow: Iterable[str | Path] = (),
    plugins: Iterable[str | Path] = (),
) -> SearchPlan:
    """The search spaces of a recipe of a file, of its first recipe if `recipe` is None; `allow` and `plugins` as of
    `plan_recipe`.

    Raises:
        ProgramError: the file has mistakes or no such recipe, or the recipe has no `search`.
        PluginError: a plugin cannot be read."""
    planner, report = _planner(load_file(path, allow), recipe, sets, plugins)
    return _without_errors(plan_spaces(planner), report)


def plan_table(
    path: str | Path,
    name: str | None = None,
    sets: Mapping[str, str] | None = None,
    seeds: Sequence[int] = (),
    recipes: Sequence[str] = (),
    allow: Iterable[str | Path] = (),
    plugins: Iterable[str | Path] = (),
    only: Sequence[str] = (),
) -> TablePlan:
    """The table of a file called `name`, or its first. If the file has no table, or `recipes` are given, the table has
    a row for each point that the recipes vary. `sets` override settings of every recipe; `seeds` replace those that
    the recipes vary; `allow` and `plugins` as of `plan_recipe`. If the titles of rows match `only`, as in `NDR*`, the
    table has these rows alone.

    Raises:
        ProgramError: the file has mistakes, no such table, or no recipe.
        PluginError: a plugin cannot be read."""
    return TablePlanner(sets or {}, seeds, allow, plugins, only).plan(path, name, recipes)


@dataclass
class TablePlanner:
    """Plans tables of several files, and what they share once. The fields are arguments of `plan_table`."""

    sets: Mapping[str, str]
    seeds: Sequence[int]
    allow: Iterable[str | Path]
    plugins: Iterable[str | Path] = ()
    only: Sequence[str] = ()
    _cells: dict[str | Path, tuple[CellPlanner, DiagnosticLog]] = field(default_factory=dict, init=False, repr=False)

    def names(self, path: Path) -> tuple[str, ...]:
        """The names of a file's tables.

        Raises:
            ProgramError: the file cannot be read, or has mistakes."""
        return tuple(self._of_file(path)[0].file.tables)

    def plan(self, path: str | Path, name: str | None, recipes: Sequence[str] = ()) -> TablePlan:
        """As `plan_table`."""
        cells, report = self._of_file(path)
        try:
            file = cells.file
            if not file.recipes and not file.tables:
                raise ProgramError([mistakes.no_recipe(_start(file))])
            if name and name not in file.tables:
                shown = file.program.source.path
                raise ProgramError([mistakes.unknown_table(on_command_line(name), name, file.tables, shown)])
            table = file.tables.get(name) if name else next(iter(file.tables.values()), None)
            if recipes or table is None:
                return _without_errors(plan_derived_table(cells, recipes), report)
            return _without_errors(WrittenTable(cells, table).plan(), report)
        except Exception:
            del self._cells[path]  # the report of the next table begins without these errors
            raise

    def _of_file(self, path: str | Path) -> tuple[CellPlanner, DiagnosticLog]:
        if path not in self._cells:
            resolved, report = load_file(path, self.allow), DiagnosticLog()
            plugins, overrides = plugins_of(resolved, self.plugins), parse_overrides(self.sets)
            cells = CellPlanner(resolved, report, overrides, self.seeds, plugins, self.only)
            self._cells[path] = cells, report
        return self._cells[path]


def bind_task(
    text: str, sets: Mapping[str, str] | None = None, beside: str | Path | None = None, allow: Iterable[str | Path] = ()
) -> BoundExtern:
    """A task as a recipe writes it, such as `scan[split = length]`. `sets`, such as `{"split": "jump"}`, override its
    statics. `text` may name the tasks that the program `beside` declares, which may name files of the folders of
    `allow`.

    Raises:
        ProgramError: there is no such task, or it has no such statics."""
    resolved = _resolve_task(text, beside, allow)
    overrides = {f"task.{name.removeprefix('task.')}": text for name, text in (sets or {}).items()}
    return _bind(resolved, "task", parse_overrides(overrides))[0]


def task_sizes(text: str) -> dict[str, int]:
    """The sizes that a task gives its models, `vocab` and `classes`; `text` as of `bind_task`.

    Raises:
        ProgramError: there is no such task, or it has no such statics."""
    return _bind(_resolve_task(text, None, ()), "task", {})[1]


def _resolve_task(text: str, beside: str | Path | None, allow: Iterable[str | Path]) -> ResolvedFile:
    declaring = load_file(beside, allow) if beside is not None else None
    resolved = load_command_line(f"recipe shown {{\n    task {text}\n}}\n")
    if declaring is not None:
        items = (*resolved.program.items, *declaring.tasks.values())
        resolved = replace(resolved, program=replace(resolved.program, items=items), readable=declaring.readable)
    return resolved


def rebind(
    word: str, extern: BoundExtern, sets: Mapping[str, str] | None = None
) -> tuple[BoundExtern, Mapping[str, int]]:
    """A shipped task or a page (`word` is `task`), or a shipped optimizer (`train`), with its statics checked as in a
    recipe, and with defaults for those that are missing, and the sizes that it gives its models. `sets`, such as
    `{"task.test": "[64, 128]"}`, override its statics.

    Raises:
        ProgramError: it has no such statics, or they contradict each other."""
    recorded = {(path := f"{word}.{name}"): static_setting(path, value) for name, value in extern.statics.items()}
    page = extern.python if extern.python.startswith(PAGE) else ""
    resolved = load_command_line(f"{page}\nrecipe shown {{\n    {word} {extern.name}\n}}\n")
    return _bind(resolved, word, {**recorded, **parse_overrides(sets)})


def _bind(resolved: ResolvedFile, word: str, settings: Mapping[str, Setting]) -> tuple[BoundExtern, dict[str, int]]:
    """The task or optimizer of the first recipe of a file, which has no other parts, and the sizes that it gives."""
    report = DiagnosticLog()
    parts = read_parts(next(iter(resolved.recipes.values())), ignore)
    recipe = resolve_recipe(resolved, parts, report)
    report.stop_at_errors()
    for setting in settings.values():
        recipe.has_static(setting.path)
    binding = _without_errors(bind(recipe, word, settings), report)
    return bound_extern(binding), sizes_of_task(binding)


def recipe_names(path: str | Path) -> tuple[str, ...]:
    """The names of a file's recipes.

    Raises:
        ProgramError: the file cannot be read."""
    return tuple(ProgramLoader().load(path).recipes)


def plugins_of(resolved: ResolvedFile, paths: Iterable[str | Path]) -> Plugins:
    """The Python files that the user trusts for a program.

    Raises:
        PluginError: a file cannot be read."""
    return Plugins.read(paths, os.path.dirname(resolved.program.source.path))


def _planner(
    resolved: ResolvedFile, name: str | None, sets: Mapping[str, str] | None, plugins: Iterable[str | Path]
) -> tuple[Planner, DiagnosticLog]:
    recipe = resolved.recipes.get(name) if name else next(iter(resolved.recipes.values()), None)
    if recipe is None:
        if name and resolved.recipes:
            path = resolved.program.source.path
            raise ProgramError([mistakes.unknown_recipe(on_command_line(name), name, resolved.recipes, path)])
        raise ProgramError([mistakes.no_recipe(_start(resolved))])
    report = DiagnosticLog()
    planner = Planner(joined_recipe(recipe, resolved, report), parse_overrides(sets), plugins_of(resolved, plugins))
    report.stop_at_errors()
    planner.check_paths()
    return planner, report


def _without_errors(planned: Planned | None, report: DiagnosticLog) -> Planned:
    """Raises the reported errors. Without any, there is a plan, unless a line could not be read."""
    report.stop_at_errors()
    if planned is None:
        raise UnreadLine("planning failed without an error")
    return planned


def _start(resolved: ResolvedFile) -> Span:
    return Span(resolved.program.source, 0, 0)
