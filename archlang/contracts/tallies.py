"""Halting blocks: what their tallies must be, and what halted samples keep."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from archlang.backend.runtime.halting import Tally
from archlang.contracts import mistakes, samples
from archlang.contracts.cases import Case
from archlang.contracts.rounding import difference
from archlang.contracts.verdict import Broken, Skipped

if TYPE_CHECKING:
    from archlang.contracts.subject import Subject

# Enough steps for most positions to halt.
_LONG = 12
_KEPT = ("mixture", "ponder", "steps")


def check_tally(case: Case, tally: Tally, state: Tensor, facts: Mapping[str, str]) -> None:
    """Holds the shapes and types of a tally against the signature; `state` is the loop's.

    Raises:
        Broken: one is wrong."""
    deciding = list(state.shape[: 2 if case.result.lengths else 1])
    expected = {
        "state": (list(state.shape), "numbers"),
        "mixture": (list(state.shape), "numbers"),
        "live": (deciding, "truth values"),
        "accepted": (deciding, "truth values"),
        "ponder": (list(state.shape[:1]), "numbers"),
        "steps": (deciding, "whole numbers"),
    }
    for name, (size, kind) in expected.items():
        value: Tensor = getattr(tally, name)
        if list(value.shape) != size or _kind(value) != kind:
            found = f"{_kind(value)} {list(value.shape)}"
            raise Broken(mistakes.wrong_tally(case, name, f"{kind} {size}", found, facts))


def _kind(value: Tensor) -> str:
    if value.dtype is torch.bool:
        return "truth values"
    return "numbers" if value.is_floating_point() else "whole numbers"


def halting(subject: Subject) -> None:
    """`accepted` and `live` lie within what was live before, and within real positions; a sample none of whose
    positions is live keeps its mixture, its ponder and its steps.

    Raises:
        Broken: they do not.
        Skipped: the block halts no loops."""
    if not subject.halts:
        raise Skipped("halts no loops")
    case = subject.case
    names = case.lengths
    batch = [subject.sample(dict.fromkeys(names, size), salt) for salt, size in enumerate((1, 5, 0, 2))]
    facts = subject.facts(batch, samples.longest(batch))
    tallies = subject.tallies(batch, _LONG)
    for step, (before, after) in enumerate(pairwise(tallies), start=1):
        for name in ("accepted", "live"):
            now: Tensor = getattr(after, name)
            if (now & ~before.live).any():
                reason = f"step {step} makes `{name}` true where nothing was live before"
                raise Broken(mistakes.accepts_what_has_halted(case, reason, facts))
        halted = ~before.live.reshape(len(batch), -1).any(1)
        for name in _KEPT:
            gap = difference(getattr(before, name)[halted], getattr(after, name)[halted])
            if gap:
                raise Broken(mistakes.moves_after_halting(case, name, gap, {**facts, "step": str(step)}))
