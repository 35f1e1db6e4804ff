"""Builds the statics, inputs, types and clauses of a signature."""

import re
from typing import Any

from archlang.source import Span
from archlang.syntax import tree
from archlang.syntax.builders.context import LineTaken, Section
from archlang.syntax.builders.parts import Clause, Group, Parts, end_of, nodes_of, start_of

# A line with a clause that has the form of a value, after a line that ends before a value.
_TAKEN_CLAUSE = re.compile(
    r"""
    (?: [-+*/%=<>] | \breads[ \t]+\w+ | \b(?: where | not | into | on | records | and | or | when ) )
    [ \t]*+ (?: \#[^\r\n]*+ )?+ [\r\n]\s*+ (?: \#[^\r\n]*+ \s*+ )*+
    (?: random (?= (?: \s+in\s+training )? (?: \s+when\b | [ \t]*(?:\#|[\r\n]|\Z) ) )
      | pure (?= [ \t]*(?:\#|[\r\n]|\Z) ) )
    """,
    re.VERBOSE,
)


class Signatures(Section):
    """Statics, inputs, types and clauses."""

    def where(self, parts: Parts) -> Clause:
        return Clause(parts[0], nodes_of(parts), self._span_of_clause(parts))

    reads = gives = includes = pure = causal = sizes = costs = maps = records = where

    def read(self, parts: Parts) -> tree.Reads:
        name, manner = parts
        return tree.Reads(input=str(name), manner=manner, span=self._context.span(parts))

    def whole_cost(self, parts: Parts) -> tree.Cost:
        quantity, _, value = parts
        return tree.Cost(quantity=str(quantity), value=value, span=self._context.span(parts))

    def added_cost(self, parts: Parts) -> tree.Cost:
        quantity, _, value, _, test = parts
        return tree.Cost(quantity=str(quantity), value=value, test=test, span=self._context.span(parts))

    def whole_map(self, parts: Parts) -> tree.Maps:
        names = tuple(part for part in parts if isinstance(part, tree.MapName))
        return tree.Maps(names=names, width=parts[-1], span=self._context.span(parts))

    def added_map(self, parts: Parts) -> tree.Maps:
        names = tuple(part for part in parts if isinstance(part, tree.MapName))
        *_, width, _, test = parts
        return tree.Maps(names=names, width=width, test=test, span=self._context.span(parts))

    def map_name(self, parts: Parts) -> tree.MapName:
        name, _, argument, _ = parts
        return tree.MapName(name=str(name), input=str(argument), span=self._context.span(parts))

    def record(self, parts: Parts) -> tree.Record:
        kind, _, argument, _, test = parts
        source = None if argument is None else str(argument)
        return tree.Record(kind=str(kind), input=source, test=test, span=self._context.span(parts))

    def cuts(self, parts: Parts) -> Clause:
        _, _, _, count, _, test = parts
        span = self._span_of_clause(parts)
        return Clause("cuts", (tree.Cut(parts=count, test=test, span=span),), span)

    def depends(self, parts: Parts) -> Clause:
        _, _, kind, _, test = parts
        return self._caveat(str(kind), test, parts)

    def random(self, parts: Parts) -> Clause:
        _, _, training, _, test = parts
        return self._caveat("random" if training is None else "training", test, parts)

    def stops(self, parts: Parts) -> Clause:
        _, _, _, test = parts
        return self._caveat("gradients", test, parts)

    def _caveat(self, kind: str, test: Any, parts: Parts) -> Clause:  # Any: an expression, or None
        span = self._span_of_clause(parts)
        return Clause("caveat", (tree.Caveat(kind=kind, test=test, span=span),), span)

    def _span_of_clause(self, parts: Parts) -> Span:
        """Raises:
        LineTaken: the clause breaks off before a line that is another clause, which was read as a value."""
        span = self._context.span(parts)
        if _TAKEN_CLAUSE.search(span.source.text, span.start, span.end):
            raise LineTaken
        return span

    def named_static(self, parts: Parts) -> tree.StaticArgument:
        name, _, value = parts
        return tree.StaticArgument(name=str(name), value=value, span=self._context.span(parts))

    def static_parameters(self, parts: Parts) -> Group:
        return Group(nodes_of(parts), start_of(parts[0]), end_of(parts[-1]))

    inputs = dimensions = statics = arguments = static_parameters

    def kind_parameter(self, parts: Parts) -> tree.StaticParameter:
        name, _, kind, _, default = parts
        return tree.StaticParameter(name=str(name), kind=str(kind), default=default, span=self._context.span(parts))

    def default_parameter(self, parts: Parts) -> tree.StaticParameter:
        name, _, default = parts
        return tree.StaticParameter(name=str(name), default=default, span=self._context.span(parts))

    def input(self, parts: Parts) -> tree.InputParameter:
        name, _, type_, variadic, _, default = parts
        return tree.InputParameter(
            name=str(name),
            type=type_,
            variadic=variadic is not None,
            default=None if default is None else str(default),
            span=self._context.span(parts),
        )

    def plain_type(self, parts: Parts) -> tree.TypeName:
        name, dimensions = parts
        return tree.TypeName(
            name=str(name), dimensions=() if dimensions is None else dimensions.nodes, span=self._context.span(parts)
        )

    def conditional_type(self, parts: Parts) -> tree.ConditionalType:
        then, _, test, _, otherwise = parts
        node = tree.ConditionalType(then=then, test=test, otherwise=otherwise, span=self._context.span(parts))
        return self._context.nested(node, then, test, otherwise)
