"""The weights of geometric attention by the plain form against torch's softmax attention, by length."""

from collections.abc import Iterator
from functools import partial

import torch
import torch.nn.functional as F
from torch import Tensor

from archlang.backend.kernels.nearest_match import nearest_match
from benchmarks.measure import Case, Group, Setting, Sides

LENGTHS = (128, 512, 1024)
BATCH, HEADS, WIDTH = 2, 4, 64


def softmax(q: Tensor, k: Tensor, v: Tensor) -> None:
    _back(F.scaled_dot_product_attention(q, k, v))


def geometric(q: Tensor, k: Tensor, v: Tensor) -> None:
    _back(sort(q, k) @ v)


def _back(result: Tensor) -> None:
    result.sum().backward()  # type: ignore[no-untyped-call]


def sort(q: Tensor, k: Tensor) -> Tensor:
    """Returns the weights by the plain form, which sorts the keys of each query by distance."""
    own = torch.eye(q.shape[2], dtype=torch.bool, device=q.device)
    return nearest_match((q @ k.transpose(-1, -2) / q.shape[-1] ** 0.5).masked_fill(own, -torch.inf))


def _sides(n: int, device: torch.device) -> Sides:
    q, k, v = (torch.randn(BATCH, HEADS, n, WIDTH, device=device, requires_grad=True) for _ in range(3))
    return Sides(partial(geometric, q, k, v), partial(softmax, q, k, v))


def _cases(setting: Setting) -> Iterator[Case]:
    for n in (7,) if setting.tiny else LENGTHS:
        build = partial(_sides, n, setting.device)
        yield Case(f"weights of geometric attention, sorted, N = {n}", "torch's softmax attention", build)


GROUP = Group("attention", f"Batch {BATCH}, {HEADS} heads of width {WIDTH}, forward and backward.", _cases)
