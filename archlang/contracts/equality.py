"""Compares the model of a page with a torch module of the user's own, and certifies what is equal."""

import hashlib
import inspect
import platform
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from itertools import accumulate
from math import isfinite

import torch
from torch import Tensor, nn

from archlang.backend.architecture import Architecture
from archlang.contracts import mistakes
from archlang.contracts.samples import random_value, shape
from archlang.disk.package import VERSION
from archlang.errors.names import plural
from archlang.plugins import Plugins
from archlang.plugins.plugins import PluginFunction
from archlang.syntax.parser import parse
from archlang.syntax.printer import unparse
from archlang.syntax.tree import Boolean, Definition, Number
from archlang.types.statics import Symbol

TOLERANCE = 1e-10  # of the largest number, in float64
LENGTHS = (1, 2, 5, 12)
_BATCH = 3
# The keyword of `forward` that says which positions are real, and whether it takes their numbers or a mask.
_MASKS = ("lengths", "mask", "attention_mask")


@dataclass(frozen=True)
class WeightPair:
    """A weight of the page and the one of the other module that has its part; `by` is why: a name, a shape, similar
    names, or hand. The other is the transpose if `is_transposed`, and of this the `rows` if they are not all."""

    page: str
    other: str
    shape: tuple[int, ...]
    by: str
    is_transposed: bool = False
    rows: tuple[int, int] | None = None

    def part(self, other: Tensor) -> Tensor:
        """Returns the part of the other weight, or of its gradient."""
        other = other.T if self.is_transposed else other
        return other if self.rows is None else other[slice(*self.rows)]

    def __str__(self) -> str:
        rows = "" if self.rows is None else "[{}:{}]".format(*self.rows)
        return f"{self.page} = {self.other}{'.T' * self.is_transposed}{rows}, by {self.by}"


@dataclass(frozen=True)
class Comparison:
    """The largest difference of some numbers, in units of the largest number, and where it is; or why there are
    none."""

    what: str
    difference: float = 0.0
    at: str = ""
    skipped: str = ""


@dataclass(frozen=True)
class Certificate:
    """What was compared with what: files by their SHA-256 digests, and versions."""

    page: str
    sources: Mapping[str, str]
    settings: Mapping[str, str]
    other: str
    plugins: Mapping[str, str]
    versions: Mapping[str, str]
    seed: int
    tolerance: float
    lengths: tuple[int, ...]
    weights: tuple[WeightPair, ...]
    comparisons: tuple[Comparison, ...]

    @property
    def is_equal(self) -> bool:
        return not self.different

    @property
    def different(self) -> tuple[str, ...]:
        """What differs by more than the tolerance, or is no number."""
        return tuple(each.what for each in self.comparisons if not each.difference <= self.tolerance)

    def facts(self) -> dict[str, object]:
        """Returns the certificate as JSON has it."""
        finite = [
            {**asdict(each), "difference": each.difference if isfinite(each.difference) else None}
            for each in self.comparisons
        ]
        return {"is_equal": self.is_equal, **asdict(self), "comparisons": finite}


def certify(
    page: Architecture,
    plugins: Plugins,
    python: str,
    by_hand: Mapping[str, str],
    lengths: Sequence[int],
    seed: int,
    tolerance: float = TOLERANCE,
) -> Certificate:
    """Compares a page with the module that `python` (`module:Class`) of a plugin returns, in float64 and evaluation
    mode, with the same random weights. `by_hand` has names of weights of the page, with `+` between those that are
    joined row after row, and those of the module, or with `.T` of its transposes. The state of torch's generator does
    not change.

    Raises:
        EqualityError: the module cannot be built or called like the page, or its weights have no partners.
        PluginError: the class is in no plugin, or its Python raises an error."""
    origin = page.program.origin
    assert origin is not None, "the module of a program has its origin"
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        page = page.double().eval()
        other = _Other(PluginFunction.load(plugins, python, "`--with`"), page)
        pairs = pair_weights(_shapes(page), _shapes(other.module), by_hand)
        weights, others = dict(page.named_parameters()), dict(other.module.named_parameters())
        with torch.no_grad():
            for pair in pairs:
                # Zeros, as biases begin, would hide differences.
                weights[pair.page].add_(0.1 * torch.randn_like(weights[pair.page]))
                pair.part(others[pair.other]).copy_(weights[pair.page])
        compared = tuple(_comparisons(page, other, pairs, lengths))
    sources = [] if origin.program is None else [origin.program, *origin.used]
    return Certificate(
        page.program.graph.name, {each.path: hashlib.sha256(each.text.encode()).hexdigest() for each in sources},
        {path: str(value) for path, value in origin.settings.items()}, python, plugins.digests(),
        {"archlang": VERSION, "torch": torch.__version__, "python": platform.python_version()},
        seed, tolerance, tuple(lengths), pairs, compared,
    )  # fmt: skip


