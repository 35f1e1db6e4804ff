"""Checks that halting blocks accept steps only at live positions and keep the results of halted samples."""

from __future__ import annotations

from itertools import pairwise

from torch import Tensor

from archlang.contracts import mistakes, samples
from archlang.contracts.rounding import difference
from archlang.contracts.subject import Subject
from archlang.contracts.verdict import Broken, Skipped

# Enough steps for most positions to halt.
_STEPS = 12
_CONSTANT = ("mixture", "ponder", "steps", "remaining")


def halting(subject: Subject) -> None:
    """Checks every step of a loop: `accepted` and `live` are true only at positions that were live before, and the
    mixture, ponder, steps and remaining probability of a sample are constant once none of its positions is live.

    Raises:
        Broken: a step violates this.
        Skipped: the block is not a halting block."""
    if not subject.halts:
        raise Skipped("is not a halting block")
    case = subject.case
    names = case.lengths
    batch = [subject.sample(dict.fromkeys(names, size), salt) for salt, size in enumerate((1, 5, 0, 2))]
    facts = subject.facts(batch, samples.longest(batch))
    tallies = subject.tallies(batch, _STEPS)
    for step, (before, after) in enumerate(pairwise(tallies), start=1):
        for name in ("accepted", "live"):
            now: Tensor = getattr(after, name)
            if (now & ~before.live).any():
                reason = f"step {step} sets `{name}` at a position that was not live"
                raise Broken(mistakes.accepts_after_halting(case, reason, facts))
        halted = ~before.live.reshape(len(batch), -1).any(1)
        for name in _CONSTANT:
            if getattr(before, name) is None or getattr(after, name) is None:
                continue
            gap = difference(getattr(before, name)[halted], getattr(after, name)[halted])
            if gap:
                raise Broken(mistakes.changes_after_halting(case, name, gap, {**facts, "step": str(step)}))
