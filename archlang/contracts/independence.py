"""Padding and batch mates: a sample's result is its own."""

from collections.abc import Iterator, Sequence

from archlang.contracts import mistakes, samples
from archlang.contracts.results import finite
from archlang.contracts.rounding import difference
from archlang.contracts.samples import Sample, Sizes
from archlang.contracts.subject import Fields, Subject
from archlang.contracts.verdict import Broken, Skipped

_MORE = 3
# Lengths of the samples of a batch, by the order of the names of lengths: a mate has no position at all.
_MATES = ((3, 2, 4), (5, 4, 2), (0, 3, 3), (1, 0, 5), (0, 0, 0))


def padding(subject: Subject) -> None:
    """The real positions of a result do not depend on what padding holds nor on how much there is, and a mask that is
    true everywhere is no mask.

    Raises:
        Broken: they do.
        Skipped: nothing can be padded, or the signature says that the block depends on padding."""
    if not subject.case.lengths:
        raise Skipped("has no length")
    _require_independence(subject, "padding")
    for sizes in [*subject.sizes(), dict.fromkeys(subject.case.lengths, 0)]:
        sample = subject.sample(sizes)
        alone = subject.one(sample)
        _same(subject, sample, alone, subject.one(sample, masked=True), sizes, "with a mask that is true everywhere")
        for padded in _paddings(sizes):
            _same(subject, sample, alone, subject.one(sample, padded), padded, "with padding")
            other = samples.repad(sample, subject.case.inputs, subject.generator(17))
            _same(subject, sample, alone, subject.one(other, padded), padded, "with padding")


def _paddings(sizes: Sizes) -> Iterator[dict[str, int]]:
    """All lengths padded, by several positions and by one; then each length alone."""
    yield {name: size + _MORE for name, size in sizes.items()}
    yield {name: size + 1 for name, size in sizes.items()}
    if len(sizes) > 1:
        for name in sizes:
            yield {**sizes, name: sizes[name] + _MORE}


def _same(subject: Subject, sample: Sample, alone: Fields, padded: Fields, sizes: Sizes, why: str) -> None:
    change = changed(alone, padded)
    if change:
        facts = subject.facts([sample], sizes)
        raise Broken(mistakes.reads_padding(subject.case, f"{change} {why}", facts))


def batch(subject: Subject) -> None:
    """A sample alone gives the same as in a batch, padded alike, and everything is finite, also beside samples without
    positions and where no sample has one.

    Raises:
        Broken: it does not.
        Skipped: the signature says that the block depends on the batch."""
    names = subject.case.lengths
    _require_independence(subject, "batch")
    mates = [subject.sample(dict(zip(names, sizes, strict=False)), salt) for salt, sizes in enumerate(_MATES)]
    padded = samples.longest(mates)
    together = subject.several(mates)
    facts = subject.facts(mates, padded)
    for row, (sample, beside) in enumerate(zip(mates, together, strict=True)):
        change = changed(subject.one(sample, padded, masked=bool(names)), beside)
        if change:
            why = f"sample {row}: {change} beside the others"
            raise Broken(mistakes.mixes_samples(subject.case, why, facts))
        if not finite(beside):
            raise Broken(mistakes.not_finite(subject.case, f"of sample {row}", facts))
    for sizes in _empty(names):
        empty = [subject.sample(sizes, salt) for salt in range(2)]
        for masked in (False, True):
            if not all(map(finite, subject.several(empty, masked=masked))):
                facts = subject.facts(empty, sizes)
                raise Broken(mistakes.not_finite(subject.case, "of a batch without positions", facts))


def _empty(names: Sequence[str]) -> Iterator[dict[str, int]]:
    """Lengths of samples without positions: in all inputs, and in one of several."""
    yield dict.fromkeys(names, 0)
    if len(names) > 1:
        for name in names:
            yield {**dict.fromkeys(names, 2), name: 0}


def _require_independence(subject: Subject, kind: str) -> None:
    for caveat, words in ((kind, f"depends on {kind}"), ("random", "random")):
        if caveat in subject.caveats:
            raise Skipped(f"its signature says `{words}`")


def changed(left: Fields, right: Fields) -> str:
    """The first difference of two results in words; "" where they are the same."""
    for name, field in left.items():
        other = right[name].value
        if not difference(field.value, other):
            continue
        if not field.by_position:
            return mistakes.changed(None, difference(field.value, other), name)
        for row in range(len(field.value)):
            gap = difference(field.value[row], other[row])
            if gap:
                return mistakes.changed(row, gap, name)
    return ""
