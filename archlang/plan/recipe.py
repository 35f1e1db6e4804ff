"""From a recipe to plans: task, model and training held together, one plan for each point of `vary`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice
from math import prod

from archlang.diagnostics import Diagnostic, Label, Report
from archlang.diagnostics.effort import TooMuchWork, spend
from archlang.elaborate import mistakes as elaborate_mistakes
from archlang.elaborate.application import plain
from archlang.elaborate.elaborator import elaborate
from archlang.elaborate.signature import TASK_SIZES, Binding, parameter_kind, settle, static_value
from archlang.graph import operations
from archlang.graph.causality import find_leak
from archlang.graph.graph import Graph, Node
from archlang.graph.prune import normalize
from archlang.names import library
from archlang.names import mistakes as name_mistakes
from archlang.names.evaluate import Evaluator
from archlang.names.resolve import Declaration, ResolvedFile, prelude
from archlang.names.values import (
    BlockValue,
    Bound,
    Unknown,
    Value,
)
from archlang.plan import mistakes
from archlang.plan.grid import spread
from archlang.plan.plan import Chosen, Plan, PublishedResult
from archlang.plan.task_fit import features_of_fields, find_misfit
from archlang.source import Span
from archlang.syntax.tree import (
    AtTest,
    Call,
    Choice,
    Claim,
    Definition,
    Expression,
    Extern,
    ListOf,
    Name,
    Number,
    Range,
    Recipe,
    Search,
    Setting,
    Sought,
    StaticParameter,
    Unary,
    Vary,
)
from archlang.types import Dim, Type
from archlang.types.statics import Interval, StaticValue

# Values that a range after `vary` stands for.
MOST_VARIED = 10_000
_EXAMPLES = {"task": "task ctl", "model": "model gut", "train": "train adamw[lr = 3e-4, steps = 1000]"}
SEED = StaticParameter(name="seed", kind="int", span=None)  # type: ignore[arg-type] # it stands in no program


@dataclass(frozen=True)
class Parts:
    """A recipe's parts by what they are."""

    recipe: Recipe
    task: Choice | None
    model: Choice | None
    train: Choice | None
    at_test: tuple[Setting, ...]
    vary: tuple[tuple[Name, Expression], ...]
    search: tuple[Sought, ...]
    claims: tuple[Claim, ...]


def parts_of(recipe: Recipe, report: Report) -> Parts:
    """A recipe taken apart; a part that is missing or doubled is reported."""
    chosen: dict[str, Choice] = {}
    at_test: list[Setting] = []
    vary: list[tuple[Name, Expression]] = []
    search: list[Sought] = []
    claims: list[Claim] = []
    for part in recipe.parts:
        match part:
            case Choice(word=word):
                if word in chosen:
                    report(mistakes.part_twice(part.span, word, chosen[word].span))
                chosen.setdefault(word, part)
            case AtTest(settings=settings):
                at_test.extend(settings)
            case Vary(variations=variations):
                vary.extend((one.path, one.values) for one in variations)
            case Search(sought=sought):
                search.extend(sought)
            case Claim():
                claims.append(part)
    for word, example in _EXAMPLES.items():
        if word not in chosen:
            report(mistakes.part_missing(recipe.name_span, recipe.name, word, example))
    return Parts(
        recipe, chosen.get("task"), chosen.get("model"), chosen.get("train"), tuple(at_test), tuple(vary),
        tuple(search), tuple(claims),
    )  # fmt: skip


