"""Checks the shapes and types of a halting block's tallies."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from archlang.backend.runtime.halting import Tally
from archlang.contracts import mistakes
from archlang.contracts.cases import Case
from archlang.contracts.verdict import Broken


def check_tally(case: Case, tally: Tally, state: Tensor, facts: Mapping[str, str]) -> None:
    """Compares the shapes and types of a tally with the signature. `state` is the state of the loop.

    Raises:
        Broken: a shape or type differs."""
    deciding = list(state.shape[: 2 if case.result.lengths else 1])
    expected = {
        "state": (list(state.shape), "float"),
        "mixture": (list(state.shape), "float"),
        "live": (deciding, "bool"),
        "accepted": (deciding, "bool"),
        "ponder": (list(state.shape[:1]), "float"),
        "steps": (deciding, "int"),
    }
    if tally.remaining is not None:
        expected["remaining"] = (deciding, "float")
    for name, (size, kind) in expected.items():
        value: Tensor = getattr(tally, name)
        if list(value.shape) != size or _kind(value) != kind:
            actual = f"{_kind(value)} {list(value.shape)}"
            raise Broken(mistakes.wrong_tally(case, name, f"{kind} {size}", actual, facts))


def _kind(value: Tensor) -> str:
    if value.dtype is torch.bool:
        return "bool"
    return "float" if value.is_floating_point() else "int"
