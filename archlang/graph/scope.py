"""Scopes of instances: the body of a stack has instances of its own, with weights for each step."""

from collections.abc import Iterator


def scope_of(path: str) -> str:
    """Returns the innermost stack around a path, up to its `*`; "" outside of stacks.

    >>> scope_of("stack.*.layer.stack.*.norm"), scope_of("layer.norm")
    ('stack.*.layer.stack.*', '')"""
    return path[: path.rfind("*") + 1]


def scopes_around(scope: str) -> Iterator[str]:
    """Yields the scopes whose instances a scope can use: itself first, that of the whole model last.

    >>> list(scopes_around("stack.*.layer.stack.*"))
    ['stack.*.layer.stack.*', 'stack.*', '']"""
    while scope:
        yield scope
        scope = scope_of(scope[:-1])
    yield ""
