"""Builds bodies and their statements."""

from archlang.syntax.builders.context import Section
from archlang.syntax.builders.parts import Parts, nodes_of
from archlang.syntax.tree import (
    Assign,
    Body,
    Emit,
    Halting,
    If,
    Let,
    Node,
    Repeat,
    Return,
    Scan,
    Stack,
    Statement,
    Update,
)


class Statements(Section):
    """Bodies and their statements."""

    def body(self, parts: Parts) -> Body:
        statements: tuple[Statement, ...] = tuple(part for part in parts if isinstance(part, Node))  # type: ignore[misc]  # the grammar has only statements there
        span = self._context.span(parts)
        body = Body(
            statements=statements,
            closing=self._context.comments.within(span.start, span.end, bool(statements)),
            span=span,
        )
        return self._context.nested(body, *statements)

    def let(self, parts: Parts) -> Let:
        _, name, _, value = parts
        span = self._context.span(parts)
        return Let(
            name=str(name),
            name_span=self._context.token_span(name),
            value=value,
            span=span,
            **self._context.comments_of(span),
        )

    def assign(self, parts: Parts) -> Assign:
        name, _, value = parts
        span = self._context.span(parts)
        return Assign(
            name=str(name),
            name_span=self._context.token_span(name),
            value=value,
            span=span,
            **self._context.comments_of(span),
        )

    def update(self, parts: Parts) -> Update:
        name, _, value = parts
        span = self._context.span(parts)
        return Update(
            name=str(name),
            name_span=self._context.token_span(name),
            value=value,
            span=span,
            **self._context.comments_of(span),
        )

    def return_(self, parts: Parts) -> Return:
        span = self._context.span(parts)
        return Return(value=parts[1], span=span, **self._context.comments_of(span))

    def emit(self, parts: Parts) -> Emit:
        span = self._context.span(parts)
        return Emit(value=parts[1], span=span, **self._context.comments_of(span))

    def if_(self, parts: Parts) -> If:
        _, test, then, _, otherwise = parts
        span = self._context.span(parts)
        node = If(test=test, then=then, otherwise=otherwise, span=span, **self._context.comments_of(span))
        return self._context.nested(node, then, otherwise)

    def else_if(self, parts: Parts) -> Body:
        # Its comments stay for the `if` that it belongs to.
        _, test, then, _, otherwise = parts
        span = self._context.span(parts)
        node = self._context.nested(If(test=test, then=then, otherwise=otherwise, span=span), then, otherwise)
        return self._context.nested(Body(statements=(node,), span=span), node)

    def repeat(self, parts: Parts) -> Repeat:
        _, count, body = parts
        span = self._context.span(parts)
        return self._context.nested(Repeat(count=count, body=body, span=span, **self._context.comments_of(span)), body)

    def stack(self, parts: Parts) -> Stack:
        _, count, body = parts
        span = self._context.span(parts)
        return self._context.nested(Stack(count=count, body=body, span=span, **self._context.comments_of(span)), body)

    def halting(self, parts: Parts) -> Halting:
        _, count, _, state, _, mixture, _, by, body = parts
        span = self._context.span(parts)
        node = Halting(
            count=count,
            state=str(state),
            state_span=self._context.token_span(state),
            mixture=None if mixture is None else str(mixture),
            mixture_span=None if mixture is None else self._context.token_span(mixture),
            by=by,
            body=body,
            span=span,
            **self._context.comments_of(span),
        )
        return self._context.nested(node, body)

    def scan(self, parts: Parts) -> Scan:
        target, _, _, variable, _, over, carry, body = parts
        span = self._context.span(parts)
        node = Scan(
            target=None if target is None else str(target),
            target_span=None if target is None else self._context.token_span(target),
            variable=str(variable),
            variable_span=self._context.token_span(variable),
            over=over,
            carry=carry or (),
            body=body,
            span=span,
            **self._context.comments_of(span),
        )
        return self._context.nested(node, body)

    def carry(self, parts: Parts) -> tuple[Node, ...]:
        return nodes_of(parts)
