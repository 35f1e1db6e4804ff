"""One call of a block being bound: the values of its statics, sizes and types."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from archlang.elaborate import mistakes
from archlang.elaborate.static_arguments import configured, missing_static, parameter_kind, static_value
from archlang.errors import Diagnostic, Report, Span, ignore
from archlang.resolve import mistakes as name_mistakes
from archlang.resolve.evaluate import Evaluator
from archlang.resolve.resolve import Declaration
from archlang.resolve.values import Bound, Data, Length, Unknown, Value, describe, show
from archlang.syntax import tree
from archlang.syntax.printer import unparse
from archlang.types import CONSTRUCTORS, FEATURED, ISOLATED, Axis, Dim, Type
from archlang.types.statics import Interval, Symbol

# How many sizes each written type has. `data` is one of `FEATURED`; `logits` is `vec` or `seq` by its sizes.
SIZES_OF_TYPES = {
    "tokens": (1, 2), "seq": (2,), "vec": (1,), "map": (2, 3), "prob": (0, 1), "address": (2,), "chunks": (2, 3),
    "logits": (1, 2), "data": (1,), "pointer": (3,),
}  # fmt: skip


TASK_SIZES = ("vocab", "words", "classes")
"""The sizes that a task sets for its models."""
LARGEST_SIZE = 1 << 24
"""The largest size of an axis; a tensor of a larger one hardly fits into memory."""
LARGEST_VOCABULARY = 1 << 53
"""The largest number of tokens, of which no tensor has an axis; so pairs of tokens are tokens, too."""
LARGEST_FLOAT = 1e30
"""The largest magnitude of a float static of a block; float32 holds it, and some of its multiples."""


@dataclass
class Binding:
    """One call of a block: its statics and sizes by name. Defaults of statics are computed when they are looked up.

    `call` is the place of the call. `ambient` are the sizes that a task sets. With `generic`, statics without a default
    are symbols; with `may_be_unknown`, sizes may lack a value. `lengths` are the sizes that count positions. `family`
    is the type of `data`, one of `FEATURED`, with its lengths."""

    declaration: Declaration
    call: Span
    statics: dict[str, Bound]
    report: Report
    ambient: Mapping[str, Bound] = field(default_factory=dict)
    generic: bool = False
    may_be_unknown: bool = True
    sizes: dict[str, Bound] = field(default_factory=dict)
    lengths: set[str] = field(default_factory=set)
    family: tuple[str, tuple[Dim, ...]] | None = None
    _open: set[str] = field(default_factory=set)
    # Computed sizes of inputs, whose names a later input may bind, with those of the arguments.
    _computed: list[tuple[tree.Expression, Dim, Span, Axis]] = field(default_factory=list)
    _disagreeing: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        item = self.declaration.item
        self.parameters = {parameter.name: parameter for parameter in item.signature.statics}
        file = self.declaration.file
        self.evaluator = Evaluator(self.lookup, self.static_names, file, self.report, configured)
        # The lengths of types may be computed from lengths; nothing else may.
        self._of_lengths = Evaluator(self._bound, self.static_names, file, self.report, configured, rounds_down=True)

    def static_names(self) -> frozenset[str]:
        return frozenset(self.parameters) | frozenset(self.sizes) | frozenset(self.ambient)

    def lookup(self, name: str) -> Bound | Data | Length | None:
        bound = self._bound(name)
        if bound is not None and name in self.lengths:
            return Length(bound.span or self.call)
        return bound

    def _bound(self, name: str) -> Bound | None:
        if name in self.statics:
            return self.statics[name]
        if name in self.sizes:
            return self.sizes[name]
        parameter = self.parameters.get(name)
        if parameter is not None and name not in self._open:
            self._open.add(name)
            self.statics[name] = self._default(parameter)
            return self.statics[name]
        return self.ambient.get(name)

    def _default(self, parameter: tree.StaticParameter) -> Bound:
        file = self.declaration.file
        if parameter.default is not None:
            return Bound(static_value(parameter, parameter.default, self.evaluator, file, self.report), None)
        kind = parameter_kind(parameter, file)
        if self.generic:
            return Bound(Dim.of(parameter.name) if kind == "int" else Unknown(kind or ""), parameter.span)
        if (mistake := missing_static(self.declaration, parameter, self.call)) is not None:
            self.report(mistake)
        return Bound(None, None)

    @property
    def written(self) -> frozenset[str]:
        """The statics that the call sets."""
        return frozenset(name for name, bound in self.statics.items() if bound.span is not None)

    def require_known(self, expression: tree.Expression) -> None:
        """Reports an expression whose value only a task or a static sets, if the model is to be built."""
        if not self.may_be_unknown and not _is_known(self.evaluator.value(expression, None)):
            self.report(mistakes.needs_task(self.call, self.declaration.name, self.unknown_sizes()))

    def unknown_sizes(self) -> list[str]:
        """The sizes that only a task sets, and that have no value."""
        return [
            name
            for name, bound in self.ambient.items()
            if not isinstance(bound.value, Dim) or bound.value.constant is None
        ]

    def finish(self) -> bool:
        """Computes the remaining defaults. Returns whether every `where` holds."""
        problems: list[Diagnostic] = []
        report, self.report, self.evaluator.report = self.report, problems.append, problems.append
        for name in self.parameters:
            self.lookup(name)
        self.report = self.evaluator.report = report
        evaluator = replace(self.evaluator, report=problems.append)
        conditions = self.declaration.item.signature.where
        violated = [condition for condition in conditions if evaluator.truth(condition) is False]
        refused: set[str] = set()
        for condition in violated:
            names = {node.text for node in self._statics_of(condition)}
            # Another condition about one of its statics is likely to fail for the same value.
            if refused.isdisjoint(names):
                self.report(self._violated(condition))
                refused |= names
        # Where one condition does not hold, others may have no value, as `d % heads == 0` for no heads; nor may sizes
        # and defaults, as `d / heads`.
        if violated:
            self.report = self.evaluator.report = self._of_lengths.report = ignore
        for mistake in problems:
            self.evaluator.report(mistake)
        return not violated

    def _violated(self, condition: tree.Expression) -> Diagnostic:
        facts: list[tuple[str, str, Span | None]] = []
        seen: set[str] = set()
        possible: list[str] = []
        for node in self._statics_of(condition):
            is_plain = len(node.parts) == 1
            bound = self.lookup(node.text) if is_plain else Bound(self.evaluator.value(node, None), None)
            if isinstance(bound, Bound) and bound.value is not None and node.text not in seen:
                seen.add(node.text)
                facts.append((node.text, show(bound.value), bound.span))
        if (
            isinstance(condition, tree.Binary)
            and condition.operator == "in"
            and isinstance(condition.right, tree.ListOf)
        ):
            possible = [unparse(item) for item in condition.right.items]
        names = [node for node in tree.walk(condition) if isinstance(node, tree.Name)]
        if not facts and names:
            return name_mistakes.unknown_static_name(names[0].span, names[0].text, self.static_names())
        span = next((place for _, _, place in facts if place is not None), self.call)
        return name_mistakes.where_violated(
            span, f"`{unparse(condition)}`", self.declaration.name, facts, condition.span, possible
        )

    def _statics_of(self, condition: tree.Expression) -> Iterator[tree.Name]:
        """Yields the names in a condition, without the symbols with which it compares a static."""
        symbols: set[int] = set()
        for node in tree.walk(condition):
            if (
                isinstance(node, tree.Binary)
                and node.operator in ("in", "==", "!=")
                and isinstance(node.left, tree.Name)
            ):
                compared = self.lookup(node.left.parts[0])
                if isinstance(compared, Bound) and isinstance(compared.value, Symbol):
                    symbols.update(id(each) for each in tree.walk(node.right))
            if isinstance(node, tree.Name) and id(node) not in symbols:
                yield node

    # Types

    def match(self, parameter: tree.InputParameter, actual: Type, span: Span) -> bool:
        """Binds the sizes that a parameter's type names to those of an argument. Returns whether the type matches, with
        any value of a computed size, which `match_computed` compares."""
        written = parameter.type
        dimensions = self.written_sizes(written)
        if dimensions is None:
            return False
        if written.name == "data":
            family = (actual.name, actual.dims[:-1])
            if actual.name not in FEATURED or self.family not in (None, family):
                is_other = parameter.variadic and actual.name in FEATURED and self.family is not None
                self._misfit(span, parameter, actual, f"{self.family[0]}[…]" if is_other and self.family else "")
                return False
            self.family = family
            return parameter.variadic or self._match_size(dimensions[0], actual.dims[-1], span, Axis.FEATURE)
        if _constructor(written.name, len(dimensions)) != actual.name:
            self._misfit(span, parameter, actual)
            return False
        # The part of chunks is written by those that cut them only.
        fits = [
            self._match_size(size, actual_size, span, axis)
            for size, actual_size, axis in zip(dimensions, actual.dims, actual.axes, strict=False)
        ]
        return all(fits)

    def _misfit(self, span: Span, parameter: tree.InputParameter, actual: Type, expected: str = "") -> None:
        block = self.declaration.name
        if actual.name in ISOLATED and parameter.type.name not in ISOLATED:
            self.report(mistakes.address_is_no_data(span, f"`{block}`", actual))
        else:
            expected = expected or unparse(parameter.type)
            kinds = {parameter_kind(static, self.declaration.file) for static in self.parameters.values()}
            takes_numbers = not kinds.isdisjoint(("int", "float"))
            self.report(mistakes.wrong_type(span, block, parameter, expected, actual, takes_numbers))

    def _match_size(self, written: tree.Expression, actual: Dim, span: Span, axis: Axis) -> bool:
        if not isinstance(written, tree.Name) or written.text in self.parameters or len(written.parts) > 1:
            self._computed.append((written, actual, span, axis))
            return True
        bound = self.sizes.get(written.text) or self.ambient.get(written.text)
        if bound is None:
            self.bind_size(written.text, Bound(actual, span), axis)
            return True
        return self._agrees(written, written.text, bound, actual, span, axis)

    def match_computed(self) -> bool:
        """Compares the computed sizes of all inputs with those of the arguments. Returns whether all are equal."""
        fits = []
        for written, actual, span, axis in self._computed:
            name = unparse(written)
            value = self._evaluator_of(axis).value(written, "int")
            static = self.statics.get(name)
            bound = Bound(value, static.span if static else None)
            fits.append(self._agrees(written, name, bound, actual, span, axis))
        return all(fits)

    def _agrees(self, written: tree.Expression, name: str, bound: Bound, actual: Dim, span: Span, axis: Axis) -> bool:
        if bound.value is None or isinstance(bound.value, Unknown) or bound.value == actual:
            return bound.value is not None
        if name not in self._disagreeing:
            self.report(
                mistakes.sizes_disagree(
                    span,
                    self.declaration.name,
                    name,
                    show(bound.value),
                    str(actual),
                    bound.span,
                    written.span,
                    axis is Axis.FEATURE,
                )
            )
        self._disagreeing.add(name)
        return False

    def type(
        self, written: tree.TypeExpression, features: Sequence[Dim] = (), free: Callable[[str], Dim] | None = None
    ) -> Type | None:
        """Returns a written type with the values of its sizes; None after a mistake. `features` are those of variadic
        arguments. `free` returns a size for a name that is not bound."""
        if isinstance(written, tree.ConditionalType):
            truth = self.evaluator.truth(written.test)
            if truth is None:
                self.require_known(written.test)
                return None
            return self.type(written.then if truth else written.otherwise, features, free)
        dimensions = self.written_sizes(written)
        if dimensions is None:
            return None
        if written.name == "logits" and self._is_length(dimensions[-1]):
            # Scores of the positions of an input.
            return self.type(tree.TypeName(name="map", dimensions=dimensions, span=written.span), features, free)
        constructor = _constructor(written.name, len(dimensions))
        axes = (Axis.FEATURE,) if written.name == "data" else CONSTRUCTORS[constructor]
        sizes: list[Dim] = []
        for dimension, axis in zip(dimensions, axes, strict=False):
            largest = LARGEST_VOCABULARY if (constructor, axis) == ("tokens", Axis.FEATURE) else LARGEST_SIZE
            size = self._size(dimension, axis, features, free, largest)
            if size is None:
                return None
            sizes.append(size)
        if len(sizes) < len(axes):
            sizes.append(Dim.of(0))  # the part of chunks, which is not written
        if written.name == "data":
            if self.family is None:
                self.report(mistakes.misplaced_family(written.span, self.declaration.name))
                return None
            return Type(self.family[0], (*self.family[1], sizes[0]))
        return Type(constructor, tuple(sizes))

    def _is_length(self, written: tree.Expression) -> bool:
        return any(isinstance(node, tree.Name) and node.text in self.lengths for node in tree.walk(written))

    def _size(
        self,
        written: tree.Expression,
        axis: Axis,
        features: Sequence[Dim],
        free: Callable[[str], Dim] | None,
        largest: int,
    ) -> Dim | None:
        size = self._written_size(written, axis, features, free)
        number = None if size is None or axis is Axis.PART else size.constant
        least = 0 if axis is Axis.LENGTH else 1  # a sequence may be empty
        if number is not None and not least <= number <= largest:
            self.report(mistakes.size_out_of_range(self._cause(written), unparse(written), number, largest))
            return None
        return size

    def _cause(self, written: tree.Expression) -> Span:
        """The place of a static that a written size depends on; the call if there is none."""
        names = [node.text for node in tree.walk(written) if isinstance(node, tree.Name)]
        places = [bound.span for name in names if (bound := self.statics.get(name)) is not None and bound.span]
        return places[0] if places else self.call

    def _written_size(
        self, written: tree.Expression, axis: Axis, features: Sequence[Dim], free: Callable[[str], Dim] | None
    ) -> Dim | None:
        # `sum` adds the features of all values that a variadic input takes.
        if isinstance(written, tree.CallExpression) and written.callee.text == "sum" and written.arguments and features:
            total = Dim.total(features)
            if total.is_unwieldy:
                self.report(name_mistakes.size_too_large(self.call))
                return None
            return total
        if isinstance(written, tree.Name) and len(written.parts) == 1 and self.lookup(written.text) is None:
            if free is not None:
                size = free(written.text)
                self.bind_size(written.text, Bound(size, written.span), axis)
                return size
            types = [parameter.type for parameter in self.declaration.item.signature.inputs]
            if all(len(each.dimensions) in SIZES_OF_TYPES.get(each.name, ()) for each in types):  # else it may be there
                name = self.declaration.name
                self.report(mistakes.size_unknown(written.span, written.text, name))
            return None
        value = self._evaluator_of(axis).value(written, "int")
        if isinstance(value, Dim):
            return value
        if value is not None and not isinstance(value, Unknown):
            self.report(name_mistakes.wrong_kind(written.span, "a size", "int", describe(value), None))
        return None

    def bind_size(self, name: str, bound: Bound, axis: Axis) -> None:
        """Binds a name in a type to a size."""
        self.sizes[name] = bound
        if axis is Axis.LENGTH:
            self.lengths.add(name)

    def _evaluator_of(self, axis: Axis) -> Evaluator:
        return self._of_lengths if axis is Axis.LENGTH else self.evaluator

    def written_sizes(self, written: tree.TypeName) -> tuple[tree.Expression, ...] | None:
        """Returns the written sizes of a type, with `vocab` added to tokens and 1 to maps; None after a mistake."""
        counts = SIZES_OF_TYPES.get(written.name)
        if counts is None:
            self.report(mistakes.unknown_type(written.span, written.name, SIZES_OF_TYPES))
            return None
        if len(written.dimensions) not in counts:
            expected = " or ".join(str(count) for count in counts) + (" size" if counts == (1,) else " sizes")
            self.report(mistakes.wrong_number_of_sizes(written.span, written.name, expected, len(written.dimensions)))
            return None
        if written.name == "tokens" and len(written.dimensions) == 1:
            return (*written.dimensions, tree.Name(parts=("vocab",), span=written.span))
        if written.name == "map" and len(written.dimensions) == 2:
            return (*written.dimensions, tree.Number(value=1, text="1", span=written.span))
        return written.dimensions

    def length_names(self, parameter: tree.InputParameter) -> tuple[str, ...]:
        """The names of a parameter's lengths in order, "" for a length that is a static or a number."""
        sizes = self._sizes_of(parameter)
        return tuple(name for name, axis in sizes if axis is Axis.LENGTH)

    def sizes_by_axis(self, parameter: tree.InputParameter, axis: Axis) -> list[str]:
        """The names that a parameter's type gives to its sizes of one kind of axis."""
        return [name for name, size_axis in self._sizes_of(parameter) if name and size_axis is axis]

    def named_sizes(self, axis: Axis) -> dict[str, tree.InputParameter]:
        """The names that the types of the inputs give to their sizes of one kind of axis, each with the first input."""
        names: dict[str, tree.InputParameter] = {}
        for parameter in self.declaration.item.signature.inputs:
            for name in self.sizes_by_axis(parameter, axis):
                names.setdefault(name, parameter)
        return names

    def bind_names(self) -> None:
        """Binds the sizes that the inputs name, and that have no value, to symbols."""
        for axis in (Axis.LENGTH, Axis.FEATURE):
            for name, parameter in self.named_sizes(axis).items():
                if name not in self.sizes and name not in self.ambient:
                    self.bind_size(name, Bound(Dim.of(name), parameter.span), axis)

    def _sizes_of(self, parameter: tree.InputParameter) -> list[tuple[str, Axis]]:
        """The names of the sizes of a parameter's type, "" for one that is no name of its own, with their axes."""
        written = self.written_sizes(parameter.type)
        if parameter.variadic or written is None:
            return []
        name = parameter.type.name
        axes = (Axis.FEATURE,) if name == "data" else CONSTRUCTORS[_constructor(name, len(written))]
        return [
            (size.text if isinstance(size, tree.Name) and size.text not in self.parameters else "", axis)
            for size, axis in zip(written, axes, strict=False)
        ]


