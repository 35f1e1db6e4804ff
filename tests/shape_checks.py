"""The decorator that checks types and shapes at calls of a function: the first of each test, and then one in many.

The checks of all calls took half of the time of the tests that run models: a loop has the same shapes at each step, and
jaxtyping's own decorator checks the arguments twice and binds them to the signature. A check is made at its first call,
as beartype takes milliseconds for each."""

import dataclasses
import functools
import inspect
from collections.abc import Callable
from typing import Any, TypeVar

import jaxtyping
import torch
from beartype import beartype
from jaxtyping import jaxtyped

Item = TypeVar("Item", bound=Callable[..., Any])  # Any: of every function
_FIRST, _ONE_IN = 30, 20
_axes_of_a_call = jaxtyped("context")
_test = 0


def begin_test() -> None:
    """Checks the next calls of each function again."""
    global _test
    _test += 1


def checked(item: Item) -> Item:
    """Returns a function that checks its arguments and its result, unless `jaxtyping_disable` is set; in a dataclass,
    checks the arguments of `__init__`."""
    # torch.compile reaches the functions that are defined in functions.
    if torch.compiler.is_compiling():
        return item
    if inspect.isclass(item):
        if dataclasses.is_dataclass(item):
            item.__init__ = checked(item.__init__)  # type: ignore[method-assign] # replaced before it is used
        return item
    check: Callable[..., Any] | None = None  # Any: of every function
    test = calls = 0

    @functools.wraps(item)
    def call(*arguments: Any, **keywords: Any) -> Any:  # Any: of every function
        nonlocal check, test, calls
        if jaxtyping.config.jaxtyping_disable:
            return item(*arguments, **keywords)
        if test != _test:
            test, calls = _test, 0
        calls += 1
        if calls > _FIRST and calls % _ONE_IN:
            return item(*arguments, **keywords)
        if check is None:
            check = _check_of(item)
        return check(*arguments, **keywords)

    return call  # type: ignore[return-value] # has the signature of `item`


def _check_of(item: Item) -> Callable[..., Any]:  # Any: of every function
    hints = str(item.__annotations__.values())
    # Sizes such as `{self.reads}` need the bound arguments, and beartype alone fails on the recursive `StaticValue`.
    if "{" in hints or "StaticValue" in hints:
        return jaxtyped(item, typechecker=beartype)
    return _with_axes(beartype(item))


def _with_axes(check: Callable[..., Any]) -> Callable[..., Any]:  # Any: of every function
    """Returns a function in which an axis has one size in all arguments and the result."""

    def call(*arguments: Any, **keywords: Any) -> Any:  # Any: of every function
        with _axes_of_a_call:
            return check(*arguments, **keywords)

    return call
