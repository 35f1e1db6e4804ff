"""Trials of training, resuming and evaluating with too little memory."""

from collections.abc import Iterator
from functools import partial

from tests.faults.judging import EQUAL, FAULT, Bench, Trial, Verdict
from tests.faults.shim import Orders
from tests.faults.workshop import contents

_MIB = 1 << 20
_SPARE = (0, 1, 2, 4, 6, 8, 12, 16, 24, 32, 48, 64, 128, 256)
# What tells the user that a run is lost, which it is not.
_LOST = ("is damaged", "train again", "train anew")


def trials(bench: Bench) -> Iterator[Trial]:
    """Yields a trial for each command and each limit of the address space."""
    for spare in _SPARE:
        for start in ("fresh", "begun"):
            what = "training" if start == "fresh" else "resuming"
            yield Trial("too little memory (RLIMIT_AS)", f"{what}, {spare} MiB", partial(_train, start, spare))
        yield Trial("too little memory (RLIMIT_AS)", f"evaluating, {spare} MiB", partial(_evaluate, spare))


def _train(start: str, spare: int, bench: Bench) -> Verdict:
    with bench.shop.case(bench.fresh if start == "fresh" else bench.begun) as case:
        end = bench.shop.run(case, *case.train(), orders=Orders(spare_memory=spare * _MIB))
        if any(word in end.text for word in _LOST):
            return Verdict(FAULT, f"too little memory is called damage: {end.text[-200:]}")
        return bench.judge_training(case, end, may_die=True)


def _evaluate(spare: int, bench: Bench) -> Verdict:
    with bench.shop.case(bench.finished) as case:
        orders = Orders(spare_memory=spare * _MIB)
        end = bench.shop.run(case, "eval", case.run, "--device", "cpu", orders=orders)
        if any(word in end.text for word in _LOST):
            return Verdict(FAULT, f"too little memory is called damage: {end.text[-200:]}")
        verdict = bench.judge_look(case, end, contents(bench.finished.outside), may_die=True)
        if verdict.outcome == EQUAL and (difference := bench.difference(case)):
            return Verdict(FAULT, difference)
        return verdict
