"""Warns of settings of training that cannot do in a run what they are set for."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import lru_cache

from archlang.diagnostics import Diagnostic
from archlang.elaborate.binding import Binding
from archlang.elaborate.static_arguments import plain
from archlang.graph.graph import Graph
from archlang.graph.operations import Halting
from archlang.names.resolve import ResolvedFile
from archlang.plan import mistakes
from archlang.plan.recipe import ResolvedRecipe
from archlang.syntax.tree import Call, Choice, Column, ListOf, Name, Range, Row, Setting, Sought, Variation, Vary
from archlang.types.statics import StaticValue, Symbol

_Values = Mapping[str, StaticValue]


@dataclass(frozen=True)
class _Idle:
    """A setting that has no effect if `is_idle`, for a `reason`. `others` are the settings on which this depends."""

    name: str
    others: tuple[str, ...]
    is_idle: Callable[[_Values], bool]
    reason: str


_IDLE = (
    _Idle("warmup", ("schedule",), lambda of: of["schedule"] == Symbol("constant"),
        "with `schedule = constant`, the learning rate does not rise"),
    _Idle("schedule", ("warmup",), lambda of: of["schedule"] == Symbol("warmup") and of["warmup"] == 0,
        "its warm-up has no steps until `warmup` is set"),
    _Idle("cooldown", ("schedule",), lambda of: of["schedule"] != Symbol("wsd"), "only `schedule = wsd` has one"),
    _Idle("beta1", ("schedule",), lambda of: of["schedule"] == Symbol("onecycle"), "`schedule = onecycle` sets it"),
    _Idle("sign_lr", ("sign_sgd",), lambda of: of["sign_sgd"] == (), "`sign_sgd` lists no instance"),
    _Idle("sign_decay", ("sign_sgd",), lambda of: of["sign_sgd"] == (), "`sign_sgd` lists no instance"),
    _Idle("epochs", ("steps",), lambda of: _number(of["steps"]) > 0, "a run has `steps` steps"),
    _Idle("every", ("steps",), lambda of: 0 < _number(of["steps"]) < _number(of["every"]),
        "a run has fewer steps, and is evaluated at its end"),
    _Idle("micro", ("batch", "batch_of"),
        lambda of: of["batch_of"] == Symbol("samples") and _number(of["micro"]) > _number(of["batch"]),
        "a batch has fewer samples"),
    _Idle("ponder", ("halts",), lambda of: not of["halts"], "the model has no halting loop"),
)  # fmt: skip


def check_idle_settings(recipe: ResolvedRecipe, train: Binding, graph: Graph, overrides: Mapping[str, Setting]) -> None:
    """Warns of settings that the line `train` of this recipe writes, and of statics that it varies or searches, that
    have no effect. Those that depend on what the recipe varies or searches, or the command line sets, may have one at
    another point, and so may those that depend on what recipes based on it and rows about it set."""
    if any(train.evaluator.truth(condition) is False for condition in train.declaration.item.signature.where):
        return  # which was reported
    parts, statics = recipe.parts, train.statics
    alternatives = {path.text: (path, values) for path, values in _alternatives(recipe)}
    written = {
        name: bound.span
        for name, bound in statics.items()
        if bound.span is not None and parts.recipe.span.contains(bound.span)
    }
    values = {name: value for name, bound in statics.items() if (value := plain(bound.value)) is not None}
    values["halts"] = any(isinstance(node.operation, Halting) for node in graph.region.walk())
    found: list[tuple[Iterable[str], Diagnostic]] = []  # with the settings on which each depends
    for idle in _IDLE:
        if not values.keys() >= {idle.name, *idle.others} or f"train.{idle.name}" in overrides:
            continue
        if (alternative := alternatives.get(f"train.{idle.name}")) is not None:
            path, choices = alternative
            if choices and all(idle.is_idle({**values, idle.name: choice}) for choice in choices):
                found.append((idle.others, mistakes.idle_setting(path.span, path.text, idle.reason)))
        elif idle.name in written and _number(values[idle.name], 1) > 0 and idle.is_idle(values):
            found.append((idle.others, mistakes.idle_setting(written[idle.name], idle.name, idle.reason)))
    warmup, steps = _number(values.get("warmup")), _number(values.get("steps"))
    if "warmup" in written and 0 < steps < warmup and values.get("schedule") != Symbol("constant"):
        mistake = mistakes.endless_warmup(written["warmup"], int(warmup), int(steps))
        found.append((("warmup", "steps", "schedule"), mistake))
    if not found:
        return  # many recipes of a file would each look at all others
    changing = {path.removeprefix("train.") for path in (*alternatives, *overrides, *_set_elsewhere(recipe))}
    if any(path.startswith("model.") for path in changing):
        changing.add("halts")
    for others, mistake in found:
        if changing.isdisjoint(others):
            recipe.report(mistake)


def _alternatives(recipe: ResolvedRecipe) -> Iterator[tuple[Name, tuple[StaticValue, ...]]]:
    """Yields the paths that this recipe varies or searches, each with its values, or both ends of their range."""
    for each in (*recipe.parts.vary, *recipe.parts.search):
        assert isinstance(each, Variation | Sought)
        path, values, parameter = each.path, each.values, recipe.parameter(each.path.text)
        ends = (values.low, values.high) if isinstance(values, Range) else ()
        items = values.items if isinstance(values, ListOf) else ends
        is_own = parameter is not None and recipe.parts.recipe.span.contains(path.span)
        evaluated = [plain(recipe.value(parameter, item)) for item in items if is_own and parameter is not None]
        yield path, tuple(value for value in evaluated if value is not None)


def _set_elsewhere(recipe: ResolvedRecipe) -> Iterator[str]:
    """Yields the paths that recipes based on this one, and rows and columns about one of them, set."""
    names, pending, based_on = {recipe.name}, [recipe.name], _based_on(recipe.file)
    while pending:
        derived = [each for each in based_on.get(pending.pop(), ()) if each[0] not in names]
        for name, paths in derived:
            names.add(name)
            pending.append(name)
            yield from paths
    for table in recipe.file.tables.values():
        is_about = any(isinstance(part, Row) and part.recipe in names for part in table.parts)
        for line in table.parts if is_about else ():
            if isinstance(line, Column) or (isinstance(line, Row) and line.recipe in names):
                yield from (setting.path.text for setting in line.at)


@lru_cache(maxsize=1)  # of the file that is checked: all of its recipes ask for it
def _based_on(file: ResolvedFile) -> Mapping[str | None, Sequence[tuple[str, Set[str]]]]:
    """Returns the recipes of a file by their bases, each with the paths that it sets."""
    based_on: dict[str | None, list[tuple[str, Set[str]]]] = {}
    for recipe in file.recipes.values():
        paths: set[str] = set()
        for part in recipe.parts:
            if isinstance(part, Choice) and part.word == "model":
                paths.add("model.")
            elif isinstance(part, Choice) and isinstance(part.value, Call):
                paths.update(f"{part.word}.{static.name}" for static in part.value.statics)
            elif isinstance(part, Vary):
                paths.update(each.path.text for each in part.variations)
        based_on.setdefault(recipe.base, []).append((recipe.name, paths))
    return based_on


def _number(value: StaticValue | None, otherwise: float = 0) -> float:
    return value if isinstance(value, int | float) else otherwise
