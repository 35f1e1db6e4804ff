"""Holding blocks to their signatures: every property of every block."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

import torch

from archlang.contracts.cases import cases
from archlang.contracts.facts import costs, maps, records
from archlang.contracts.gradients import gradients
from archlang.contracts.halting import halting
from archlang.contracts.independence import batch, padding
from archlang.contracts.purity import pure
from archlang.contracts.randomness import random, seeds
from archlang.contracts.reading import reads
from archlang.contracts.results import numbers, result
from archlang.contracts.saving import saving
from archlang.contracts.subject import Subject
from archlang.contracts.tables import tables
from archlang.contracts.verdict import Broken, Skipped, Verdict
from archlang.names.resolve import Declaration

# Each raises `Broken` or `Skipped`, or returns. `result` comes first: without it nothing else can be tested.
PROPERTIES: Mapping[str, Callable[[Subject], None]] = {
    "result": result,
    "reads": reads,
    "padding": padding,
    "batch": batch,
    "gradients": gradients,
    "pure": pure,
    "random": random,
    "seeds": seeds,
    "saving": saving,
    "numbers": numbers,
    "halting": halting,
    "costs": costs,
    "maps": maps,
    "records": records,
}
_LENGTHS = (1, 2, 5)
_THOROUGH_LENGTHS = (1, 2, 5, 7)


def hold(declaration: Declaration, seed: int = 0, thorough: bool = False) -> list[Verdict]:
    """Whether a block keeps each property, at every case. Its Python must be importable. What torch's generator is at
    does not change."""
    name = declaration.name
    found = tables(declaration)
    if isinstance(found, str):
        return _untested(name, f"no block of the library can stand for `{found}`")
    lengths = _THOROUGH_LENGTHS if thorough else _LENGTHS
    subjects = [Subject(case, seed, lengths) for case in cases(declaration, found, thorough)]
    if not subjects:
        return _untested(name, "no statics and sizes were found that `where` allows")
    verdicts: list[Verdict] = []
    with torch.random.fork_rng(devices=[]), _one_thread():
        for title, keeps in PROPERTIES.items():
            verdicts.append(_verdict(name, title, keeps, subjects))
            if title == "result" and verdicts[0].mistake is not None:
                rest = _untested(name, "the result is wrong already")
                return [*verdicts, *rest[1:]]
    return verdicts


@contextmanager
def _one_thread() -> Iterator[None]:
    """Samples are so small that several threads only wait for each other."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


def _verdict(block: str, title: str, keeps: Callable[[Subject], None], subjects: list[Subject]) -> Verdict:
    """The verdict over all cases: the first mistake; skipped where no case was tested."""
    reasons = []
    for subject in subjects:
        try:
            keeps(subject)
        except Broken as broken:
            return Verdict(block, title, mistake=broken.diagnostic)
        except Skipped as skipped:
            reasons.append(skipped.reason)
    return Verdict(block, title, skipped=reasons[0] if len(reasons) == len(subjects) else "")


def _untested(block: str, reason: str) -> list[Verdict]:
    return [Verdict(block, title, skipped=reason) for title in PROPERTIES]
