"""From a recipe to the plans of its points."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property, lru_cache, partial
from itertools import islice
from math import prod
from typing import TYPE_CHECKING

from archlang.elaborate.binding import Binding, problems_of_task, sizes_of_task
from archlang.elaborate.static_arguments import plain
from archlang.errors import Report, Span
from archlang.errors.effort import Memo, TooMuchWork, is_check, spend, with_costs
from archlang.plan import mistakes, rules
from archlang.plan.bounds import check_bounds
from archlang.plan.claims import check_claimed_groups, check_claims, published_results, row_claims
from archlang.plan.measures import Measures
from archlang.plan.model_graphs import have_same_weights
from archlang.plan.plan import BoundExtern, Plan, PublishedResult
from archlang.plan.recipe import ResolvedRecipe, read_parts, report_repeated, resolve_recipe, static_names, with_base
from archlang.plan.recipe_graph import recipe_graph
from archlang.plan.statics import bind, bound_extern, given_statics, model_statics
from archlang.plan.variations import VariedStatic, check_variations, spread, values_by_path, varied_statics
from archlang.plugins import NO_PLUGINS, Plugins
from archlang.resolve import mistakes as name_mistakes
from archlang.resolve.resolve import ResolvedFile
from archlang.syntax.tree import Claim, Recipe, Setting
from archlang.types.statics import StaticValue, Symbol

if TYPE_CHECKING:
    from archlang.tasks.kit.task import Task


def joined_recipe(recipe: Recipe, resolved: ResolvedFile, report: Report) -> ResolvedRecipe:
    """A recipe of a file with the lines of its base; reports missing, repeated and unknown parts."""
    joined = with_base(
        recipe, resolved.recipes, resolved.inherited, resolved.other_items, partial(static_names, resolved), report
    )
    return resolve_recipe(resolved, read_parts(joined, report), report)


@dataclass(frozen=True)
class Planner:
    """Plans the points of one recipe. `overrides` are settings of the command line by their dotted paths; they replace
    those of the recipe and of `vary`. Mistakes go to the recipe's `report`. `plugins` are those of the plans. A planner
    keeps what it has bound and measured."""

    recipe: ResolvedRecipe
    overrides: Mapping[str, Setting] = field(default_factory=dict)
    plugins: Plugins = NO_PLUGINS
    _bound: Memo[tuple[Binding | None, object]] = field(
        default_factory=lambda: Memo(keeps_all=True), init=False, repr=False
    )
    _measured: Memo[Measures | None] = field(default_factory=lambda: Memo(keeps_all=True), init=False, repr=False)

    # Checking

    def check(self) -> None:
        """Checks every line of the recipe, except the paths that `check_paths` checks, and its first point."""
        point = self.first_point()
        plan = self.plan(point)
        measures = self.measures(point) if self.recipe.parts.recipe.is_whole else None
        check_claims(self.recipe, measures)
        if plan is not None and measures is not None:
            check_claimed_groups(self.recipe, measures)
        rules.check_claimed_symbols(self.recipe)
        if plan is not None:
            train = self._bind("train", {**point, **self.overrides})
            assert train is not None, "a plan has an optimizer"
            # Report values of other kinds, also of points that are left out.
            values_by_path(self.recipe, self.varied)
            tuple(published_results(self.recipe, ()))
            rules.check_idle_settings(self.recipe, train, plan.graph, self.overrides)
            paths = (setting.path for claim in self.recipe.parts.claims for setting in claim.at)
            rules.check_claimed(paths, plan.graph, plan.model, self.recipe.report)

    def check_paths(self) -> None:
        """Checks the paths of the overrides, of `test` and of `vary`."""
        for setting in self.overrides.values():
            self.recipe.has_static(setting.path)
        for setting in self.recipe.parts.at_test:
            word, _, name = setting.path.text.partition(".")
            if word in ("seed", "task", "train"):
                self.recipe.report(mistakes.not_at_test(setting.span, setting.path.text, word, name))
            else:
                self.recipe.has_static(setting.path)
        report_repeated(self.recipe.parts.at_test, self.recipe.report)
        check_variations(self.recipe)
        rules.check_seeds(self.recipe, self.varied)

    def check_points(self) -> None:
        """Checks the other points of `vary` within the step budget; a warning counts those left out."""
        varied = [static for static in self.varied if static.path.text != "seed"]
        sizes = [len(static.values) for static in varied]
        checked = 1
        with suppress(TooMuchWork):
            for place in islice(spread(sizes), 1, None):
                settings = [static.settings[index] for static, index in zip(varied, place, strict=True)]
                self.plan({setting.path.text: setting for setting in settings})
                checked += 1
        if checked < prod(sizes):
            span = varied[0].path.span
            self.recipe.report(mistakes.points_left_out(span, self.recipe.name, "points", checked, prod(sizes)))

    # Points

    @cached_property
    def varied(self) -> tuple[VariedStatic, ...]:
        """The statics of `vary`."""
        return varied_statics(self.recipe)

    def first_point(self) -> dict[str, Setting]:
        """The first value of each static that the recipe varies."""
        return {static.path.text: static.settings[0] for static in self.varied if static.values}

    def plan(self, point: Mapping[str, Setting], *, is_bounded: bool = True) -> Plan | None:
        """The plan of a point, settings by their dotted paths; None, and a report, if it has a mistake. Without
        `is_bounded` its model may cost more than the recipe's bounds."""
        recipe = self.recipe
        spend(2 * len(recipe.parameters))
        settings = {**point, **self.overrides}
        if not recipe.parts.recipe.is_whole:
            for word in recipe.declarations:
                given_statics(recipe, word, settings)
            return None
        task, train = self._bind("task", settings), self._bind("train", settings)
        sizes = sizes_of_task(task)
        statics = given_statics(recipe, "model", settings)
        with with_costs(bool(recipe.parts.bounds)):
            graph = at_test = recipe_graph(recipe, task, sizes, statics, settings)
        if recipe.parts.at_test:
            changes = {setting.path.text: setting for setting in recipe.parts.at_test}
            statics_at_test = given_statics(recipe, "model", {**settings, **changes})
            at_test = recipe_graph(recipe, task, sizes, statics_at_test, {**settings, **changes})
            if graph is not None and at_test is not None and not have_same_weights(graph, at_test):
                first = recipe.parts.at_test[0]
                recipe.report(name_mistakes.test_changes_weights(first.span, first.path.text))
        if graph is not None and is_bounded:
            check_bounds(recipe, graph, settings)
        measures = self.measures(settings)
        seed = rules.check_seed(recipe, settings["seed"].value) if "seed" in settings else 1
        model = recipe.declarations["model"]
        if graph is None or at_test is None or task is None or train is None or model is None:
            return None
        bound_task, optimizer = bound_extern(task), bound_extern(train)
        rules.TrainSettings(train, optimizer, graph, model.name, recipe.report).check()
        by_path: dict[str, StaticValue] = {f"task.{name}": value for name, value in bound_task.statics.items()}
        by_path |= {f"model.{name}": value for name, value in model_statics(model, statics, sizes).items()}
        by_path |= {f"train.{name}": value for name, value in optimizer.statics.items()}
        by_path["seed"] = seed
        # A check looks at the values and the claims once, and not for each point.
        vary, claims = ({}, ()) if is_check() else (self._values_by_path, self._claims)
        return Plan(
            recipe.name, recipe.file.program.source, bound_task, sizes, model.name, graph, at_test, optimizer, seed,
            by_path, vary, claims, self.plugins, recipe.file.sources[1:], measures, problems_of_task(task),
        )  # fmt: skip

    def _bind(self, word: str, settings: Mapping[str, Setting]) -> Binding | None:
        """The binding of the line `task` or `train`; points with the same settings of the line share it."""
        own = {path: setting for path, setting in settings.items() if path.startswith(f"{word}.")}
        key = word, *((path, id(setting.value)) for path, setting in own.items())
        # With `own`, which keeps the ids in use.
        return self._bound.get(key, lambda: (bind(self.recipe, word, own), own))[0]

    def losses(self, settings: Mapping[str, Setting]) -> tuple[str, ...]:
        """The names of the auxiliary losses of a point's model; empty if it has a mistake."""
        task, statics = self._bind("task", settings), given_statics(self.recipe, "model", settings)
        graph = recipe_graph(self.recipe, task, sizes_of_task(task), statics)
        return rules.loss_names(graph) if graph is not None else ()

    def measures(self, settings: Mapping[str, Setting]) -> Measures | None:
        """What a run of a point measures, settings by their dotted paths; None if that is unknown. Reports a
        `train.select` that names none of it."""
        task, train = self._bind("task", settings), self._bind("train", settings)
        if task is None or train is None:
            return None
        return self._measured.get((id(task), id(train)), lambda: self._measures_of(task, train))

    def _measures_of(self, task: Binding, train: Binding) -> Measures | None:
        choices = self.recipe.parts.choices
        measures = task_measures(task, bound_extern(task), bound_extern(train), choices["task"].value.span)
        if measures is not None:
            measures.check_train(train.statics, choices["train"].value.span, self.recipe.report)
        select = train.statics.get("select")
        if measures is not None and select is not None and select.value is not None:
            span = select.span or choices["train"].value.span
            measures.check(span, str(plain(select.value)), self.recipe.report, selects=True)
        return measures

    @cached_property
    def _values_by_path(self) -> Mapping[str, tuple[StaticValue, ...]]:
        return values_by_path(self.recipe, self.varied)

    @cached_property
    def _claims_of_tables(self) -> tuple[Claim, ...]:
        point = {path: setting for path, setting in self.first_point().items() if path != "seed"}
        return tuple(row_claims(self.recipe.file, self.recipe.name, point))

    @cached_property
    def _claims(self) -> tuple[PublishedResult, ...]:
        return tuple(published_results(self.recipe, self._claims_of_tables))


