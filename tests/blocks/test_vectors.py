"""Blocks that compute each vector by itself, against their equations; their initial values and their dropout."""

from collections.abc import Callable
from functools import partial
from math import ceil, floor, pi, prod, sqrt
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from archlang.blocks import activations, features
from archlang.blocks.activations import CopyGate, Detach, DistanceBuckets, Equal, Greater, Softmax
from archlang.blocks.features import Concat, IntegerArithmetic, Norm
from archlang.blocks.feedforward import Feedforward, Gate, Linear, Mlp
from archlang.plan.check import check_text
from tests.blocks.conftest import agree, by_vector

feedforward = partial(
    Feedforward, ff=5, activation="relu", dropout=0.0, output_dropout=0.0, bias=0.0, bias_init="drawn", init="relu",
    gain=1.0, d=4,
)  # fmt: skip
mlp = partial(Mlp, hidden=5, out=3, activation="relu", dropout=0.0, d=4)
gate = partial(Gate, ff=5, dropout=0.0, init="torch", d=4)
rms_norm = partial(features.RmsNorm, epsilon=1e-3, d=6)

Equation = Callable[..., Tensor]
"""of a block and of a vector for each input"""
Block = Any  # Any: the attributes of blocks differ


def affine(weights: Block, x: Tensor) -> Tensor:
    sums = torch.stack(
        [sum((w * x_c for w, x_c in zip(row, x, strict=True)), torch.zeros(())) for row in weights.weight]
    )
    return sums if weights.bias is None else sums + weights.bias


def gelu(x: Tensor) -> Tensor:
    return x * (1 + torch.erf(x / sqrt(2))) / 2


def tanh(x: Tensor) -> Tensor:
    return (x.exp() - (-x).exp()) / (x.exp() + (-x).exp())


def through(*functions: Callable[[Tensor], Tensor]) -> Equation:
    """Returns two maps with a function after each."""
    first, last = functions
    return lambda block, x: last(affine(block.output, first(affine(block.hidden, x))))


def same(x: Tensor) -> Tensor:
    return x


def sigmoid(x: Tensor) -> Tensor:
    return 1 / (1 + (-x).exp())


def centred(x: Tensor) -> Tensor:
    deviations = x - x.sum() / len(x)
    return deviations / (deviations.square().sum() / len(x) + 1e-3).sqrt()


def rooted(x: Tensor) -> Tensor:
    return x / (x.square().sum() / len(x) + 1e-3).sqrt()


def in_groups(function: Callable[[Tensor], Tensor], groups: int) -> Equation:
    return lambda block, x: torch.cat([function(part).reshape(-1) for part in x.chunk(groups)])


def of_pairs(function: Callable[[int, int], int]) -> Equation:
    """Returns the distribution of a function of two integers."""

    def equation(block: Block, a: Tensor, b: Tensor) -> Tensor:
        y = [torch.zeros((), dtype=a.dtype)] * len(a)
        for i, of_a in enumerate(a):
            for j, of_b in enumerate(b):
                result = int(function(i, j)) % len(a)
                y[result] = y[result] + of_a * of_b
        return torch.stack(y)

    return equation


FUNCTIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "relu": lambda x: x * (x > 0), "gelu": gelu, "silu": lambda x: x / (1 + (-x).exp()), "tanh": tanh,
}  # fmt: skip
ACTIVATIONS: list[tuple[nn.Module, Callable[[Tensor], Tensor]]] = [
    (activations.Relu(d=4), FUNCTIONS["relu"]),
    (activations.Gelu(approximation="none", d=4), gelu),
    (activations.Gelu(approximation="tanh", d=4), lambda x: x * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x**3))) / 2),
    (activations.Silu(d=4), FUNCTIONS["silu"]),
    (activations.Tanh(d=4), tanh),
    (activations.Sigmoid(d=4), sigmoid),
    (activations.Softplus(d=4), lambda x: (1 + x.exp()).log()),
    (activations.Exp(d=4), torch.exp),
    (activations.Abs(d=4), lambda x: x * x.sign()),
    (activations.Log(floor=0.3, d=4), lambda x: torch.where(x > 0.3, x, 0.3).log()),
    (activations.Clamp(low=-0.4, high=0.3, d=4), lambda x: torch.where(x < -0.4, -0.4, torch.where(x > 0.3, 0.3, x))),
    (activations.Sin(d=4), lambda x: torch.exp(1j * x).imag),
    (activations.Cos(d=4), lambda x: torch.exp(1j * x).real),
    (activations.Sqrt(floor=0.3, d=4), lambda x: torch.where(x > 0.3, x, 0.3) ** 0.5),
]
PAIRS: dict[str, Callable[[int, int], int]] = {
    "add": lambda i, j: i + j, "subtract": lambda i, j: i - j, "less": lambda i, j: i < j,
    "less_or_equal": lambda i, j: i <= j, "equal": lambda i, j: i == j, "minimum": min, "maximum": max,
}  # fmt: skip
SELECTIONS: list[tuple[nn.Module, list[int]]] = [
    (features.SliceFeatures(start=2, width=3, d=6), [2, 3, 4]),
    (features.RepeatFeatures(times=3, d=6), [0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3, 4, 4, 4, 5, 5, 5]),
    (features.TileFeatures(times=2, d=6), [0, 1, 2, 3, 4, 5] * 2),
    (features.TransposeFeatures(k=2, d=6), [0, 3, 1, 4, 2, 5]),
]
REDUCTIONS: list[tuple[Callable[..., nn.Module], Callable[[Tensor], Tensor], tuple[int, ...]]] = [
    (features.SumFeatures, lambda x: sum(x, torch.zeros(())), (1, 2)),
    (features.ProductFeatures, lambda x: prod(x, start=torch.ones(())), (1, 3)),
    (features.LengthFeatures, lambda x: sum(x * x, torch.zeros(())).sqrt(), (1, 2)),
    (features.MaxFeatures, max, (1, 2)),
    (features.MinFeatures, min, (1, 2)),
    (features.LogsumexpFeatures, lambda x: sum(x.exp(), torch.zeros(())).log(), (1, 3)),
]
# A block, the widths of its inputs, and its equation.
ROWS: dict[str, tuple[nn.Module, tuple[int, ...], Equation]] = {
    **{
        f"linear, bias {bias}": (Linear(out=5, bias=bias, init="torch", std=1.0, d=4), (4,), affine)
        for bias in (True, False)
    },
    "mlp": (mlp(), (4,), through(FUNCTIONS["relu"], same)),
    **{
        f"feedforward {name}": (feedforward(activation=name), (4,), through(function, same))
        for name, function in FUNCTIONS.items()
    },
    "gate": (gate(), (4,), through(gelu, sigmoid)),
    "norm": (Norm(epsilon=1e-3, d=4), (4,), lambda block, x: centred(x) * block.weight + block.bias),
    "group norm": (
        features.GroupNorm(groups=2, epsilon=1e-3, d=6), (6,),
        lambda block, x: in_groups(centred, 2)(block, x) * block.weight + block.bias,
    ),
    **{
        f"rms norm of {groups}": (
            rms_norm(groups=groups, gain=True, shared=True), (6,),
            lambda block, x, groups=groups: in_groups(lambda part: block.weight * rooted(part), groups)(block, x),
        )
        for groups in (1, 2)
    },
    "rms norm without gain": (rms_norm(groups=2, gain=False, shared=True), (6,), in_groups(rooted, 2)),
    "rms norm with a gain for each feature": (
        rms_norm(groups=2, gain=True, shared=False), (6,),
        lambda block, x: block.weight * in_groups(rooted, 2)(block, x),
    ),
    "unit norm": (
        features.UnitNorm(groups=2, epsilon=1e-12, d=6), (6,),
        in_groups(lambda part: part / part.square().sum().sqrt(), 2),
    ),
    "softmax": (Softmax(d=3), (3,), lambda block, x: x.exp() / sum(x.exp(), torch.zeros(()))),
    "concat": (Concat(), (1, 4, 2), lambda block, *xs: torch.stack([feature for x in xs for feature in x])),
    **{
        f"groups mixed of {k}": (
            features.MixGroups(k=k, d=6, e=2 * k), (6, 2 * k),
            lambda block, x, w, k=k: torch.cat([
                sum((w[i * k + j] * part for j, part in enumerate(x.chunk(k))), torch.zeros(())) for i in (0, 1)
            ]),
        )
        for k in (1, 2, 3)
    },
    "copy gate": (CopyGate(column_dropout=0.0, d=4), (4, 4, 4), lambda block, g, u, h: g * u + (1 - g) * h),
    **{
        f"{type(block).__name__} {index}": (block, (4,), lambda block, x, function=function: function(x))
        for index, (block, function) in enumerate(ACTIVATIONS)
    },
    **{
        type(block).__name__: (block, (6,), lambda block, x, sources=sources: torch.stack([x[c] for c in sources]))
        for block, sources in SELECTIONS
    },
    **{
        f"{kind} of {groups}": (make(groups=groups, d=6), (6,), in_groups(function, groups))
        for make, function, numbers in REDUCTIONS
        for groups in numbers
        for kind in (getattr(make, "__name__", ""),)
    },
    **{
        f"{operation} modulo {m}": (IntegerArithmetic(operation=operation, m=m), (m, m), of_pairs(function))
        for operation, function in PAIRS.items()
        for m in (1, 2, 5)
    },
    **{
        f"{operation} modulo {m}": (
            IntegerArithmetic(operation=operation, m=m), (m, m),
            lambda block, a, b, by=by: torch.stack([a[(c - by) % len(a)] for c in range(len(a))]),
        )
        for operation, by in (("increment", 1), ("decrement", -1))
        for m in (1, 2, 5)
    },
}  # fmt: skip


