"""Geometric attention beside torch's softmax attention, forward and backward, over lengths."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import torch
import torch.nn.functional as F
from torch import Tensor

from archlang.blocks.geometric_attention import nearest_match, nearest_match_of_long
from benchmarks.measure import Case

LENGTHS = (128, 512, 1024)
BATCH, HEADS, WIDTH = 2, 4, 64
Weigh = Callable[[Tensor], Tensor]


def _softmax(q: Tensor, k: Tensor, v: Tensor) -> None:
    _back(F.scaled_dot_product_attention(q, k, v))


def _geometric(weigh: Weigh, own: Tensor, q: Tensor, k: Tensor, v: Tensor) -> None:
    logits = (q @ k.transpose(-1, -2) / WIDTH**0.5).masked_fill(own, -torch.inf)
    _back(weigh(logits) @ v)


def _back(result: Tensor) -> None:
    result.sum().backward()  # type: ignore[no-untyped-call]


def cases() -> Iterator[Case]:
    for n in LENGTHS:
        q, k, v = (torch.randn(BATCH, HEADS, n, WIDTH, requires_grad=True) for _ in range(3))
        own = torch.eye(n, dtype=torch.bool)
        softmax = partial(_softmax, q, k, v)
        forms: dict[str, Weigh] = {"sorted": nearest_match, "by distance": nearest_match_of_long}
        for name, weigh in forms.items():
            mine = partial(_geometric, weigh, own, q, k, v)
            yield Case(f"geometric attention, {name}, N = {n}", mine, softmax, "torch's softmax attention")
