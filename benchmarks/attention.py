"""Geometric attention beside torch's softmax attention, forward and backward, over lengths."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import torch
import torch.nn.functional as F
from torch import Tensor

from archlang.blocks.geometric_attention import nearest_match
from archlang.kernels.nearest_match import weights_of_long
from benchmarks.measure import Case

LENGTHS = (128, 512, 1024)
BATCH, HEADS, WIDTH = 2, 4, 64
Weigh = Callable[[Tensor, Tensor], Tensor]


def _softmax(q: Tensor, k: Tensor, v: Tensor) -> None:
    _back(F.scaled_dot_product_attention(q, k, v))


def _geometric(weigh: Weigh, q: Tensor, k: Tensor, v: Tensor) -> None:
    _back(weigh(q, k) @ v)


def _sorted(q: Tensor, k: Tensor) -> Tensor:
    own = torch.eye(q.shape[2], dtype=torch.bool)
    return nearest_match((q @ k.transpose(-1, -2) / WIDTH**0.5).masked_fill(own, -torch.inf))


def _by_mirror(q: Tensor, k: Tensor) -> Tensor:
    return weights_of_long(q / WIDTH**0.5, k, q.new_zeros(BATCH, q.shape[2], 2 * HEADS))


def _back(result: Tensor) -> None:
    result.sum().backward()  # type: ignore[no-untyped-call]


def cases() -> Iterator[Case]:
    for n in LENGTHS:
        q, k, v = (torch.randn(BATCH, HEADS, n, WIDTH, requires_grad=True) for _ in range(3))
        softmax = partial(_softmax, q, k, v)
        forms: dict[str, Weigh] = {"sorted": _sorted, "running sums": _by_mirror}
        for name, weigh in forms.items():
            mine = partial(_geometric, weigh, q, k, v)
            yield Case(f"geometric attention, {name}, N = {n}", mine, softmax, "torch's softmax attention")
