"""Both sides of the comparison compute the same."""

from dataclasses import replace

import pytest
import torch
from torch.testing import assert_close

from benchmarks.operators import OPERATORS, TINY, operand, pair

WRITTEN = [(name, beside) for name, beside in OPERATORS if "hand" in beside]


@pytest.mark.parametrize(("name", "beside"), WRITTEN, ids=[name for name, _ in WRITTEN])
@pytest.mark.parametrize("length", [7, 30])
def test_the_handwritten_form_has_the_output_and_the_gradient_of_the_operator(
    name: str, beside: str, length: int
) -> None:
    size = replace(TINY, length=length)
    x = operand(size).double().requires_grad_(name != "chunk recurrence")
    results = []
    for module, call in pair(name, beside, size):
        module.double()
        result = call(x)
        weights = torch.arange(result.shape[-1], dtype=result.dtype)
        sources = [x] if x.requires_grad else [module.get_parameter("embed.weight")]
        results.append((result, *torch.autograd.grad((result * weights).sum(), sources)))
    for ours, theirs in zip(*results, strict=True):
        assert_close(ours, theirs, rtol=1e-9, atol=1e-9)