@pytest.mark.parametrize("shape", [(2, 3), (2,)], ids=["seq", "vec"])
@pytest.mark.parametrize("name", ROWS)
def test_a_vector_is_that_of_the_equation(name: str, shape: tuple[int, ...]) -> None:
    block, widths, equation = ROWS[name]
    for parameter in block.parameters():
        nn.init.normal_(parameter)
    agree(block, by_vector(partial(equation, block)), *(torch.randn(*shape, d, dtype=torch.float64) for d in widths))


@pytest.mark.parametrize("m", [1, 2, 5])
def test_constants_are_certain(m: int) -> None:
    a = torch.rand(2, 3, m)
    for number, operation in enumerate(("zero", "one", "two")):
        result = IntegerArithmetic(operation=operation, m=m)(a, a)
        assert result.equal(torch.eye(m)[number % m].expand(2, 3, m))


def test_row_i_of_columns_has_the_ith_feature_of_each_head() -> None:
    def slow(x: Tensor) -> Tensor:
        return torch.stack([torch.stack([x[:, 3 * h + i] for h in range(2)], -1) for i in range(3)], 1)

    agree(features.HeadColumns(heads=2, d=6), slow, torch.randn(4, 6, dtype=torch.float64))


def test_an_identity_mixes_nothing() -> None:
    x = torch.randn(2, 6)
    assert features.MixGroups(k=3, d=6, e=9)(x, features.Identity(k=3)(2)).equal(x)


def test_a_constant_is_the_same_for_every_sample() -> None:
    block = features.Constant(slots=2, d=3, value=0.1)
    assert block(4).tolist() == torch.full((4, 2, 3), 0.1).tolist()
    assert block.double()(1).tolist() == [[[0.1] * 3] * 2]
    assert not list(block.parameters())
    assert not block.state_dict()


# Without gradients, and where they are not those of the equation


def test_a_comparison_is_1_where_it_holds() -> None:
    x = torch.tensor([[[-1.0, 0.0], [0.5, 2.0]]])
    assert Greater(than=0.0, d=2)(x).tolist() == [[[0, 0], [1, 1]]]
    assert Greater(than=0.5, d=2)(x).tolist() == [[[0, 0], [0, 1]]]
    assert Equal(to=0.0, d=2)(x).tolist() == [[[0, 1], [0, 0]]]
    assert Equal(to=2.0, d=2)(x[:, 1]).tolist() == [[0, 1]]
    assert Greater(than=0.0, d=2)(x.double()).dtype is torch.float64


@pytest.mark.parametrize(
    ("block", "function"),
    [
        (activations.Floor, floor),
        (activations.Ceil, ceil),
        (activations.Round, round),
        (activations.Sign, lambda x: (x > 0) - (x < 0)),
    ],
)
def test_steps_have_no_gradient(block: type[nn.Module], function: Callable[[float], int]) -> None:
    numbers = [-2.5, -1.2, -0.5, 0.0, 0.4, 0.5, 1.5, 2.7]
    y = block(d=8)(torch.tensor([numbers], requires_grad=True))
    assert y.tolist() == [[function(number) for number in numbers]]
    assert not y.requires_grad


def test_a_detached_value_is_equal_without_a_gradient() -> None:
    x = torch.randn(2, 3, 4, requires_grad=True)
    y = Detach(d=4)(x)
    assert y.equal(x)
    assert not y.requires_grad


