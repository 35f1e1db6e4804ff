"""Compares a scan as a pass of the compiler makes it with the same scan without the pass."""

from collections.abc import Sequence
from pathlib import Path

import torch
from torch import Tensor

from archlang.backend import Architecture
from archlang.compile import load
from tests.closeness import close


def with_and_without(
    tmp_path: Path, text: str, step: str, never: Sequence[str] = ()
) -> tuple[Architecture, Architecture]:
    """Returns the model twice, with equal weights: as it is, and without a pass; both without those in `never`."""
    path = tmp_path / "program.arch"
    path.write_text(text, encoding="utf-8")
    forms = []
    for left_out in ((), (step,)):
        torch.manual_seed(0)
        forms.append(load(path, "m", vocab=11, classes=3, without_passes=(*never, *left_out)).double())
    return forms[0], forms[1]


def results(module: Architecture, length: int, lengths: list[int]) -> list[Tensor]:
    """Returns the results at real positions, and the gradients."""
    torch.manual_seed(1)
    tokens = torch.randint(11, (len(lengths), length))
    module.zero_grad()
    y = module(tokens, lengths=lengths)
    real = y[torch.arange(length) < torch.tensor(lengths)[:, None]]
    (real.square().sum() + real.sin().sum()).backward()
    return [real, *(weight.grad for weight in module.parameters() if weight.grad is not None)]


def require_equal(ours: Architecture, plain: Architecture, lengths: Sequence[int]) -> None:
    for length in lengths:
        for each in ([length] * 3, [length, (length + 1) // 2, 0], []):
            for result, expected in zip(results(ours, length, each), results(plain, length, each), strict=True):
                close(result, expected)