@dataclass
class Planner:
    """Holds one recipe together. `report` gets what is wrong; a plan comes out only where nothing is."""

    file: ResolvedFile
    parts: Parts
    report: Report
    sets: Mapping[str, Setting] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._chosen: dict[str, Declaration | None] = {
            "task": self._task(),
            "train": self._extern(
                self.parts.train, library.optimizer, name_mistakes.unknown_optimizer, library.optimizer_names()
            ),
            "model": self._model(),
        }

    # Who is meant

    def _extern(
        self,
        choice: Choice | None,
        find: Callable[[str], Extern | None],
        unknown: Callable[[Span, str, Iterable[str]], Diagnostic],
        names: Iterable[str],
    ) -> Declaration | None:
        if choice is None:
            return None
        name = _callee(choice)
        item = find(name.text)
        if item is None:
            self.report(unknown(name.span, name.text, names))
            return None
        return prelude(item)

    def _task(self) -> Declaration | None:
        """A task of the file's own, or a shipped one."""
        own = self.file.tasks
        if self.parts.task is not None and (item := own.get(_callee(self.parts.task).text)) is not None:
            # Their statics are as archlang's own signatures check them; a program's own might let anything through.
            if item.python.startswith("archlang."):
                self.report(name_mistakes.class_of_archlang(item.name_span, item.name, item.python))
                return None
            return Declaration(item, self.file)
        return self._extern(
            self.parts.task, library.task, name_mistakes.unknown_task, library.task_names() | frozenset(own)
        )

    def _model(self) -> Declaration | None:
        if self.parts.model is None:
            return None
        name = _callee(self.parts.model)
        found = self.file.find(name.text)
        if found is None or not isinstance(found.item, Definition) or found.item.word != "model":
            models = [
                n
                for n, d in {**self.file.used, **self.file.own}.items()
                if isinstance(d.item, Definition) and d.item.word == "model"
            ]
            self.report(name_mistakes.unknown_model(name.span, name.text, models))
            return None
        return found

    # Statics

    def _given(self, word: str, overrides: Mapping[str, Setting]) -> dict[str, Bound]:
        """The statics of the task, model or optimizer that the recipe and the overrides give."""
        choice = {"task": self.parts.task, "model": self.parts.model, "train": self.parts.train}[word]
        declaration = self._chosen[word]
        if choice is None or declaration is None:
            return {}
        evaluator = self.evaluator()
        statics = choice.value.statics if isinstance(choice.value, Call) else ()
        given = settle(declaration, {}, statics, evaluator, self.report)
        for parameter in declaration.item.signature.statics:
            setting = overrides.get(f"{word}.{parameter.name}")
            if setting is not None:
                value = static_value(parameter, setting.value, evaluator, declaration.file, self.report)
                given[parameter.name] = Bound(value, setting.value.span)
        return given

    def evaluator(self) -> Evaluator:
        def configure(call: Call, target: Declaration | BlockValue) -> Value:
            block = target if isinstance(target, BlockValue) else BlockValue(target)
            spend(len(block.declaration.item.signature.statics))
            settled = settle(block.declaration, block.settled, call.statics, self.evaluator(), self.report)
            return BlockValue(block.declaration, settled)

        return Evaluator(lambda name: None, frozenset, self.file, self.report, configure)

    def _binding(self, word: str, given: dict[str, Bound]) -> Binding | None:
        declaration = self._chosen[word]
        choice = self.parts.task if word == "task" else self.parts.train
        if declaration is None or choice is None:
            return None
        binding = Binding(declaration, choice.value.span, given, self.report, lambda call, target: None)
        binding.finish()
        return binding

    @cached_property
    def parameters(self) -> Mapping[str, StaticParameter]:
        """Every static of the recipe by its dotted path, and the seed."""
        statics = {
            f"{word}.{parameter.name}": parameter
            for word, declaration in self._chosen.items()
            if declaration is not None
            for parameter in declaration.item.signature.statics
        }
        return {**statics, "seed": SEED}

    # Checking everything

    def check(self) -> None:
        """Checks the recipe itself, every setting in it, and its first point."""
        self.check_paths()
        self._check_claims()
        self.plan(self.first_point())

    def check_points(self) -> None:
        """Checks the other points of `vary`, as many as there is work left for; a warning says if some are left out."""
        varied = [(path, values) for path, values in self.variations if path.text != "seed"]
        sizes = [len(values) for _, values in varied]
        checked = 1
        with suppress(TooMuchWork):
            for place in islice(spread(sizes), 1, None):
                self.plan(
                    {
                        path.text: Setting(path=path, value=values[index], span=values[index].span)
                        for (path, values), index in zip(varied, place, strict=True)
                    }
                )
                checked += 1
        if checked < prod(sizes):
            self.report(
                mistakes.points_left_out(varied[0][0].span, self.parts.recipe.name, "points", checked, prod(sizes))
            )

    def knows(self, path: Name, also: Iterable[str] = ()) -> bool:
        """Whether a path names a static of the recipe; reported if not. `also` are first words that need not."""
        spend()
        word = path.parts[0]
        if path.text in self.parameters or (word in self._chosen and self._chosen[word] is None) or word in also:
            return True
        self.report(name_mistakes.unknown_path(path.span, path.text, self.parameters))
        return False

    def check_paths(self) -> None:
        for setting in (*self.sets.values(), *self.parts.at_test):
            self.knows(setting.path)
        first: dict[str, Name] = {}
        for path, values in self.parts.vary:
            if first.setdefault(path.text, path) is not path:
                self.report(name_mistakes.static_given_twice(path.span, path.text, first[path.text].span))
            if (self.knows(path) and not isinstance(values, ListOf | Range)) or (
                isinstance(values, ListOf) and not values.items
            ):
                self.report(name_mistakes.nothing_to_vary(values.span))

    def _check_claims(self) -> None:
        for claim in self.parts.claims:
            if len(claim.metric.parts) != 2:
                self.report(mistakes.bad_metric(claim.metric.span, claim.metric.text))
            for number in filter(None, (claim.value, claim.deviation)):
                if not isinstance(number, Number | Unary):
                    self.report(mistakes.claim_without_number(number.span))
            for setting in claim.at:
                self.knows(setting.path, also=("test", "valid"))

    @cached_property
    def variations(self) -> list[tuple[Name, list[Expression]]]:
        """What the recipe varies, each path once, with its values."""
        found: dict[str, tuple[Name, list[Expression]]] = {}
        for path, values in self.parts.vary:
            if path.text not in self.parameters or path.text in found:
                continue
            if isinstance(values, ListOf):
                found[path.text] = path, list(values.items)
            elif isinstance(values, Range):
                interval = self.evaluator().value(values, "range")
                if isinstance(interval, Interval):
                    found[path.text] = path, self._numbers(interval, values.span)
        return list(found.values())

    def _numbers(self, interval: Interval, span: Span) -> list[Expression]:
        """The whole numbers of a range, no more than may be varied."""
        count = interval.high - interval.low + 1
        if count > MOST_VARIED:
            self.report(mistakes.too_many_varied(span, count, MOST_VARIED))
        spend(min(count, MOST_VARIED))
        last = min(interval.high, interval.low + MOST_VARIED - 1)
        return [Number(value=n, text=str(n), span=span) for n in range(interval.low, last + 1)]

    # One point

    def first_point(self) -> dict[str, Setting]:
        """What the recipe runs when nothing is asked for: its statics, and the first value of what it varies."""
        return {
            path.text: Setting(path=path, value=values[0], span=values[0].span)
            for path, values in self.variations
            if values
        }

    def plan(self, overrides: Mapping[str, Setting]) -> Plan | None:
        """The plan of one point; `--set` goes before what `vary` says."""
        spend(2 * len(self.parameters))
        overrides = {**overrides, **self.sets}
        task = self._binding("task", self._given("task", overrides))
        train = self._binding("train", self._given("train", overrides))
        gives = self._gives(task)
        statics = self._given("model", overrides)
        graph = self._graph(task, gives, statics)
        at_test = graph
        if self.parts.at_test:
            later = {setting.path.text: setting for setting in self.parts.at_test}
            changed = self._graph(task, gives, self._given("model", {**overrides, **later}))
            if graph is not None and changed is not None and not _same_weights(graph, changed):
                first = self.parts.at_test[0]
                self.report(name_mistakes.test_changes_weights(first.span, first.path.text))
            at_test = changed
        seed = self._seed(overrides)
        if graph is None or at_test is None or task is None or train is None or self._chosen["model"] is None:
            return None
        if not all(isinstance(size, int) for size in gives.values()):
            return None
        model = self._chosen["model"]
        chosen = _chosen(task)
        trained = _chosen(train)
        settings: dict[str, StaticValue] = {f"task.{name}": value for name, value in chosen.statics.items()}
        settings |= {
            f"model.{name}": value for name, value in _model_statics(model, statics, gives, self.report).items()
        }
        settings |= {f"train.{name}": value for name, value in trained.statics.items()}
        settings["seed"] = seed
        return Plan(
            self.parts.recipe.name, self.file.program.source, chosen, gives, model.name, graph, at_test, trained,
            seed, settings, self._vary, self._claims,
        )  # fmt: skip

    def task(self) -> Chosen | None:
        """The task alone, whatever is to be trained on it."""
        self.check_paths()
        found = self._binding("task", self._given("task", self.sets))
        return None if found is None else _chosen(found)

    def _seed(self, overrides: Mapping[str, Setting]) -> int:
        setting = overrides.get("seed")
        if setting is None:
            return 1
        value = static_value(SEED, setting.value, self.evaluator(), self.file, self.report)
        return value.constant or 0 if isinstance(value, Dim) else 1

    def _gives(self, task: Binding | None) -> dict[str, int]:
        if task is None:
            return {}
        item = task.declaration.item
        assert isinstance(item, Extern)
        gives = {}
        for given in item.gives:
            value = task.evaluator.value(given.value, "int")
            if given.name is not None and isinstance(value, Dim) and value.constant is not None:
                gives[given.name] = value.constant
        return gives

    def _graph(self, task: Binding | None, gives: Mapping[str, int], statics: Mapping[str, Bound]) -> Graph | None:
        model, choice = self._chosen["model"], self.parts.model
        if model is None or choice is None:
            return None
        ambient = model_sizes(gives)
        if task is not None:
            ambient |= features_of_fields(task, model)
        # After a mistake in the task, its sizes are not known.
        known = task is not None and len(gives) == len(getattr(task.declaration.item, "gives", ()))
        graph, result, inputs = elaborate(
            model, statics, ambient, choice.value.span, self.report, may_be_unknown=not known
        )
        if graph is None or result is None or task is None:
            return None if task is not None else graph
        if known and (names := graph.unknown_sizes()):
            self.report(elaborate_mistakes.needs_task(choice.value.span, model.name, names))
            return None
        if not self._fits(task, model, choice.value.span, inputs, result):
            return None
        leak = self._leak(task, graph, model, choice.value.span)
        if leak is not None:
            self.report(leak)
            return None
        return graph

    def _fits(self, task: Binding, model: Declaration, span: Span, inputs: tuple[Type, ...], result: Type) -> bool:
        """Whether a model takes a task's fields and gives what the task scores."""
        misfit = find_misfit(task, model, inputs, result)
        if misfit is not None:
            self.report(mistakes.model_misfits_task(
                span, model.name, task.declaration.item.name, misfit.problem, misfit.declared, misfit.wanted
            ))  # fmt: skip
        return misfit is None

    def _leak(self, task: Binding, graph: Graph, model: Declaration, span: Span) -> Diagnostic | None:
        """A model that sees the future of what it is asked to predict."""
        item = task.declaration.item
        assert isinstance(item, Extern)
        if not item.causal:
            return None
        # What is predicted is the last field: the only one, or the target.
        origin = graph.region.inputs[-1].name
        leak = find_leak(graph, origin)
        if leak is None:
            return None
        culprit = leak.culprit
        name = _node_name(culprit, graph)
        path = [origin, name, *(_node_name(node, graph) for node in leak.carriers), "result"]
        labels = [Label(span, f"`{item.name}` scores each position by what follows it")]
        labels += [
            Label(node.span, "carried on here")
            for node in leak.carriers[:2]
            if node.span is not None and isinstance(node.operation, operations.Call | operations.Apply)
        ]
        return mistakes.sees_future(
            culprit.span or span, model.name, item.name, name, leak.reason, _unrepeated(path), labels
        )

    @cached_property
    def _vary(self) -> dict[str, tuple[StaticValue, ...]]:
        found: dict[str, tuple[StaticValue, ...]] = {}
        for path, values in self.variations:
            parameter = self.parameters[path.text]
            known = [static_value(parameter, value, self.evaluator(), self.file, self.report) for value in values]
            found[path.text] = tuple(one for value in known if (one := plain(value)) is not None)
        return found

    @cached_property
    def _claims(self) -> tuple[PublishedResult, ...]:
        return tuple(self._results())

    def _results(self) -> Iterator[PublishedResult]:
        evaluator = self.evaluator()
        for claim in self.parts.claims:
            value = _published(claim.value, evaluator)
            deviation = None if claim.deviation is None else _published(claim.deviation, evaluator)
            if value is None:
                continue
            index = None if claim.index is None else evaluator.value(claim.index, "int")
            at: dict[str, StaticValue] = {}
            for setting in claim.at:
                parameter = self.parameters.get(setting.path.text)
                found = (
                    evaluator.value(setting.value, None)
                    if parameter is None
                    else static_value(parameter, setting.value, evaluator, self.file, self.report)
                )
                known = plain(found)
                if known is not None:
                    at[setting.path.text] = known
            number = index.constant if isinstance(index, Dim) else None
            yield PublishedResult(claim.metric.text, number, value, deviation, at, claim.origin)


