"""Random numbers: drawn where the signature says so only, and from torch's generator."""

from __future__ import annotations

import random as python_random

import numpy as np
import torch

from archlang.contracts import mistakes
from archlang.contracts.cases import BLOCK
from archlang.contracts.independence import changed
from archlang.contracts.rounding import difference
from archlang.contracts.subject import Subject
from archlang.contracts.verdict import Broken


def random(subject: Subject) -> None:
    """The block draws numbers in evaluation if it is `random`, in training if it is `random in training`, else never;
    a second call in evaluation gives the same.

    Raises:
        Broken: it draws others, or a second call differs."""
    case = subject.case
    batch = [subject.sample(subject.sizes()[-1], salt) for salt in range(2)]
    facts = subject.facts(batch, batch[0].sizes)
    root = subject.construct(subject.seed).double()
    for when, clause in (("evaluation", "random"), ("training", "random in training")):
        root.train(when == "training")
        others = _other_generators()
        subject.run(root, batch)
        allowed = "random" in subject.caveats or (when == "training" and "training" in subject.caveats)
        if _is_drawn_from(subject.seed) and not allowed:
            raise Broken(mistakes.draws(case, when, clause, facts))
        if others != _other_generators():
            raise Broken(mistakes.draws_elsewhere(case, when, facts))
    root.eval()
    first, second = subject.run(root, batch), subject.run(root, batch)
    for left, right in zip(first, second, strict=True):
        for name, field in left.items():
            gap = difference(field.value, right[name].value)
            if gap:
                raise Broken(mistakes.changes(case, gap, facts))


def _is_drawn_from(seed: int) -> bool:
    """Whether torch's generator has moved since it was seeded."""
    state = torch.get_rng_state()
    torch.manual_seed(seed)
    return not torch.equal(state, torch.get_rng_state())


def _other_generators() -> object:
    """Where the generators of Python and of numpy are at."""
    _, keys, place, *_ = np.random.get_state()
    return python_random.getstate(), np.asarray(keys).tobytes(), place


def seeds(subject: Subject) -> None:
    """Two constructions after the same seed of torch's generator have the same weights and give the same, whatever the
    other generators are at.

    Raises:
        Broken: they have not."""
    states, ends = [], []
    held = python_random.getstate(), np.random.get_state()
    try:
        for other in (1, 2):
            python_random.seed(other)
            np.random.seed(other)
            root = subject.construct(subject.seed)
            ends.append(torch.get_rng_state())
            states.append((root.state_dict(), subject.run(root.double().eval(), [subject.sample(subject.sizes()[0])])))
    finally:
        python_random.setstate(held[0])
        np.random.set_state(held[1])
    (weights, fields), (other_weights, other_fields) = states
    for name, weight in weights.items():
        if difference(weight, other_weights[name]):
            reason = f"two constructions with the same torch seed differ in `{_short(name)}`"
            raise Broken(mistakes.unseeded(subject.case, reason, subject.facts()))
    if changed(fields[0], other_fields[0]):
        raise Broken(
            mistakes.unseeded(
                subject.case, "two constructions with the same torch seed give other results", subject.facts()
            )
        )
    subject.construct(subject.seed + 1)
    if torch.equal(ends[0], torch.get_rng_state()):
        raise Broken(mistakes.unseeded(subject.case, "its constructor seeds torch's generator", subject.facts()))


def _short(name: str) -> str:
    return name.removeprefix(f"{BLOCK}.")
