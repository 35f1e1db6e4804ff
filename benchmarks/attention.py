"""Implementations of geometric attention's weights against torch's softmax attention, by length."""

from collections.abc import Callable, Iterator
from functools import partial

import torch
import torch.nn.functional as F
from torch import Tensor

from archlang.backend.kernels.nearest_match import _OfLong, by_form
from archlang.backend.kernels.plain_geometric import nearest_match
from benchmarks.measure import Case, Group, Setting, Sides

LENGTHS = (128, 512, 1024)
BATCH, HEADS, WIDTH = 2, 4, 64
Weigh = Callable[[Tensor, Tensor], Tensor]


def softmax(q: Tensor, k: Tensor, v: Tensor) -> None:
    _back(F.scaled_dot_product_attention(q, k, v))


def geometric(weigh: Weigh, q: Tensor, k: Tensor, v: Tensor) -> None:
    _back(weigh(q, k) @ v)


def _back(result: Tensor) -> None:
    result.sum().backward()  # type: ignore[no-untyped-call]


def sort(q: Tensor, k: Tensor) -> Tensor:
    """Returns the weights by the plain form, which sorts the keys of each query by distance."""
    own = torch.eye(q.shape[2], dtype=torch.bool, device=q.device)
    return nearest_match((q @ k.transpose(-1, -2) / q.shape[-1] ** 0.5).masked_fill(own, -torch.inf))


def run_sums(q: Tensor, k: Tensor) -> Tensor:
    """Returns the weights by the form that the block uses on a CPU for long sequences."""
    b, h, n, c = q.shape
    return by_form(_OfLong, q / c**0.5, k, q.new_zeros(b, n, 2 * h))


FORMS: dict[str, Weigh] = {"sorted": sort, "running sums": run_sums}


def _sides(weigh: Weigh, n: int, device: torch.device) -> Sides:
    q, k, v = (torch.randn(BATCH, HEADS, n, WIDTH, device=device, requires_grad=True) for _ in range(3))
    return Sides(partial(geometric, weigh, q, k, v), partial(softmax, q, k, v))


def _cases(setting: Setting) -> Iterator[Case]:
    for n in (7,) if setting.tiny else LENGTHS:
        for name, weigh in FORMS.items():
            build = partial(_sides, weigh, n, setting.device)
            yield Case(f"weights of geometric attention, {name}, N = {n}", "torch's softmax attention", build)


GROUP = Group("attention", f"Batch {BATCH}, {HEADS} heads of width {WIDTH}, forward and backward.", _cases)