def model_sizes(gives: Mapping[str, int]) -> dict[str, Bound]:
    """What a task gives its models; a size that is not known is a symbol. `words` is the vocabulary of a source, which
    is that of all tokens unless the task has two."""
    known = {"words": gives["vocab"], **gives} if "vocab" in gives else gives
    return {name: Bound(Dim.of(known.get(name, name)), None) for name in TASK_SIZES}


def _callee(choice: Choice) -> Name:
    return choice.value.callee if isinstance(choice.value, Call) else choice.value


def _real(value: Value) -> float | None:
    if isinstance(value, Dim):
        return None if value.constant is None else float(value.constant)
    return value if isinstance(value, float) and not isinstance(value, bool) else None


def _published(expression: Expression, evaluator: Evaluator) -> float | None:
    """A claim's number; what is none is reported with the claims."""
    return _real(evaluator.value(expression, "float")) if isinstance(expression, Number | Unary) else None


def _chosen(binding: Binding) -> Chosen:
    item = binding.declaration.item
    assert isinstance(item, Extern)
    statics = {name: known for name, bound in binding.given.items() if (known := plain(bound.value)) is not None}
    ordered = {p.name: statics[p.name] for p in item.signature.statics if p.name in statics}
    return Chosen(item.name, item.python, ordered)


