"""What is measured beside archlang computes the same."""

from __future__ import annotations

from functools import partial

import pytest
import torch
import torch.nn.functional as F

from benchmarks.measure import Case, markdown, measure
from benchmarks.ndr import Size, _by_hand, batch, pair

SMALL = Size("small", vocab=9, classes=5, d=16, heads=2, ff=24, steps=3, batch=4, length=7)


@pytest.mark.parametrize("heads", [1, 2])
def test_the_module_by_hand_has_the_outputs_and_gradients_of_the_compiled_page(heads: int) -> None:
    size = Size(**{**vars(SMALL), "heads": heads})
    ours, theirs = (module.double() for module in pair(size))
    tokens, lengths, answers = batch(size)
    results = ours(tokens, lengths=lengths), theirs(tokens, lengths)
    torch.testing.assert_close(*results, rtol=1e-10, atol=1e-10)
    names = [name for name, _ in ours.named_parameters()]
    weights = dict(theirs.named_parameters())
    assert {_by_hand(name) for name in names} == set(weights)
    first = torch.autograd.grad(F.cross_entropy(results[0], answers), list(ours.parameters()))
    second = torch.autograd.grad(F.cross_entropy(results[1], answers), [weights[_by_hand(name)] for name in names])
    for name, one, other in zip(names, first, second, strict=True):
        torch.testing.assert_close(one, other.view_as(one), rtol=1e-9, atol=1e-10, msg=partial("{}: {}".format, name))


def test_a_measurement_calls_both_equally_often_and_its_ratio_is_ours_over_theirs() -> None:
    called: list[str] = []
    case = Case("case", lambda: called.append("ours"), lambda: called.append("theirs"), "another")
    result = measure(case, seconds=0.0, least=6)
    assert called.count("ours") == called.count("theirs") == 2 + 6
    assert len(result.ours) == len(result.theirs) == 6
    assert result.spread[0] <= result.ratio <= result.spread[1]
    assert "| case | another |" in markdown([result])
