"""Recurrences with a matrix as state against their equations, head by head and position by position."""

from collections.abc import Callable
from functools import partial
from math import sqrt

import pytest
import torch
from torch import Tensor, nn

from archlang.backend.runtime import linear_recurrence as kernel
from archlang.blocks import linear_recurrence as blocks
from tests.blocks.conftest import agree

HEADS, D, E = 2, 6, 4
K, V = D // HEADS, E // HEADS
RAGGED = torch.arange(7) < torch.tensor([7, 4, 1])[:, None]
Step = Callable[..., Tensor]


def attention_step(s: Tensor, inputs: list[Tensor]) -> Tensor:
    _, k, v, g = inputs
    return torch.diag(g.exp().expand(K)) @ s + torch.outer(k, v)


def retention_step(s: Tensor, inputs: list[Tensor], head: int) -> Tensor:
    _, k, v = inputs
    return (1 - 2.0 ** (-5 - head)) * s + torch.outer(k, v)


def delta_step(s: Tensor, inputs: list[Tensor]) -> Tensor:
    _, k, v, beta = inputs
    return s + beta * torch.outer(k, v - s.T @ k)


def gated_delta_step(s: Tensor, inputs: list[Tensor]) -> Tensor:
    q, k, v, beta, g = inputs
    return delta_step(g.exp() * s, [q, k, v, beta])


def recurrence_step(s: Tensor, inputs: list[Tensor]) -> Tensor:
    _, k, v, g, a, b = inputs
    return torch.diag(g.exp()) @ s + torch.outer(b, s.T @ a) + torch.outer(k, v)


def slow(
    step: Step, scale: float, *inputs: Tensor, state: Tensor | None = None, mask_n: Tensor | None = None
) -> Tensor:
    """Follows the equations of a recurrence; `mask_n` is true at real positions."""
    samples = []
    for row in range(len(inputs[0])):
        heads = []
        for head in range(HEADS):
            s = torch.zeros(K, V, dtype=inputs[0].dtype)
            if state is not None:
                s = state[row][:, head * V : (head + 1) * V]
            ys = []
            for i in range(inputs[0].shape[1]):
                if mask_n is not None and not mask_n[row, i]:
                    ys.append(torch.zeros(V, dtype=s.dtype))
                    continue
                own = [x[row, i].chunk(HEADS)[head] for x in inputs]
                s = step(s, own, head) if step is retention_step else step(s, own)
                ys.append(scale * s.T @ own[0])
            heads.append(torch.stack(ys))
        samples.append(torch.cat(heads, -1))
    return torch.stack(samples)


def drawn(*widths: int, n: int = 7) -> list[Tensor]:
    return [torch.randn(3, n, width, dtype=torch.float64) / 2 for width in widths]


def decays(width: int, strength: float = 0.3, n: int = 7) -> Tensor:
    return -strength * torch.rand(3, n, width, dtype=torch.float64)


def from_zero() -> list[tuple[str, nn.Module, Step, float, Callable[[int], list[Tensor]]]]:
    """Returns a name, a block, its step and scale, and how to draw inputs of a length."""
    usual = 1 / sqrt(K)
    return [
        (
            "a decay for each head", blocks.LinearAttention(heads=HEADS, scale=0.0, d=D, e=E, g=HEADS),
            attention_step, usual, lambda n: [*drawn(D, D, E, n=n), decays(HEADS, n=n)],
        ),
        (
            "a decay for each feature", blocks.LinearAttention(heads=HEADS, scale=0.7, d=D, e=E, g=D),
            attention_step, 0.7, lambda n: [*drawn(D, D, E, n=n), decays(D, n=n)],
        ),
        (
            "strong decays", blocks.LinearAttention(heads=HEADS, scale=0.7, d=D, e=E, g=D),
            attention_step, 0.7, lambda n: [*drawn(D, D, E, n=n), decays(D, 200.0, n)],
        ),
        (
            "retention", blocks.Retention(heads=HEADS, scale=0.0, d=D, e=E),
            retention_step, usual, lambda n: drawn(D, D, E, n=n),
        ),
        (
            "the delta rule", blocks.DeltaRule(heads=HEADS, scale=0.0, d=D, e=E),
            delta_step, usual, lambda n: drawn(D, D, E, HEADS, n=n),
        ),
        (
            "the gated delta rule", blocks.GatedDeltaRule(heads=HEADS, scale=0.0, d=D, e=E),
            gated_delta_step, usual, lambda n: [*drawn(D, D, E, HEADS, n=n), decays(HEADS, n=n)],
        ),
    ]  # fmt: skip


@pytest.fixture
def small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernel, "CHUNK", 4)
    monkeypatch.setattr(kernel, "SMALL_CHUNK", 3)
    monkeypatch.setattr(kernel, "LARGEST_EXPONENT", 1.0)


each_rule = pytest.mark.parametrize("case", from_zero(), ids=lambda case: case[0])
Case = tuple[str, nn.Module, Step, float, Callable[[int], list[Tensor]]]


@each_rule
@pytest.mark.parametrize("mask", [None, RAGGED], ids=["no mask", "ragged"])
def test_a_rule_in_chunks_follows_its_equations(case: Case, mask: Tensor | None, small_chunks: None) -> None:
    _, block, step, scale, draw = case
    agree(block, partial(slow, step, scale), *draw(7), mask_n=mask)


@pytest.mark.parametrize("mask", [None, RAGGED], ids=["no mask", "ragged"])
@pytest.mark.parametrize("strength", [0.5, 200.0])
def test_a_recurrence_begins_with_its_state(strength: float, mask: Tensor | None, small_chunks: None) -> None:
    inputs = [*drawn(D, D, E), decays(D, strength), *drawn(D, D)]
    state = torch.randn(3, K, E, dtype=torch.float64)

    def by_position(*inputs: Tensor, mask_n: Tensor | None) -> Tensor:
        return slow(recurrence_step, 1.0, *inputs[:-1], state=inputs[-1], mask_n=mask_n)

    agree(blocks.LinearRecurrence(heads=HEADS, d=D, e=E), by_position, *inputs, state, mask_n=mask)
