"""Checks that the result of a sample does not depend on padding, batch mates, training, or saving and copying."""

import copy
from collections.abc import Iterator, Sequence

import torch
from torch import nn

from archlang.contracts import mistakes, samples
from archlang.contracts.mistakes import Broken, Skipped
from archlang.contracts.results import changed, finite
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
