"""The nodes of a region as statements and expressions, for the method `forward` of an exported model."""

from __future__ import annotations

import ast
import copy
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from archlang.backend.lower.lengths import derived_lengths, divisor_lengths, grown_lengths, named_lengths, summands
from archlang.export.plain.constructor import Blocks, attribute_of, class_of, step_name
from archlang.export.plain.expressions import assignment, call_of, mean_of, parsed_expression
from archlang.export.plain.loop_helpers import DERIVED_MASK, DIVIDE, DIVIDE_WHERE_REAL
from archlang.export.plain.places import RESERVED, length_words, placed, preferred_name, unused_name
from archlang.export.plain.sources import Name
from archlang.graph import operations
from archlang.graph.graph import NUMBER, Graph, Node, Region
from archlang.graph.operations import Arithmetic
from archlang.types import Dim, Type

_OPERATORS: Mapping[Arithmetic, ast.operator] = {
    Arithmetic.ADD: ast.Add(), Arithmetic.SUBTRACT: ast.Sub(), Arithmetic.MULTIPLY: ast.Mult(),
    Arithmetic.DIVIDE: ast.Div(),
}  # fmt: skip


@dataclass
class Scope:
    """The values of a region: expressions by ids, masks by lengths, and what it adds to the loss."""

    region: Region
    values: dict[str, ast.expr]
    masks: dict[Dim, ast.expr]
    is_outermost: bool
    types: dict[str, Type]
    derived: Collection[Dim]
    """the lengths that only results of its loops have, whose masks it reads"""
    body: list[ast.stmt] = field(default_factory=list)
    parts: dict[tuple[str, int], ast.expr] = field(default_factory=dict)
    pending: dict[str, tuple[Node, ast.expr]] = field(default_factory=dict)
    uses: Counter[str] = field(default_factory=Counter)
    names: dict[str, str] = field(default_factory=dict)
    """the variables of values of this region, which are free after their last use"""
    replaceable: set[str] = field(default_factory=set)
    """the inputs whose variables a loop may overwrite after their last use"""
    ponders: dict[frozenset[str], list[ast.expr]] = field(default_factory=dict)
    depths: list[ast.expr] = field(default_factory=list)


