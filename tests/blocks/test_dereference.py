"""Dereferencing against sums over slots."""

import pytest
import torch
from torch import Tensor, nn

from archlang.blocks.dereference import Dereference
from tests.blocks.conftest import agree


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("form", ["code", "paper"])
def test_each_pointer_reads_the_weighted_sum_of_slots(form: str, causal: bool) -> None:
    block = Dereference(form=form, causal=causal, k=2, d=4).double()
    for parameter in block.parameters():
        parameter.data.normal_()

    def slow(w: Tensor, memory: Tensor, mask_t: Tensor | None, mask_n: Tensor | None) -> Tensor:
        samples = []
        for b in range(len(w)):
            steps = []
            for t in range(w.shape[1]):
                parts = []
                for k in range(2):
                    content = memory[b]
                    if form == "code":
                        value = block.value[k]
                        assert isinstance(value, nn.Linear)
                        content = torch.stack([value.weight @ m + value.bias for m in memory[b]])
                    read = sum((w[b, t, k, n] * content[n] for n in range(t + 1 if causal else 6)), torch.zeros(4))
                    if form == "code":
                        output = block.output[k]
                        assert isinstance(output, nn.Linear)
                        read = output.weight @ read + output.bias
                    parts.append(read)
                steps.append(torch.cat(parts))
            samples.append(torch.stack(steps))
        return torch.stack(samples)

    w = torch.rand(3, 5, 2, 6, dtype=torch.float64).softmax(-1)
    agree(block, slow, w, torch.randn(3, 6, 4, dtype=torch.float64), mask_t=None, mask_n=None)
