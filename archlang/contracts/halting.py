"""Halting blocks accept steps only where they are live, and keep the results of halted samples."""

from __future__ import annotations

from itertools import pairwise

from torch import Tensor

from archlang.contracts import mistakes, samples
from archlang.contracts.rounding import difference
from archlang.contracts.subject import Subject
from archlang.contracts.verdict import Broken, Skipped

# Enough steps for most positions to halt.
_STEPS = 12
_KEPT = ("mixture", "ponder", "steps")


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
    tallies = subject.tallies(batch, _STEPS)
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
