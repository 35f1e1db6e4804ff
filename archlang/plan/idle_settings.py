"""Settings of a recipe's training that change nothing because of another one, and a warm-up longer than the run."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

from archlang.elaborate.static_arguments import plain
from archlang.graph.graph import Graph
from archlang.graph.operations import Halting
from archlang.names.values import Bound
from archlang.plan import mistakes
from archlang.plan.recipe import ResolvedRecipe
from archlang.source import Span
from archlang.syntax.tree import Setting
from archlang.types.statics import StaticValue, Symbol

Values = Mapping[str, StaticValue]


@dataclass(frozen=True)
class _Idle:
    """A setting that has no effect if `is_idle`, for a `reason`. `others` are the settings on which this depends."""

    name: str
    others: tuple[str, ...]
    is_idle: Callable[[Values], bool]
    reason: str


_IDLE = (
    _Idle("warmup", ("schedule",), lambda of: of["schedule"] == Symbol("constant") and of["warmup"] != 0,
        "with `schedule = constant`, the learning rate does not rise"),
    _Idle("cooldown", ("schedule",), lambda of: of["schedule"] != Symbol("wsd"), "only `schedule = wsd` has one"),
    _Idle("beta1", ("schedule",), lambda of: of["schedule"] == Symbol("onecycle"), "`schedule = onecycle` sets it"),
    _Idle("sign_lr", ("sign_sgd",), lambda of: of["sign_sgd"] == (), "`sign_sgd` lists no instance"),
    _Idle("sign_decay", ("sign_sgd",), lambda of: of["sign_sgd"] == (), "`sign_sgd` lists no instance"),
    _Idle("epochs", ("steps",), lambda of: _number(of["steps"]) > 0 and of["epochs"] != 0, "a run has `steps` steps"),
    _Idle("every", ("steps",), lambda of: 0 < _number(of["steps"]) < _number(of["every"]),
        "a run has fewer steps, and is evaluated at its end"),
    _Idle("micro", ("batch", "batch_of"),
        lambda of: of["batch_of"] == Symbol("samples") and _number(of["micro"]) > _number(of["batch"]),
        "a batch has fewer samples"),
)  # fmt: skip

_PONDER = "ponder"


def check_idle_settings(
    recipe: ResolvedRecipe, statics: Mapping[str, Bound], graph: Graph, overrides: Mapping[str, Setting]
) -> None:
    """Warns of settings that the line `train` of this recipe writes, and that have no effect. Settings that depend on
    what the recipe varies or searches, or the command line sets, may have one at another point."""
    parts = recipe.parts
    changing = {each.path.text for each in parts.vary} | {each.path.text for each in parts.search} | set(overrides)
    written = {
        name: bound.span
        for name, bound in statics.items()
        if bound.span is not None and parts.recipe.span.contains(bound.span)
    }
    values = {name: value for name, bound in statics.items() if (value := plain(bound.value)) is not None}
    for idle in _IDLE:
        span = written.get(idle.name)
        settings = (idle.name, *idle.others)
        is_fixed = changing.isdisjoint(f"train.{name}" for name in settings)
        if span is not None and is_fixed and values.keys() >= set(settings) and idle.is_idle(values):
            recipe.report(mistakes.idle_setting(span, idle.name, idle.reason))
    _check_warmup(recipe, values, written, changing)
    span = written.get(_PONDER)
    is_fixed = not any(path == f"train.{_PONDER}" or path.startswith("model.") for path in changing)
    if span is not None and is_fixed and values.get(_PONDER, 0) != 0 and not _halts(graph):
        recipe.report(mistakes.idle_setting(span, _PONDER, "the model has no halting loop"))


def _check_warmup(
    recipe: ResolvedRecipe, values: Values, written: Mapping[str, Span], changing: Collection[str]
) -> None:
    """Warns of a warm-up that the run ends before."""
    warmup, steps = _number(values.get("warmup")), _number(values.get("steps"))
    is_fixed = not {"train.warmup", "train.steps", "train.schedule"} & set(changing)
    if is_fixed and "warmup" in written and 0 < steps < warmup and values.get("schedule") != Symbol("constant"):
        recipe.report(mistakes.endless_warmup(written["warmup"], int(warmup), int(steps)))


def _halts(graph: Graph) -> bool:
    return any(isinstance(node.operation, Halting) for node in graph.region.walk())


def _number(value: StaticValue | None) -> float:
    return value if isinstance(value, int | float) else 0
