"""Per-call cache of values derived from weights, lengths and masks.

Blocks that are applied in every step of a loop, or in every layer, compute such a value once in a call of the model."""

from collections.abc import Callable, Hashable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from typing import Any, TypeVar

import torch
from torch import Tensor

Value = TypeVar("Value")

_CACHE: ContextVar[dict[Hashable, Any] | None] = ContextVar("call_cache", default=None)  # Any: a source and its value


def call_scope() -> AbstractContextManager[None]:
    """Opens an empty cache for one call of a model, and drops it at the end; calls may nest."""
    # torch.compile cannot trace a context variable, and shares equal values without the cache.
    return nullcontext() if torch.compiler.is_compiling() else _call_scope({})


def in_same_call() -> tuple[AbstractContextManager[None], AbstractContextManager[None]]:
    """Returns the contexts of a computation in a call, and of its repetition after the call: it finds the values that
    were there before, and computes the others again."""
    return nullcontext(), _call_scope(dict(_CACHE.get() or {}))


@contextmanager
def _call_scope(values: dict[Hashable, Any]) -> Iterator[None]:
    token = _CACHE.set(values)
    try:
        yield
    finally:
        _CACHE.reset(token)


def cached_in_call(key: Hashable, compute: Callable[[], Value], source: Tensor | None = None) -> Value:
    """Returns the value of a key; computes it at the first request in a call, and at every request outside of calls.

    Values computed under `torch.no_grad()` have keys of their own. A value that is derived from a tensor, `source`,
    replaces that of another tensor: a halting loop makes new masks."""
    cache = None if torch.compiler.is_compiling() else _CACHE.get()
    if cache is None:
        return compute()
    graded_key = key, torch.is_grad_enabled()
    if graded_key not in cache or cache[graded_key][0] is not source:
        cache[graded_key] = source, compute()
    value: Value = cache[graded_key][1]
    return value
