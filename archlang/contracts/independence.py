"""Checks that the result of a sample does not depend on padding, batch mates, training, saving and copying, nor on
random numbers that the signature does not declare."""

import copy
import random as python_random
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import numpy as np
import torch
from torch import nn

from archlang.contracts import mistakes, samples
from archlang.contracts.cases import BLOCK
from archlang.contracts.mistakes import Broken, Skipped
from archlang.contracts.results import changed, difference, finite
from archlang.contracts.samples import Sample, Sizes
from archlang.contracts.subject import Fields, Subject
from archlang.errors.machine import first_line

_PADDING = 3
# What an earlier part of a model may compute of padding.
_CONTENTS = (torch.nan, torch.inf, 1e30)
# The lengths of each sample of a batch, in the order of their names; the last sample has no positions.
_BATCH_SIZES = ((3, 2, 4), (5, 4, 2), (0, 3, 3), (1, 0, 5), (0, 0, 0))


def padding(subject: Subject) -> None:
    """Compares the result of a sample without padding, with different padding, and with a mask that is true everywhere.

    Raises:
        Broken: the result changes at a real position.
        Skipped: no input has a length, or the signature says `depends on padding` or `random`."""
    if not subject.case.lengths:
        raise Skipped("has no length")
    _require_independence(subject, "padding")
    for sizes in [*subject.sizes(), dict.fromkeys(subject.case.lengths, 0)]:
        sample = subject.sample(sizes)
        alone = subject.evaluate(sample)
        _require_same(subject, sample, alone, subject.evaluate(sample, masked=True), sizes, "with an all-true mask")
        for padded in _paddings(sizes):
            _require_same(subject, sample, alone, subject.evaluate(sample, padded), padded, "with padding")
            repadded = samples.repad(sample, subject.case.inputs, subject.generator(17))
            _require_same(subject, sample, alone, subject.evaluate(repadded, padded), padded, "with padding")
        padded = next(_paddings(sizes))
        for content in _CONTENTS:
            repadded = samples.repad(sample, subject.case.inputs, subject.generator(17), content)
            why = f"with {content} as padding"
            _require_same(subject, sample, alone, subject.evaluate(repadded, padded), padded, why)


def _paddings(sizes: Sizes) -> Iterator[dict[str, int]]:
    """Yields padded lengths: all by several positions, all by one, then each alone."""
    yield {name: size + _PADDING for name, size in sizes.items()}
    yield {name: size + 1 for name, size in sizes.items()}
    if len(sizes) > 1:
        for name in sizes:
            yield {**sizes, name: sizes[name] + _PADDING}


def _require_same(subject: Subject, sample: Sample, alone: Fields, padded: Fields, sizes: Sizes, why: str) -> None:
    change = changed(alone, padded)
    if change:
        facts = subject.facts([sample], sizes)
        raise mistakes.broken("reads_padding", subject.case, facts, change=f"{change} {why}")


def batch(subject: Subject) -> None:
    """Compares the result of each sample alone and in a batch with the same padding, also in training, and checks that
    all results are finite, including those of samples and batches without positions.

    Raises:
        Broken: a result differs or is not finite.
        Skipped: the signature says `depends on batch` or `random`."""
    names = subject.case.lengths
    _require_independence(subject, "batch")
    members = [subject.sample(dict(zip(names, sizes, strict=False)), salt) for salt, sizes in enumerate(_BATCH_SIZES)]
    padded = samples.longest(members)
    facts = subject.facts(members, padded)
    # What a block draws in training differs from call to call.
    for training in (False,) if "training" in subject.caveats else (False, True):
        together = subject.evaluate_all(members, training=training)
        for row, (sample, in_batch) in enumerate(zip(members, together, strict=True)):
            change = changed(subject.evaluate(sample, padded, masked=bool(names), training=training), in_batch)
            if change:
                why = f"sample {row}: {change} in a batch" + ", in training" * training
                raise mistakes.broken("mixes_samples", subject.case, facts, change=why)
            if not finite(in_batch):
                raise mistakes.broken("not_finite", subject.case, facts, where=f"of sample {row}")
    for sizes in _empty(names):
        empty = [subject.sample(sizes, salt) for salt in range(2)]
        for masked in (False, True):
            if not all(map(finite, subject.evaluate_all(empty, masked=masked))):
                facts = subject.facts(empty, sizes)
                raise mistakes.broken("not_finite", subject.case, facts, where="of a batch without positions")


def _empty(names: Sequence[str]) -> Iterator[dict[str, int]]:
    """Yields lengths without positions: in all inputs, then in each of several."""
    yield dict.fromkeys(names, 0)
    if len(names) > 1:
        for name in names:
            yield {**dict.fromkeys(names, 2), name: 0}


def _require_independence(subject: Subject, kind: str) -> None:
    for caveat, words in ((kind, f"depends on {kind}"), ("random", "random")):
        if caveat in subject.caveats:
            raise Skipped(f"its signature says `{words}`")


def pure(subject: Subject) -> None:
    """Checks that the state dict and the weights of the block are empty, and compares training with evaluation.

    Raises:
        Broken: the block has state or weights, or its result differs in training.
        Skipped: the signature does not say `pure`."""
    case = subject.case
    if not case.instance.pure:
        raise Skipped("is not declared pure")
    block: nn.Module = subject.block
    saved = next(iter(block.state_dict()), None)
    if saved is not None:
        raise mistakes.broken("impure", case, subject.facts(), reason=f"saves `{saved}`")
    weight = next((name for name, _ in block.named_parameters()), None)
    if weight is not None:
        raise mistakes.broken("impure", case, subject.facts(), reason=f"has the weight `{weight}`")
    sample = subject.sample(subject.sizes()[-1])
    facts = subject.facts([sample], sample.sizes)
    if change := changed(subject.evaluate(sample), subject.evaluate(sample, training=True)):
        raise mistakes.broken("impure", case, facts, reason=f"{change} in training")


def saving(subject: Subject) -> None:
    """Loads the weights into a block that was constructed with another seed, and copies the block.

    Raises:
        Broken: loading or copying raises an error, or the result differs."""
    fresh = subject.construct(subject.seed + 1).double().eval()
    try:
        fresh.load_state_dict(subject.root.state_dict())
    except (RuntimeError, KeyError) as error:
        raise _unsaved(subject, "the saved weights", f"do not load: {first_line(error)}") from error
    _require_same_result(subject, fresh, "a block that loads the saved weights")
    try:
        copied = copy.deepcopy(subject.root)
    except Exception as error:  # the block may raise any error
        raise _unsaved(subject, "the block", f"cannot be copied: {first_line(error)}") from error
    _require_same_result(subject, copied, "a copy")


def _require_same_result(subject: Subject, root: nn.Module, name: str) -> None:
    sample = subject.sample(subject.sizes()[-1])
    with torch.no_grad():
        change = changed(subject.evaluate(sample), subject.run(root, [sample])[0])
    if change:
        raise _unsaved(subject, name, f"differs: {change}")


def _unsaved(subject: Subject, copied: str, reason: str) -> Broken:
    facts = subject.facts([subject.sample(subject.sizes()[-1])], subject.sizes()[-1])
    return mistakes.broken("unsaved", subject.case, facts, copy=copied, reason=reason)


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
