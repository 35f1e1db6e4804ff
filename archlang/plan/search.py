"""Where `tune` looks for a recipe's statics: lists of values and ranges of numbers, checked at their ends."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace

from archlang.diagnostics.effort import TooMuchWork
from archlang.elaborate.application import plain
from archlang.elaborate.signature import static_value
from archlang.names.mistakes import static_set_twice
from archlang.plan import mistakes
from archlang.plan.grid import spread
from archlang.plan.plan import Plan
from archlang.plan.recipe import Planner
from archlang.syntax.expression_text import expression_text
from archlang.syntax.printer import unparse
from archlang.syntax.tree import (
    Call,
    Choice,
    Expression,
    ListOf,
    Name,
    Number,
    Range,
    Recipe,
    Search,
    Setting,
    Sought,
    StaticArgument,
    Unary,
    Vary,
)
from archlang.types.statics import StaticValue


@dataclass(frozen=True)
class Space:
    """Where one static is looked for: among `choices` (texts of the language), or from `low` to `high`, evenly on a
    logarithmic scale if `log`."""

    path: str
    choices: tuple[str, ...] = ()
    low: float = 0.0
    high: float = 0.0
    whole: bool = False
    """only whole numbers"""
    log: bool = False


@dataclass
class SearchPlan:
    """A recipe with its spaces."""

    recipe: str
    spaces: tuple[Space, ...]
    _planner: Planner = field(repr=False)

    def plan(self, values: Mapping[str, float | str]) -> Plan | None:
        """The plan of one place; None if the values do not go together."""
        found: list[object] = []
        planner = replace(self._planner, report=found.append)
        plan = planner.plan({**planner.first_point(), **self._settings(values)})
        return None if found else plan

    def first(self) -> Plan:
        """The plan of the recipe as it stands."""
        plan = self._planner.plan(self._planner.first_point())
        assert plan is not None, "a recipe that was checked has no plan"
        return plan

    def text(self, values: Mapping[str, float | str]) -> str:
        """The recipe with these values written into it, and nothing to look for any more."""
        recipe = self._planner.parts.recipe
        settings = self._settings(values)
        parts = [
            self._chosen(part, settings) if isinstance(part, Choice) else part
            for part in recipe.parts
            if not isinstance(part, Search)
        ]
        kept = [part for part in parts if not isinstance(part, Vary) or not _varies(part, settings)]
        return unparse(replace(recipe, parts=tuple(kept)))

    def _settings(self, values: Mapping[str, float | str]) -> dict[str, Setting]:
        span = self._planner.parts.recipe.span
        found = {}
        for space in self.spaces:
            value = values[space.path]
            expression = self._texts[space.path][str(value)] if space.choices else _number(value, span)
            found[space.path] = Setting(
                path=Name(parts=tuple(space.path.split(".")), span=span), value=expression, span=span
            )
        return found

    @property
    def _texts(self) -> dict[str, dict[str, Expression]]:
        return {
            one.path.text: {expression_text(item): item for item in one.values.items}
            for one in self._planner.parts.search
            if isinstance(one.values, ListOf)
        }

    def _chosen(self, choice: Choice, settings: Mapping[str, Setting]) -> Choice:
        """A task, model or optimizer with the statics that were found."""
        own = {
            path.partition(".")[2]: one.value for path, one in settings.items() if path.startswith(f"{choice.word}.")
        }
        if not own:
            return choice
        call = choice.value if isinstance(choice.value, Call) else Call(callee=choice.value, span=choice.span)
        names = [path.partition(".")[2] for path in self._planner.parameters if path.startswith(f"{choice.word}.")]
        statics = []
        for index, static in enumerate(call.statics):
            name = static.name or names[index]
            statics.append(replace(static, value=own.pop(name)) if name in own else static)
        statics += [StaticArgument(name=name, value=value, span=choice.span) for name, value in own.items()]
        return replace(choice, value=replace(call, statics=tuple(statics)))


@dataclass
class SearchPlanner:
    """Holds what a recipe looks for."""

    planner: Planner

    def check(self) -> None:
        """Checks every space by itself."""
        first: dict[str, Name] = {}
        for sought in self.planner.parts.search:
            path = sought.path
            if first.setdefault(path.text, path) is not path:
                self.planner.report(static_set_twice(path.span, path.text, first[path.text].span))
            self._space(sought)

    def check_points(self) -> None:
        """Checks the recipe at each choice and at both ends of each range, as many as there is work left for; a
        warning says if some are left out."""
        tries = [(sought.path, value) for sought in self.planner.parts.search for value in _values(sought)]
        checked = 0
        with suppress(TooMuchWork):
            for (place,) in spread([len(tries)]):
                self._try(*tries[place])
                checked += 1
        if checked < len(tries):
            recipe = self.planner.parts.recipe
            self.planner.report(
                mistakes.points_left_out(tries[0][0].span, recipe.name, "values to search", checked, len(tries))
            )

    def plan(self) -> SearchPlan | None:
        """The search; None where something of it is reported."""
        recipe: Recipe = self.planner.parts.recipe
        search = self.planner.parts.search
        if not search:
            self.planner.report(mistakes.no_search(recipe.name_span, recipe.name))
            return None
        spaces = [self._space(sought) for sought in search]
        sound = [self._try(sought.path, value) for sought in search for value in _values(sought)]
        whole = tuple(space for space in spaces if space is not None)
        return SearchPlan(recipe.name, whole, self.planner) if len(whole) == len(spaces) and all(sound) else None

    def _space(self, sought: Sought) -> Space | None:
        path, values = sought.path, sought.values
        if not self.planner.knows(path):
            return None
        if isinstance(values, ListOf) and values.items and not sought.log:
            known = [self._value(path, item) for item in values.items]
            return None if None in known else Space(path.text, tuple(map(expression_text, values.items)))
        ends = [self._end(path, end) for end in (values.low, values.high)] if isinstance(values, Range) else []
        if len(ends) < 2 or None in ends:
            if len(ends) < 2:
                self.planner.report(mistakes.nothing_to_search(values.span, path.text))
            return None
        low, high = (float(end) for end in ends if end is not None)
        if low >= high or (sought.log and low <= 0):
            self.planner.report(mistakes.nothing_to_search(values.span, path.text))
            return None
        return Space(path.text, (), low, high, all(isinstance(end, int) for end in ends), sought.log)

    def _end(self, path: Name, end: Expression) -> int | float | None:
        """The number at an end, of the static's kind."""
        known = self._value(path, end) if isinstance(end, Number | Unary) else None
        if isinstance(known, bool) or not isinstance(known, int | float):
            self.planner.report(mistakes.nothing_to_search(end.span, path.text))
            return None
        return known

    def _value(self, path: Name, value: Expression) -> StaticValue | None:
        parameter = self.planner.parameters[path.text]
        planner = self.planner
        return plain(static_value(parameter, value, planner.evaluator(), planner.file, planner.report))

    def _try(self, path: Name, value: Expression) -> bool:
        """Whether the recipe stands with this value; what does not is reported."""
        setting = Setting(path=path, value=value, span=value.span)
        return self.planner.plan({**self.planner.first_point(), path.text: setting}) is not None


def _values(sought: Sought) -> Sequence[Expression]:
    """The values of a static that the recipe is checked with."""
    match sought.values:
        case ListOf(items=items):
            return items
        case Range(low=low, high=high):
            return (low, high)
    return ()


def _number(value: float | str, span: object) -> Expression:
    text = f"{value:.6g}" if isinstance(value, float) else str(value)
    number = float(text) if isinstance(value, float) else int(value)
    if isinstance(number, float) and not any(sign in text for sign in ".e"):
        text += ".0"
    return Number(value=number, text=text, span=span)  # type: ignore[arg-type]


def _varies(part: Vary, settings: Mapping[str, Setting]) -> bool:
    """Whether a `vary` is about what was found."""
    return any(variation.path.text in settings for variation in part.variations)