# Weights


def _shapes(module: nn.Module) -> dict[str, tuple[int, ...]]:
    return {name: tuple(weight.shape) for name, weight in module.named_parameters()}


def pair_weights(
    page: Mapping[str, tuple[int, ...]], other: Mapping[str, tuple[int, ...]], by_hand: Mapping[str, str]
) -> tuple[WeightPair, ...]:
    """Returns the pairs of all weights, from their shapes by name, in the order of the page.

    Raises:
        EqualityError: a name of `by_hand` is unknown or of another shape, or a weight has no partner, or several."""
    pairs: dict[str, WeightPair] = {}
    for joined, written in by_hand.items():
        is_transposed = written not in other and written.endswith(".T")
        partner, names = written.removesuffix(".T") if is_transposed else written, joined.split("+")
        for known, wanted, where in (*((page, name, "the page") for name in names), (other, partner, "the module")):
            if wanted not in known:
                raise mistakes.unknown_weight(wanted, where, known)
        found = other[partner][::-1] if is_transposed else other[partner]
        ends = [*accumulate(page[name][0] if page[name] else 1 for name in names)]
        expected = page[names[0]] if len(names) == 1 else (ends[-1], *page[names[-1]][1:])
        if found != expected or len({page[name][1:] for name in names}) > 1:
            raise mistakes.other_shapes(joined, expected, written, found)
        for name, start, end in zip(names, [0, *ends], ends, strict=False):
            rows = None if len(names) == 1 else (start, end)
            pairs[name] = WeightPair(name, partner, page[name], "hand", is_transposed, rows)
    left, right = _without(page, pairs), _without(other, (pair.other for pair in pairs.values()))
    for name in [name for name in left if right.get(name) == left[name]]:
        pairs[name] = WeightPair(name, name, left.pop(name), "name")
        del right[name]
    for size in dict.fromkeys(left.values()):
        ours, theirs = ([name for name, each in side.items() if each == size] for side in (left, right))
        if len(ours) != len(theirs):
            continue  # one of them has no partner
        by = "shape" if len(ours) == 1 else "similar names"
        for name, partner in _by_words(ours, theirs):
            pairs[name] = WeightPair(name, partner, size, by)
            del left[name], right[partner]
    for size in left.values():
        ours, theirs = ([name for name, each in side.items() if each == size] for side in (left, right))
        if len(ours) == len(theirs):
            raise mistakes.ambiguous_weights(ours, theirs, size)
    if left or right:
        raise mistakes.weights_without_partner(left, right)
    return tuple(pairs[name] for name in page)


def _without(shapes: Mapping[str, tuple[int, ...]], names: Iterable[str]) -> dict[str, tuple[int, ...]]:
    taken = {*names}
    return {name: size for name, size in shapes.items() if name not in taken}


def _by_words(ours: list[str], theirs: list[str]) -> Iterator[tuple[str, str]]:
    """Yields the pairs of names of which each is the one that is most like the other, until there are none."""
    while ours:
        likeness = {name: {other: _likeness(name, other) for other in theirs} for name in ours}
        back = {other: {name: likeness[name][other] for name in ours} for other in theirs}
        pairs = [
            (name, best) for name in ours if (best := _only_best(likeness[name])) and _only_best(back[best]) == name
        ]
        if not pairs:
            return
        yield from pairs
        ours = [name for name in ours if name not in dict(pairs)]
        theirs = [other for other in theirs if other not in {best for _, best in pairs}]


def _only_best(scores: Mapping[str, int]) -> str | None:
    best = max(scores.values())
    names = [name for name, score in scores.items() if score == best]
    return names[0] if len(names) == 1 else None


def _likeness(name: str, other: str) -> int:
    """How many words two names share; a word counts half that another one begins with, as `q` of `query`. A number that
    only one of them has twice counts once."""
    ours, theirs = _words(name), _words(other)
    return min(
        sum(max((2 * (a == b) or (a.startswith(b) or b.startswith(a)) for b in there), default=0) for a in here)
        for here, there in ((ours, theirs), (theirs, ours))
    )


