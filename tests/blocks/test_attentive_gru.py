"""The controller that attends to a memory, against its equations step by step."""

import pytest
import torch
from torch import Tensor

from archlang.blocks.attentive_gru import AttentiveGru
from tests.blocks.conftest import agree

REAL = torch.arange(6) < torch.tensor([[6], [3], [1]])


@pytest.mark.parametrize("mask", [None, REAL], ids=["no mask", "ragged"])
def test_each_step_attends_by_the_state_before_it(mask: Tensor | None) -> None:
    block = AttentiveGru(hidden=5, e=3, d=4, s=5)

    def slow(x: Tensor, memory: Tensor, start: Tensor, mask_t: Tensor | None, mask_n: Tensor | None) -> Tensor:
        samples = []
        for b in range(len(x)):
            h, steps = start[b], []
            slots = [memory[b, n] for n in range(6) if mask_n is None or mask_n[b, n]]
            for row in x[b]:
                hidden = [
                    (block.attention.weight @ torch.cat((h, m)) + block.attention.bias).clamp(min=0) for m in slots
                ]
                powers = [torch.exp(block.score @ features) for features in hidden]
                total = sum(powers, torch.zeros(()))
                context = sum((p / total * m for p, m in zip(powers, slots, strict=True)), torch.zeros(4))
                cell = block.cell
                r, z, n = (cell.weight_ih @ torch.cat((row, context)) + cell.bias_ih).chunk(3)
                hr, hz, hn = (cell.weight_hh @ h + cell.bias_hh).chunk(3)
                z = (z + hz).sigmoid()
                h = (1 - z) * torch.tanh(n + (r + hr).sigmoid() * hn) + z * h
                steps.append(block.output.weight @ torch.cat((h, context)) + block.output.bias)
            samples.append(torch.stack(steps))
        return torch.stack(samples)

    inputs = (torch.randn(3, *shape, dtype=torch.float64) for shape in ((2, 3), (6, 4), (5,)))
    agree(block, slow, *inputs, mask_t=None, mask_n=mask)