class Regions(ABC):
    """Writes the nodes of regions; a subclass writes their loops."""

    def __init__(self, graph: Graph, blocks: Blocks) -> None:
        self._graph = graph
        self._blocks = blocks
        self.helpers: list[Name] = []
        steps = {step_name(node.operation.path) for node in graph.region.walk()
                 if isinstance(node.operation, operations.OwnWeights)}  # fmt: skip
        self._taken = {*RESERVED, *steps, *blocks.names.values()}
        self._batch: ast.expr = ast.Constant(0)
        self._lasting: set[str] = set()

    # Names

    def _name(self, preferred: str) -> str:
        """Takes an unused name."""
        name = unused_name(preferred, self._taken)
        self._taken.add(name)
        return name

    def _helper(self, name: Name) -> ast.Name:
        """A function that the file then contains."""
        self.helpers.append(name)
        return ast.Name(self._blocks.names.get(name, name.name), ast.Load())

    # Regions

    def _region(
        self, region: Region, values: dict[str, ast.expr], masks: dict[Dim, ast.expr], outermost: bool,
        replaceable: set[str],
    ) -> Scope:  # fmt: skip
        """Writes the nodes of a region. Values that are used once wait to become part of an expression."""
        types = {value.id: value.type for value in region.inputs}
        derived = derived_lengths(region, self._graph.instances)
        scope = Scope(region, dict(values), dict(masks), outermost, types, derived, replaceable=replaceable)
        for node in region.nodes:
            scope.uses.update(self._inputs(node))
        scope.uses.update(region.results)
        for node in region.nodes:
            self._node(scope, node)
            scope.uses.subtract(self._inputs(node))
            self._release(scope)
            if len(node.types) == 1:
                scope.types[node.id] = node.type
        return scope

    def _release(self, scope: Scope) -> None:
        """Frees the names of values that are no longer used."""
        waiting = {
            part.id
            for _, expression in scope.pending.values()
            for part in ast.walk(expression)
            if isinstance(part, ast.Name)
        }
        for source, name in list(scope.names.items()):
            if scope.uses[source] <= 0 and name not in waiting:
                del scope.names[source]
                self._taken.discard(name)

    @staticmethod
    def _inputs(node: Node) -> Sequence[str]:
        """The inputs that a node reads here, where blocks apply their own linear maps."""
        return () if isinstance(node.operation, operations.Product) else node.arguments

    def _node(self, scope: Scope, node: Node) -> None:
        if isinstance(node.operation, operations.Product):
            return
        if isinstance(node.operation, operations.Part):
            part = scope.parts.get((node.inputs[0], node.operation.index))
            if part is not None:  # of a join otherwise
                scope.values[node.id] = part
            return
        if isinstance(node.operation, operations.Loop):
            self.loop(scope, node)
            self._derive_masks(scope, node)
            return
        if not scope.uses[node.id]:
            return
        arguments = [self._take_pending(scope, source) for source in self._inputs(node)]
        match node.operation:
            case operations.Literal(value=value):
                scope.values[node.id] = ast.Constant(float(value))
                return
            case Arithmetic.NEGATE:
                expression: ast.expr = ast.UnaryOp(ast.USub(), arguments[0])
            case Arithmetic() as operation:
                if operation is Arithmetic.DIVIDE and node.type == NUMBER:
                    expression = call_of(self._helper(DIVIDE), arguments, {})
                else:
                    left, right = (
                        _per_position(argument, node.type) if scope.types[source].name == "vec" else argument
                        for source, argument in zip(node.inputs, arguments, strict=True)
                    )
                    if lengths := divisor_lengths(node, scope.types):
                        masks = [self._mask(scope, length) or ast.Constant(None) for length in lengths]
                        expression = call_of(self._helper(DIVIDE_WHERE_REAL), [left, right, *masks], {})
                    else:
                        expression = ast.BinOp(left, _OPERATORS[operation], right)
            case operations.Call():
                called = self._apply(scope, node, arguments)
                if called is None:
                    return
                expression = called
            case _:
                raise AssertionError(node.operation)
        if scope.uses[node.id] == 1 and (not node.name or node.id in scope.region.results):
            scope.pending[node.id] = node, expression
        else:
            self._set(scope, node, expression)

    def _set(self, scope: Scope, node: Node, expression: ast.expr) -> None:
        """Sets a variable, which may be one that this value is the last to read."""
        reads = Counter(self._inputs(node))
        for source in [source for source in reads if source in scope.names and scope.uses[source] == reads[source]]:
            waiting = (part for _, value in scope.pending.values() for part in ast.walk(value))
            if not any(isinstance(part, ast.Name) and part.id == scope.names[source] for part in waiting):
                self._taken.discard(scope.names.pop(source))
        preferred = node.name or preferred_name(node, self._graph)
        name = self._name(preferred)
        scope.body.append(placed(assignment(name, expression), node))
        scope.values[node.id] = ast.Name(name, ast.Load())
        scope.names[node.id] = name

    def _take_pending(self, scope: Scope, source: str) -> ast.expr:
        """The expression of a value."""
        if source in scope.pending:
            return scope.pending.pop(source)[1]
        return copy.copy(scope.values[source])

    def _flush(self, scope: Scope) -> None:
        """Sets variables for the values that wait."""
        for key, (node, expression) in list(scope.pending.items()):
            del scope.pending[key]
            self._set(scope, node, expression)

    def _apply(self, scope: Scope, node: Node, arguments: list[ast.expr]) -> ast.expr | None:
        assert isinstance(node.operation, operations.Call)
        instance = self._graph.instances[node.operation.instance]
        types = [scope.types[source] for source in node.arguments]
        lengths = named_lengths(instance, types)
        keywords: dict[str, ast.expr] = {}
        for name in instance.lengths:
            mask = self._mask(scope, lengths.get(name))
            if mask is not None and f"mask_{name}" in self._blocks.keywords[class_of(instance.python)]:
                keywords[f"mask_{name}"] = mask
        block = parsed_expression(attribute_of(instance.path))
        if not arguments:
            return call_of(block, [self._batch], {})
        expression = call_of(block, arguments, keywords)
        if not instance.grows:
            return expression
        name = self._name(node.name or preferred_name(node, self._graph))
        new_lengths = [length for length in grown_lengths(instance, types, node.type) if length not in scope.masks]
        mask_name = self._name(f"mask_{length_words(new_lengths[0])}") if new_lengths else "_"
        targets = ast.Tuple([ast.Name(name, ast.Store()), ast.Name(mask_name, ast.Store())], ast.Store())
        scope.body.append(placed(ast.Assign([targets], expression, lineno=0), node))
        scope.values[node.id] = ast.Name(name, ast.Load())
        scope.names[node.id] = name
        scope.masks.update((length, ast.Name(mask_name, ast.Load())) for length in new_lengths)
        return None

    def _derive_masks(self, scope: Scope, loop: Node) -> None:
        """Sets a variable for the mask of each length that only a result of a loop has."""
        for index, kind in enumerate(loop.types):
            for axis, length in enumerate(kind.lengths, start=1):
                if length not in scope.derived or length in scope.masks:
                    continue
                parts = summands(length) or {}
                value = scope.values[loop.id] if len(loop.types) == 1 else scope.parts[loop.id, index]
                factors = ast.Tuple([ast.Constant(factor) for factor in parts.values()], ast.Load())
                masks = [self._mask(scope, part) or ast.Constant(None) for part in parts]
                name = self._name(f"mask_{length_words(length)}")
                call = call_of(self._helper(DERIVED_MASK), [copy.copy(value), ast.Constant(axis), factors, *masks], {})
                scope.body.append(assignment(name, call))
                scope.masks[length] = ast.Name(name, ast.Load())

    def _mask(self, scope: Scope, length: Dim | None) -> ast.expr | None:
        return None if length is None or length.constant is not None else scope.masks[length]

    @abstractmethod
    def loop(self, scope: Scope, node: Node) -> None:
        """Writes a loop, with the variables of its states and results."""

    # What loops add to the loss

    def _add_ponder(self, scope: Scope, node: Node, ponder: ast.expr) -> None:
        """Adds what a loop adds to the loss. Loops that halt by the same weights count once."""
        inside = (inner.operation for inner in (node, *node.regions[0].walk()))
        instances = frozenset(inner.instance for inner in inside if isinstance(inner, operations.Halting))
        scope.ponders.setdefault(instances, []).append(ponder)

    @staticmethod
    def _ponder(scope: Scope) -> ast.expr | None:
        """The sum of what the loops of a region add to the loss."""
        total: ast.expr | None = None
        for values in scope.ponders.values():
            mean = mean_of(values)
            total = mean if total is None else ast.BinOp(total, ast.Add(), mean)
        return total


def _per_position(vector: ast.expr, result: Type) -> ast.expr:
    """A vector with an axis for each length of the result, for arithmetic with a sequence or a map."""
    for _ in result.lengths:
        vector = call_of(ast.Attribute(vector, "unsqueeze", ast.Load()), [ast.Constant(1)], {})
    return vector
