"""Evaluates the clauses `costs`, `maps`, `records` and `cuts` of a signature."""

from collections.abc import Callable

from archlang.diagnostics import Diagnostic
from archlang.elaborate import mistakes
from archlang.elaborate.binding import Binding
from archlang.graph.facts import POSITIONS, QUANTITIES, RECORDS, Costs, LinearMap, Record
from archlang.names import mistakes as name_mistakes
from archlang.names.evaluate import Evaluator
from archlang.names.values import Bound, Data, Length, Unknown, describe
from archlang.source import Span
from archlang.syntax.tree import Cost, Cut, Expression, Extern, Maps
from archlang.syntax.tree import Record as RecordClause
from archlang.types import Dim

# The quantities that may differ from sample to sample, as they are computed from lengths.
_OF_LENGTHS = ("flops", "activations")


class Facts:
    """The clauses of an extern block, evaluated with the statics and sizes of a binding.

    A fact that depends on an unknown size, or on a mistake, is unknown."""

    def __init__(
        self, binding: Binding, item: Extern, report: Callable[[Diagnostic], None] = lambda diagnostic: None
    ) -> None:
        self._binding = binding
        self._item = item
        self._report = report
        self._inputs = [parameter.name for parameter in item.signature.inputs]
        self._sizes = {size.name or "": size.value for size in item.sizes}
        file = binding.declaration.file
        self._evaluator = Evaluator(self._lookup, self._names, file, report, lambda call, target: None)
        self._of_lengths = Evaluator(self._lookup_length, self._names, file, report, lambda call, target: None)

    def costs(self) -> Costs:
        """The costs, as polynomials over the names of the lengths."""
        parameters = self._total("parameters")
        return Costs(
            None if parameters is None else parameters.constant, self._total("flops"), self._total("activations")
        )

    def maps(self) -> tuple[LinearMap, ...]:
        """The linear maps that may be joined, of those whose width is known."""
        return tuple(
            LinearMap(name.name, self._inputs.index(name.input), width)
            for maps in self._item.maps
            if self._holds(maps.test) and (width := self._number(maps.width)) is not None
            for name in maps.names
            if name.input in self._inputs
        )

    def records(self) -> tuple[Record, ...]:
        """What a recording keeps."""
        return tuple(
            Record(record.kind, None if record.input is None else self._inputs.index(record.input))
            for record in self._item.records
            if self._holds(record.test) and record.input in (None, *self._inputs)
        )

    def even(self) -> int | None:
        """The number of the equally long parts that the block cuts: 0 for as few as possible, None if they differ."""
        for cut in self._item.cuts:
            if self._holds(cut.test):
                parts = 0 if cut.parts is None else self._number(cut.parts)
                return None if parts is None else max(0, parts)
        return None

    def check(self) -> None:
        """Reports the mistakes in the clauses that do not depend on statics."""
        item = self._item
        for size in item.sizes:
            self._check_number(self._evaluator, size.value)
        for cost in item.costs:
            if cost.quantity not in QUANTITIES:
                self._report(mistakes.unknown_quantity(cost.span, cost.quantity, QUANTITIES))
            self._check_number(self._evaluator_of(cost.quantity), cost.value)
        for maps in item.maps:
            self._check_number(self._evaluator, maps.width)
            for name in maps.names:
                self._check_input(name.span, name.input)
        for record in item.records:
            if record.kind not in RECORDS:
                self._report(mistakes.unknown_record(record.span, record.kind, RECORDS))
            if record.input is not None:
                self._check_input(record.span, record.input)
        for cut in item.cuts:
            if cut.parts is not None:
                self._check_number(self._evaluator, cut.parts)
        clauses: tuple[Cost | Maps | RecordClause | Cut, ...] = (*item.costs, *item.maps, *item.records, *item.cuts)
        for clause in clauses:
            self._holds(clause.test)

    def _check_number(self, evaluator: Evaluator, expression: Expression) -> None:
        value = evaluator.value(expression, "int")
        if value is not None and not isinstance(value, Dim | Unknown):
            self._report(name_mistakes.wrong_kind(expression.span, "this clause", "int", describe(value), None))

    def _check_input(self, span: Span, name: str) -> None:
        if name not in self._inputs:
            self._report(mistakes.reads_unknown_input(span, name, self._item.name, self._inputs))

    def _total(self, quantity: str) -> Dim | None:
        """The sum of the terms of a quantity, None if one is unknown or there are none. A pure block has no weights."""
        terms = [cost for cost in self._item.costs if cost.quantity == quantity]
        if not terms:
            return Dim.of(0) if quantity == "parameters" and self._item.pure else None
        sizes: list[Dim] = []
        for term in terms:
            applies = term.test is None or self._evaluator.truth(term.test)
            value = self._evaluator_of(quantity).value(term.value, "int") if applies else None
            if applies is None or (applies and not isinstance(value, Dim)):
                return None
            if isinstance(value, Dim):
                sizes.append(value)
        total = Dim.total(sizes)
        return total if total.names <= {*self._binding.lengths, POSITIONS} else None

    def _evaluator_of(self, quantity: str) -> Evaluator:
        return self._of_lengths if quantity in _OF_LENGTHS else self._evaluator

    def _number(self, expression: Expression) -> int | None:
        number = self._evaluator.value(expression, "int")
        return number.constant if isinstance(number, Dim) else None

    def _holds(self, test: Expression | None) -> bool:
        return test is None or self._evaluator.truth(test) is True

    def _names(self) -> frozenset[str]:
        return self._binding.known() | self._sizes.keys()

    def _lookup(self, name: str) -> Bound | Data | Length | None:
        """A static, or a size; one without a number is unknown."""
        if name in self._sizes:
            expression = self._sizes.pop(name)  # a size in terms of itself is unknown
            value = self._evaluator.value(expression, "int")
            self._sizes[name] = expression
            return Bound(value, expression.span)
        bound = self._binding.lookup(name)
        if isinstance(bound, Bound) and isinstance(bound.value, Dim) and bound.value.constant is None:
            return Bound(Unknown("int"), bound.span)
        return bound

    def _lookup_length(self, name: str) -> Bound | Data | Length | None:
        """The same, where a length is a symbol."""
        if name not in self._sizes and name in self._binding.lengths:
            return Bound(Dim.of(name), None)
        bound = self._lookup(name)
        return Bound(Dim.of(name), None) if bound is None and name == POSITIONS else bound
