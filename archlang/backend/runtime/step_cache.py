"""What the steps of a loop share although no value of the program says so: a block whose weights are applied again and
again may compute once in a call of the model what depends on its weights and on lengths alone."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext

import torch
from torch import Tensor


class _Kept(threading.local):
    values: dict[Hashable, Tensor] | None = None


_kept = _Kept()


def one_call() -> AbstractContextManager[None]:
    """One call of a model: what is computed inside is kept until its end."""
    # torch.compile does not see through it, and finds by itself what is the same.
    return nullcontext() if torch.compiler.is_compiling() else _one_call()


@contextmanager
def _one_call() -> Iterator[None]:
    before, _kept.values = _kept.values, {}
    try:
        yield
    finally:
        _kept.values = before


def once(key: Hashable, compute: Callable[[], Tensor]) -> Tensor:
    """The value of a key, computed when it is asked for first in a call of the model, or anew outside of one."""
    if _kept.values is None or torch.compiler.is_compiling():
        return compute()
    # What was computed without gradients has none.
    whole = key, torch.is_grad_enabled()
    if whole not in _kept.values:
        _kept.values[whole] = compute()
    return _kept.values[whole]