def _model_statics(
    model: Declaration, given: Mapping[str, Bound], gives: Mapping[str, int], report: Report
) -> dict[str, StaticValue]:
    binding = Binding(
        model, model.span, dict(given), lambda diagnostic: None, lambda call, target: None, model_sizes(gives)
    )
    statics: dict[str, StaticValue] = {}
    for parameter in model.item.signature.statics:
        bound = binding.lookup(parameter.name)
        value = bound.value if isinstance(bound, Bound) else None
        if isinstance(value, BlockValue):
            statics[parameter.name] = value.declaration.name
        elif value is not None and not isinstance(value, Unknown) and parameter_kind(parameter, model.file):
            known = plain(value)
            if known is not None:
                statics[parameter.name] = known
    return statics


def _same_weights(left: Graph, right: Graph) -> bool:
    """Whether two graphs of one model have the same weights by name."""
    left, right = normalize(left), normalize(right)

    def weights(graph: Graph) -> set[tuple[str, str, tuple[tuple[str, str], ...]]]:
        return {
            (path, instance.block, tuple(sorted((name, str(size)) for name, size in instance.features.items())))
            for path, instance in graph.instances.items()
            if not instance.pure
        }

    def copies(graph: Graph) -> dict[str, int]:
        stacks = (node.operation for node in graph.region.walk() if isinstance(node.operation, operations.Stack))
        return {stack.path: stack.count for stack in stacks}

    return weights(left) == weights(right) and copies(left) == copies(right)


def _node_name(node: Node, graph: Graph) -> str:
    """What a user calls a node: the block, or the name that `let` gives to it."""
    match node.operation:
        case operations.Call(instance=path) | operations.Halting(instance=path):
            block, name = graph.instances[path].block, path.split(".")[-1]
            return block if name.rstrip("0123456789") == f"{block}_" else name
        case operations.Apply(block=block):
            return block
    return node.name or node.operation.mnemonic


def _unrepeated(path: list[str]) -> list[str]:
    return [name for index, name in enumerate(path) if index == 0 or path[index - 1] != name]