def _words(name: str) -> list[str]:
    text = ""
    for before, sign in zip(" " + name, name, strict=False):
        text += " " * (before.isdigit() != sign.isdigit()) + (sign if sign.isalnum() else " ")
    return text.split()


# Calls


class _Other:
    """The module of the user's own."""

    def __init__(self, make: PluginFunction, page: Architecture) -> None:
        """Builds it with those sizes and statics of the page that its constructor names."""
        values = _values(page)
        parameters = inspect.signature(make.function).parameters
        wanted = [each for each in parameters.values() if each.kind not in (each.VAR_POSITIONAL, each.VAR_KEYWORD)]
        missing = [each.name for each in wanted if each.name not in values and each.default is each.empty]
        if missing:
            raise mistakes.unknown_arguments(missing, values)
        module = make(**{each.name: values[each.name] for each in wanted if each.name in values})
        if not isinstance(module, nn.Module):
            raise make.wrong(f"returns {type(module).__name__}", "return a torch.nn.Module")
        self.module = module.double().eval()
        self._call = PluginFunction("the module", make.path, self.module)
        forward = inspect.signature(self.module.forward).parameters
        self.masks = [name for name in _MASKS if name in forward]

    def __call__(self, fields: Sequence[Tensor], lengths: Tensor | None = None) -> Tensor:
        real: dict[str, Tensor] = {}
        if self.masks:
            count, longest = fields[0].shape[:2]
            lengths = torch.full((count,), longest) if lengths is None else lengths
            mask = torch.arange(longest) < lengths[:, None]
            real = {"lengths": lengths, "mask": mask, "attention_mask": mask.long()}
        named = {name: real[name] for name in self.masks}
        result = self._call(*(field.clone() if field.requires_grad else field for field in fields), **named)
        for part in ("logits", "last_hidden_state"):
            result = getattr(result, part, result)
        result = result[0] if isinstance(result, tuple | list) and result else result
        if not isinstance(result, Tensor):
            raise self._call.wrong(
                f"returns {type(result).__name__}", "return a tensor, or a tuple that begins with one"
            )
        return result


def _values(page: Architecture) -> dict[str, object]:
    """The sizes and the statics of a page by their names: literals, of symbols and blocks their texts."""
    origin, graph = page.program.origin, page.program.graph
    assert origin is not None, "the module of a program has its origin"
    items = () if origin.program is None else parse(origin.program).items
    models = [item for item in items if isinstance(item, Definition) and item.name == graph.name]
    values: dict[str, object] = {
        each.name: each.default.value if isinstance(each.default, Number | Boolean) else unparse(each.default)
        for model in models
        for each in model.signature.statics
        if each.default
    }
    for path, value in origin.settings.items():
        if path.startswith("model."):
            values[path.removeprefix("model.")] = value.text if isinstance(value, Symbol) else value
    for field in page.program.inputs:
        values |= {"vocab": field.vocabulary} if field.vocabulary else {}
    feature = graph.region.types()[graph.region.results[0]].feature
    return values if feature is None else {**values, "classes": feature.constant}


def _fields(page: Architecture, length: int) -> list[Tensor]:
    draw = torch.Generator().manual_seed(length)
    kinds = [field.type for field in page.program.inputs]
    names = dict.fromkeys(name for kind in kinds for size in kind.lengths for name in size.names)
    sizes = {name: length + place for place, name in enumerate(names)}  # several lengths differ
    return [random_value(kind, (_BATCH, *shape(kind, sizes)), draw) for kind in kinds]


def _gap(expected: Tensor, actual: Tensor) -> float:
    if expected.shape != actual.shape:
        raise mistakes.other_result(tuple(expected.shape), tuple(actual.shape))
    if not expected.numel():
        return 0.0
    expected, actual = expected.detach(), actual.detach()
    return float((expected - actual).abs().max() / max(1.0, float(expected.abs().max())))


def _largest(what: str, gaps: Mapping[str, float]) -> Comparison:
    # NaN is larger than all.
    at, gap = max(gaps.items(), key=lambda each: (each[1] != each[1], each[1]))
    return Comparison(what, gap, at)


