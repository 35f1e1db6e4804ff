"""The forms of geometric attention's weights beside torch's softmax attention, over lengths."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import torch
import torch.nn.functional as F
from torch import Tensor

from archlang.blocks.geometric_attention import nearest_match, nearest_match_of_long
from benchmarks.measure import Case, Group, Setting, Sides

LENGTHS = (128, 512, 1024)
BATCH, HEADS, WIDTH = 2, 4, 64
Weigh = Callable[[Tensor], Tensor]
FORMS: dict[str, Weigh] = {"sorted": nearest_match, "by distance": nearest_match_of_long}


def softmax(q: Tensor, k: Tensor, v: Tensor) -> None:
    _back(F.scaled_dot_product_attention(q, k, v))


def geometric(weigh: Weigh, own: Tensor, q: Tensor, k: Tensor, v: Tensor) -> None:
    logits = (q @ k.transpose(-1, -2) / WIDTH**0.5).masked_fill(own, -torch.inf)
    _back(weigh(logits) @ v)


def _back(result: Tensor) -> None:
    result.sum().backward()  # type: ignore[no-untyped-call]


def _sides(weigh: Weigh, n: int, device: torch.device) -> Sides:
    q, k, v = (torch.randn(BATCH, HEADS, n, WIDTH, device=device, requires_grad=True) for _ in range(3))
    own = torch.eye(n, dtype=torch.bool, device=device)
    return Sides(partial(geometric, weigh, own, q, k, v), partial(softmax, q, k, v))


def _cases(setting: Setting) -> Iterator[Case]:
    for n in (7,) if setting.tiny else LENGTHS:
        for name, weigh in FORMS.items():
            build = partial(_sides, weigh, n, setting.device)
            yield Case(f"weights of geometric attention, {name}, N = {n}", "torch's softmax attention", build)


GROUP = Group("attention", f"Batch {BATCH}, {HEADS} heads of width {WIDTH}, forward and backward.", _cases)
