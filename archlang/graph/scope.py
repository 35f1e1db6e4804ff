"""Which instances can be used where: a stack's body has its own, one set for each step."""

from __future__ import annotations

from collections.abc import Iterator


def scope_of(path: str) -> str:
    """The innermost stack that a path lies in, up to its `*`: `stack.*` for `stack.*.norm`; "" outside of stacks."""
    return path[: path.rfind("*") + 1]


def scopes_around(scope: str) -> Iterator[str]:
    """The scopes whose instances can be used in a scope: its own first, the whole model's last."""
    while scope:
        yield scope
        scope = scope_of(scope[:-1])
    yield ""
