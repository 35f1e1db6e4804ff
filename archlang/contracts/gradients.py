"""Gradients of inputs and weights against finite differences, in float64."""

from collections.abc import Sequence

import torch
from torch import Tensor

from archlang.contracts import mistakes, samples
from archlang.contracts.cases import BLOCK
from archlang.contracts.samples import Sample
from archlang.contracts.subject import Fields, Subject
from archlang.contracts.verdict import Broken, Skipped

_STEP = 1e-6
_TOLERANCE = 1e-5
# Types whose values are real numbers that a block may be differentiated by.
_REAL = ("seq", "vec", "map", "prob", "probs", "pointer", "chunks")


def gradients(subject: Subject) -> None:
    """The derivative along a random direction of each input and each weight is what finite differences give, and
    gradients are finite beside padding and samples without positions.

    Raises:
        Broken: one is not.
        Skipped: the result cannot be differentiated, or the signature says that gradients stop."""
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
        """The result, its elements weighed at random."""
        outputs = _outputs(subject.run(subject.root, batch, values=inputs))
        if not weights:
            weights.extend(torch.randn(one.shape, generator=probe, dtype=one.dtype) for one in outputs)
        return sum(((one * weight).sum() for one, weight in zip(outputs, weights, strict=True)), torch.zeros(()))

    result = total()
    if not result.requires_grad:
        raise Skipped("its result cannot be differentiated")
    named = [(name, leaf) for name, leaf in leaves if leaf.requires_grad]
    found = _gradients(result, named)
    facts = subject.facts(batch, samples.longest(batch))
    for (name, leaf), gradient in zip(named, found, strict=True):
        direction = torch.randn(leaf.shape, generator=probe, dtype=leaf.dtype)
        with torch.no_grad():
            start = leaf.detach().clone()
            leaf.copy_(start + _STEP * direction)
            above = total()
            leaf.copy_(start - _STEP * direction)
            below = total()
            leaf.copy_(start)
        expected = float((above - below) / (2 * _STEP))
        given = float((gradient * direction).sum())
        if not abs(given - expected) <= _TOLERANCE * (1 + abs(expected)):
            reason = f"is {given:.4g} along a direction in which finite differences give {expected:.4g}"
            raise Broken(mistakes.wrong_gradient(subject.case, _short(name), reason, facts))


def _require_finite(subject: Subject, batch: Sequence[Sample]) -> None:
    leaves = _leaves(subject, batch)
    inputs = [leaf for _, leaf in leaves][: len(subject.case.inputs)]
    outputs = _outputs(subject.run(subject.root, batch, values=inputs))
    result = sum((one.sum() for one in outputs), torch.zeros(()))
    if not result.requires_grad or not result.isfinite():
        return  # `batch` names a result that is not finite
    named = [(name, leaf) for name, leaf in leaves if leaf.requires_grad]
    found = _gradients(result, named)
    for (name, _), gradient in zip(named, found, strict=True):
        if not gradient.isfinite().all():
            facts = subject.facts(batch, samples.longest(batch))
            reason = "has NaN or infinite numbers"
            raise Broken(mistakes.wrong_gradient(subject.case, _short(name), reason, facts))


def _leaves(subject: Subject, batch: Sequence[Sample]) -> list[tuple[str, Tensor]]:
    """The inputs of a batch, then the weights, with their names."""
    case = subject.case
    inputs = samples.collate(case.inputs, batch, samples.longest(batch))
    named: list[tuple[str, Tensor]] = [
        (case.input_name(index), value.requires_grad_(kind.name in _REAL))
        for index, (kind, value) in enumerate(zip(case.inputs, inputs, strict=True))
    ]
    return [*named, *subject.root.named_parameters()]


def _gradients(result: Tensor, named: Sequence[tuple[str, Tensor]]) -> tuple[Tensor, ...]:
    """The gradients of a number; zeros for what it does not depend on."""
    return torch.autograd.grad(result, [leaf for _, leaf in named], allow_unused=True, materialize_grads=True)


def _outputs(found: Sequence[Fields]) -> list[Tensor]:
    return [field.value for fields in found for field in fields.values() if field.value.is_floating_point()]


def _short(name: str) -> str:
    return name.removeprefix(f"{BLOCK}.")
