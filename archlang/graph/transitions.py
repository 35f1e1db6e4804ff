"""How the state of each recurrence moves from position to position: by a diagonal, by reflections, by a matrix, or by
what is not linear, with the range of the factors.

Values that depend on no state are intervals, in which their numbers lie whatever the weights and the input are. Values
in the body of a scan that do are forms: what they have of the states. What a block does follows from its clause `acts`.
All bounds are upper bounds: a range may be wider than what a model can reach."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import exp, inf, log, prod

from archlang.graph.facts import Act
from archlang.graph.graph import NUMBER, Graph, Input, Instance, Node, Region, loop_layout, takes_positions
from archlang.graph.growth import growths
from archlang.graph.operations import (
    Arithmetic,
    Call,
    Experts,
    Gradient,
    Halting,
    Literal,
    Loss,
    Part,
    Repeat,
    Scan,
    Stack,
)
from archlang.graph.prune import normalize
from archlang.types import Dim, Type

# Steps of a loop in the body of a scan that are followed one by one.
_MOST_STEPS = 64
# The acts of blocks whose results are affine in their arguments, or in each of two.
_LINEAR = ("moves", "slices", "joins", "columns", "sums", "affine", "bilinear")


@dataclass(frozen=True)
class Transition:
    """What becomes of a state from one position to the next, besides what is added.

    `kind` is `none` (the state does not depend on its past), `grows` (positions are appended), `diagonal`, `low rank`
    (a diagonal and reflections, or other products of a column and a row), `choice` (a matrix of zeros and ones, with a
    single 1 in each row), `maximum` (the greater or the less of a term and of the state with a term added), `matrix`,
    `non-linear`, `stack` or `unknown`. `low` and `high` bound the eigenvalues of a `diagonal` and a `low rank`,
    `is_real` says that these are real. `rank` counts reflections and products at each position, `flips` the reflections
    by keys of their own, which depend on the input, that may turn a direction around or not, at most one for each row
    of the state, and `layers` the recurrences of a block one after the other. A `fixed` transition depends on no input.
    `node` is the scan or the call that has the state, and `state` its name."""

    kind: str
    low: float = -inf
    high: float = inf
    rank: int = 0
    flips: int = 0
    layers: int = 1
    is_real: bool = False
    fixed: bool = False
    node: str = ""
    state: str = ""

    def __str__(self) -> str:
        changes = "the same at all positions" if self.fixed else "which depends on the input"
        return _TEXTS[self.kind].format(low=self.low, high=self.high, rank=self.rank, changes=changes)

    @property
    def is_linear(self) -> bool:
        return self.kind not in ("maximum", "non-linear", "stack", "unknown")


_TEXTS = {
    "none": "does not depend on its past",
    "grows": "grows by what depends on no state",
    "diagonal": "moves by a diagonal in [{low:.3g}, {high:.3g}], {changes}",
    "low rank": "moves by a diagonal plus rank {rank}, with eigenvalues in [{low:.3g}, {high:.3g}], {changes}",
    "choice": "moves by a choice (a matrix of zeros and ones, with a single 1 in each row), {changes}",
    "matrix": "moves by a matrix, {changes}",
    "maximum": "moves to the greater or the less of a term and of itself with a term added",
    "non-linear": "moves by what is not linear",
    "stack": "is a stack",
    "unknown": "moves in a way that is unknown",
}


@dataclass(frozen=True, eq=False)
class _Known:
    """A value that depends on no state: its numbers lie between `low` and `high`. Such a value may be a factor, between
    `least` and `most`, times vectors of length 1, which `unit` identifies, of as many `groups`. A `choice` has a single
    1 among zeros. `parts` are the widths and the values of joined features."""

    low: float = -inf
    high: float = inf
    fixed: bool = False
    unit: object = None
    groups: float = 1
    least: float = 1
    most: float = 1
    choice: bool = False
    parts: tuple[tuple[int, _Known], ...] = ()


_ANY = _Known()
_OPAQUE = frozenset(("other", "unknown", "bent"))


@dataclass(frozen=True, eq=False)
class _Factor:
    """One factor of a transition: a `diagonal` with entries between `low` and `high`; a `reflection`, whose eigenvalues
    are 1 and one between them, by a `key` if it depends on the input; a product of a column and a row, which is
    `added`; or a `matrix`."""

    kind: str
    low: float = -inf
    high: float = inf
    fixed: bool = False
    choice: bool = False
    key: object = None


@dataclass(frozen=True, eq=False)
class _StateValue:
    """A value that depends on states, and what else is added to it does not matter here.

    kind:
        chained  the factors of `chain`, one after the other, times a state
        scaled   the same, where the last factor is the elementwise product of `base` with `by`
        read     the sum of the rows of the product of `base` with `by`, times a factor between `low` and `high`
        low      a `column` times such a read
        bent     the greater of 0 and of a state, or of it negated, with more added: its slopes are `low` and `high`
        other    anything else that is not linear
        unknown  what is not followed"""

    kind: str
    states: frozenset[int]
    chain: tuple[_Factor, ...] = ()
    base: _StateValue | None = None
    by: _Known = _ANY
    column: _Known = _ANY
    low: float = 1
    high: float = 1


_Value = _Known | _StateValue


def transitions(graph: Graph) -> Sequence[Transition]:
    """Returns the transitions of all states that scans and blocks carry from position to position, in their order."""
    graph = normalize(graph)
    analysis = _TransitionAnalysis(graph.instances)
    analysis.region(graph.region, {value.id: _Known() for value in graph.region.inputs})
    return [each for node in graph.region.walk() for each in analysis.moves.get(node.id, ())]


def ranges(
    nodes: Sequence[Node], instances: Mapping[str, Instance], numbers: Mapping[str, float]
) -> Mapping[str, tuple[float, float]]:
    """Returns between what the numbers of values, and of those that they read, lie; `numbers` are known."""
    inputs = [Input(source, NUMBER) for node in nodes for source in node.inputs]
    region = Region(tuple(inputs), tuple(nodes), (*(each.id for each in inputs), *(node.id for node in nodes)))
    of_inputs = {each.id: _Known() for each in inputs} | {name: _Known(n, n, True) for name, n in numbers.items()}
    values = zip(region.results, _TransitionAnalysis(instances).region(region, of_inputs), strict=True)
    return {name: (value.low, value.high) for name, value in values}


def describe(moves: Sequence[Transition]) -> Sequence[str]:
    """Returns a sentence for each state that moves in its own way."""
    counts = Counter(f"{move.state or 'its state'} {move}" for move in moves)
    return [f"{count} times: {text}" if count > 1 else text for text, count in counts.items()]


def _product(a: tuple[float, float], b: tuple[float, float]) -> tuple[float, float]:
    ends = [x * y if x and y else 0.0 for x in a for y in b]
    return min(ends), max(ends)


def _is_rank(form: _StateValue) -> bool:
    return form.kind == "chained" and bool(form.chain) and all(factor.kind == "added" for factor in form.chain)


def _ranks(form: _StateValue) -> tuple[_Factor, ...]:
    """The products of a column and a row that a form adds."""
    return (_Factor("added"),) if form.kind == "low" else form.chain


class _TransitionAnalysis:
    def __init__(self, instances: Mapping[str, Instance]) -> None:
        self._instances = instances
        self.moves: dict[str, Sequence[Transition]] = {}
        self._done: dict[Sequence[object], Sequence[_Value]] = {}

    def region(self, region: Region, inputs: Mapping[str, _Value]) -> Sequence[_Value]:
        values: dict[str, _Value] = dict(inputs)
        several: dict[str, Sequence[_Value]] = {}
        types = region.types()
        for node in region.nodes:
            if isinstance(node.operation, Part):
                values[node.id] = several[node.inputs[0]][node.operation.index]
                continue
            arguments = [values.get(source) or _Known() for source in node.inputs]
            # The same weights make the same of the same.
            same = (node.instance or node.id, *arguments)
            results = self._done[same] = self._done.get(same) or self._node(node, arguments, types)
            several[node.id] = results
            if len(results) == 1:
                values[node.id] = results[0]
        return [values[result] for result in region.results]

    def _node(self, node: Node, arguments: Sequence[_Value], types: Mapping[str, Type]) -> Sequence[_Value]:
        match node.operation:
            case Literal(value=value):
                return [_Known(value, value, True)]
            case Arithmetic():
                return [self._arithmetic(node, arguments, types)]
            case Call(instance=path):
                return [self._call(node, self._instances[path].acts, arguments, types)]
            case Scan():
                self._scan(node, arguments)
            case Repeat() | Stack() | Halting() | Experts():
                return self._loop(node, arguments)
            case Gradient():
                self._loop(node, arguments)
                return [_other(arguments)]
            case Loss():
                return []
        return [_other(arguments, "unknown") for _ in node.types]

    def _loop(self, node: Node, arguments: Sequence[_Value]) -> Sequence[_Value]:
        (body,), layout, count = node.regions, loop_layout(node), getattr(node.operation, "count", 0)
        outer, inner = arguments[layout.outer_captured :], body.inputs[layout.inner_captured :]
        captured = {value.id: given for value, given in zip(inner, outer, strict=True)}
        before = [value.id for value in body.inputs[: layout.inner_captured]]
        results = arguments[: layout.states]
        is_open = any(isinstance(value, _StateValue) for value in arguments)
        if is_open and isinstance(node.operation, Repeat | Stack) and count <= _MOST_STEPS:
            for _ in range(count):
                if isinstance(node.operation, Stack):
                    own = f"{node.operation.path}."
                    self._done = {same: done for same, done in self._done.items() if not str(same[0]).startswith(own)}
                results = self.region(body, {**captured, **dict(zip(before, results, strict=False))})
            return results
        self.region(body, {**captured, **{state: _Known() for state in before}})
        return [_other(arguments, "unknown") for _ in node.types]

    def _scan(self, node: Node, arguments: Sequence[_Value]) -> None:
        """Solves the states one after the other: one that depends on no open state but itself is known afterwards."""
        (body,), layout, growing = node.regions, loop_layout(node), growths(node)
        inputs: dict[str, _Value] = {value.id: _Known() for value in body.inputs}
        # The numbers of a position are those of the sequence. What depends on states of a scan around may be any.
        known = [_Known() if isinstance(value, _StateValue) else value for value in arguments]
        inputs[body.inputs[0].id] = known[0]
        captured = body.inputs[layout.inner_captured :]
        inputs |= {value.id: given for value, given in zip(captured, known[layout.outer_captured :], strict=True)}
        states = body.inputs[layout.inner : layout.inner + layout.states]
        nodes = {inner.id: inner for inner in body.nodes}
        solved: dict[int, Transition] = {}
        while len(solved) < len(states):
            own = {s.id: _StateValue("chained", frozenset([i])) for i, s in enumerate(states) if i not in solved}
            results = self.region(body, {**inputs, **own})
            rest = {index: results[index] for index in range(len(states)) if index not in solved}
            alone = {i: v for i, v in rest.items() if isinstance(v, _Known) or v.states == {i}}
            kinds = {value.kind for value in rest.values() if isinstance(value, _StateValue)}
            joined = "unknown" if "unknown" in kinds else "non-linear" if kinds & {"other", "bent"} else "matrix"
            for index, value in (alone or rest).items():
                # States that move each other are one state, which a matrix moves.
                moves = _transition(value) if alone else Transition(joined)
                # Nothing but positions are appended, which depend on no state.
                appends = isinstance(value, _StateValue) and [factor.fixed for factor in value.chain] == [True]
                if index in growing and appends and states[index].id in nodes[body.results[index]].inputs:
                    moves = Transition("grows", 1, 1, is_real=True)
                kind = states[index].type
                rows = kind.lengths[0].constant if kind.lengths and takes_positions(node) else 0
                flips = min(moves.flips, rows or 0)
                solved[index] = replace(moves, flips=flips, node=node.id, state=states[index].name)
        self.moves[node.id] = [solved[index] for index in range(len(states))]

    def _arithmetic(self, node: Node, arguments: Sequence[_Value], types: Mapping[str, Type]) -> _Value:
        operation, left = node.operation, arguments[0]
        if operation is Arithmetic.NEGATE:
            return _scaled(left, _Known(-1, -1, True), False)
        right = arguments[1]
        if operation is Arithmetic.SUBTRACT:
            right = _scaled(right, _Known(-1, -1, True), False)
        if operation in (Arithmetic.ADD, Arithmetic.SUBTRACT):
            return _sum(left, right)
        if isinstance(right, _StateValue) and (isinstance(left, _StateValue) or operation is Arithmetic.DIVIDE):
            return _other(arguments)
        first, second = (types[source] for source in node.inputs)
        if isinstance(right, _StateValue):
            left, right, first, second = right, left, second, first
        assert isinstance(right, _Known)
        if operation is Arithmetic.DIVIDE:
            low, high = (1 / right.high, inf) if right.low == 0 < right.high else (-inf, inf)
            if right.low * right.high > 0:
                low, high = 1 / right.high, 1 / right.low
            right = _Known(low, high, right.fixed)
        product = _scaled(left, right, bool(second.lengths))
        if isinstance(product, _StateValue):
            return product
        assert isinstance(left, _Known)
        unit, factor = (first, second) if left.unit is not None else (second, first)
        if not (factor.feature in (None, Dim.of(1)) or (_is_matrix(unit) and not factor.lengths)):
            product = replace(product, unit=None)  # features of a vector have factors of their own
        return replace(product, low=max(0.0, product.low)) if left is right else product

    def _call(self, node: Node, acts: Sequence[Act], arguments: Sequence[_Value], types: Mapping[str, Type]) -> _Value:
        by_word = {act.word: act for act in acts}
        if moves := _transition_by_acts(
            acts, [_ANY if isinstance(value, _StateValue) else value for value in arguments]
        ):
            self.moves[node.id] = [replace(moves, node=node.id)]
        known = [value for value in arguments if isinstance(value, _Known)]
        if len(known) == len(arguments):
            return _known_result(node, by_word, known, types)
        forms = [value for value in arguments if isinstance(value, _StateValue)]
        form = forms[0]
        if "rectifies" in by_word and (slope := _slope(form)):
            return _StateValue("bent", form.states, low=min(0, slope), high=max(0, slope))
        if moves is not None or by_word.keys().isdisjoint(_LINEAR):
            return _other(arguments, "other" if moves is None else "unknown")
        if "sums" in by_word and form.kind in ("chained", "scaled"):
            base, by = (form.base, form.by) if form.kind == "scaled" else (form, _ANY)
            return _StateValue("read", form.states, (*form.chain, _Factor("matrix")), base, by, _ANY, by.least, by.most)
        if any(each.kind in _OPAQUE for each in forms) or ("bilinear" in by_word and len(forms) > 1):
            return _other(arguments)
        # What is chosen for each pair of a map is no matrix.
        maps = any(len(types[source].lengths) > 1 for source in node.inputs)
        choice = "bilinear" in by_word and not maps and all(value.choice for value in known)
        fixed = "bilinear" not in by_word or all(value.fixed for value in known)
        matrix = _Factor("matrix", fixed=fixed and len(forms) == 1, choice=choice)
        return _StateValue("chained", frozenset[int]().union(*(each.states for each in forms)), (*form.chain, matrix))


def _is_matrix(kind: Type) -> bool:
    return bool(kind.lengths) and kind.lengths[0].constant is not None


def _other(arguments: Sequence[_Value], kind: str = "other") -> _Value:
    """Returns what is known of a value that depends on others in any way."""
    forms = [value for value in arguments if isinstance(value, _StateValue)]
    kind = "unknown" if any(form.kind == "unknown" for form in forms) else kind
    return _StateValue(kind, frozenset[int]().union(*(form.states for form in forms))) if forms else _Known()


def _scaled(value: _Value, by: _Known, is_column: bool) -> _Value:
    """Returns the product of a value and a known one, which `is_column` has rows."""
    if isinstance(value, _Known):
        low, high = _product((value.low, value.high), (by.low, by.high))
        with_unit, multiplier = (value, by) if value.unit is not None else (by, value)
        least, most = _product((with_unit.least, with_unit.most), (multiplier.low, multiplier.high))
        unit = None if multiplier.unit is not None else with_unit.unit
        return _Known(low, high, value.fixed and by.fixed, unit, with_unit.groups, least, most)
    if value.kind in ("chained", "scaled"):
        factor = _Factor("diagonal", by.low, by.high, by.fixed)
        return _StateValue("scaled", value.states, (*value.chain, factor), value, by)
    if value.kind == "read" and is_column:
        low, high = _product((value.low, value.high), (by.least, by.most))
        return replace(value, kind="low", column=by, low=low, high=high)
    if value.kind == "bent":
        is_sign = by.fixed and by.low == by.high and abs(by.low) == 1
        return replace(value, low=by.low * value.low, high=by.low * value.high) if is_sign else _other([value])
    low, high = _product((value.low, value.high), (by.low, by.high))
    return replace(value, low=low, high=high)


def _slope(form: _StateValue) -> int:
    """Returns 1 for a state with what is added to it, -1 for it negated, 0 for any other form."""
    is_signed = form.kind in ("chained", "scaled") and all(
        factor.kind == "diagonal" and factor.fixed and abs(factor.low) == 1 and factor.low == factor.high
        for factor in form.chain
    )
    return int(prod(factor.low for factor in form.chain)) if is_signed else 0


def _sum(left: _Value, right: _Value) -> _Value:
    if isinstance(left, _Known) and isinstance(right, _Known):
        return _Known(left.low + right.low, left.high + right.high, left.fixed and right.fixed)
    if isinstance(left, _Known) or isinstance(right, _Known):
        form = right if isinstance(left, _Known) else left
        assert isinstance(form, _StateValue)
        return replace(form, kind="chained") if form.kind == "scaled" else replace(form)
    for bent, other in ((left, right), (right, left)):
        if bent.kind == "bent" and bent.states == other.states and (slope := _slope(other)):
            return replace(bent, low=bent.low + slope, high=bent.high + slope)
    if _OPAQUE & {left.kind, right.kind}:
        return _other([left, right])
    states = left.states | right.states
    for product, added in ((left, right), (right, left)):
        if product.kind not in ("chained", "scaled") or _is_rank(product) or states != product.states:
            continue
        is_own = added.kind == "low" and added.base is product and added.by.unit == added.column.unit is not None
        if is_own:
            key = None if added.by.fixed else added.by.unit
            reflection = _Factor("reflection", 1 + added.low, 1 + added.high, key=key)
            return _StateValue("chained", states, (*product.chain, reflection))
        if added.kind == "low" or _is_rank(added):
            return _StateValue("chained", states, (*product.chain, *_ranks(added)))
    if len(states) == 1 and all(each.kind == "low" or _is_rank(each) for each in (left, right)):
        return _StateValue("chained", states, (*_ranks(left), *_ranks(right)))
    chain = (*left.chain, *right.chain)
    if len(states) == 1 and all(factor.kind == "diagonal" for factor in chain):
        ranges = [_range(form.chain) for form in (left, right)]
        low, high = (ranges[0][end] + ranges[1][end] for end in (0, 1))
        total = _Factor("diagonal", low, high, all(f.fixed for f in chain))
        return _StateValue("chained", states, (total,))
    return _StateValue("chained", states, (_Factor("matrix", fixed=len(states) == 1 and all(f.fixed for f in chain)),))


def _range(chain: Sequence[_Factor]) -> tuple[float, float]:
    low, high = 1.0, 1.0
    for factor in chain:
        low, high = _product((low, high), (factor.low, factor.high))
    return low, high


def _exponential(number: float) -> float:
    return inf if number > 700 else exp(number)


def _sliced(value: _Known, start: int, width: int) -> _Known:
    place = 0
    for size, part in value.parts:
        if place == start and size == width:
            return part
        if place <= start and start + width <= place + size:
            return _sliced(part, start - place, width)
        place += size
    return _Known(value.low, value.high, value.fixed)


def _known_result(
    node: Node, acts: Mapping[str, Act], arguments: Sequence[_Known], types: Mapping[str, Type]
) -> _Known:
    fixed = all(value.fixed for value in arguments)
    value = arguments[0] if arguments else _Known(fixed=True)
    low, high = min([0.0, *(v.low for v in arguments)]), max([0.0, *(v.high for v in arguments)])
    if "slices" in acts:
        return _sliced(replace(value, low=low, high=high), *map(int, acts["slices"].numbers))
    if "joins" in acts:
        widths = [None if (f := types[source].feature) is None else f.constant for source in node.inputs]
        known = [width for width in widths if width is not None]
        parts = tuple(zip(known, arguments, strict=True)) if len(known) == len(widths) else ()
        return _Known(low, high, fixed, choice=all(value.choice for value in arguments), parts=parts)
    if "unit" in acts:
        return _Known(-1, 1, fixed, unit=(value, *acts["unit"].numbers), groups=acts["unit"].numbers[0])
    if "columns" in acts:
        shorter = value.groups / acts["columns"].numbers[0]
        length = max(1.0, shorter) ** 0.5
        least, most = (1.0, 1.0) if shorter == 1 else (0.0, length)
        least, most = _product((value.least, value.most), (least, most))
        return _Known(low, high, fixed, value.unit and (value.unit, *acts["columns"].numbers), 1, least, most)
    if "moves" in acts:
        # Vectors that are moved as a whole, and the rows of a matrix, keep their lengths.
        before, after = types[node.inputs[0]], node.type
        same = before.lengths == after.lengths if _is_matrix(before) else before.feature == after.feature
        unit = value.unit if same and len(arguments) == 1 else None
        unit = (unit, node.id) if unit and before == after else unit  # such as rows in another order
        least, most = min(0.0, value.least), max(0.0, value.most)
        return replace(value, low=low, high=high, fixed=fixed, unit=unit, least=least, most=most, parts=())
    if "masks" not in acts:
        low, high = -inf, inf
    if "exponential" in acts:
        low, high = _exponential(value.low), _exponential(value.high)
    if "logarithm" in acts:
        low, high = (log(value.low) if value.low > 0 else -inf), (log(value.high) if 0 < value.high < inf else inf)
    if "positive" in acts:
        low = 0.0
    if "bounded" in acts:
        low, high = acts["bounded"].numbers
    return _Known(low, high, fixed, choice="choice" in acts)


def _transition_by_acts(acts: Sequence[Act], arguments: Sequence[_Known]) -> Transition | None:
    chain: list[_Factor] = []
    for act in acts:
        values = [arguments[index] for index in act.inputs]
        match act.word:
            case "decays":
                low, high = (_exponential(end) for end in (values[0].low, values[0].high))
                chain.append(_Factor("diagonal", low, high, values[0].fixed))
            case "fades":
                chain.append(_Factor("diagonal", 0, 1, True))
            case "reflects":
                key, rate = values
                length = key.most * max(1.0, key.groups / act.numbers[0]) ** 0.5 if key.unit is not None else inf
                shortest = key.least if key.groups == act.numbers[0] and key.unit is not None else 0.0
                low, high = _product((rate.low, rate.high), (shortest**2, length**2))
                chain.append(_Factor("reflection", 1 - high, 1 - low, key=None if key.fixed else key.unit))
            case "adds_rank":
                chain.append(_Factor("added"))
            case "nonlinear":
                return Transition("non-linear", layers=int(act.numbers[0]) if act.numbers else 1)
            case "pushes":
                return Transition("stack")
    return _transition(_StateValue("chained", frozenset([0]), tuple(chain))) if chain else None


def _transition(value: _Value) -> Transition:
    if isinstance(value, _Known):
        return Transition("none", 0, 0, is_real=True, fixed=True)
    if value.kind == "bent":
        return Transition("maximum" if {value.low, value.high} == {0, 1} else "non-linear")
    if value.kind not in ("chained", "scaled"):
        return Transition({"other": "non-linear", "unknown": "unknown"}.get(value.kind, "matrix"))
    chain = value.chain
    fixed = all(factor.fixed for factor in chain)
    kinds = [factor.kind for factor in chain]
    if "matrix" in kinds:
        is_choice = all(factor.choice or factor.kind == "diagonal" for factor in chain)
        return Transition("choice" if is_choice else "matrix", fixed=fixed)
    diagonal = _range([factor for factor in chain if factor.kind == "diagonal"])
    rank = len(kinds) - kinds.count("diagonal")
    if not rank:
        return Transition("diagonal", *diagonal, is_real=True, fixed=fixed)
    if "added" in kinds:
        return Transition("low rank", rank=rank)
    # Products of two positive semidefinite matrices have no negative eigenvalues; those of one symmetric matrix and a
    # positive diagonal are real.
    reflections = [(factor.low, factor.high) for factor in chain if factor.kind == "reflection"]
    scale = rank + ("diagonal" in kinds)
    keys = {factor.key for factor in chain if factor.key and factor.low <= -1 < 1 <= factor.high}
    flips = len(keys) if diagonal[0] <= 1 <= diagonal[1] else 0
    high = max(map(abs, diagonal)) * prod(max(1.0, *map(abs, ends)) for ends in reflections)
    if min(diagonal[0], *(low for low, _ in reflections)) >= 0 and scale <= 2:
        return Transition("low rank", 0, high, rank, flips, is_real=True)
    if rank == 1 and diagonal[0] >= 0:
        return Transition("low rank", min(0.0, diagonal[1] * reflections[0][0]), high, rank, flips, is_real=True)
    return Transition("low rank", -high, high, rank, flips)
