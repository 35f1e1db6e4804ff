"""Pointer walks against a program for one pointer of one sample."""

from collections.abc import Callable
from math import sqrt

import pytest
import torch
from torch import Tensor

from archlang.blocks.pointer_unit import CosineScore, DotScore, Pointer, PointerUnit
from tests.blocks.conftest import agree, gru_step


def unit(
    *, pointers: int = 2, form: str = "code", scrambled: bool = False, causal: bool = False, restart: bool = False
) -> PointerUnit:
    sizes = {"pointers": pointers, "hidden": 6, "address_hidden": 5, "bits": 4, "e": 3}
    return PointerUnit(form=form, scrambled=scrambled, causal=causal, restart=restart, **sizes).double()


def slow_score(score: DotScore | CosineScore, h: Tensor, a: Tensor) -> Tensor:
    if isinstance(score, CosineScore):
        g = score.output.weight @ (score.hidden.weight @ a + score.hidden.bias).clamp(min=0) + score.output.bias
        return (h @ g) / (h.square().sum().sqrt() * g.square().sum().sqrt())
    query = score.query.weight @ (score.state_map.weight @ h + score.state_map.bias) + score.query.bias
    key = score.key.weight @ (score.address_map.weight @ a + score.address_map.bias) + score.key.bias
    return query @ key / sqrt(len(query))


def slow_unit(block: PointerUnit, middle: bool, causal: bool = False) -> Callable[..., Tensor]:
    def slow(a: Tensor, inputs: Tensor, mask_n: Tensor | None, mask_t: Tensor | None) -> Tensor:
        samples = []
        for b in range(len(a)):
            bank = [a[b, n] for n in range(a.shape[1]) if mask_n is None or mask_n[b, n]]
            pointers = []
            for index, pointer in enumerate(block.pointers):
                assert isinstance(pointer, Pointer)
                begin = bank[:1] if causal else bank
                starts = [begin[0], begin[-1], begin[len(begin) // 2]] if middle else [begin[0], begin[-1]]
                p, h = starts[index % len(starts)], torch.zeros(block.hidden, dtype=torch.float64)
                walk = []
                for step in range(inputs.shape[1]):
                    seen = bank[: step + 1] if causal else bank
                    restarts = block.restart and index % len(starts) == 1
                    h = gru_step(pointer.cell, seen[-1] if restarts else p, h)
                    powers = [torch.exp(slow_score(pointer.score, h, slot)) for slot in seen]
                    total = sum(powers, torch.zeros(()))
                    weights = [power / total for power in powers]
                    p = sum((w * slot for w, slot in zip(weights, seen, strict=True)), torch.zeros(4))
                    walk.append(torch.stack(weights + [weights[0] * 0] * (a.shape[1] - len(seen))))
                pointers.append(torch.stack(walk))
            samples.append(torch.stack(pointers, dim=1))
        return torch.stack(samples)

    return slow


REAL = torch.arange(5) < torch.tensor([[5], [3], [1]])


@pytest.mark.parametrize("form", ["code", "paper"])
@pytest.mark.parametrize("pointers", [1, 3])
@pytest.mark.parametrize("mask", [None, REAL], ids=["no mask", "ragged"])
def test_pointers_walk_over_the_addresses_of_their_sample(form: str, pointers: int, mask: Tensor | None) -> None:
    block = unit(pointers=pointers, form=form)
    a = torch.rand(3, 5, 4, dtype=torch.float64).round() + 0.1
    inputs = torch.randn(3, 4, 3, dtype=torch.float64)
    agree(block, slow_unit(block, form == "paper"), a, inputs, mask_n=mask, mask_t=None)


@pytest.mark.parametrize("form", ["code", "paper"])
@pytest.mark.parametrize("restart", [False, True], ids=["", "restart"])
@pytest.mark.parametrize("mask", [None, REAL], ids=["no mask", "ragged"])
def test_pointers_walk_over_the_written_slots_of_a_growing_memory(
    form: str, restart: bool, mask: Tensor | None
) -> None:
    block = unit(pointers=3, form=form, causal=True, restart=restart)
    a = torch.rand(3, 5, 4, dtype=torch.float64).round() + 0.1
    inputs = torch.randn(3, 5, 3, dtype=torch.float64)
    agree(block, slow_unit(block, form == "paper", causal=True), a, inputs, mask_n=mask, mask_t=None)


def test_only_a_scrambled_walk_depends_on_the_other_samples() -> None:
    a, steps = torch.rand(3, 5, 4).double(), torch.zeros(3, 4, 3).double()
    for scrambled in (False, True):
        block = unit(scrambled=scrambled)
        alone = torch.cat([block(a[b : b + 1], steps[:1]) for b in range(3)])
        assert block(a, steps)[:, 1:].allclose(alone[:, 1:], atol=1e-10) is not scrambled