def task_measures(binding: Binding, task: BoundExtern, train: BoundExtern, span: Span) -> Measures | None:
    """The measures of a recipe. None if the class of its task is outside of archlang; None, and a report, if the class
    refuses the statics of the task."""
    # Imported for files with recipes only: tasks import numpy.
    from archlang.tasks.kit.make_task import is_own
    from archlang.tasks.kit.metrics import WRITTEN_METRICS
    from archlang.tasks.kit.mistakes import TaskError
    from archlang.tasks.kit.task import DecodableTask, empty_splits, group_values, groups

    if not is_own(task.python) or not _is_sound(binding, task):
        return None
    try:
        instance = _instance(task.name, task.python, tuple(task.statics.items()))
    except TaskError as error:
        binding.report(mistakes.refused_by_task(span, error.message, error.remedy))
        return None
    own_metrics = _own_metrics(train.statics.get("metrics", ()))
    metrics = ("loss", *instance.metrics, *own_metrics)
    written = WRITTEN_METRICS if isinstance(instance, DecodableTask) else ()
    return Measures(
        task.name, _split_names(instance), (*metrics, *written), metrics, groups(instance), instance.breakdown,
        {split: group_values(instance, split) for split in _split_names(instance)}, instance.kind.form.name,
        empty_splits(instance) if _split_names(instance) else (),
        _taken(own_metrics, ("loss", *instance.metrics, *WRITTEN_METRICS)),
    )  # fmt: skip


