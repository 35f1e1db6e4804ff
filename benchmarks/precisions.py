"""Geometric attention by length and precision, forward and backward, against torch's own attention and the plain form:
`torch.autocast` chooses what is computed in bfloat16, on both sides."""

from collections.abc import Iterator
from functools import partial

import torch

from benchmarks import operators
from benchmarks.measure import Case, Group, Setting, Sides
from benchmarks.operators import Size, pair

LENGTHS = (64, 512, 2048, 8192)
POSITIONS = 8192
"""positions of a batch, all samples together"""
NAME = "geometric attention"


def _sides(beside: str, size: Size, is_half: bool, device: torch.device) -> Sides:
    x = operators.operand(size).to(device).requires_grad_()
    half = partial(torch.autocast, device.type, dtype=torch.bfloat16, enabled=is_half)

    def side(operator: operators.Operator) -> None:
        module, call = operator
        module.zero_grad(set_to_none=True)
        x.grad = None
        with half():
            result = call(x)
        result.float().sum().backward()  # type: ignore[no-untyped-call]

    pairs = [(module.to(device), call) for module, call in pair(NAME, beside, size)]
    return Sides(*(partial(side, operator) for operator in pairs))


def _cases(setting: Setting) -> Iterator[Case]:
    for length in (7,) if setting.tiny else LENGTHS:
        size = operators.TINY if setting.tiny else Size(length, positions=POSITIONS)
        for (name, beside), (_, matrices) in operators.OPERATORS.items():
            if name != NAME:
                continue
            for precision in ("32", "bf16"):
                build = partial(_sides, beside, size, precision == "bf16", setting.device)
                # The fused form has no score matrices, so only the plain one needs the memory.
                memory = size.matrices(matrices) if beside != operators.TORCH or setting.device.type == "cpu" else 0.0
                yield Case(f"{NAME}, N = {length}, {precision}", beside, build, memory=memory)


GROUP = Group(
    "precisions",
    f"Forward and backward, {POSITIONS} positions a batch at every length, d 256, 4 heads; projections are part of an "
    "attention.",
    _cases,
    devices=("cuda",),
)
