"""The controller that attends to a memory, against its equations step by step."""

import pytest
import torch
from torch import Tensor

from archlang.blocks.attentive_gru import AttentiveGru
from tests.blocks.conftest import agree, attended, gru_step

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
                context = attended([block.score @ features for features in hidden], slots, 4)
                h = gru_step(block.cell, torch.cat((row, context)), h)
                steps.append(block.output.weight @ torch.cat((h, context)) + block.output.bias)
            samples.append(torch.stack(steps))
        return torch.stack(samples)

    inputs = (torch.randn(3, *shape, dtype=torch.float64) for shape in ((2, 3), (6, 4), (5,)))
    agree(block, slow, *inputs, mask_t=None, mask_n=mask)
