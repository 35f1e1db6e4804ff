"""Initial weights are uniform within their bounds, as in the papers' programs or in torch."""

from math import sqrt

import pytest
import torch
from torch import nn

from archlang.blocks.feedforward import Gate, Linear
from archlang.blocks.pointer_unit import Dereference, DotScore, RelationalRead
from archlang.blocks.recurrent import Lstm
from tests.blocks.test_attention import attention
from tests.blocks.test_geometric_attention import plain as geometric
from tests.blocks.test_halting import act, global_halt
from tests.blocks.test_relative_attention import relative
from tests.blocks.test_vectors import feedforward

MAPS = ("query", "key", "value", "output")


def xavier(inputs: int, outputs: int, gain: float = 1.0) -> float:
    return gain * sqrt(6 / (inputs + outputs))


torch.manual_seed(0)
# A block, and the bound of each of its weights; a bound of 0 means zeros.
ROWS: dict[str, tuple[nn.Module, dict[str, float]]] = {
    **{
        f"{name} {init}": (make(d=240, e=160, heads=4, init=init), dict(zip(maps, bounds, strict=False)))
        for name, make, maps in (
            ("attention", attention, MAPS), ("relative attention", relative, (*MAPS, "position")),
        )
        for init, bounds in {
            "xavier": (xavier(240, 240), *[xavier(160, 240)] * 2, *[xavier(240, 240)] * 2),
            "scaled": (xavier(240, 240, sqrt(0.5)), *[xavier(160, 240, sqrt(0.5))] * 2, xavier(240, 240)),
            "fused": (xavier(240, 240), *[xavier(160, 480)] * 2, 1 / sqrt(240), xavier(240, 240)),
            "torch": (1 / sqrt(240), *[1 / sqrt(160)] * 2, *[1 / sqrt(240)] * 2),
        }.items()
        if (make, init) != (relative, "scaled")
    },
    "geometric attention": (
        geometric(heads=4, d=256, e=256),
        {**dict.fromkeys(MAPS, xavier(256, 64)), "direction": 1 / 16, "direction.bias": 1 / 16, "query_bias": 0},
    ),
    "linear": (
        Linear(out=200, bias=True, init="torch", std=1.0, d=300), {"weight": 1 / sqrt(300), "bias": 1 / sqrt(300)},
    ),
    "linear xavier": (
        Linear(out=200, bias=True, init="xavier", std=1.0, d=300), {"weight": xavier(300, 200), "bias": 1 / sqrt(300)},
    ),
    **{
        f"feedforward {init}": (feedforward(ff=300, d=200, init=init, gain=5 / 3), bounds)
        for init, bounds in {
            "relu": {"hidden": xavier(200, 300, sqrt(2)), "output": xavier(200, 300, 5 / 3)},
            "relu_hidden": {"hidden": xavier(200, 300, sqrt(2)), "output": 1 / sqrt(300)},
            "xavier": {"hidden": xavier(200, 300), "output": xavier(200, 300, 5 / 3)},
            "torch": {
                "hidden": 1 / sqrt(200), "output": 1 / sqrt(300), "hidden.bias": 1 / sqrt(200),
                "output.bias": 1 / sqrt(300),
            },
        }.items()
    },
    "gate": (
        Gate(ff=300, dropout=0.0, init="torch", d=200), {"hidden": 1 / sqrt(200), "hidden.bias": 1 / sqrt(200)},
    ),
    "dereference": (
        Dereference(form="code", causal=False, k=2, d=200),
        {"value.1": xavier(200, 200), "output.1": 1 / sqrt(200), "value.1.bias": 0, "output.1.bias": 0},
    ),
    "scores of pointers": (
        DotScore(hidden=200, bits=10),
        {"query": xavier(200, 200), "key": xavier(10, 200), "query.bias": 0, "state_map": 1 / sqrt(200)},
    ),
    "relational read": (
        RelationalRead(reads=3, hidden=5, form="code", dropout=0.5, causal=False, k=300, d=100),
        {
            **{f"read.{name}": sqrt(6 / 400) for name in MAPS[:3]}, **{f"read.{name}.bias": 0 for name in MAPS},
            "read.pointed": 1 / sqrt(300),
        },
    ),
    "halting": (global_halt(d=200), {"hidden": 1 / sqrt(200), "output": 1 / sqrt(200)}),
    "halting by transitions": (global_halt(transition=True, d=200), {"hidden": 1 / sqrt(400)}),
    "act": (act(d=400), {"halt": 1 / 20}),
    "lstm": (
        Lstm(hidden=100, layers=2, dropout=0.0, d=50),
        {f"lstm.{kind}_l{layer}": 1 / 10 for kind in ("weight_ih", "weight_hh", "bias_ih") for layer in (0, 1)},
    ),
}  # fmt: skip


def test_a_linear_map_begins_normal_orthonormal_or_at_zero_without_bias() -> None:
    maps = {init: Linear(out=200, bias=True, init=init, std=0.05, d=300) for init in ("normal", "orthogonal", "zeros")}
    assert not any(block.bias.any() for block in maps.values())
    assert maps["normal"].weight.std().item() == pytest.approx(0.05, rel=0.02)
    assert maps["normal"].weight.abs().max().item() > 0.15
    weight = maps["orthogonal"].weight
    torch.testing.assert_close(weight @ weight.T, torch.eye(200), rtol=0, atol=1e-5)
    assert not maps["zeros"].weight.any()


@pytest.mark.parametrize(("block", "bounds"), ROWS.values(), ids=ROWS)
def test_initial_weights_are_uniform_within_their_bounds(block: nn.Module, bounds: dict[str, float]) -> None:
    weights = dict(block.named_parameters())
    for name, bound in bounds.items():
        weight = weights.get(name, weights.get(f"{name}.weight"))
        assert weight is not None
        assert weight.abs().max().item() == pytest.approx(bound, rel=14 / weight.numel()), name
        assert weight.std().item() == pytest.approx(bound / sqrt(3), rel=2.5 / sqrt(weight.numel())), name