def test_short_distances_are_exact_and_long_ones_share_buckets_without_a_gradient() -> None:
    x = torch.arange(-3.0, 300)[:, None].requires_grad_()
    buckets = DistanceBuckets(buckets=32, furthest=128, d=1)(x)
    assert not buckets.requires_grad
    exact, far = x[:, 0].clamp(min=0), 16 + ((x[:, 0].clamp(min=16) / 16).log2() / 3 * 16).floor()
    assert buckets[:, 0].equal(torch.where(x[:, 0] < 16, exact, far.clamp(max=31)))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_a_closed_gate_copies_and_an_open_one_updates_bit_for_bit(dtype: torch.dtype) -> None:
    u, h = torch.randn(2, 5, 7, 4, dtype=dtype).unbind()
    copy_gate = CopyGate(column_dropout=0.0, d=4)
    assert copy_gate(torch.zeros_like(h), u, h).equal(h)
    assert copy_gate(torch.ones_like(h), u, h).equal(u)


@pytest.mark.parametrize(
    ("block", "x", "expected"),
    [
        (features.ProductFeatures(groups=1, d=2), [[0.0, 0.0], [0.0, 3.0]], [[0.0, 0.0], [3.0, 0.0]]),
        (features.LengthFeatures(groups=1, d=2), [[0.0, 0.0], [0.0, 3.0]], [[0.0, 0.0], [0.0, 1.0]]),
        (features.UnitNorm(groups=2, epsilon=1e-12, d=4), [[0.0] * 4], None),
    ],
)
def test_zeros_have_finite_gradients(
    block: nn.Module, x: list[list[float]], expected: list[list[float]] | None
) -> None:
    leaf = torch.tensor(x, requires_grad=True)
    y = block(leaf)
    (gradient,) = torch.autograd.grad(y.sum(), leaf)
    assert (y.eq(0).all() and gradient.isfinite().all()) if expected is None else gradient.tolist() == expected


# Initial values and dropout


def test_a_norm_starts_without_gain_and_bias_and_a_gate_half_open() -> None:
    norm = Norm(epsilon=1e-5, d=64)
    assert norm.weight.eq(1).all()
    assert norm.bias.eq(0).all()
    opening = Gate(ff=64, dropout=0.0, init="xavier", d=32)(torch.zeros(1, 1, 32))
    torch.testing.assert_close(opening, torch.full_like(opening, 0.5), atol=1e-5, rtol=0)


def test_a_width_is_no_epsilon() -> None:
    text = "model m[d = 8](x: tokens[n]) -> logits[n, vocab] { return embed[d](x) |> norm[d] |> linear[vocab] }"
    recipe = "recipe r { task flipflop model m train adamw[steps = 1] }"
    assert [mistake.code for mistake in check_text(f"{text}\n{recipe}\n", "m.arch")] == ["E0304"]


def test_biases_of_feedforward_are_near_zero_or_a_constant() -> None:
    block = feedforward(ff=300, d=200, init="xavier")
    for bias in (block.hidden.bias, block.output.bias):
        assert bias.std().item() == pytest.approx(1e-6, rel=0.2)
    block = feedforward(bias=-3.0, bias_init="constant")
    assert block.output.bias.eq(-3).all()
    assert block.hidden.bias.ne(-3).all()


@pytest.mark.parametrize(
    ("block", "dropped", "most"),
    [
        (feedforward(dropout=0.5, ff=1, d=300), lambda block, y: y.eq(block.output.bias).all(-1), 0.1),
        (feedforward(output_dropout=0.5, ff=1, d=300), lambda block, y: y.eq(0), 0.02),
        (mlp(dropout=0.5, hidden=1, d=300, out=300), lambda block, y: y.eq(block.output.bias).all(-1), 0.1),
        (gate(dropout=0.5, ff=1, d=300), lambda block, y: y.eq(0.5), 0.02),
    ],
    ids=["hidden units", "result", "hidden units of mlp", "logits of a gate"],
)
def test_half_of_the_numbers_are_dropped(block: Block, dropped: Callable[[Block, Tensor], Tensor], most: float) -> None:
    block.hidden.bias.data.fill_(1.0)
    y = block(torch.zeros(300, 300))
    assert dropped(block, y).float().mean().item() == pytest.approx(0.5, abs=most)


def test_column_dropout_closes_whole_columns_without_scaling() -> None:
    g, u, h = torch.full((50, 40, 8), 0.25), torch.ones(50, 40, 8), torch.zeros(50, 40, 8)
    y = CopyGate(column_dropout=0.1, d=8)(g, u, h)
    closed = y.eq(0).all(-1)
    assert closed.float().mean().item() == pytest.approx(0.1, abs=0.02)
    assert y[~closed].eq(0.25).all()
