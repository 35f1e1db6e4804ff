"""The decorator that checks types and shapes at each call of a function.

jaxtyping's own decorator checks the arguments twice and binds them to the signature, which took half of the time of the
tests that run models."""

import dataclasses
import functools
import inspect
from collections.abc import Callable
from typing import Any, TypeVar

import jaxtyping
from beartype import beartype
from jaxtyping import jaxtyped

Item = TypeVar("Item", bound=Callable[..., Any])  # Any: of every function
_axes_of_a_call = jaxtyped("context")


def checked(item: Item) -> Item:
    """Returns a function that checks its arguments and its result, unless `jaxtyping_disable` is set; in a dataclass,
    checks the arguments of `__init__`."""
    if inspect.isclass(item):
        if dataclasses.is_dataclass(item):
            item.__init__ = checked(item.__init__)  # type: ignore[method-assign] # replaced before it is used
        return item
    hints = str(item.__annotations__.values())
    # Sizes such as `{self.reads}` need the bound arguments, and beartype alone fails on the recursive `StaticValue`.
    if "{" in hints or "StaticValue" in hints:
        return jaxtyped(item, typechecker=beartype)  # type: ignore[return-value] # as below
    check = beartype(item)

    @functools.wraps(item)
    def call(*arguments: Any, **keywords: Any) -> Any:  # Any: of every function
        if jaxtyping.config.jaxtyping_disable:
            return item(*arguments, **keywords)
        with _axes_of_a_call:
            return check(*arguments, **keywords)

    return call  # type: ignore[return-value] # has the signature of `item`