def sizes_of_task(task: Binding | None) -> dict[str, int]:
    """The sizes of a task's `gives` that are known, such as `vocab` and `classes`."""
    if task is None:
        return {}
    item = task.declaration.item
    assert isinstance(item, tree.Extern)
    sizes = {}
    for size in item.gives:
        value = task.evaluator.value(size.value, "int")
        if size.name is not None and isinstance(value, tuple):  # of a page, which lists its words
            sizes[size.name] = sum(each.high - each.low + 1 if isinstance(each, Interval) else 1 for each in value)
        elif size.name is not None and isinstance(value, Dim) and value.constant is not None:
            sizes[size.name] = value.constant
    return sizes


def problems_of_task(task: Binding) -> frozenset[str]:
    """What a task demands of a model at all lengths, of `archlang.graph.facts.PROBLEMS`."""
    item = task.declaration.item
    assert isinstance(item, tree.Extern)
    return frozenset(
        each.problem for each in item.demands if each.test is None or task.evaluator.truth(each.test) is True
    )


def size_words(task: Binding, size: str) -> tuple[str, ...]:
    """The words of a size that a page gives, which are numbers unless it lists them."""
    item = task.declaration.item
    assert isinstance(item, tree.Extern)
    value = next((task.evaluator.value(each.value, "int") for each in item.gives if each.name == size), None)
    return _words(value if isinstance(value, tuple) else (Interval(0, sizes_of_task(task).get(size, 0) - 1),))


def _words(listed: tuple[Value, ...]) -> tuple[str, ...]:
    parts = (each.values() if isinstance(each, Interval) else [each] for each in listed)
    return tuple(str(word) for part in parts for word in part)


def _is_known(value: Value) -> bool:
    return not isinstance(value, Unknown) and (not isinstance(value, Dim) or value.constant is not None)


def _constructor(name: str, sizes: int) -> str:
    if name == "logits":
        return "vec" if sizes == 1 else "seq"
    if name == "prob" and sizes == 1:
        return "probs"
    return name
