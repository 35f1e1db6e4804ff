"""Checks the shape, type and length of results at many sizes, and that results are finite."""

import torch
from torch import Tensor

from archlang.contracts import mistakes, samples
from archlang.contracts.subject import Fields, Subject
from archlang.contracts.verdict import Broken

_BATCHES = (1, 3)


def result(subject: Subject) -> None:
    """Runs the block at all lengths, in batches of equal and of ragged samples.

    Raises:
        Broken: the block raises an error, or its result differs from its signature."""
    if subject.case.result.name in ("prob", "probs") and not subject.halts:
        raise Broken(mistakes.no_halting_block(subject.case, subject.facts()))
    for sizes in subject.sizes():
        for count in _BATCHES:
            subject.evaluate_all([subject.sample(sizes, salt) for salt in range(count)])
    ragged = [subject.sample(sizes, salt) for salt, sizes in enumerate(subject.sizes())]
    subject.evaluate_all(ragged)


def numbers(subject: Subject) -> None:
    """Runs the block in float32 and under autocast to bfloat16, and checks that results are finite, and float32 in
    float32.

    Raises:
        Broken: a result has NaN or infinite numbers, or another precision."""
    root = subject.construct(subject.seed).eval()
    batch = [subject.sample(sizes, salt) for salt, sizes in enumerate(subject.sizes())]
    facts = subject.facts(batch, samples.longest(batch))
    for name, is_half in (("float32", False), ("bfloat16", True)):
        with torch.no_grad(), torch.autocast("cpu", torch.bfloat16, enabled=is_half):
            results = subject.run(root, batch, dtype=torch.float32)
        dtypes = {field.value.dtype for fields in results for field in fields.values()} - {torch.float32}
        if not (is_half or subject.halts) and any(dtype.is_floating_point for dtype in dtypes):
            raise Broken(mistakes.wrong_precision(subject.case, dtypes.pop(), facts))
        if not all(map(finite, results)):
            raise Broken(mistakes.not_finite(subject.case, f"in {name}", facts))


def finite(fields: Fields) -> bool:
    values: list[Tensor] = [field.value for field in fields.values()]
    return all(bool(value.isfinite().all()) for value in values)