@lru_cache(maxsize=64)  # the points of a table share their tasks, and some classes count their items
def _instance(name: str, python: str, statics: tuple[tuple[str, StaticValue], ...]) -> Task:
    from archlang.tasks.kit.make_task import make_task, unchecked_task

    try:
        return make_task(name, python, dict(statics))
    except ModuleNotFoundError as error:
        if error.name != "numpy":
            raise
        return unchecked_task(name, python, dict(statics))


def _is_sound(binding: Binding, task: BoundExtern) -> bool:
    """Whether every static has a value and every condition of the signature holds; the others were reported."""
    conditions = binding.declaration.item.signature.where
    return len(task.statics) == len(binding.parameters) and all(map(binding.evaluator.truth, conditions))


def _split_names(instance: Task) -> tuple[str, ...]:
    reads_files = any(getattr(instance, "files", tuple)())
    return () if reads_files else instance.split_names()


def _taken(own: Sequence[str], others: Sequence[str]) -> tuple[str, ...]:
    """The names that one of `others` has, or a second one of `own`, each once."""
    return tuple(name for name in dict.fromkeys(own) if name in others or own.count(name) > 1)


def _own_metrics(names: StaticValue) -> tuple[str, ...]:
    listed = names if isinstance(names, tuple) else ()
    return tuple(name.text.rpartition(".")[2] for name in listed if isinstance(name, Symbol) and "." in name.text)
