"""Builds bodies and their statements."""

from archlang.syntax import tree
from archlang.syntax.builders.context import Section
from archlang.syntax.builders.parts import Parts, nodes_of


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
        _, name, _, value = parts
        span = self._context.span(parts)
        return tree.Let(
            name=str(name),
            name_span=self._context.token_span(name),
            value=value,
            span=span,
            **self._context.comments_of(span),
        )

    def assign(self, parts: Parts) -> tree.Assign:
        name, _, value = parts
        span = self._context.span(parts)
        return tree.Assign(
            name=str(name),
            name_span=self._context.token_span(name),
            value=value,
            span=span,
            **self._context.comments_of(span),
        )

    def update(self, parts: Parts) -> tree.Update:
        name, _, value = parts
        span = self._context.span(parts)
        return tree.Update(
            name=str(name),
            name_span=self._context.token_span(name),
            value=value,
            span=span,
            **self._context.comments_of(span),
        )

    def return_(self, parts: Parts) -> tree.Return:
        span = self._context.span(parts)
        return tree.Return(value=parts[1], span=span, **self._context.comments_of(span))

    def emit(self, parts: Parts) -> tree.Emit:
        span = self._context.span(parts)
        return tree.Emit(value=parts[1], span=span, **self._context.comments_of(span))

    def if_(self, parts: Parts) -> tree.If:
        _, test, then, _, otherwise = parts
        span = self._context.span(parts)
        node = tree.If(test=test, then=then, otherwise=otherwise, span=span, **self._context.comments_of(span))
        return self._context.nested(node, then, otherwise)

    def else_if(self, parts: Parts) -> tree.Body:
        # Its comments stay for the `if` that it belongs to.
        _, test, then, _, otherwise = parts
        span = self._context.span(parts)
        node = self._context.nested(tree.If(test=test, then=then, otherwise=otherwise, span=span), then, otherwise)
        return self._context.nested(tree.Body(statements=(node,), span=span), node)

    def repeat(self, parts: Parts) -> tree.Repeat:
        _, count, body = parts
        span = self._context.span(parts)
        return self._context.nested(
            tree.Repeat(count=count, body=body, span=span, **self._context.comments_of(span)), body
        )

    def stack(self, parts: Parts) -> tree.Stack:
        _, count, body = parts
        span = self._context.span(parts)
        return self._context.nested(
            tree.Stack(count=count, body=body, span=span, **self._context.comments_of(span)), body
        )

    def halting(self, parts: Parts) -> tree.Halting:
        _, count, _, state, _, mixture, _, by, body = parts
        span = self._context.span(parts)
        node = tree.Halting(
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

    def scan(self, parts: Parts) -> tree.Scan:
        target, _, _, variable, _, over, carry, body = parts
        span = self._context.span(parts)
        node = tree.Scan(
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

    def carry(self, parts: Parts) -> tuple[tree.Node, ...]:
        return nodes_of(parts)
