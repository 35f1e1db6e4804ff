"""The statics and sizes at which a block is tested."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, islice, product

from archlang.elaborate.binding import Binding
from archlang.elaborate.calls import BoundCall
from archlang.elaborate.region_builder import Flow, ModelSize, RegionBuilder
from archlang.elaborate.static_arguments import parameter_kind
from archlang.errors import Diagnostic
from archlang.graph.graph import Instance
from archlang.resolve.resolve import Declaration
from archlang.resolve.unused import listed_symbols
from archlang.resolve.values import Bound, Value
from archlang.syntax.printer import unparse
from archlang.syntax.tree import Extern, Number, StaticParameter, TypeName, walk
from archlang.types import CONSTRUCTORS, FEATURED, Axis, Dim, Type
from archlang.types.statics import Symbol

# The path of the tested instance.
BLOCK = "block"
# The names of the lengths of `data` as a sequence or a map; they are no identifiers, so no signature can use them.
DATA_LENGTH = "length of data"
DATA_COLUMNS = "columns of data"
# Values of integer statics and sizes of features, the likeliest first; they differ, so that a swap of two sizes shows.
_COUNTS = (2, 4, 3, 6, 1, 8, 0)
_WIDTHS = (4, 6, 3, 8, 2, 5, 1)
_OTHER_COUNTS = (1, 2, 0)
# Only one case uses a default above this, because large sizes are slow.
_LARGE = 16
_FLOATS = (0.5,)
# The search gives up after this many combinations of statics and sizes.
_MOST_TRIES = 1000


@dataclass(frozen=True, eq=False)
class Case:
    """A block at fixed statics and sizes of features. `inputs` are the types of the sampled values, and `arguments` the
    index in `inputs` of each argument of the call."""

    declaration: Declaration
    instance: Instance
    inputs: tuple[Type, ...]
    arguments: tuple[int, ...]
    result: Type
    chosen: Mapping[str, str]
    """the source text of each static that differs from its default"""

    @property
    def item(self) -> Extern:
        item = self.declaration.item
        assert isinstance(item, Extern)
        return item

    @property
    def lengths(self) -> tuple[str, ...]:
        """Returns the names of the lengths of the inputs."""
        names = (name for kind in self.inputs for length in kind.lengths for name in sorted(length.names))
        return tuple(dict.fromkeys(names))

    @property
    def sizes(self) -> Mapping[str, int]:
        """Returns the sizes of features by their names in the signature."""
        return {name: size.constant for name, size in self.instance.features.items() if size.constant is not None}

    def input_name(self, index: int) -> str:
        """Returns the name of the first parameter that receives an input."""
        position = min(self.arguments.index(index), len(self.item.signature.inputs) - 1)
        return self.item.signature.inputs[position].name


@dataclass(frozen=True)
class _CallForm:
    """The form of a call: the type that `data` stands for, and whether the call omits inputs with a default."""

    data: str
    defaults: bool


_MOST_GENERAL = _CallForm("seq", False)


def cases(declaration: Declaration) -> list[Case]:
    """Returns a case with every static at its default, and one for each alternative value of a static; none if a static
    is a block.

    A static without a default has a small value. If `where` relates two statics, they change together. Alternative
    values are tested in calls that pass all inputs, with `data` as sequences."""
    search = _Search(declaration)
    selected: list[Case] = []
    for form in _forms(declaration):
        default, base = search.first(form, {}, is_small=False), search.first(form, {})
        if default is None or base is None:
            continue
        selected.append(default)
        if base.instance.statics != default.instance.statics:
            selected.append(base)
        if form != _MOST_GENERAL:
            continue
        for parameter in declaration.item.signature.statics:
            for value in search.alternatives(parameter):
                changed = search.first(form, {parameter.name: value})
                if changed is not None and changed.instance.statics != base.instance.statics:
                    selected.append(changed)
    return selected


def resized(declaration: Declaration, case: Case) -> Case | None:
    """Returns a case with the statics of `case` at their defaults or small, and other sizes of features; None if the
    signature allows no others."""
    rotated = _Search(declaration).first(_MOST_GENERAL, {}, rotation=1)
    return None if rotated is None or rotated.sizes == case.sizes else rotated


def is_chunked(declaration: Declaration) -> bool:
    """Returns whether a block takes or returns chunks."""
    return any(isinstance(node, TypeName) and node.name == "chunks" for node in walk(declaration.item.signature))


def _forms(declaration: Declaration) -> list[_CallForm]:
    inputs = declaration.item.signature.inputs
    families = FEATURED if any(parameter.type.name == "data" for parameter in inputs) else ("seq",)
    defaults = (True, False) if any(parameter.default is not None for parameter in inputs) else (False,)
    return [_CallForm(family, omits) for family in families for omits in defaults]


class _Search:
    """Searches for statics and sizes that `where` allows."""

    def __init__(self, declaration: Declaration) -> None:
        self.declaration = declaration
        self.parameters = declaration.item.signature.statics
        self.kinds = {parameter.name: parameter_kind(parameter, declaration.file) for parameter in self.parameters}

    def first(
        self, form: _CallForm, fixed: Mapping[str, Value], is_small: bool = True, rotation: int = 0
    ) -> Case | None:
        """Returns the first case with these values of statics, or None. If `is_small`, it avoids large defaults.
        `rotation` is the index of the size of features that is tried first."""
        options = [
            [fixed[parameter.name]] if parameter.name in fixed else self._options(parameter, is_small)
            for parameter in self.parameters
        ]
        features = feature_names(self.declaration)
        firsts = [index % 2 + rotation for index in range(len(features))]
        widths = [_WIDTHS[first:] + _WIDTHS[:first] for first in firsts]
        tries = ((values, sizes) for values in _in_order(options) for sizes in product(*widths))
        for values, sizes in islice(tries, _MOST_TRIES):
            case = self._bind(form, values, dict(zip(features, sizes, strict=True)))
            if case is not None:
                return case
        return None

    def _options(self, parameter: StaticParameter, is_small: bool) -> list[Value]:
        """Returns the values of a static to try, the likeliest first; None means its default."""
        match parameter.default:
            case Number(value=int(count)) if is_small and count > _LARGE:
                return [Dim.of(_COUNTS[0]), None]
        if parameter.default is not None:
            return [None, *self.alternatives(parameter)]
        if self.kinds[parameter.name] == "int":
            return [Dim.of(count) for count in _COUNTS]
        return list(self.alternatives(parameter))

    def alternatives(self, parameter: StaticParameter) -> Iterator[Value]:
        """Yields alternative values of a static."""
        match self.kinds[parameter.name]:
            case "bool":
                yield from (True, False)
            case "symbol":
                yield from map(Symbol, listed_symbols(self.declaration.item.signature).get(parameter.name, ()))
            case "int":
                yield from (Dim.of(count) for count in _OTHER_COUNTS)
            case "float":
                yield from _FLOATS

    def _bind(self, form: _CallForm, values: Sequence[Value], features: Mapping[str, int]) -> Case | None:
        problems: list[Diagnostic] = []
        bounds = {
            parameter.name: Bound(value, None)
            for parameter, value in zip(self.parameters, values, strict=True)
            if value is not None
        }
        item = self.declaration.item
        assert isinstance(item, Extern)
        span = item.name_span
        binding = Binding(self.declaration, span, bounds, problems.append)
        lengths = (Dim.of(DATA_LENGTH), Dim.of(DATA_COLUMNS))
        binding.family = (form.data, lengths[: CONSTRUCTORS[form.data].count(Axis.LENGTH)])
        kinds: dict[str, Type] = {}
        arguments: list[str] = []
        for parameter in item.signature.inputs:
            if parameter.default is not None and form.defaults:
                binding.match(parameter, kinds[parameter.default], span)
                arguments.append(parameter.default)
                continue
            for axis in (Axis.LENGTH, Axis.FEATURE):
                for name in binding.sizes_by_axis(parameter, axis):
                    if name not in binding.sizes:
                        size = Dim.of(name) if axis is Axis.LENGTH else Dim.of(features[name])
                        binding.bind_size(name, Bound(size, span), axis)
            if parameter.variadic and parameter.type.name == "data":
                family, dims = binding.family
                kinds |= {f"{parameter.name}{i}": Type(family, (*dims, Dim.of(_WIDTHS[i]))) for i in range(2)}
                arguments += [f"{parameter.name}{i}" for i in range(2)]
                continue
            kind = binding.type(parameter.type)
            if kind is None:
                return None
            kinds[parameter.name] = kind
            arguments += [parameter.name] * (1 + parameter.variadic)
        binding.finish()
        if problems:
            return None
        builder = RegionBuilder(ModelSize())
        flows = [Flow(builder, name, kinds[name], span) for name in arguments]
        bound = BoundCall(problems.append, binding, flows).result(BLOCK, item.python_span)
        if problems or bound is None:
            return None
        result, instance = bound
        order = {name: index for index, name in enumerate(kinds)}
        return Case(
            self.declaration,
            instance,
            tuple(kinds.values()),
            tuple(order[name] for name in arguments),
            result,
            self._chosen(values),
        )

    def _chosen(self, values: Sequence[Value]) -> dict[str, str]:
        pairs = zip(self.parameters, values, strict=True)
        return {
            parameter.name: _source_text(value)
            for parameter, value in pairs
            if value is not None and (parameter.default is None or _source_text(value) != unparse(parameter.default))
        }


def _in_order(options: Sequence[Sequence[Value]]) -> Iterator[tuple[Value, ...]]:
    """Yields every combination, ordered by the number of places in which it differs from the first."""
    if not all(options):
        return
    first = [values[0] for values in options]
    for count in range(len(options) + 1):
        for places in combinations(range(len(options)), count):
            for others in product(*(options[place][1:] for place in places)):
                chosen = dict(zip(places, others, strict=True))
                yield tuple(chosen.get(place, value) for place, value in enumerate(first))


def feature_names(declaration: Declaration) -> list[str]:
    """Returns the names of sizes of features in the types of the inputs."""
    binding = Binding(declaration, declaration.span, {}, lambda problem: None, generic=True)
    inputs = declaration.item.signature.inputs
    return list(dict.fromkeys(name for input_ in inputs for name in binding.sizes_by_axis(input_, Axis.FEATURE)))


def _source_text(value: Value) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