def _comparisons(
    page: Architecture, other: _Other, pairs: Sequence[WeightPair], lengths: Sequence[int]
) -> Iterator[Comparison]:
    outputs, of_inputs, of_weights = dict[str, float](), dict[str, float](), dict[str, float]()
    ours = [dict(page.named_parameters())[pair.page] for pair in pairs]
    theirs = [dict(other.module.named_parameters())[pair.other] for pair in pairs]
    grad = partial(torch.autograd.grad, allow_unused=True, materialize_grads=True)
    for length in lengths:
        fields = _fields(page, length)
        inputs = [field.requires_grad_() for field in fields if field.is_floating_point()]
        expected, actual = page(*fields), other(fields)
        outputs[plural(length, "position")] = _gap(expected, actual)
        if not actual.requires_grad:
            raise mistakes.no_gradient()
        probe = torch.randn_like(expected)
        of_page = grad((expected * probe).sum(), [*inputs, *ours])
        of_other = grad((actual * probe).sum(), [*inputs, *theirs])
        of_inputs |= {plural(length, "position"): max(map(_gap, of_page[: len(inputs)], of_other), default=0.0)}
        for pair, gradient, expected in zip(pairs, of_other[len(inputs) :], of_page[len(inputs) :], strict=True):
            of_weights[f"{pair.page}, {plural(length, 'position')}"] = _gap(expected, pair.part(gradient))
    yield _largest("outputs", outputs)
    is_numeric = any(field.type.name != "tokens" for field in page.program.inputs)
    yield (
        _largest("gradients of inputs", of_inputs)
        if is_numeric
        else Comparison("gradients of inputs", skipped="all inputs are tokens")
    )
    yield (
        _largest("gradients of weights", of_weights)
        if pairs
        else Comparison("gradients of weights", skipped="there are none")
    )
    with torch.no_grad():
        yield _padding(page, other, max(lengths))
        yield _causality(page, other)


def _padding(page: Architecture, other: _Other, longest: int) -> Comparison:
    """Compares the results of padded samples; the other module has each sample alone if it takes no mask."""
    if len({field.length for field in page.program.inputs}) != 1:
        return Comparison("padding", skipped="the fields have several lengths, or none")
    fields = _fields(page, longest)
    lengths = torch.tensor([longest, max(1, longest // 2), 1])
    expected = page(*fields, lengths=lengths)
    gaps: dict[str, float] = {}
    padded = other(fields, lengths) if other.masks else None
    for sample, length in enumerate(lengths.tolist()):
        alone = [field[sample : sample + 1, :length] for field in fields]
        result = other(alone) if padded is None else padded[sample : sample + 1]
        kept = slice(length) if expected.ndim > 2 else slice(None)
        gaps[f"{length} of {longest} positions"] = _gap(expected[sample : sample + 1, kept], result[:, kept])
    how = (
        ", ".join(f"`{name}`" for name in other.masks)
        if other.masks
        else "without a mask, each of its samples is alone"
    )
    worst = _largest("padding", gaps)
    return Comparison("padding", worst.difference, f"{worst.at}; {how}")


def _causality(page: Architecture, other: _Other, length: int = 8) -> Comparison:
    """Compares which positions of the result change with each position of the last field."""
    fields, others = _fields(page, length), _fields(page, length + 1)
    result = page(*fields)
    if result.ndim < 3 or result.shape[1] != fields[-1].shape[1]:
        return Comparison("causality", skipped="the result has no positions of the last field")
    reads: list[dict[tuple[int, int], float]] = []
    for call in (lambda changed: page(*changed), other):
        base, changes = call(fields), dict[tuple[int, int], float]()
        for place in range(length):
            changed = fields[-1].clone()
            changed[:, place] = others[-1][:, place]
            if changed.dtype == torch.int64:
                vocabulary = page.program.inputs[-1].vocabulary or 1
                changed[:, place] = (fields[-1][:, place] + 1) % vocabulary
            gap = (call([*fields[:-1], changed]) - base).abs().amax(dim=(0, *range(2, base.ndim)))
            changes |= {(row, place): float(gap[row]) for row in range(length)}
        reads.append(changes)
    for (row, place), gap in reads[0].items():
        if (gap > TOLERANCE) != (reads[1][row, place] > TOLERANCE):
            reader = "the page" if gap > TOLERANCE else "the module"
            return Comparison(
                "causality", abs(gap - reads[1][row, place]), f"only {reader} reads position {place} at {row}"
            )
    sees_future = any(gap > TOLERANCE for (row, place), gap in reads[0].items() if place > row)
    return Comparison("causality", at="both see later positions" if sees_future else "both are causal")
