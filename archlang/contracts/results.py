"""Checks results at many sizes, and gradients by finite differences in float64; compares results."""

from collections.abc import Sequence

import torch
from torch import Tensor

from archlang.contracts import mistakes, samples
from archlang.contracts.cases import BLOCK
from archlang.contracts.mistakes import Skipped
from archlang.contracts.samples import Sample
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


_STEP = 1e-6
_GRADIENT_TOLERANCE = 1e-5
# Types whose values are real, so that gradients with respect to them exist.
_REAL = ("seq", "vec", "map", "prob", "probs", "pointer")


def gradients(subject: Subject) -> None:
    """Compares the derivative along a random direction of each input and weight with finite differences, and checks
    that gradients are finite in a padded batch with an empty sample.

    Raises:
        Broken: a derivative differs, or a gradient is not finite.
        Skipped: the result requires no gradient, or the signature says `stops gradients`."""
    if "gradients" in subject.caveats:
        raise Skipped("its signature says `stops gradients`")
    sizes = subject.sizes()
    batch = [subject.sample(sizes[min(1, len(sizes) - 1)])]
    _compare(subject, batch)
    names = subject.case.lengths
    ragged = [subject.sample(dict.fromkeys(names, size), salt) for salt, size in enumerate((3, 0, 1))]
    _require_finite(subject, ragged)


def _compare(subject: Subject, batch: Sequence[Sample]) -> None:
    leaves = _leaves(subject, batch)
    inputs = [leaf for _, leaf in leaves][: len(subject.case.inputs)]
    probe = subject.generator(31)
    weights: list[Tensor] = []

    def total() -> Tensor:
        """Returns the sum of the result with random weights."""
        outputs = _outputs(subject.run(subject.root, batch, values=inputs))
        if not weights:
            weights.extend(torch.randn(output.shape, generator=probe, dtype=output.dtype) for output in outputs)
        terms = ((output * weight).sum() for output, weight in zip(outputs, weights, strict=True))
        return sum(terms, torch.zeros(()))

    result = total()
    if not result.requires_grad:
        raise Skipped("its result requires no gradient")
    named = [(name, leaf) for name, leaf in leaves if leaf.requires_grad]
    facts = subject.facts(batch, samples.longest(batch))
    for (name, leaf), gradient in zip(named, _gradients(result, named), strict=True):
        direction = torch.randn(leaf.shape, generator=probe, dtype=leaf.dtype)
        with torch.no_grad():
            start = leaf.detach().clone()
            leaf.copy_(start + _STEP * direction)
            above = total()
            leaf.copy_(start - _STEP * direction)
            below = total()
            leaf.copy_(start)
        expected = float((above - below) / (2 * _STEP))
        actual = float((gradient * direction).sum())
        if not abs(actual - expected) <= _GRADIENT_TOLERANCE * (1 + abs(expected)):
            reason = f"is {actual:.4g} along a random direction, but finite differences yield {expected:.4g}"
            raise mistakes.broken("wrong_gradient", subject.case, facts, name=_short(name), reason=reason)


def _require_finite(subject: Subject, batch: Sequence[Sample]) -> None:
    leaves = _leaves(subject, batch)
    inputs = [leaf for _, leaf in leaves][: len(subject.case.inputs)]
    outputs = _outputs(subject.run(subject.root, batch, values=inputs))
    result = sum((output.sum() for output in outputs), torch.zeros(()))
    if not result.requires_grad or not result.isfinite():
        return  # the property `batch` reports results that are not finite
    named = [(name, leaf) for name, leaf in leaves if leaf.requires_grad]
    for (name, _), gradient in zip(named, _gradients(result, named), strict=True):
        if not gradient.isfinite().all():
            facts = subject.facts(batch, samples.longest(batch))
            reason = "contains NaN or infinity"
            raise mistakes.broken("wrong_gradient", subject.case, facts, name=_short(name), reason=reason)


def _leaves(subject: Subject, batch: Sequence[Sample]) -> list[tuple[str, Tensor]]:
    case = subject.case
    inputs = samples.collate(case.inputs, batch, samples.longest(batch))
    named: list[tuple[str, Tensor]] = [
        (case.input_name(index), value.requires_grad_(kind.name in _REAL))
        for index, (kind, value) in enumerate(zip(case.inputs, inputs, strict=True))
    ]
    return [*named, *subject.root.named_parameters()]


def _gradients(result: Tensor, named: Sequence[tuple[str, Tensor]]) -> tuple[Tensor, ...]:
    """Returns the gradients of a scalar, zeros for leaves that it does not depend on."""
    return torch.autograd.grad(result, [leaf for _, leaf in named], allow_unused=True, materialize_grads=True)


def _outputs(results: Sequence[Fields]) -> list[Tensor]:
    return [field.value for fields in results for field in fields.values() if field.value.is_floating_point()]


def _short(name: str) -> str:
    return name.removeprefix(f"{BLOCK}.")
