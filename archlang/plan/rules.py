"""The rules of a recipe's settings: what they need of its model, its task and each other, and which have no effect."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate

from archlang.elaborate.binding import Binding
from archlang.elaborate.static_arguments import plain
from archlang.errors import Diagnostic, Report, Span
from archlang.graph.graph import NUMBER, Graph, has_halting_positions, loop_of_results
from archlang.graph.operations import LOSSES, Halting, Loss, Repeat
from archlang.graph.prune import normalize
from archlang.graph.summary import weights_by_path
from archlang.plan import mistakes
from archlang.plan.plan import BoundExtern
from archlang.plan.recipe import RATES, SEED, ResolvedRecipe, is_weight
from archlang.plan.trust import is_shipped
from archlang.plan.variations import VariedStatic
from archlang.resolve.mistakes import symbol_not_listed
from archlang.resolve.unused import listed_symbols
from archlang.resolve.values import BlockValue, Bound, Value
from archlang.syntax.tree import Expression, Name, Recipe, Setting, Table
from archlang.types import Dim
from archlang.types.statics import StaticValue, Symbol


def loss_names(graph: Graph) -> tuple[str, ...]:
    """Returns the names of the auxiliary losses of a model, in order of first appearance."""
    losses = (node.operation.name for node in graph.region.walk() if isinstance(node.operation, Loss))
    return tuple(dict.fromkeys(losses))


def check_claimed(paths: Iterable[Name], graph: Graph, model: str, report: Report) -> None:
    """Reports paths of claims that name the weight of an auxiliary loss that a model does not have."""
    for path in paths:
        if is_weight(path.text.removeprefix("train.")):
            require_loss(path.text.removeprefix(f"train.{LOSSES}"), path.span, graph, model, report)


# What the settings that name functions of the user's own can be besides.
SHIPPED: Mapping[str, tuple[str, ...]] = {"rate": ("none",), "loss": ("task", "stablemax"), "metrics": ()}
_DEEP = Symbol("deep")
_BY_STEP = (Symbol("every"), _DEEP)


@dataclass(frozen=True)
class TrainSettings:
    """The settings of a line `train`, with the weights of its auxiliary losses, beside the model that it trains."""

    train: Binding
    optimizer: BoundExtern
    graph: Graph
    model: str
    report: Report

    def check(self) -> None:
        """Reports settings that the model or the optimizer does not allow."""
        for name, bound in self.train.statics.items():
            if is_weight(name):
                self._require_loss(name.removeprefix(LOSSES), bound)
            if name.startswith(RATES):
                self._check_rate(name, bound)
        self._check_supervision()
        self._check_user_functions()
        if not is_shipped(self.optimizer):  # the `where` of the others lists their schedules
            self._check_schedule()
        self._check_moved("sign_sgd")
        self._check_moved("no_decay", "bias")
        self._check_frozen()

    def _of(self, name: str) -> Bound:
        return self.train.statics.get(name, Bound(None, None))

    def _span(self, bound: Bound) -> Span:
        return bound.span or self.train.call

    def _require_loss(self, loss: str, bound: Bound) -> None:
        require_loss(loss, self._span(bound), self.graph, self.model, self.report)

    def _check_supervision(self) -> None:
        """Reports a setting that scores the steps of a model without results of its steps, or without one halting
        probability for each result; one that carries the states of another loop than a `repeat` with a fixed number of
        steps; and an auxiliary loss for halting that the model does not have."""
        supervise, halt = self._of("supervise"), self._of("halt")
        if supervise.value in _BY_STEP:
            self._check_loop(str(supervise.value), self._span(supervise))
        # Without `deep`, `where` reports `halt`.
        if supervise.value == _DEEP and halt.value not in (None, Symbol("none")):
            self._require_loss(str(halt.value), halt)

    def _check_loop(self, supervise: str, span: Span) -> None:
        loop = loop_of_results(normalize(self.graph))
        if loop is None:
            self.report(mistakes.no_step_results(span, self.model, supervise))
        elif supervise == str(_DEEP):
            if not isinstance(loop.operation, Repeat) or loop.operation.drawn:
                self.report(mistakes.no_deep_loop(span, self.model))
            elif NUMBER in loop.types:
                self.report(mistakes.number_in_deep_loop(span, self.model))
        elif isinstance(loop.operation, Halting):
            instance = self.graph.instances[loop.operation.instance]
            if instance.per_position and not has_halting_positions(loop, len(loop.types) - 1):
                self.report(mistakes.no_weight_of_step(span, supervise, instance.block, instance.span))

    def _check_user_functions(self) -> None:
        for setting, shipped in SHIPPED.items():
            bound = self._of(setting)
            for value in bound.value if isinstance(bound.value, tuple) else (bound.value,):
                name = _name(value)
                is_function = isinstance(value, Symbol) and ("." in name or name in shipped)
                if value is not None and not is_function:
                    self.report(mistakes.function_without_file(self._span(bound), setting, name, shipped))

    def _check_schedule(self) -> None:
        schedule = self._of("schedule")
        if schedule.value == Symbol("onecycle") and not self.train.statics.keys() >= {"beta1", "beta2"}:
            self.report(mistakes.no_first_beta(self._span(schedule), self.optimizer.name))

    def _check_moved(self, setting: str, *others: str) -> None:
        """Reports names of instances that a model does not have, and an optimizer of the user's own, which moves every
        weight."""
        bound = self._of(setting)
        if isinstance(bound.value, tuple) and bound.value and self._may_leave_weights(setting, bound):
            self._require_instances(setting, bound, _names(bound), *others)

    def _check_rate(self, setting: str, bound: Bound) -> None:
        if isinstance(bound.value, int | float) and bound.value <= 0:
            self.report(mistakes.rate_too_low(self._span(bound), setting))
        if setting.removeprefix(RATES) in _names(self._of("frozen")):
            self.report(mistakes.rate_of_frozen(self._span(bound), setting, setting.removeprefix(RATES)))
        if self._may_leave_weights(setting, bound):
            self._require_instances(setting, bound, [setting.removeprefix(RATES)], "loaded")

    def _may_leave_weights(self, setting: str, bound: Bound) -> bool:
        if not is_shipped(self.optimizer):
            self.report(mistakes.no_sign_sgd(self._span(bound), self.optimizer.name, setting))
        return is_shipped(self.optimizer)

    def _check_frozen(self) -> None:
        bound = self._of("frozen")
        self._require_instances("frozen", bound, _names(bound), "loaded")

    def _require_instances(self, setting: str, bound: Bound, chosen: Sequence[str], *others: str) -> None:
        """Reports names of instances that the model does not have, and paths of `frozen` without weights."""
        if not chosen:
            return
        names = dict.fromkeys(name for path in normalize(self.graph).instances for name in path.split("."))
        for name in chosen:
            if "." in name and setting != "frozen":
                self.report(mistakes.no_path(self._span(bound), name, setting))
            # A path into a block of Python is not reported: only a run knows the modules of the block.
            elif "." in name and not any(_meet(name, path) for path, _ in weights_by_path(self.graph)):
                self.report(mistakes.unknown_path(self._span(bound), name, self.model))
            elif "." not in name and name not in (*names, *others):
                self.report(mistakes.unknown_instance(self._span(bound), name, self.model, setting, names))
        if "loaded" in chosen and "loaded" in others and not self._of("weights").value:
            self.report(mistakes.nothing_loaded(self._span(bound)))


def _meet(name: str, path: str) -> bool:
    """Whether a path of `frozen` is a part of that of an instance, or leads to what is inside it."""
    return f".{name}." in f".{path}." or any(
        f".{path}.".endswith(f".{head}.") for head in accumulate(name.split("."), "{}.{}".format)
    )


def _names(bound: Bound) -> list[str]:
    return [_name(value) for value in bound.value] if isinstance(bound.value, tuple) else []


def _name(value: Value) -> str:
    return value.declaration.name if isinstance(value, BlockValue) else str(value)


def _count(bound: Bound) -> int:
    return bound.value.constant or 0 if isinstance(bound.value, Dim) else 0


def require_loss(loss: str, span: Span, graph: Graph, model: str, report: Report) -> None:
    """Reports an auxiliary loss that a model does not have."""
    names = loss_names(graph)
    if loss not in names:
        halts = any(isinstance(node.operation, Halting) for node in graph.region.walk())
        report(mistakes.unknown_loss(span, loss, model, names, halts))


EVALUATIONS = 10
"""How often a run evaluates its selecting metric, unless `every` or `patience` says otherwise."""


HIGHEST_SEED = 2**32 - 1


def check_seed(recipe: ResolvedRecipe, value: Expression) -> int:
    """Returns a seed, 1 if it is unknown; reports one that no run can have."""
    evaluated = recipe.value(SEED, value)
    if not isinstance(evaluated, Dim) or evaluated.constant is None:
        return 1
    if not 0 <= evaluated.constant <= HIGHEST_SEED:
        recipe.report(mistakes.seed_out_of_bounds(value.span, evaluated.constant, HIGHEST_SEED))
    return evaluated.constant


def check_seeds(recipe: ResolvedRecipe, varied: tuple[VariedStatic, ...]) -> None:
    """Reports the seeds that a recipe lists or claims results of, and no run can have."""
    claimed = (setting for claim in recipe.parts.claims for setting in claim.at)
    values = [value for static in varied if static.path.text == SEED.name for value in static.values]
    for value in (*values, *(setting.value for setting in claimed if setting.path.text == SEED.name)):
        check_seed(recipe, value)


def check_claimed_symbols(recipe: ResolvedRecipe) -> None:
    """Reports symbols in claims that the signature does not allow."""
    for setting in (setting for claim in recipe.parts.claims for setting in claim.at):
        if isinstance(setting.value, Name):
            _check_symbol(recipe, setting.path.text, setting.value.text, setting.value.span)


def _check_symbol(recipe: ResolvedRecipe, path: str, symbol: str, span: Span) -> None:
    word, _, name = path.partition(".")
    declaration = recipe.declarations.get(word)
    allowed = None if declaration is None else listed_symbols(declaration.item.signature).get(name)
    if declaration is not None and allowed is not None and symbol not in allowed:
        recipe.report(symbol_not_listed(span, symbol, name, declaration.name, allowed))


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
    _Idle("no_decay", ("weight_decay",), lambda of: of.get("weight_decay") == 0, "`weight_decay` is 0"),
    _Idle("epochs", ("steps",), lambda of: _number(of["steps"]) > 0, "a run has `steps` steps"),
    _Idle("every", ("steps",), lambda of: 0 < _number(of["steps"]) < _number(of["every"]),
        "a run has fewer steps, and is evaluated at its end"),
    _Idle("micro", ("batch", "batch_of"),
        lambda of: of["batch_of"] == Symbol("samples") and _number(of["micro"]) > _number(of["batch"]),
        "a batch has fewer samples"),
    _Idle("ponder", ("halts",), lambda of: not of["halts"], "the model has no halting loop"),
)  # fmt: skip


def check_idle_settings(recipe: ResolvedRecipe, train: Binding, graph: Graph, overrides: Mapping[str, Setting]) -> None:
    """Warns of settings that the line `train` of this recipe writes and that have no effect. Those that depend on what
    the recipe varies or searches, the command line sets, or the file names elsewhere, may have one at another point."""
    if any(train.evaluator.truth(condition) is False for condition in train.declaration.item.signature.where):
        return  # which was reported
    parts, statics = recipe.parts, train.statics
    written = {
        name: bound.span
        for name, bound in statics.items()
        if bound.span is not None and parts.recipe.span.contains(bound.span)
    }
    values = {name: value for name, bound in statics.items() if (value := plain(bound.value)) is not None}
    values["halts"] = any(isinstance(node.operation, Halting) for node in graph.region.walk())
    paths = {*(each.path.text for each in parts.vary), *(each.path.text for each in parts.search), *overrides}
    found: list[tuple[Iterable[str], Diagnostic]] = []  # with the settings on which each depends
    for idle in _IDLE:
        if not values.keys() >= {idle.name, *idle.others} or f"train.{idle.name}" in paths:
            continue
        if idle.name in written and _number(values[idle.name], 1) > 0 and idle.is_idle(values):
            found.append((idle.others, mistakes.idle_setting(written[idle.name], idle.name, idle.reason)))
    warmup, steps = _number(values.get("warmup")), _number(values.get("steps"))
    if "warmup" in written and 0 < steps < warmup and values.get("schedule") != Symbol("constant"):
        mistake = mistakes.endless_warmup(written["warmup"], int(warmup), int(steps))
        found.append((("warmup", "steps", "schedule"), mistake))
    # A setting that has no effect here may have one at another point of a sweep.
    for others, mistake in found:
        if not any(_may_change(recipe, name, paths) for name in others):
            recipe.report(mistake)


def _may_change(recipe: ResolvedRecipe, name: str, paths: Iterable[str]) -> bool:
    """Whether another point than the first may have another value of a setting: one of the `paths` that this recipe
    varies or searches, or one that another item of its file may set."""
    span = recipe.parts.recipe.span
    items = (item for item in recipe.file.program.items if isinstance(item, Recipe | Table))
    others = " ".join(item.span.text for item in items if item.span != span)
    if name == "halts":
        return any(path.startswith("model.") for path in paths) or f"from {recipe.name}" in others
    return f"train.{name}" in paths or re.search(rf"\b{name}\b", others) is not None


def _number(value: StaticValue | None, otherwise: float = 0) -> float:
    return value if isinstance(value, int | float) else otherwise
