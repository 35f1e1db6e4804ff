"""Relational reads against loops over steps, reads and slots."""

import pytest
import torch
from torch import Tensor, nn

from archlang.blocks.relational_read import CosineRead, DotRead, RelationalRead
from tests.blocks.conftest import agree, attended


def relational(*, reads: int = 2, form: str = "code", dropout: float = 0.0, causal: bool = False) -> RelationalRead:
    return RelationalRead(reads=reads, hidden=5, form=form, dropout=dropout, causal=causal, k=7, d=4).double()


def slow_read(read: DotRead | CosineRead, r: int, p: Tensor, memory: Tensor, real: list[int]) -> Tensor:
    if isinstance(read, DotRead):
        part = slice(4 * r, 4 * r + 4)
        query = read.query.weight @ (read.pointed.weight[part] @ p + read.pointed.bias[part]) + read.query.bias
        scores = [query @ (read.key.weight @ memory[n] + read.key.bias) / 2 for n in real]
        values = [read.value.weight @ memory[n] + read.value.bias for n in real]
    else:
        hidden, output = read.hidden[r], read.output[r]
        assert isinstance(hidden, nn.Linear)
        assert isinstance(output, nn.Linear)
        query = output.weight @ (hidden.weight @ p + hidden.bias).clamp(min=0) + output.bias
        scores = [query @ memory[n] / (query.norm() * memory[n].norm()) for n in real]
        values = [memory[n] for n in real]
    y = attended(scores, values, 4)
    return read.output.weight @ y + read.output.bias if isinstance(read, DotRead) else y


REAL = torch.arange(6) < torch.tensor([[6], [3], [1]])


@pytest.mark.parametrize("form", ["code", "paper"])
@pytest.mark.parametrize("mask", [None, REAL], ids=["no mask", "ragged"])
@pytest.mark.parametrize("causal", [False, True])
def test_each_read_is_attention_to_the_real_slots(form: str, mask: Tensor | None, causal: bool) -> None:
    block = relational(form=form, causal=causal)

    def slow(p: Tensor, memory: Tensor, mask_t: Tensor | None, mask_n: Tensor | None) -> Tensor:
        samples = []
        for b in range(len(p)):
            real = [n for n in range(6) if mask_n is None or mask_n[b, n]]
            steps = []
            for step, row in enumerate(p[b]):
                seen = [n for n in real if n <= step or not causal]
                steps.append(torch.cat([slow_read(block.read, r, row, memory[b], seen) for r in range(2)]))
            samples.append(torch.stack(steps))
        return torch.stack(samples)

    p, memory = torch.randn(3, 5, 7, dtype=torch.float64), torch.randn(3, 6, 4, dtype=torch.float64)
    agree(block, slow, p, memory, mask_t=None, mask_n=mask)


def test_dropout_is_on_the_weights_in_training() -> None:
    block = relational(dropout=0.5)
    p, memory = torch.randn(3, 5, 7).double(), torch.randn(3, 6, 4).double()
    assert block(p, memory).ne(block(p, memory)).any()
    assert block.eval()(p, memory).equal(block(p, memory))
