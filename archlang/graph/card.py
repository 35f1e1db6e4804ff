"""What an architecture can do: its costs as polynomials in the length, its steps, what it reads, how its states move,
and what the literature proves of such models."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from fractions import Fraction
from functools import cache, partial, reduce
from math import inf, lcm
from typing import NamedTuple

from archlang.graph.causality import horizon
from archlang.graph.decoding import decoding_state
from archlang.graph.facts import PROBLEMS
from archlang.graph.graph import Graph, Node, Region, loop_layout, takes_positions
from archlang.graph.growth import growths
from archlang.graph.operations import Call, Gradient, Halting, Repeat, Scan, step_limit
from archlang.graph.prune import normalize
from archlang.graph.summary import names_of_lengths, summarize, weights_by_path
from archlang.graph.transitions import Transition, describe, transitions
from archlang.graph.windows import groups_of_maps, window
from archlang.types import Dim, Type
from archlang.types.causality import Manner, Reach, manner_of
from archlang.types.dimension import Quotient

_DEGREE = 4
_LONG = 3840


@dataclass(frozen=True)
class Polynomial:
    """A cost as a polynomial in the length n, the coefficient of 1 first; `is_exact` says that it is one at every
    length, and not only at some, such as the multiples of a size of chunks."""

    coefficients: tuple[Fraction, ...]
    is_exact: bool = True

    def __str__(self) -> str:
        terms = []
        for power, c in reversed([*enumerate(self.coefficients)]):
            number = f"{c.numerator:,}" if c.denominator == 1 else f"{float(c):,.1f}"
            terms += [_POWERS[power] if c == 1 and power else f"{number} {_POWERS[power]}".rstrip()] * bool(c)
        return "about " * (not self.is_exact) + (" + ".join(terms).replace("+ -", "- ") or "0")

    def share(self) -> Polynomial:
        """Returns the cost of one of n positions, where what does not depend on n is computed for each."""
        first, second, *rest = (*self.coefficients, Fraction(0), Fraction(0))
        return replace(self, coefficients=_trimmed((first + second, *rest)))


_POWERS = ("", "n", "n²", "n³", "n⁴")


@dataclass(frozen=True)
class Theorem:
    """What a `source` proves of all models like this one, under `conditions`."""

    sentence: str
    conditions: str
    source: str
    fails: tuple[str, ...] = ()
    """the problems that such a model cannot solve at all lengths, of `archlang.graph.facts.PROBLEMS`"""


@dataclass(frozen=True)
class Card:
    """What an architecture costs, reads and can compute; all costs are those of one sample with n positions.

    `flops` are those of a prompt, `token_flops` those of each of n tokens, with all n kept; None if the result sees the
    future. `state` are the numbers kept for the next token. `steps` are the blocks with matrix products, or that mix
    positions, that run one after the other as the page is written, and `depth` those after the compiler has made
    recurrences parallel; both are sums of powers of n and log n. `uncounted` are blocks whose costs are unknown."""

    model: str
    unique: int
    executed: Polynomial
    flops: Polynomial
    activations: Polynomial
    token_flops: Polynomial | None
    state: str | None
    uncounted: tuple[str, ...]
    steps: Polynomial
    depth: str
    reach: str
    positions: str
    turns: tuple[str, ...]
    transitions: tuple[Transition, ...]
    memory: str
    claims: tuple[Theorem, ...]

    def rows(self) -> Sequence[tuple[str, str]]:
        """Returns the facts for a reader, besides the claims: pairs of a name and a text."""
        least = "at least " if self.uncounted else ""
        rows = {
            "parameters": f"{least}{self.unique:,}, executed {self.executed}",
            "FLOPs of a prompt": f"{least}{self.flops}; training takes three times as many",
            "activations": f"{least}{self.activations} numbers, in training",
            "FLOPs of each token": self.token_flops,
            "state for the next": self.state and f"{self.state} numbers",
            "steps in sequence": f"{self.steps} as written, {self.depth} in parallel",
            "reads": self.reach,
            "positions": {"none": "no encoding"}.get(self.positions, self.positions),
            "turns of loops": "; ".join(self.turns),
            "recurrences": "; ".join(describe(self.transitions)),
            "memory": self.memory,
            "unknown costs": ", ".join(self.uncounted),
        }
        return [(name, str(value)) for name, value in rows.items() if value]

    def text(self) -> str:
        """Returns the card as the terminal and pages show it."""
        claims = [
            f"\n{self.model} {each.sentence}.\n    if: {each.conditions}\n    by: {each.source}" for each in self.claims
        ]
        none = "\nNo theorem that archlang knows applies to such a model."
        return "\n".join([*(f"{name:<22}{value}" for name, value in self.rows()), *(claims or [none])])

    def facts(self) -> dict[str, object]:
        """Returns the card as JSON has it."""
        return {field.name: _json_of(getattr(self, field.name)) for field in fields(self)}


def _json_of(value: object) -> object:
    if is_dataclass(value):
        facts = {field.name: _json_of(getattr(value, field.name)) for field in fields(value)}
        return facts | ({"text": str(value)} if "__str__" in vars(type(value)) else {})
    if isinstance(value, tuple):
        return [_json_of(item) for item in value]
    if isinstance(value, Fraction | float):
        return None if abs(value) == inf else float(value)
    return value


def card(graph: Graph) -> Card:
    """Returns the card of a model or a block, whose sizes are known. Loops run to their limits."""
    graph = normalize(graph)
    moves = tuple(transitions(graph))
    costs = cache(partial(summarize, graph))
    paths = cache(lambda length: _Paths(graph, moves, length).region(graph.region))
    first, path, stride = costs(64), paths(64), _length_of_whole_chunks(graph)
    executed, flops, activations = (_polynomial(costs, stride, name) for name in ("executed", "flops", "activations"))
    steps, depth = (_polynomial(paths, stride, name) for name in ("steps", "depth"))
    logs = ["log n" if path.logs == 1 else f"{path.logs:g} log n"] * bool(path.logs)
    state = decoding_state(graph)
    return Card(
        graph.name, first.unique, executed, flops, activations, flops.share() if state else None,
        str(state) if state else None, tuple(sorted({*first.uncounted, *first.unmeasured, *first.unknown})), steps,
        " + ".join([*logs, str(depth)]), _reach(graph, path), _positions(graph), _all_turns(graph), moves,
        _memory(moves, path), _theorems(graph, moves, path),
    )  # fmt: skip


def failures(graph: Graph, problems: Collection[str]) -> tuple[str, ...]:
    """Returns those of some problems that a theorem says the model cannot solve at all lengths."""
    if not problems:
        return ()
    graph = normalize(graph)
    moves = tuple(transitions(graph))
    theorems = _theorems(graph, moves, _Paths(graph, moves, 64).region(graph.region))
    failed = {problem for theorem in theorems for problem in theorem.fails}
    return tuple(problem for problem in PROBLEMS if problem in failed & set(problems))


def _theorems(graph: Graph, moves: Sequence[Transition], path: _Path) -> tuple[Theorem, ...]:
    """Returns the theorems about all models like a normalized graph."""
    state, turns = decoding_state(_before_readout(graph)), _all_turns(graph, attending=True)
    is_read_once = sum(_is_open(value.type) for value in graph.region.inputs) == 1
    holds = {
        "finite": is_read_once and state is not None and state.constant is not None,
        "positions": _positions(graph) != "none",
        "turns": turns != (),
        "windows": any(word == "window" and numbers != (1,) for word, numbers in _all_acts(graph)),
        "resampled": _is_resampled(graph),
    }
    tags = _tags(moves, path) | {tag for tag, is_held in holds.items() if is_held}
    flips = max((move.flips for move in moves), default=0)
    facts = {
        "state": state, "things": 1 + flips, "flips": "once" if flips == 1 else f"{flips} times",
        "turns": " and ".join(turns), "parity": "may compute parity, but " * ("signed" in tags),
    }  # fmt: skip
    rows = () if graph.has_own_python else [row for row in CLAIMS if _applies(row[0], tags)]
    return tuple(
        Theorem(sentence.format(**facts), conditions, source, tuple(fails.split()))
        for _, sentence, conditions, source, fails in rows
    )


def _all_turns(graph: Graph, *, attending: bool = False) -> tuple[str, ...]:
    """Returns the turns of all loops, or of those whose states are sequences and attend to them."""
    nodes = [node for node in graph.region.walk() if not attending or _attends(graph, node)]
    return tuple(dict.fromkeys(filter(None, (_turns(graph, node) for node in nodes))))


def _attends(graph: Graph, loop: Node) -> bool:
    """Whether the states of a loop are sequences, and attention in it reads a sequence, not slots of a fixed number."""
    for region in (inner for outer in loop.regions for inner in outer.regions()):
        types = region.types()
        for node in region.nodes:
            records = () if node.instance is None else graph.instances[node.instance].records
            if any(own.kind == "attention" for own in records) and _is_open(types[node.inputs[-1]]):
                return any(map(_is_open, loop.types))
    return False


def _all_acts(graph: Graph) -> set[tuple[str, tuple[float, ...]]]:
    return {act for node in graph.region.walk() for act in _acts(graph, node)}


def _positions(graph: Graph) -> str:
    return next((word for word in ("absolute", "relative") if (word, ()) in _all_acts(graph)), "none")


def _is_resampled(graph: Graph) -> bool:
    """Whether some lengths are not those of the inputs, so that a position may be several, or a part of one."""
    input_lengths = {length for value in graph.region.inputs for length in value.type.lengths}
    kinds = (kind for region in graph.region.regions() for kind in region.types().values())
    return any(length.constant is None and length not in input_lengths for kind in kinds for length in kind.lengths)


# Costs


def _polynomial(costs: Callable[[int], object], stride: int, name: str) -> Polynomial:
    """Interpolates a cost between short lengths, or multiples of `stride`, and compares it at others, of which one is
    long: there it may be estimated."""

    def at(length: int) -> int:
        return int(getattr(costs(length), name))

    for step in dict.fromkeys((1, stride)):
        coefficients = _interpolated([(step * k, at(step * k)) for k in range(4, 5 + _DEGREE)])
        errors = [sum(c * n**p for p, c in enumerate(coefficients)) - at(n) for n in (11 * step, 37 * step, _LONG)]
        if not any(errors[:2]) and abs(errors[2]) <= at(_LONG) / 100:
            return Polynomial(coefficients, step == 1 and not errors[2])
    # A window may be longer than these lengths.
    coefficients = _interpolated([(_LONG * k, at(_LONG * k)) for k in (1, 2, 3)])
    return Polynomial(_trimmed(Fraction(round(c, 1)) for c in coefficients), False)


def _length_of_whole_chunks(graph: Graph) -> int:
    kinds = [kind for region in graph.region.regions() for kind in region.types().values()]
    parts = [kind.part.constant for kind in kinds if kind.part is not None and kind.part.constant]
    names = {name for kind in kinds for length in kind.lengths for name in length.names}
    return lcm(*parts, *(name.divisor for name in names if isinstance(name, Quotient)))


def _interpolated(points: Sequence[tuple[int, int]]) -> tuple[Fraction, ...]:
    table = [Fraction(value) for _, value in points]
    for order in range(1, len(points)):
        for i in range(len(points) - 1, order - 1, -1):
            table[i] = (table[i] - table[i - 1]) / (points[i][0] - points[i - order][0])
    coefficients = [Fraction(0)]
    for (x, _), value in zip(reversed(points), reversed(table), strict=True):
        shifted = [Fraction(0), *coefficients]
        coefficients = [high - x * low for high, low in zip(shifted, [*coefficients, Fraction(0)], strict=True)]
        coefficients[0] += value
    return _trimmed(coefficients)


def _trimmed(coefficients: Iterable[Fraction]) -> tuple[Fraction, ...]:
    trimmed = [*coefficients]
    while trimmed and not trimmed[-1]:
        trimmed.pop()
    return tuple(trimmed)


class CostAt(NamedTuple):
    """A cost of a sample of some length, and the block with the largest part of it, with its share; None if it is
    unknown, because it is `unknown` for some blocks."""

    value: int | None
    largest: str = ""
    unknown: str = ""


COSTS = ("parameters", "flops", "activations", "state")
DEFAULT_LENGTH = 64  # positions, as those of `archlang summary`


def cost_at(graph: Graph, cost: str, length: int) -> CostAt:
    """Returns one of `COSTS` at a length."""
    if cost == "state":
        state = decoding_state(graph)
        if state is None:
            return CostAt(None, unknown="of a model that sees the future")
        lengths = {name: Dim.of(length) for value in graph.region.inputs for name in names_of_lengths(value.type)}
        state = state.substitute(lengths)
        return CostAt(state.constant, unknown=f"of {state}")
    summary = summarize(graph, length)
    value, unknown = {
        "parameters": (summary.unique, summary.unknown), "flops": (summary.flops, summary.uncounted),
        "activations": (summary.activations, summary.unmeasured),
    }[cost]  # fmt: skip
    if unknown:
        return CostAt(None, unknown=f"of {', '.join(unknown)}")
    parts = Counter[str]()
    if cost == "parameters":
        parts.update(dict(weights_by_path(graph)))
    else:
        for node in graph.region.walk():
            if node.instance is not None and node.id in summary.nodes:
                parts[graph.instances[node.instance].block] += getattr(summary.nodes[node.id], cost)
    (name, most), *_ = [*parts.most_common(1), ("", 0)]
    return CostAt(value, f"`{name}` has {100 * most / value:.0f} % of it" if most else "")


# Steps, and what is read


class _Path(NamedTuple):
    """The longest path to a value, at one length: its steps in sequence as written, those in parallel besides `logs`
    times log n, the recurrences, the layers of softmax attention and other reads of positions on it, and how many
    positions it reaches through windows."""

    steps: float = 0
    depth: float = 0
    logs: float = 0
    recurrences: float = 0
    attends: float = 0
    mixes: float = 0
    reach: float = 1

    def join(self, other: _Path) -> _Path:
        depth, logs = max(self[1:3], other[1:3])
        return _Path(*map(max, self, other))._replace(depth=depth, logs=logs)

    def then(self, other: _Path, count: int = 1) -> _Path:
        reach = self.reach + count * (other.reach - 1) if count else self.reach
        return _Path(*(value + count * more for value, more in zip(self, other, strict=True)))._replace(reach=reach)


_START = _Path()
_OF_POSITION = {Manner.POINTWISE, Manner.LENGTH}


def _is_open(kind: Type) -> bool:
    """Whether a value has a length that differs from sample to sample."""
    return any(length.constant is None for length in kind.lengths)


class _Paths:
    def __init__(self, graph: Graph, moves: Sequence[Transition], length: int) -> None:
        self._instances, self._length = graph.instances, length
        self._windowed: set[str] = set()
        self._moves = {move.node: [each for each in moves if each.node == move.node] for move in moves}

    def region(self, region: Region) -> _Path:
        """Returns what covers the paths to all results of a region."""
        paths, types = dict.fromkeys((value.id for value in region.inputs), _START), region.types()
        for group in groups_of_maps(region.nodes):
            if window(group, self._instances):
                self._windowed |= {node.id for node in group}
        for node in region.nodes:
            before = reduce(_Path.join, (paths[source] for source in node.inputs), _START)
            paths[node.id] = before.then(self._node(node, types))
        return reduce(_Path.join, (paths[result] for result in region.results), _START)

    def _node(self, node: Node, types: Mapping[str, Type]) -> _Path:
        match node.operation:
            case Call():
                return self._call(node, types)
            case Scan():
                return self._scan(node, node.operation, types)
            case Halting(instance=path, limit=limit):
                waits = _START if self._instances[path].per_position else _Path(mixes=1, reach=inf)
                return waits.then(self.region(node.regions[0]), limit)
            case Gradient():
                # Forward and backward, which is no layer of attention.
                inner = self.region(node.regions[0])
                return _START.then(inner._replace(attends=0, mixes=inner.attends + inner.mixes), 2)
        return _START.then(self.region(node.regions[0]), step_limit(node.operation) or 1) if node.regions else _START

    def _call(self, node: Node, types: Mapping[str, Type]) -> _Path:
        instance = self._instances[node.instance or ""]
        manners = (manner for manner, _ in map(manner_of, instance.reads))
        read = {manner for source, manner in zip(node.inputs, manners, strict=False) if _is_open(types[source])}
        is_far = not read <= {*_OF_POSITION, Manner.FIRST}
        if moves := self._moves.get(node.id):
            layers = moves[0].layers
            steps = layers * self._length
            if moves[0].is_linear:
                return _Path(steps, 1, 1, 1, reach=inf)
            return _Path(steps, steps, recurrences=layers, reach=inf)
        acts = {act.word: act for act in instance.acts}
        costs = int(is_far or instance.costs.flops is None or instance.costs.flops.constant != 0)
        if node.id in self._windowed and "window" not in acts:
            return _Path(costs, costs)  # the window of the group says what it reads
        if "window" in acts:
            return _Path(costs, costs, reach=acts["window"].numbers[0])
        attends = int(is_far and "attends" in acts)
        reach = 1 if read <= _OF_POSITION else inf
        return _Path(costs, costs, attends=attends, mixes=is_far - attends, reach=reach)

    def _scan(self, node: Node, scan: Scan, types: Mapping[str, Type]) -> _Path:
        scanned, of_position, outside = types[node.inputs[0]], takes_positions(node), self._length
        size = 1 if of_position else (scanned.part and scanned.part.constant) or outside
        self._length = outside if of_position else size
        inner = self.region(node.regions[0])
        self._length = outside
        moves = [move.kind for move in self._moves.get(node.id, ())]
        kinds, grows = {*moves}, "grows" in moves
        # A state can depend on another, as a layer on the one below.
        carries = sum(kind not in ("none", "grows") for kind in moves)
        count = -(-outside // size)
        is_plain = of_position and scan.before is None and scan.truncated is None and not growths(node)
        depth, logs = (count * max(1, inner.depth), 0) if moves else (inner.depth, 0)
        if moves and is_plain and kinds <= {"none", "diagonal", "low rank", "maximum"}:
            depth, logs = inner.depth, 1
        mixes = inner.mixes + grows + (scan.before == 0)
        outer = (types[source] for source in node.inputs[loop_layout(node).outer_captured :])
        sees_all = carries or grows or scan.before == 0 or any(map(_is_open, outer))
        # Positions of a chunk are others outside: a window is elsewhere there.
        reach = inf if sees_all and (carries or inner.reach > 1) else min(inner.reach, size) + (scan.before or 0)
        return _Path(count * max(1, inner.steps), depth, logs, inner.recurrences + carries, inner.attends, mixes, reach)


def _reach(graph: Graph, path: _Path) -> str:
    inputs = [value.name for value in graph.region.inputs]
    seen = [horizon(graph, name) for name in inputs]
    if path.reach < inf and not any(each.sees_future and each.reach is not Reach.WITHIN for each in seen):
        return f"{int(path.reach)} positions" if path.reach > 1 else "its own position"
    if any(each.sees_future for each in seen):
        return "all positions"
    return "all positions so far" if any(each.reach is not Reach.NOTHING for each in seen) else "no position"


def _before_readout(graph: Graph) -> Graph:
    """Returns a graph without what it computes of the last position alone, if its results are computed so."""
    types, nodes = graph.region.types(), {node.id: node for node in graph.region.nodes}
    values = list(graph.region.results)
    for value in values:  # grows
        node = nodes.get(value)
        if node is None or node.types[0].lengths:
            continue
        reads_more = any(source not in types or types[source].lengths for source in node.inputs)
        if reads_more and ("window", (1,)) not in _acts(graph, node):
            return graph
        values += [source for source in node.inputs if source not in values]
    read = tuple(value for value in values if value in types and types[value].lengths)
    return normalize(replace(graph, region=replace(graph.region, results=read))) if read else graph


def _acts(graph: Graph, node: Node) -> Sequence[tuple[str, tuple[float, ...]]]:
    acts = () if node.instance is None else graph.instances[node.instance].acts
    return [(act.word, act.numbers) for act in acts]


def _turns(graph: Graph, node: Node) -> str | None:
    match node.operation:
        case Repeat(count=count, drawn=drawn):
            return f"{count}{', drawn in training' if drawn else ''}"
        case Halting(limit=limit, instance=path):
            return f"up to {limit}, halting each {'position' if graph.instances[path].per_position else 'sample'}"
    return None


def _memory(moves: Sequence[Transition], path: _Path) -> str:
    kinds = {move.kind for move in moves} - {"none", "grows"}
    if not kinds:
        if path.mixes:
            return ""  # a sum over positions, or a block that is not followed
        return "kept, each position for itself" if path.attends else "none"
    return "fades, or is added to" if kinds == {"diagonal"} else "rewritten"


# Claims


def _tags(moves: Sequence[Transition], path: _Path) -> set[str]:
    moving = [move for move in moves if move.kind != "none"]
    tags = {move.kind.replace(" ", "-") for move in moving}
    holds = {
        "attention": path.attends + path.mixes > 0,
        "only-softmax": path.attends > 0 == path.mixes,
        "one-attention": path.attends == 1 and not path.mixes,
        "four-layers": path.attends >= 4,
        "recurrence": path.recurrences > 0,
        "one-recurrence": path.recurrences == 1,
        "nonnegative": all(move.is_real and move.low >= 0 for move in moving),
        "real": all(move.is_real for move in moving),
        "signed": any(
            move.low <= -1 < 1 <= move.high and move.kind == "diagonal" and not move.fixed for move in moving
        ),
        "reflecting": any(move.flips for move in moving),
        "all-linear": all(move.is_linear for move in moving),
        "commuting": all({move.kind} <= {"diagonal", "grows", "matrix" if move.fixed else ""} for move in moving),
        "diagonals": all(move.kind == "diagonal" for move in moving),
    }
    return tags | {tag for tag, is_held in holds.items() if is_held}


def _applies(need: str, tags: Iterable[str]) -> bool:
    return all((word[1:] not in tags) if word[0] == "-" else word in tags for word in need.split())


_FIXED = "numbers of a fixed number of bits, all lengths"
CLAIMS: tuple[tuple[str, str, str, str, str], ...] = (
    ("-recurrence",
     "computes functions in uniform TC⁰ only: no word problem of S₅, no formulas, nor other problems that are complete "
     "for NC¹, unless TC⁰ = NC¹",
     "depth and turns that do not grow with n, numbers of polynomially many bits; proved for softmax attention with "
     "pointwise layers",
     "Merrill and Sabharwal 2023; Chiang 2025, arXiv 2409.13629",
     "nonsolvable"),
    ("-recurrence turns",
     "could recognize all regular languages and decide connectivity of graphs with turns in proportion to log n, but "
     "its turns ({turns}) do not depend on n",
     "universal transformers of the paper's form; what can be represented, not learned",
     "Merrill and Sabharwal 2025, arXiv 2503.03961",
     ""),
    ("one-attention -recurrence -windows",
     "cannot compute parity at all lengths: it has one layer of attention",
     "softmax attention, whose size and precision do not grow with n",
     "Kozachinskiy et al. 2026, arXiv 2602.05896",
     "parity"),
    ("only-softmax four-layers -recurrence",
     "can represent parity, as it has four layers, but weights that do are isolated points, so that training hardly "
     "finds them, less for longer inputs",
     "softmax attention, features enough; an obstacle to learning, not to representing",
     "Kozachinskiy et al. 2026, arXiv 2602.05896; Hahn and Rofin 2024, arXiv 2402.09963",
     ""),
    ("recurrence nonnegative -attention -positions",
     "cannot compute parity at all lengths: no transition has a negative eigenvalue",
     f"{_FIXED}, any number of layers",
     "Sarrof et al. 2024, arXiv 2405.17394; Grazzi et al. 2025, arXiv 2411.12537",
     "parity"),
    ("recurrence diagonals -attention -positions",
     "{parity}cannot count modulo 3: transitions are diagonal and real",
     f"{_FIXED}, any number of layers",
     "Grazzi et al. 2025, arXiv 2411.12537",
     "counting"),
    ("one-recurrence real -diagonals -attention -positions",
     "cannot count modulo 3, nor multiply permutations of three things (S₃): it has one recurrence, and its "
     "transitions have real eigenvalues",
     f"{_FIXED}, one recurrence between pointwise layers",
     "Grazzi et al. 2025, arXiv 2411.12537",
     "counting permutations"),
    ("low-rank reflecting -resampled -non-linear -stack -unknown",
     "can multiply permutations of {things} things: a state may be reflected {flips} at each position",
     "rates that the tokens set from 0 to 2, keys of length 1 that they choose, decays that reach 1; what can be "
     "represented, not learned",
     "Siems et al. 2025, arXiv 2502.10297",
     ""),
    ("recurrence commuting",
     "computes functions in L-uniform TC⁰ only: no word problem of S₅, nor other problems that are complete for NC¹, "
     "unless TC⁰ = NC¹",
     "numbers of O(log n) bits, a fixed number of layers",
     "Merrill, Petty and Sabharwal 2024, arXiv 2404.08819",
     "nonsolvable"),
    ("recurrence all-linear -commuting -attention",
     "computes functions in PNC¹ only (arithmetic circuits of logarithmic depth); some models with a diagonal plus low "
     "rank solve problems that are complete for it",
     "states that move linearly, a fixed number of layers with pointwise layers between them",
     "Merrill et al. 2026, arXiv 2603.03612",
     ""),
    ("non-linear",
     "moves a state by what is not linear: some such models solve problems that are complete for L, and with "
     "polynomially many bits problems that are complete for P, for which no circuits of less depth are known",
     "a statement about the class of such models",
     "Merrill et al. 2026, arXiv 2603.03612",
     ""),
    ("stack",
     "can recognize every context-free language, by all runs of a pushdown automaton",
     "as many states and symbols as the automaton has; what can be represented, not learned",
     "DuSell and Chiang 2024, arXiv 2310.01749",
     ""),
    ("finite -positions",
     "recognizes regular languages only, so no brackets of unbounded depth, and copies no string of more bits than its "
     "state of {state} numbers holds",
     f"{_FIXED}, read once from left to right",
     "Jelassi et al. 2024, arXiv 2402.01032, and as it is a finite automaton",
     "nonregular"),
)  # fmt: skip
"""What tags a claim needs, or lacks after `-`, what it says, under which conditions, the source, and the problems that
such a model cannot solve."""
