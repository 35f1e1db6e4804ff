"""The search spaces of a recipe, and the plan of each of their points."""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property

from archlang.errors import Diagnostic, Source, Span
from archlang.errors.effort import TooMuchWork
from archlang.plan import mistakes
from archlang.plan.plan import Plan
from archlang.plan.planner import Planner
from archlang.plan.recipe import Part, call_of, report_repeated
from archlang.plan.variations import ends_or_items, spread
from archlang.syntax import tree
from archlang.syntax.parser import parse
from archlang.syntax.printer import format_program, unparse


@dataclass(frozen=True)
class SearchSpace:
    """The values of one static that `tune` samples: one of `choices` (texts of the language), or a number from `low` to
    `high`, uniform on a logarithmic scale if `log`."""

    path: str
    choices: tuple[str, ...] = ()
    low: float = 0.0
    high: float = 0.0
    integers: bool = False
    log: bool = False


@dataclass(frozen=True)
class SearchPlan:
    """A recipe with its search spaces. The values of a point are numbers, or texts of choices, by dotted paths."""

    recipe: str
    spaces: tuple[SearchSpace, ...]
    _planner: Planner = field(repr=False)

    def plan(self, values: Mapping[str, float | str]) -> Plan | None:
        """The plan of a point; None if its values contradict each other."""
        diagnostics: list[Diagnostic] = []
        recipe = replace(self._planner.recipe, report=diagnostics.append)
        planner = replace(self._planner, recipe=recipe)
        plan = planner.plan({**planner.first_point(), **self._settings(values)})
        return None if diagnostics else plan

    def first(self) -> Plan:
        """The plan of the recipe with its own values."""
        plan = self._planner.plan(self._planner.first_point())
        assert plan is not None, "a recipe that was checked has no plan"
        return plan

    def text(self, values: Mapping[str, float | str]) -> str:
        """The recipe as text, with the values of a point and the overrides, and without `search`."""
        recipe = self._planner.recipe.parts.recipe
        settings = {**self._planner.overrides, **self._settings(values)}
        parts: list[Part] = []
        for part in recipe.parts:
            match part:
                case tree.Choice():
                    parts.append(self._with_settings(part, settings))
                case tree.Vary(variations=variations):
                    varied = tuple(each for each in variations if each.path.text not in settings)
                    parts += [replace(part, variations=varied)] if varied else []
                case tree.Search():
                    pass
                case _:
                    parts.append(part)
        if seed := settings.get("seed"):
            seeds = tree.ListOf(items=(seed.value,), span=seed.span)
            variation = tree.Variation(path=seed.path, values=seeds, span=seed.span)
            parts.append(tree.Vary(variations=(variation,), span=seed.span))
        text = f"recipe {recipe.name} {{ {' '.join(map(unparse, parts))} }}"
        return format_program(parse(Source(recipe.name, text))).rstrip()

    def written(self, values: Mapping[str, float | str]) -> dict[str, int | float | str | bool]:
        """The values of a point as its recipe has them: sampled numbers have six digits."""
        settings = self._settings(values)
        return {path: _plain(settings[path].value) for path in values if path in settings}

    @property
    def base(self) -> str:
        """The recipe as text with the overrides and without searched values: what all trials have in common."""
        return self.text({})

    def _settings(self, values: Mapping[str, float | str]) -> dict[str, tree.Setting]:
        span = self._planner.recipe.parts.recipe.span
        settings = {}
        for space in (each for each in self.spaces if each.path in values):
            value = values[space.path]
            expression = self._choices[space.path][str(value)] if space.choices else _number(value, span)
            path = tree.Name(parts=tuple(space.path.split(".")), span=span)
            settings[space.path] = tree.Setting(path=path, value=expression, span=span)
        return settings

    @cached_property
    def _choices(self) -> dict[str, dict[str, tree.Expression]]:
        return {
            sought.path.text: {unparse(item): item for item in sought.values.items}
            for sought in self._planner.recipe.parts.search
            if isinstance(sought.values, tree.ListOf)
        }

    def _with_settings(self, choice: tree.Choice, settings: Mapping[str, tree.Setting]) -> tree.Choice:
        """The line `task`, `model` or `train` with its statics replaced by those of `settings`."""
        prefix = f"{choice.word}."
        values = {
            path.removeprefix(prefix): setting.value for path, setting in settings.items() if path.startswith(prefix)
        }
        if not values:
            return choice
        call = call_of(choice)
        parameters = self._planner.recipe.parameters
        names = [path.removeprefix(prefix) for path in parameters if path.startswith(prefix)]
        statics = []
        for index, static in enumerate(call.statics):
            name = static.name or names[index]
            statics.append(replace(static, value=values.pop(name)) if name in values else static)
        statics += [tree.StaticArgument(name=name, value=value, span=choice.span) for name, value in values.items()]
        return replace(choice, value=replace(call, statics=tuple(statics)))


