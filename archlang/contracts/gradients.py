"""Compares gradients of inputs and weights with finite differences, in float64."""

from collections.abc import Sequence

import torch
from torch import Tensor

from archlang.contracts import mistakes, samples
from archlang.contracts.cases import BLOCK
from archlang.contracts.mistakes import Skipped
from archlang.contracts.samples import Sample
from archlang.contracts.subject import Fields, Subject

_STEP = 1e-6
_TOLERANCE = 1e-5
# Types whose values are real, so that gradients with respect to them exist.
_REAL = ("seq", "vec", "map", "prob", "probs", "pointer", "chunks")


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
        if not abs(actual - expected) <= _TOLERANCE * (1 + abs(expected)):
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
