"""Disables the checks of shapes in tests that trace: torch cannot trace the checks."""

import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

import jaxtyping
import pytest
import torch

from archlang.backend.runtime.halting import HaltingState

Decorator = Callable[[Any], Any]  # Any: functions and classes


@contextmanager
def unchecked_shapes() -> Iterator[None]:
    """Disables the checks inside of the `with` block, and forgets what torch has compiled in it."""
    from archlang.blocks import halting

    jaxtyping.config.update("jaxtyping_disable", True)
    try:
        # torch cannot trace the wrapper of a dataclass at all.
        plain = {kind: inspect.unwrap(kind.__init__) for kind in (HaltingState, halting.Ledger, halting.Account)}
        patches = [mock.patch.object(kind, "__init__", function) for kind, function in plain.items()]
        # Nor the decorator, which runs when a function with a function in it is called.
        patches.append(mock.patch.object(jaxtyping, "jaxtyped", _unless_nested(jaxtyping.jaxtyped)))
        for patch in patches:
            patch.start()
        yield
        for patch in patches:
            patch.stop()
    finally:
        jaxtyping.config.update("jaxtyping_disable", False)
        torch.compiler.reset()


def _unless_nested(jaxtyped: Callable[..., Decorator]) -> Callable[..., Decorator]:
    """Returns jaxtyping's decorator, which leaves functions in functions as they are."""

    def decorator(**options: object) -> Decorator:
        return lambda function: function if "<locals>" in function.__qualname__ else jaxtyped(**options)(function)

    return decorator


@pytest.fixture
def unchecked() -> Iterator[None]:
    """Disables the checks in a test; they also see wrong inputs first."""
    with unchecked_shapes():
        yield
