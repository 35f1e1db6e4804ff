"""Disables the checks of shapes in tests that trace: torch cannot trace the checks."""

import inspect
from collections.abc import Iterator
from contextlib import contextmanager
from unittest import mock

import jaxtyping
import torch

from archlang.backend.runtime.halting import Tally


@contextmanager
def unchecked_shapes() -> Iterator[None]:
    """Disables the checks inside of the `with` block, and forgets what torch has compiled in it."""
    from archlang.blocks import act, halting

    jaxtyping.config.update("jaxtyping_disable", True)
    try:
        # torch cannot trace the wrapper of a dataclass at all.
        plain = {kind: inspect.unwrap(kind.__init__) for kind in (Tally, act.Ledger, halting.Account)}
        patches = [mock.patch.object(kind, "__init__", function) for kind, function in plain.items()]
        for patch in patches:
            patch.start()
        yield
        for patch in patches:
            patch.stop()
    finally:
        jaxtyping.config.update("jaxtyping_disable", False)
        torch.compiler.reset()