def check_search(planner: Planner) -> None:
    """Checks each search space of a recipe on its own."""
    report_repeated(planner.recipe.parts.search, planner.recipe.report)
    for sought in planner.recipe.parts.search:
        _space(planner, sought)


def check_search_points(planner: Planner) -> None:
    """Checks the recipe at each choice and at both ends of each range within the step budget; a warning counts the
    values left out."""
    values = [(sought.path, value) for sought in planner.recipe.parts.search for value in ends_or_items(sought.values)]
    checked = 0
    with suppress(TooMuchWork):
        for (index,) in spread([len(values)]):
            _try(planner, *values[index])
            checked += 1
    if checked < len(values):
        span = values[0][0].span
        name = planner.recipe.name
        planner.recipe.report(mistakes.points_left_out(span, name, "values to search", checked, len(values)))


def plan_spaces(planner: Planner) -> SearchPlan | None:
    """The search of a recipe; None, and a report, if it has none or a space has a mistake."""
    recipe, search = planner.recipe.parts.recipe, planner.recipe.parts.search
    if not search:
        planner.recipe.report(mistakes.no_search(recipe.name_span, recipe.name))
        return None
    spaces = [_space(planner, sought) for sought in search]
    plannable = [_try(planner, sought.path, value) for sought in search for value in ends_or_items(sought.values)]
    sound = tuple(space for space in spaces if space is not None)
    return SearchPlan(recipe.name, sound, planner) if len(sound) == len(spaces) and all(plannable) else None


def _space(planner: Planner, sought: tree.Sought) -> SearchSpace | None:
    """A search space; None, and a report, if its static is unknown or its values are no list and no rising range."""
    path, values = sought.path, sought.values
    # The statics of a model with a mistake are unknown, and its mistake is reported elsewhere.
    if not planner.recipe.has_static(path) or planner.recipe.parameter(path.text) is None:
        return None
    if isinstance(values, tree.ListOf) and values.items and not sought.log:
        parameter = planner.recipe.parameter(path.text)
        choices = [parameter and planner.recipe.value(parameter, item) for item in values.items]
        return None if None in choices else SearchSpace(path.text, tuple(map(unparse, values.items)))
    ends = [_end(planner, path, end) for end in (values.low, values.high)] if isinstance(values, tree.Range) else []
    if len(ends) < 2 or None in ends:
        if len(ends) < 2:
            planner.recipe.report(mistakes.nothing_to_search(values.span, path.text))
        return None
    low, high = (float(end) for end in ends if end is not None)
    if low >= high or (sought.log and low <= 0):
        planner.recipe.report(mistakes.nothing_to_search(values.span, path.text))
        return None
    return SearchSpace(path.text, (), low, high, all(isinstance(end, int) for end in ends), sought.log)


def _end(planner: Planner, path: tree.Name, end: tree.Expression) -> int | float | None:
    """The number at an end of a range, of the static's kind; None, and a report, if it is no number."""
    number = planner.recipe.static(path.text, end) if isinstance(end, tree.Number | tree.Unary) else None
    if isinstance(number, bool) or not isinstance(number, int | float):
        planner.recipe.report(mistakes.nothing_to_search(end.span, path.text))
        return None
    return number


def _try(planner: Planner, path: tree.Name, value: tree.Expression) -> bool:
    setting = tree.Setting(path=path, value=value, span=value.span)
    # `tune` leaves out the points beyond a bound.
    recipe = replace(planner.recipe, parts=replace(planner.recipe.parts, bounds=()))
    planner = replace(planner, recipe=recipe)
    return planner.plan({**planner.first_point(), path.text: setting}) is not None


def _plain(value: tree.Expression) -> int | float | str | bool:
    match value:
        case tree.Number() | tree.Boolean() | tree.String():
            return value.value
        case tree.Unary(operator="-", operand=tree.Number() as number):
            return -number.value
        case _:
            return unparse(value)


def _number(value: float | str, span: Span) -> tree.Expression:
    text = f"{value:.6g}" if isinstance(value, float) else str(value)
    number = float(text) if isinstance(value, float) else int(value)
    if isinstance(number, float) and not any(sign in text for sign in ".e"):
        text += ".0"
    return tree.Number(value=number, text=text, span=span)
