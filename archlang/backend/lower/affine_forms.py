"""Values of the body of a scan that are affine in its states, and arithmetic with them, for the pass `parallel_scans`.

The factors and terms, which depend on no state, are values of a graph of torch.fx for all positions."""

import operator
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from torch import fx

from archlang.backend.runtime import parallel_scans as runtime


class NotParallel(Exception):
    """A scan cannot be computed at once, for a reason."""


@dataclass(frozen=True)
class Coefficient:
    """A number, or numbers for each position: [p heads rows], where `rows` can be 1."""

    value: fx.Node | float
    heads: int = 0
    rows: int = 1


ZERO, ONE = Coefficient(0.0), Coefficient(1.0)


@dataclass(frozen=True)
class Low:
    """The matrix column (factor Sᵀ a)ᵀ of a state, where the factor has one row."""

    state: int
    a: Coefficient
    column: Coefficient
    factor: Coefficient = ONE


@dataclass(frozen=True)
class Matrix:
    """scale S + the matrices of `lows` + key valueᵀ for each of `outers`; `state` has S, if there is a scale"""

    state: int | None = None
    scale: Coefficient = ZERO
    lows: tuple[Low, ...] = ()
    outers: tuple[tuple[Coefficient, Coefficient], ...] = ()

    def is_of(self, state: int) -> bool:
        """Whether it is an update of a state that reads no other one, and has one key."""
        return {self.state, *(low.state for low in self.lows)} <= {None, state} and len(self.outers) <= 1


@dataclass(frozen=True)
class Read:
    """factor Sᵀ query, of a state before the position or after it; the factor has one row"""

    state: int
    is_before: bool
    query: Coefficient
    factor: Coefficient = ONE


@dataclass(frozen=True)
class Vector:
    """The sum of reads, and a term."""

    reads: tuple[Read, ...] = ()
    term: Coefficient = ZERO


class Algebra:
    """Arithmetic of coefficients, matrices and vectors, whose operations are added to a graph."""

    def __init__(self, graph: fx.Graph) -> None:
        self.graph = graph
        self._calls: dict[tuple[Any, ...], fx.Node] = {}

    def call(self, function: Callable[..., Any], *arguments: Any, name: str = "coefficient") -> fx.Node:
        """Adds a call, unless there is an equal one."""  # Any: arguments in torch.fx
        key = (function, arguments)
        if key not in self._calls:
            self._calls[key] = self.graph.create_node("call_function", function, arguments, {}, name)
        return self._calls[key]

    def computed(self, function: Callable[..., Any], *values: Any) -> Any:  # Any: as above
        """Returns the result for values of which some are numbers; 0 and 1 need no operation."""
        if not any(isinstance(value, fx.Node) for value in values):
            try:
                return function(*values)
            except ZeroDivisionError:
                raise NotParallel("it divides by 0") from None
        neutral = {operator.add: 0.0, operator.sub: 0.0, operator.mul: 1.0, operator.truediv: 1.0}.get(function)
        if len(values) == 2:
            left, right = values
            if not isinstance(right, fx.Node) and right == neutral:
                return left
            if not isinstance(left, fx.Node) and left == neutral and function in (operator.add, operator.mul):
                return right
            if function is operator.mul and 0.0 in [value for value in values if not isinstance(value, fx.Node)]:
                return 0.0
            if function is operator.truediv and not isinstance(left, fx.Node) and left == 0.0:
                return 0.0
        return self.call(function, *values)

    def combination(self, function: Any, *parts: Coefficient) -> Coefficient:  # Any: an operator
        heads = max(part.heads for part in parts)
        result = self.computed(function, *(self.of_heads(part, heads) for part in parts))
        if heads and not isinstance(result, fx.Node):
            raise NotParallel("it multiplies by 0")  # weights in the other factor have a gradient of 0
        return Coefficient(result, heads, max(part.rows for part in parts))

    def of_heads(self, coefficient: Coefficient, heads: int) -> fx.Node | float:
        if coefficient.heads in (0, 1, heads):
            return coefficient.value
        if heads % coefficient.heads:
            raise NotParallel("the groups of its columns differ")
        return self.call(runtime.in_groups, coefficient.value, heads // coefficient.heads)

    def times(self, *parts: Coefficient) -> Coefficient:
        product = ONE
        for part in parts:
            product = (
                part if product == ONE else product if part == ONE else self.combination(operator.mul, product, part)
            )
        return product

    def plus(self, left: Coefficient, right: Coefficient) -> Coefficient:
        if ZERO in (left, right):
            return right if left == ZERO else left
        return self.combination(operator.add, left, right)

    def product(self, form: Matrix | Vector, factor: Coefficient) -> Matrix | Vector:
        if factor == ONE:
            return form
        if isinstance(form, Vector):
            reads = tuple(Read(r.state, r.is_before, r.query, self.times(factor, r.factor)) for r in form.reads)
            return Vector(reads, ZERO if form.term == ZERO else self.times(factor, form.term))
        return self.scaled_matrix(form, factor)

    def scaled_matrix(self, form: Matrix, factor: Coefficient) -> Matrix:
        scale = ZERO if form.scale == ZERO else self.times(factor, form.scale)
        is_rows = factor.rows == 1
        lows = tuple(
            Low(low.state, low.a, low.column, self.times(factor, low.factor))
            if is_rows
            else Low(low.state, low.a, self.times(factor, low.column), low.factor)
            for low in form.lows
        )
        outers = tuple(
            (key, self.times(factor, value)) if is_rows else (self.times(factor, key), value)
            for key, value in form.outers
        )
        return Matrix(form.state, scale, lows, outers)

    def outer(self, column: Coefficient, row: Vector) -> Matrix:
        if not all(read.is_before for read in row.reads):
            raise NotParallel("a state reads another after its update")
        lows = tuple(Low(read.state, read.query, column, read.factor) for read in row.reads)
        return Matrix(None, ZERO, lows, () if row.term == ZERO else ((column, row.term),))

    def added(self, left: Matrix | Vector, right: Matrix | Vector) -> Matrix | Vector:
        if isinstance(left, Vector) and isinstance(right, Vector):
            return Vector((*left.reads, *right.reads), self.plus(left.term, right.term))
        if isinstance(left, Vector) or isinstance(right, Vector):
            raise NotParallel("a vector is added to a matrix of states")
        if None not in (left.state, right.state) and left.state != right.state:
            raise NotParallel("matrices of two states are added")
        lows = {(low.state, low.a, low.column): low for low in left.lows}
        for low in right.lows:
            same = lows.get((low.state, low.a, low.column))
            factor = low.factor if same is None else self.plus(same.factor, low.factor)
            lows[low.state, low.a, low.column] = replace(low, factor=factor)
        outers = dict(left.outers)
        for key, value in right.outers:
            outers[key] = self.plus(outers[key], value) if key in outers else value
        state = right.state if left.state is None else left.state
        return Matrix(state, self.plus(left.scale, right.scale), tuple(lows.values()), tuple(outers.items()))
