"""Evaluates the clauses `costs`, `maps`, `records`, `cuts` and `acts` of a signature."""

from collections.abc import Collection

from archlang.elaborate import mistakes
from archlang.elaborate.binding import Binding
from archlang.errors import Report, Span, ignore
from archlang.graph.facts import ACTS, POSITIONS, QUANTITIES, RECORDS, Act, Costs, LinearMap, Record
from archlang.resolve.evaluate import Evaluator
from archlang.resolve.values import Bound, Data, Length, Unknown, Value, as_float, describe
from archlang.syntax import tree
from archlang.syntax.printer import unparse
from archlang.syntax.tree import CostClause, Cut, Expression, Extern, Maps, TypeName, walk
from archlang.syntax.tree import RecordClause as RecordClause
from archlang.types import Dim

# The quantities that may differ from sample to sample, as they are computed from lengths.
_OF_LENGTHS = ("flops", "activations", "state")


class Facts:
    """The clauses of an extern block, evaluated with the statics and sizes of a binding.

    A fact that depends on an unknown size, or on a mistake, is unknown."""

    def __init__(self, binding: Binding, item: Extern, report: Report = ignore) -> None:
        self._binding = binding
        self._item = item
        self._report = report
        self._inputs = [parameter.name for parameter in item.signature.inputs]
        self._sizes = {size.name or "": size.value for size in item.sizes}
        file = binding.declaration.file
        self._evaluator = Evaluator(self._lookup, self._names, file, report)
        self._of_lengths = Evaluator(self._lookup_length, self._names, file, report, rounds_down=True)

    def costs(self) -> Costs:
        """The costs, as polynomials over the names of the lengths."""
        parameters, nonzero = self._total("parameters"), self._total("nonzero")
        return Costs(
            None if parameters is None else parameters.constant,
            self._total("flops"),
            self._total("activations"),
            None if nonzero is None else nonzero.constant,
            self._total("state"),
        )

    def maps(self) -> tuple[LinearMap, ...]:
        """The linear maps that may be joined, of those whose width is known."""
        return tuple(
            LinearMap(name.name, self._inputs.index(name.input), width)
            for maps in self._item.maps
            if self._holds(maps.test) and (width := self._number(maps.width, 1)) is not None
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
                return 0 if cut.parts is None else self._number(cut.parts, 1)
        return None

    def acts(self) -> tuple[Act, ...]:
        """What the block does to numbers and to its state, of those acts whose numbers are known."""
        found = []
        for clause in self._item.acts:
            name, statics, inputs = _word_numbers_and_inputs(clause)
            numbers = [as_float(self._evaluator.value(number, "float")) for number in statics]
            places = [self._inputs.index(each.text) for each in inputs if each.text in self._inputs]
            if self._holds(clause.test) and None not in numbers:
                found.append(Act(name.text, tuple(number for number in numbers if number is not None), tuple(places)))
        return tuple(found)

    def check(self) -> None:
        """Reports the mistakes in the clauses that do not depend on statics."""
        item = self._item
        result = item.signature.result
        results = {} if result is None else {node.name for node in walk(result) if isinstance(node, TypeName)}
        for size in item.sizes:
            self._check_number(self._evaluator, size.value)
        for cost in item.costs:
            if cost.quantity not in QUANTITIES:
                self._report(mistakes.unknown(cost.span, "cost", cost.quantity, QUANTITIES))
                continue  # lengths are allowed in some costs only
            self._check_number(self._evaluator_of(cost.quantity), cost.value, 0, cost.test)
            if item.pure and cost.quantity == "parameters":
                self._report(mistakes.pure_with_weights(cost.span, item.name, item.pure_span))
        for maps in item.maps:
            self._check_number(self._evaluator, maps.width, 1, maps.test)
            if item.pure:
                self._report(mistakes.pure_with_weights(maps.span, item.name, item.pure_span))
            for name in maps.names:
                self._check_input(name.span, name.input)
                self._check_type(name.span, name.input, ("seq", "vec", "data"))
        for record in item.records:
            if record.kind not in RECORDS:
                self._report(mistakes.unknown(record.span, "kind of record", record.kind, RECORDS))
            if record.input is not None:
                self._check_input(record.span, record.input)
                if record.kind == "attention":
                    self._report(mistakes.attention_of_input(record.span))
        for cut in item.cuts:
            if result is not None and "chunks" not in results:
                self._report(mistakes.cuts_no_chunks(cut.span, item.name))
            if cut.parts is not None:
                self._check_number(self._evaluator, cut.parts, 1, cut.test)
        for act in item.acts:
            word, _, inputs = _word_numbers_and_inputs(act)
            if word.text not in ACTS:
                self._report(mistakes.unknown(word.span, "kind of act", word.text, ACTS))
            for given in inputs:
                self._check_input(given.span, given.text)
        clauses: tuple[CostClause | Maps | RecordClause | Cut | tree.ActClause, ...]
        clauses = (*item.costs, *item.maps, *item.records, *item.cuts, *item.acts)
        # Evaluated for its mistakes: a condition may name a static that does not exist.
        for clause in clauses:
            self._holds(clause.test)

    def _check_number(
        self, evaluator: Evaluator, expression: Expression, least: int | None = None, test: Expression | None = None
    ) -> None:
        value = evaluator.value(expression, "int")
        if value is not None and not isinstance(value, Dim | Unknown):
            self._report(mistakes.no_integer_in_clause(expression.span, describe(value)))
        elif isinstance(value, Dim) and value.constant is not None and least is not None and self._holds(test):
            self._in_range(expression, value, least)

    def _in_range(self, expression: Expression, value: Value, least: int) -> bool:
        """Whether a value is an integer of at least `least` where every length is 1; if not, reports it."""
        if isinstance(value, Dim):
            smallest = value.substitute(dict.fromkeys(value.names, Dim.of(1))).constant
            if smallest is None or smallest >= least:
                return True
            shown = str(smallest) + ("" if value.constant is not None else " where every length is 1")
            self._report(mistakes.clause_out_of_range(expression.span, unparse(expression), shown, least))
        elif isinstance(value, float):
            self._report(mistakes.clause_out_of_range(expression.span, unparse(expression), f"{value:g}", least))
        return False

    def _check_type(self, span: Span, name: str, kinds: Collection[str]) -> None:
        for parameter in self._item.signature.inputs:
            if parameter.name == name and parameter.type.name not in kinds:
                self._report(mistakes.map_of_wrong_type(span, name, unparse(parameter.type)))

    def _check_input(self, span: Span, name: str) -> None:
        if name not in self._inputs:
            self._report(mistakes.reads_unknown_input(span, name, self._item.name, self._inputs))

    def _total(self, quantity: str) -> Dim | None:
        """The sum of the terms of a quantity, None if one is unknown or there are none."""
        terms = [cost for cost in self._item.costs if cost.quantity == quantity]
        if not terms:  # a pure block has no weights
            return Dim.of(0) if quantity == "parameters" and self._item.pure else None
        sizes: list[Dim] = []
        for term in terms:
            applies = term.test is None or self._evaluator.truth(term.test)
            value = self._evaluator_of(quantity).value(term.value, "int") if applies else None
            if applies is None or (applies and not self._in_range(term.value, value, 0)):
                return None
            if isinstance(value, Dim):
                sizes.append(value)
        total = Dim.total(sizes)
        return total if total.names <= {*self._binding.lengths, POSITIONS} else None

    def _evaluator_of(self, quantity: str) -> Evaluator:
        return self._of_lengths if quantity in _OF_LENGTHS else self._evaluator

    def _number(self, expression: Expression, least: int) -> int | None:
        number = self._evaluator.value(expression, "int")
        return number.constant if self._in_range(expression, number, least) and isinstance(number, Dim) else None

    def _holds(self, test: Expression | None) -> bool:
        return test is None or self._evaluator.truth(test) is True

    def _names(self) -> frozenset[str]:
        return self._binding.static_names() | self._sizes.keys()

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


def _word_numbers_and_inputs(clause: tree.ActClause) -> tuple[tree.Name, list[Expression], list[tree.Name]]:
    if not isinstance(clause.act, tree.CallExpression):
        return (clause.act if isinstance(clause.act, tree.Name) else tree.Name(parts=("",), span=clause.span)), [], []
    inputs = [each for each in clause.act.arguments or () if isinstance(each, tree.Name)]
    return clause.act.callee, [static.value for static in clause.act.statics], inputs
