"""Checks the shape, type and length of results at many sizes, and that they are finite; compares results."""

import torch
from torch import Tensor

from archlang.contracts import mistakes, samples
from archlang.contracts.subject import Fields, Subject

_BATCHES = (1, 3)
# In float64 the order of a sum affects the last of sixteen digits.
_TOLERANCE = 1e-9


def result(subject: Subject) -> None:
    """Runs the block at all lengths, in batches of equal and of ragged samples.

    Raises:
        Broken: the block raises an error, or its result differs from its signature."""
    if subject.case.result.name in ("prob", "probs") and not subject.halts:
        raise mistakes.broken("no_halting_block", subject.case, subject.facts())
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
            raise mistakes.broken(
                "wrong_precision", subject.case, facts, actual=str(dtypes.pop()).removeprefix("torch.")
            )
        if not all(map(finite, results)):
            raise mistakes.broken("not_finite", subject.case, facts, where=f"in {name}")


def finite(fields: Fields) -> bool:
    values: list[Tensor] = [field.value for field in fields.values()]
    return all(bool(value.isfinite().all()) for value in values)


def difference(left: Tensor, right: Tensor) -> float:
    """Returns the largest absolute difference of two tensors of the same shape; 0 for rounding or if both are NaN."""
    if left.numel() == 0:
        return 0.0
    left, right = left.detach().double(), right.detach().double()
    far = ~torch.isclose(left, right, rtol=_TOLERANCE, atol=_TOLERANCE, equal_nan=True)
    if not far.any():
        return 0.0
    gap = (left - right).abs()[far]
    return float("nan") if not gap.isfinite().all() else float(gap.max())


def changed(left: Fields, right: Fields) -> str:
    """Returns a description of the first difference of two results; "" if they are equal."""
    for name, field in left.items():
        value = right[name].value
        gap = difference(field.value, value)
        if not gap:
            continue
        if not field.by_position:
            return mistakes.changed(None, gap, name)
        for row in range(len(field.value)):
            gap = difference(field.value[row], value[row])
            if gap:
                return mistakes.changed(row, gap, name)
    return ""
