"""Checks that a block draws random numbers only if its signature declares it, and from torch's generator."""

import random as python_random
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import torch

from archlang.contracts import mistakes
from archlang.contracts.cases import BLOCK
from archlang.contracts.results import changed, difference
from archlang.contracts.subject import Fields, Subject


def random(subject: Subject) -> None:
    """Calls the block three times with the same torch seed, the last time with other seeds of Python and NumPy, in
    evaluation and in training.

    Raises:
        Broken: the block draws numbers without a `random` clause, or the results of the calls differ."""
    batch = [subject.sample(subject.sizes()[-1], salt) for salt in range(2)]
    facts = subject.facts(batch, batch[0].sizes)
    root = subject.construct(subject.seed).double()
    for when, clause in (("evaluation", "random"), ("training", "random in training")):
        root.train(when == "training")
        results: list[list[Fields]] = []
        for seed in (1, 1, 2):
            with other_generators(seed):
                results.append(subject.run(root, batch))
        allowed = "random" in subject.caveats or (when == "training" and "training" in subject.caveats)
        if _has_drawn(subject.seed) and not allowed:
            raise mistakes.broken("draws", subject.case, facts, when=when, clause=clause)
        first, second, third = results
        if change := _change(first, second):
            raise mistakes.broken("remembers", subject.case, facts, change=change, when=when)
        if _change(second, third):
            raise mistakes.broken("draws_elsewhere", subject.case, facts, when=when)


@contextmanager
def other_generators(seed: int) -> Iterator[None]:
    """Seeds the generators of Python and NumPy within the context, and restores their states after it."""
    states = python_random.getstate(), np.random.get_state()
    python_random.seed(seed)
    np.random.seed(seed)
    try:
        yield
    finally:
        python_random.setstate(states[0])
        np.random.set_state(states[1])


def _has_drawn(seed: int) -> bool:
    """Whether torch's generator has advanced since it was seeded."""
    state = torch.get_rng_state()
    torch.manual_seed(seed)
    return not torch.equal(state, torch.get_rng_state())


def _change(left: list[Fields], right: list[Fields]) -> str:
    return next(filter(None, map(changed, left, right)), "")


def seeds(subject: Subject) -> None:
    """Constructs the block twice with the same torch seed and other seeds of Python and NumPy.

    Raises:
        Broken: the weights or the results differ, or the constructor seeds torch's generator."""
    sample = subject.sample(subject.sizes()[0])
    weights, results, ends = [], [], []
    for seed in (1, 2):
        with other_generators(seed):
            root = subject.construct(subject.seed)
            ends.append(torch.get_rng_state())
            weights.append(root.state_dict())
            results.append(subject.run(root.double().eval(), [sample])[0])
    for name, weight in weights[0].items():
        if difference(weight, weights[1][name]):
            reason = f"two constructions with the same torch seed differ in `{name.removeprefix(f'{BLOCK}.')}`"
            raise mistakes.broken("unseeded", subject.case, subject.facts(), reason=reason)
    if changed(*results):
        reason = "two constructions with the same torch seed return different results"
        raise mistakes.broken("unseeded", subject.case, subject.facts(), reason=reason)
    subject.construct(subject.seed + 1)
    if torch.equal(ends[0], torch.get_rng_state()):
        reason = "its constructor seeds torch's generator"
        raise mistakes.broken("unseeded", subject.case, subject.facts(), reason=reason)
