"""Builds bodies and their statements."""

from __future__ import annotations

from typing import TYPE_CHECKING

from archlang.syntax import tree
from archlang.syntax.builders.context import LineTaken, Section
from archlang.syntax.builders.parts import N, Parts

if TYPE_CHECKING:
    from collections.abc import Callable

    from lark import Token

    from archlang.source import Span


class Statements(Section):
    """Bodies and their statements."""

    def body(self, parts: Parts) -> tree.Body:
        statements: tuple[tree.Statement, ...] = tuple(part for part in parts if isinstance(part, tree.Node))  # type: ignore[misc]  # the grammar has only statements there
        span = self._context.span(parts)
        body = tree.Body(
            statements=statements,
            closing=self._context.comments.within(span.start, span.end, bool(statements)),
            span=span,
        )
        return self._context.nested(body, *statements)

    def let(self, parts: Parts) -> tree.Let:
        """Raises:
        LineTaken: the name begins the next line, which binds a value."""
        let = self._binding(tree.Let, parts, parts[1])
        is_value = isinstance(let.value, tree.Call) and let.value.arguments is not None
        if is_value and parts[0].line != parts[1].line:
            raise LineTaken
        return let

    def assign(self, parts: Parts) -> tree.Assign:
        return self._binding(tree.Assign, parts, parts[0])

    def update(self, parts: Parts) -> tree.Update:
        return self._binding(tree.Update, parts, parts[0])

    def loss(self, parts: Parts) -> tree.Loss:
        """Raises:
        LineTaken: the name begins the next line, so that it may be bound there."""
        if parts[0].line != parts[1].line:
            raise LineTaken
        return self._binding(tree.Loss, parts, parts[1])

    def _binding(self, kind: Callable[..., N], parts: Parts, name: Token) -> N:
        name_span = self._context.token_span(name)
        return self._commented(kind, parts, name=str(name), name_span=name_span, value=parts[-1])

    def return_(self, parts: Parts) -> tree.Return:
        return self._commented(tree.Return, parts, value=parts[1])

    def emit(self, parts: Parts) -> tree.Emit:
        return self._commented(tree.Emit, parts, value=parts[1])

    def if_(self, parts: Parts) -> tree.If:
        _, test, then, _, otherwise = parts
        node = self._commented(tree.If, parts, test=test, then=then, otherwise=otherwise)
        return self._context.nested(node, then, otherwise)

    def else_if(self, parts: Parts) -> tree.Body:
        # Its comments stay for the `if` that it belongs to.
        _, test, then, _, otherwise = parts
        span = self._context.span(parts)
        node = self._context.nested(tree.If(test=test, then=then, otherwise=otherwise, span=span), then, otherwise)
        return self._context.nested(tree.Body(statements=(node,), span=span), node)

    def repeat(self, parts: Parts) -> tree.Repeat:
        target, _, word, count, _, _, drawn, truncated, body = parts
        steps = {"count": count, "drawn": drawn, "truncated": truncated}
        node = self._commented(tree.Repeat, parts, **self._target(target, word), **steps, body=body)
        return self._context.nested(node, body)

    def stack(self, parts: Parts) -> tree.Stack:
        target, _, word, count, body = parts
        return self._context.nested(
            self._commented(tree.Stack, parts, **self._target(target, word), count=count, body=body), body
        )

    def halting(self, parts: Parts) -> tree.Halting:
        target, _, word, count, _, state, _, mixture, _, by, truncated, body = parts
        node = self._commented(
            tree.Halting,
            parts,
            **self._target(target, word),
            count=count,
            state=str(state),
            state_span=self._context.token_span(state),
            mixture=None if mixture is None else str(mixture),
            mixture_span=None if mixture is None else self._context.token_span(mixture),
            by=by,
            truncated=truncated,
            body=body,
        )
        return self._context.nested(node, body)

    def scan(self, parts: Parts) -> tree.Scan:
        target, _, word, variable, after, _, over, carry, truncated, body = parts
        before, reach = after or (None, None)
        node = self._commented(
            tree.Scan,
            parts,
            **self._target(target, word),
            variable=str(variable),
            variable_span=self._context.token_span(variable),
            before=None if before is None else str(before),
            before_span=None if before is None else self._context.token_span(before),
            reach=reach,
            over=over,
            carry=tuple(name for name, _ in carry or ()),
            growing=frozenset(name.text for name, grows in carry or () if grows),
            truncated=truncated,
            body=body,
        )
        return self._context.nested(node, body)

    def experts(self, parts: Parts) -> tree.Experts:
        target, word, variable, _, over, _, by, body = [part for part in parts if part != "="]
        node = self._commented(
            tree.Experts,
            parts,
            **self._target(target, word),
            variable=str(variable),
            variable_span=self._context.token_span(variable),
            over=over,
            by=by,
            body=body,
        )
        return self._context.nested(node, body)

    def unclear(self, parts: Parts) -> tree.Unclear:
        header, body = parts
        return self._context.nested(self._commented(tree.Unclear, parts, header=header, body=body), body)

    def missing_line(self, parts: Parts) -> tree.Missing:
        return self._commented(tree.Missing, parts)

    def _target(self, name: Token | None, word: Token) -> dict[str, str | Span | None]:
        """The name that a loop binds to what it emits, and its place.

        Raises:
            LineTaken: the name stands on another line than the `word` of the loop, and lacks its value."""
        if name is None:
            return {"target": None, "target_span": None}
        span, loop = self._context.token_span(name), self._context.token_span(word)
        if span.line != loop.line:
            raise LineTaken
        return {"target": str(name), "target_span": span}

    def truncated(self, parts: Parts) -> tree.Node:
        expression: tree.Node = parts[1]
        return expression

    def after(self, parts: Parts) -> tuple[Token, tree.Expression | None]:
        """The name of the positions before a part, and how many they are at most."""
        _, name, _, reach, _ = parts
        return name, reach

    def carry(self, parts: Parts) -> tuple[tuple[tree.Name, bool], ...]:
        return tuple(part for part in parts if isinstance(part, tuple))

    def carried(self, parts: Parts) -> tuple[tree.Name, bool]:
        """The name of a carried state, and whether it grows."""
        name, growing = parts
        return name, growing is not None
