"""Claims about maps in blocks of rows: only time and memory change."""

import warnings
from collections.abc import Callable, Iterator
from functools import cache, partial
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn.attention import flex_attention as flex

from archlang.backend import Architecture
from archlang.backend.attach import rematerialize_bodies
from archlang.backend.lower.text import print_torch
from archlang.backend.runtime import row_blocks
from archlang.compile import load
from tests.closeness import close
from tests.conftest import Compiled
from tests.sampling import one_in
from tests.unchecked_shapes import unchecked_shapes

Build = Callable[..., tuple[Architecture, Architecture]]
Expected = Callable[[str, bool, int], list[Tensor]]
HEAD = """
block cap[most = 3](s: map[n, m, h]) -> map[n, m, h] { return most * tanh(s / most) }
model m[d = 8](x: tokens[n], z: tokens[m]) -> logits[n, classes] {
    h = embed[d](x) k = embed[d](z)
"""
SOFTMAX = "a = softmax_keys[causal = true]({})\ny = weigh[causal = true](a, linear[d](h))"
BODIES = {
    "attention": SOFTMAX.format("scores[2](h, linear[d](h))"),
    "attention to all": "y = weigh(softmax_keys(scores[4](h, k)), k)",
    "attention with one head of keys": "y = weigh(softmax_keys(scores[4](h, linear[2](k))), k)",
    "attention with fewer heads of keys, in a window":
        "a = softmax_keys[causal = true, window = 3](scores[4, scale = 0.4](h, linear[4](h)))\n"
        "y = weigh[causal = true, times = 2](a, linear[4](h))",
    "attention in a window on both sides":
        "y = weigh[times = 2](softmax_keys[window = 2](scores[2](h, k)), linear[4](k))",
    "windows of capped scores with distances and gates of keys":
        "f = cumulative_sum(log(sigmoid(linear[2](h))))\n"
        "s = cap(scores[2](h, h)) + alibi_bias[2](h, h) + outer_sum(f, -f)\n"
        "y = weigh[causal = true](softmax_keys[causal = true, window = 2](s), linear[d](h)) + "
        "weigh[causal = true](softmax_keys[causal = true, window = 4](2 * s), h)",
    "a window beside what reads all columns": "a = softmax_keys[causal = true, window = 2](scores[2](h, h))\n"
        "y = weigh[causal = true](a, h) + weigh[causal = true](exp(a), h) + linear[d](logsumexp_keys(a))",
    "sinks": "a = sink_softmax_keys[causal = true, window = 4](scores[2, softcap = 2.0](h, h), mean(linear[2](h)))\n"
        "y = weigh[causal = true](a, h)",
    "attention by distance": SOFTMAX.format("scores[2](h, h) + relative_bias[2, 3](h, h) + alibi_bias[2](h, h)"),
    "attention by distance, to all": "y = weigh(softmax_keys(relative_bias[2, 3](h, k) + scores[2](h, k)), k)",
    "values up to the query of weights of all": "y = weigh[causal = true](softmax_keys(scores[2](h, h)), h)",
    "a window": "y = weigh[causal = true](softmax_keys[causal = true, window = 3](scores[2](h, h)), h)",
    "a window with more queries than keys":
        "y = weigh[causal = true](softmax_keys[causal = true, window = 2](scores[2](h, k)), k)",
    "a window of weights of all": "y = weigh(softmax_keys[causal = true, window = 3](scores[2](h, h)), h)",
    "a window of weights of all other keys": "y = weigh(softmax_keys[causal = true, window = 3](scores[2](h, k)), k)",
    "a window on both sides": "y = weigh(softmax_keys[window = 3](scores[2](h, h)), h)",
    "a window by distance": "y = weigh[causal = true](softmax_keys[causal = true, window = 3](scores[2](h, h) "
        "+ relative_bias[2, 3](h, h)), h)",
    "scores with a soft cap":
        "y = weigh[causal = true](softmax_keys[causal = true](scores[2, softcap = 3.0](h, h)), h)",
    "a soft cap": SOFTMAX.format("cap(scores[2](h, h))"),
    "a soft cap in a long window":
        "y = weigh[causal = true](softmax_keys[causal = true, window = 200](cap(scores[2](h, h))), h)",
    "a vector added to scores": SOFTMAX.format("mean(linear[2](h)) + scores[2](h, h)"),
    "kept scores": "s = scores[2](h, h)\n"
        "y = weigh(masked_softmax_keys[causal = true](s, top_k_keys[2, causal = true](s)), h)",
    "kept by another map": "s = scores[2](h, k)\ny = weigh(masked_softmax_keys(s, 2 - abs(distances(h, k))), k)",
    "linear attention": "s = lower_triangle(exp(scores(h, h) + outer_sum(linear[1](h), linear[1](h))))\n"
        "y = weigh(s, h) / (1 + sum_keys[causal = true](s))",
    "places along rows": "g = lower_triangle(sigmoid(scores(h, h)))\n"
        "p = cumulative_sum_keys[backward = true, exclusive = true](g)\nt = scores(h, learned[4, d, init = normal]())\n"
        + SOFTMAX.format("scores(h, h) + interpolate(t, p)"),
    "places along rows, up to the query":
        "p = cumulative_sum_keys[backward = true, causal = true](sigmoid(scores(h, h)))\n"
        "t = scores(h, learned[4, d, init = normal]())\n"
        + SOFTMAX.format("scores(h, h) + interpolate(t, p)"),
    "stick-breaking": "s = scores[2](h, h)\nr = lower_triangle[diagonal = -1](log(1.1 - sigmoid(s)))\n"
        "e = exp(cumulative_sum_keys[backward = true, exclusive = true](r))\n"
        "y = weigh(lower_triangle[diagonal = -1](sigmoid(s) * e), h)",
    "sticks that break at once, with what remains": "s = 300 * scores[2](h, h) + 150\n"
        "r = cumulative_sum_keys[backward = true, exclusive = true, causal = true](lower_triangle[-1](-softplus(s)))\n"
        "a = lower_triangle[-1](sigmoid(s) * exp(r))\n"
        "y = weigh[causal = true](a, linear[d](h)) + linear[d](1 - sum_keys[causal = true](a))",
    "decay along keys, with a penalty": "s = scores[2](h, h)\n"
        "r = cumulative_sum_keys[backward = true, causal = true](300 * log(sigmoid(s)))\n"
        "y = weigh[causal = true](exp(-softplus(s) + r), h)",
    "a quotient of maps": "s = scores[2](h, k)\ny = weigh(sigmoid(s) / (1 + exp(s)), k)",
    "a number for each sample": "y = weigh(softmax_keys(mean(linear[2](h)) * scores[2](h, k)), k)",
    "a map that a layer after it reads too": "b = exp(scores[2](h, k))\ny0 = h + weigh(softmax_keys(b), k)\n"
        "y = weigh(softmax_keys(scores[2](y0, k) + b), k)",
    "a map read twice, one after the other": "a = softmax_keys[causal = true](scores[2](h, h))\n"
        "y = weigh[causal = true](a, weigh[causal = true](a, weigh[causal = true](a, h)))",
    "keys that a map has made": "a = sigmoid(scores[2](h, h))\nu = weigh(a, h)\ny = weigh(a * scores[2](h, u), h)",
    "a number and a vector added to scores": "y0 = weigh(softmax_keys(scores[2](h, k) + (1 - 1 / 4)), k)\n"
        "y = y0 + weigh(softmax_keys(scores[2](h, k) + mean(linear[2](h))), k)",
    "a map added to itself": "e = tanh(scores[2](h, k))\ny = weigh(softmax_keys(e + e), k)",
    "a map and its exponential": "s = 2 * scores[2](h, k)\ny = weigh(softmax_keys(s + exp(s)), k)",
    "a map divided by itself and added": "s = 1 + sigmoid(scores[2](h, k))\ny = weigh(s / s + s, k)",
    "one elementwise block after the other":
        "y = weigh(exp(-softplus(sigmoid(2 * tanh(-scores[2](h, k) / 3)) - 1)), k)",
    "weights that are read twice": "a = softmax_keys(scores[2](h, k))\ny = weigh(a, k) + weigh(-2 * a, k)",
    "sums of a map and exponentials of it": "s = scores[2](h, k)\ny = weigh(exp(s), k) + weigh(tanh(s + s), k) "
        "+ 0.1 * weigh(cumulative_sum_keys(sigmoid(s)), k)",
    "numbers": "y = weigh(softmax_keys((1 / 4) * scores(h, k) * -1 + -2), k) + weigh(-0.5 * scores(h, k), k)",
    "a map whose transpose is read too": "s = scores(h, h)\ny = weigh(softmax_keys(s + transpose_map(s)), h)",
    "weights that are dropped in training": "y = weigh(dropout[0.3](softmax_keys(scores[2](h, k))), k)",
    "rows that other rows change": "y = weigh(softmax_keys(convolve_map[2](scores[2](h, h))), h)",
    "what depends on the columns by their number only":
        "y = h * sum_keys(distances(h, h)) + weigh[causal = true](softmax_keys(distances(h, h)), h)",
    "weights over queries": "y = weigh(softmax_queries(scores[2](h, k)), k)",
    "a stack": "y = h\nstack 2 { y <- y + weigh(softmax_keys[causal = true](scores[2](y, linear[d](y))), y) }",
    "a map from outside of a loop": "s = scores[2](h, h)\ny = h\n"
        "repeat 2 { y <- norm(y + weigh(softmax_keys(s + scores[2](y, y)), y)) }",
    "halting": "y = h\nrepeat 3 halting y by token_halt[0.8] { "
        "y <- norm(y + weigh(softmax_keys[causal = true](scores[2](y, y)), y)) }",
    "chunks": "y = scan c in chunks[3](h) { emit weigh(softmax_keys[causal = true](scores[2](c, c)), c) }",
}  # fmt: skip
# Which of these have no map that is computed by rows.
WHOLE = {"weights over queries", "a map read twice, one after the other"}
LENGTHS = {"x": torch.tensor([7, 4, 1]), "z": torch.tensor([6, 5, 2])}


@pytest.fixture
def build(tmp_path: Path) -> Build:
    """Returns a module whose maps are computed by rows, and one in which they are whole, with the same weights."""

    return lambda body, d=8: (built(tmp_path, body, d=d), built(tmp_path, body, "rows", d=d))


def built(folder: Path, body: str, *without: str, d: int = 8) -> Architecture:
    path = folder / "program.arch"
    path.write_text(f"{HEAD}{body}\nreturn linear[classes](y)\n}}\n")
    module = load(path, None, None, without_passes=without, vocab=9, classes=3, d=d)
    torch.manual_seed(1)
    for parameter in module.parameters():
        nn.init.normal_(parameter, std=0.7)
    return module.double()


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> Expected:
    """The outcome of whole maps, which several tests compare with."""
    folder = tmp_path_factory.mktemp("whole")
    whole = cache(partial(built, folder))
    return cache(lambda body, padded, length: outcome(whole(body, "rows"), padded, length))


def outcome(module: Architecture, padded: bool, length: int = 7) -> list[Tensor]:
    """The results at real positions and the gradients of all weights."""
    torch.manual_seed(2)
    x, z = torch.randint(9, (3, length)), torch.randint(9, (3, 6))
    y = module(x, z, lengths=LENGTHS if padded else None)
    real = torch.arange(length) < (LENGTHS["x"][:, None] if padded else length)
    gradients = torch.autograd.grad(y[real.expand(3, -1)].square().sum(), list(module.parameters()), allow_unused=True)
    return [y[real.expand(3, -1)], *(gradient for gradient in gradients if gradient is not None)]


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
@pytest.mark.parametrize(("block", "kept"), [(1, 10**9), (40, 0), (10**9, 0)], ids=["single rows", "again", "at once"])
def test_blocks_of_rows_give_the_numbers_and_gradients_of_whole_maps(
    body: str, block: int, kept: int, expected: Expected, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    small_blocks(monkeypatch, block)
    monkeypatch.setattr(row_blocks, "_KEPT", kept)
    by_rows = built(tmp_path, body)
    for padded in (False, True):
        for got, value in zip(outcome(by_rows, padded), expected(body, padded, 7), strict=True):
            close(got, value)
    close(outcome(by_rows, False, 1)[0], expected(body, False, 1)[0])


@pytest.mark.parametrize(("name", "body"), BODIES.items(), ids=BODIES)
def test_maps_that_only_blocks_by_rows_read_become_one_call(name: str, body: str, build: Build) -> None:
    by_rows, whole = build(body)
    assert ("rows_of_" in print_torch(by_rows)) is (name not in WHOLE)
    assert "rows_of_" not in print_torch(whole)


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("weights over queries", "softmax_queries(scores[2](h, k))"),
        ("a map read twice, one after the other", "what it leads to reads it again"),
        ("a map whose transpose is read too", "transpose_map(s)"),
        ("rows that other rows change", "convolve_map[2](scores[2](h, h))"),
    ],
)
def test_the_lowered_program_says_which_line_needs_a_whole_map(name: str, reason: str, build: Build) -> None:
    by_rows, _ = build(BODIES[name])
    assert any("is held as a whole" in line and reason in line for line in print_torch(by_rows).splitlines())


@pytest.mark.parametrize("block", [1, 10**9])
@pytest.mark.parametrize("name", ["sticks that break at once, with what remains", "decay along keys, with a penalty"])
def test_keys_that_are_left_out_are_decoded(
    name: str, block: int, compiled: Compiled, monkeypatch: pytest.MonkeyPatch
) -> None:
    small_blocks(monkeypatch, block)
    text = "model m[d = 8](x: tokens[n]) -> logits[n, vocab] { h = embed[d](x)\n" + BODIES[name] + "\n"
    module = compiled(text + "return linear[vocab](y) }")
    prompt = torch.randint(9, (2, 9))
    close(*(module.decode(begin=prompt, limit=3, cache=cache).logits for cache in (True, False)))


SUMS = "r = cumulative_sum_keys[backward = true, causal = true](-softplus(scores[2](h, h)))\n"
FADING = "y = weigh[causal = true](exp(r), h)"


@pytest.mark.parametrize(
    ("sums", "weighed", "is_fading"),
    [
        (SUMS, FADING, True),
        (
            SUMS,
            "y = linear[d](sum_keys[causal = true](exp(r))) + weigh[causal = true](sigmoid(scores(h, h)) * exp(r), h)",
            True,
        ),
        (SUMS, "y = weigh[causal = true](exp(r - 1), h)", False),
        (SUMS, "y = weigh[causal = true](exp(r + softplus(scores[2](h, h))), h)", False),
        (
            SUMS,
            "y = weigh[causal = true](exp(r) * scores[2](h, h), h)",
            False,
        ),  # infinite scores times 0 are no numbers
        (SUMS, "y = weigh[causal = true](exp(r) + sigmoid(scores[2](h, h)), h)", False),
        (SUMS, "y = weigh[causal = true](exp(-r), h)", False),
        (SUMS, "y = weigh[causal = true](softmax_keys[causal = true](exp(r)), h)", False),
        (SUMS, "y = weigh[causal = true](exp(r), h) + weigh[causal = true](sigmoid(r), h)", False),
        (SUMS, "y = linear[d](max_keys[causal = true](exp(r)))", False),
        (SUMS.replace("backward = true, ", ""), FADING, False),
        (SUMS.replace("causal = true", "exclusive = true"), FADING, False),
        (SUMS.replace("-softplus", "softplus"), FADING, False),
        (SUMS.replace("-softplus", "tanh"), FADING, False),
    ],
)
def test_keys_are_left_out_only_if_underflow_makes_their_weights_0(
    sums: str, weighed: str, is_fading: bool, build: Build
) -> None:
    by_rows, _ = build(sums + weighed)
    assert ("column_maxima" in print_torch(by_rows)) is is_fading


def test_a_row_reads_the_keys_before_its_sticks_are_broken(build: Build, monkeypatch: pytest.MonkeyPatch) -> None:
    small_blocks(monkeypatch, 1)
    by_rows, _ = build(BODIES["sticks that break at once, with what remains"])
    columns: list[int] = []
    noted(type(by_rows.get_submodule("cumulative_sum_keys")), columns, 2, monkeypatch)
    with torch.no_grad():
        by_rows(torch.zeros(1, 60, dtype=torch.int64), torch.zeros(1, 6, dtype=torch.int64))
    assert (columns[0], max(columns[1:]) < 20) == (60, True)


def small_blocks(monkeypatch: pytest.MonkeyPatch, entries: int) -> None:
    """Makes blocks of this many entries of a map, of one row at least."""
    monkeypatch.setattr(row_blocks, "_BLOCK", entries)
    monkeypatch.setattr(row_blocks, "_LEAST_ROWS", 1)


def noted(block: type[nn.Module], sizes: list[int], axis: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Notes the size of an axis of what a block takes in each call, without a hook."""
    original = block.forward

    def forward(self: nn.Module, x: Tensor, **keywords: Any) -> Any:  # Any: those of the block
        sizes.append(x.shape[axis])
        return original(self, x, **keywords)

    monkeypatch.setattr(block, "forward", forward)


def saved(module: Architecture, length: int) -> int:
    """How many numbers training keeps until the backward pass."""
    kept: dict[int, Tensor] = {}

    def pack(tensor: Tensor) -> Tensor:
        kept[tensor.untyped_storage().data_ptr()] = tensor
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        module(torch.randint(9, (1, length)), torch.randint(9, (1, 6)))
    return sum(tensor.untyped_storage().nbytes() // tensor.element_size() for tensor in kept.values())


@pytest.mark.parametrize(
    "name", ["attention", "attention by distance", "a soft cap", "a soft cap in a long window", "stick-breaking"]
)
def test_training_keeps_no_map(name: str, build: Build, monkeypatch: pytest.MonkeyPatch) -> None:
    small_blocks(monkeypatch, 128)
    monkeypatch.setattr(row_blocks, "_KEPT", 0)
    by_rows, whole = build(BODIES[name])
    length = 100
    assert saved(by_rows, length) < 40 * length
    assert saved(whole, length) >= length**2


def test_causal_rows_read_no_later_columns(build: Build, monkeypatch: pytest.MonkeyPatch) -> None:
    small_blocks(monkeypatch, 1)
    by_rows, _ = build(BODIES["a soft cap"])
    columns: list[int] = []
    noted(type(by_rows.get_submodule("softmax_keys")), columns, 2, monkeypatch)
    by_rows(torch.randint(9, (1, 5)), torch.randint(9, (1, 6)))
    assert columns == [5, 4, 3, 2, 1]


@pytest.mark.parametrize("scores", ["scores(x, x) + alibi_bias[1](x, x)", "scores(x, x)", "relative_bias[1, 3](x, x)"])
@pytest.mark.parametrize("window", [0, 3])
@pytest.mark.parametrize("bad", [torch.nan, torch.inf, 3e38])
def test_what_is_not_finite_reaches_no_query_from_which_it_is_hidden(
    scores: str, window: int, bad: float, compiled: Compiled
) -> None:
    attended = f"weigh[causal = true](softmax_keys[causal = true, window = {window}]({scores}), v)"
    module = compiled(f"model m(x: seq[n, 8], v: seq[n, 8]) -> seq[n, 8] {{ return {attended} }}")
    x, v = torch.randn(2, 70, 8), torch.randn(2, 70, 8)
    expected = module(x, v)
    x[1, 69] = bad
    close(module(x, v)[:, :69], expected[:, :69])


def test_shapes_without_numbers_pass_through_masks_and_scans(compiled: Compiled) -> None:
    attended = "weigh[causal = true](softmax_keys[causal = true, window = 3](scores(x, x)), x)"
    scan = "scan v in y carry s { s <- sigmoid(v) * s + v emit s }"
    text = f"model m(x: seq[n, 8]) -> seq[n, 8] {{ s = mean(x) y = {attended} z = {scan} return z }}"
    assert compiled(text).to("meta")(torch.empty(2, 70, 8, device="meta")).shape == (2, 70, 8)


def test_queries_without_keys_are_zero_whatever_they_hold(compiled: Compiled) -> None:
    keyless = "m = constant[0, 8]() return v + weigh(softmax_keys(scores(x, m)), m) + attention[1](x, m)"
    module = compiled(f"model m(x: seq[n, 8], v: seq[n, 8]) -> seq[n, 8] {{ {keyless} }}")
    for weight in (module.get_parameter(name) for name in dict(module.named_parameters()) if "bias" in name):
        nn.init.zeros_(weight)
    x, v = torch.full((2, 4, 8), torch.nan), torch.randn(2, 4, 8, requires_grad=True)
    close(module(x, v), v)


def test_a_hook_sees_all_rows_at_once(build: Build, monkeypatch: pytest.MonkeyPatch) -> None:
    small_blocks(monkeypatch, 1)
    by_rows, whole = build(BODIES["attention"])
    seen: list[Tensor] = []
    for module in (by_rows, whole):
        module.get_submodule("softmax_keys").register_forward_hook(lambda module, inputs, result: seen.append(result))
        module(torch.arange(7)[None], torch.arange(6)[None])
    close(*seen)


# Bodies in which maps, and in backward their gradients, are overwritten.
OVERWRITING = [
    "a soft cap",
    "stick-breaking",
    "places along rows, up to the query",
    "one elementwise block after the other",
]


@pytest.mark.parametrize("name", ["attention by distance", *OVERWRITING])
def test_second_derivatives_are_those_of_whole_maps(name: str, build: Build, monkeypatch: pytest.MonkeyPatch) -> None:
    small_blocks(monkeypatch, 40)
    second = []
    for module in build(BODIES[name]):
        weights = [weight for weight in module.parameters() if weight.dim() == 2]
        y = module(torch.arange(7)[None], torch.arange(6)[None])
        first = torch.autograd.grad(y.square().sum(), weights, create_graph=True, allow_unused=True)
        total = sum((gradient.square().sum() for gradient in first if gradient is not None), torch.zeros(()))
        second.append(torch.autograd.grad(total, module.get_parameter("embed.weight"))[0])
    close(*second)


@pytest.mark.parametrize("name", OVERWRITING)
def test_derivatives_of_overwritten_maps_are_equal_the_second_time(name: str, build: Build) -> None:
    by_rows, _ = build(BODIES[name])
    assert "reuse = (True, True)" in print_torch(by_rows)
    y = by_rows(torch.arange(7)[None], torch.arange(6)[None]).square().sum()
    weights = list(by_rows.parameters())
    first, second = (torch.autograd.grad(y, weights, retain_graph=True, allow_unused=True) for _ in range(2))
    for one, two in zip(first, second, strict=True):
        assert (one is None) is (two is None)
        if one is not None and two is not None:
            assert torch.equal(one, two)


@pytest.mark.parametrize(
    ("body", "overwritten"),
    [
        ("weigh(sigmoid(scores[2](h, k)), k)", "(True, True)"),
        ("weigh(sigmoid(tanh(scores[2](h, k))), k)", "(False, True)"),  # the derivative of tanh reads its result
        ("weigh(sigmoid(distances(h, k)), k)", "(False, True)"),  # whose samples share memory
        ("weigh(sigmoid(s) + s, k)", ""),  # s is read again, and its gradient is that of the sigmoid
        ("weigh(sigmoid(s), k) + weigh(s, k)", "(False, True)"),
        ("h * sum_keys(sigmoid(scores(h, k)))", "(True, False)"),  # the gradients of a sum share memory
    ],
)
def test_maps_are_overwritten_if_nothing_reads_them_again(body: str, overwritten: str, build: Build) -> None:
    by_rows, _ = build(f"s = scores[2](h, k)\ny = {body}")
    (line,) = (line for line in print_torch(by_rows).splitlines() if line.strip().startswith("sigmoid = "))
    assert (f"reuse = {overwritten}" in line) if overwritten else ("reuse" not in line)


@pytest.mark.parametrize("name", ["scores", "weigh"])
def test_a_module_of_another_class_is_called(name: str, build: Build) -> None:
    results = []
    for module in build(BODIES["attention"]):
        kind: Any = type(module.get_submodule(name))  # Any: a block
        other = type(
            "Other",
            (kind,),
            {"forward": lambda self, *values, kind=kind, **rest: 3 * kind.forward(self, *values, **rest)},
        )
        module.get_submodule(name).__class__ = other
        results.append(module(torch.arange(7)[None], torch.arange(6)[None]))
    close(*results)


def test_a_hook_keeps_what_it_sees(build: Build) -> None:
    by_rows, _ = build(BODIES["one elementwise block after the other"])
    seen: list[Tensor] = []
    by_rows.get_submodule("scores").register_forward_hook(lambda module, inputs, result: seen.append(result))
    by_rows(torch.arange(7)[None], torch.arange(6)[None])
    copy = seen[0].clone()
    by_rows(torch.arange(7)[None], torch.arange(6)[None])
    assert torch.equal(seen[1], copy)
    assert not torch.equal(seen[0], torch.sigmoid(copy))
    close(seen[0], copy)


@pytest.mark.parametrize("kept", [0, 10**9])
def test_derivatives_can_be_computed_twice_and_in_half_precision(
    kept: int, build: Build, monkeypatch: pytest.MonkeyPatch
) -> None:
    small_blocks(monkeypatch, 40)
    monkeypatch.setattr(row_blocks, "_KEPT", kept)
    gradients = []
    for module in build(BODIES["attention by distance"]):
        with torch.autocast("cpu", torch.bfloat16):
            y = module.float()(torch.arange(7)[None], torch.arange(6)[None]).square().sum()
        weights = list(module.parameters())
        first, second = (torch.autograd.grad(y, weights, retain_graph=True, allow_unused=True) for _ in range(2))
        for one, two in zip(first, second, strict=True):
            assert (one is None) is (two is None)
            if one is not None and two is not None:
                assert torch.equal(one, two)
        gradients.append(torch.cat([gradient.flatten() for gradient in first if gradient is not None]))
    assert (gradients[0] - gradients[1]).abs().max() < 0.02 * gradients[1].abs().max()


@pytest.mark.parametrize("kept", [0, 10**9])
def test_steps_that_are_computed_again_compute_their_blocks_again(
    kept: int, build: Build, monkeypatch: pytest.MonkeyPatch
) -> None:
    small_blocks(monkeypatch, 1)
    monkeypatch.setattr(row_blocks, "_KEPT", kept)
    by_rows, _ = build(BODIES["a stack"])
    expected = outcome(by_rows, True)
    assert rematerialize_bodies(by_rows, by_rows.program.code) == 1
    for got, before in zip(outcome(by_rows, True), expected, strict=True):
        assert torch.equal(got, before)


def test_a_block_that_draws_in_training_takes_all_rows_then(build: Build, monkeypatch: pytest.MonkeyPatch) -> None:
    small_blocks(monkeypatch, 1)
    by_rows, whole = build(BODIES["weights that are dropped in training"])
    drawn = type(by_rows.get_submodule("dropout"))
    rows: list[int] = []
    noted(drawn, rows, 1, monkeypatch)
    close(outcome(by_rows, False), outcome(whole, False))
    close(outcome(by_rows.eval(), False), outcome(whole.eval(), False))
    assert rows == [7] * 4  # those of training are kept as wholes
    with torch.no_grad():
        by_rows(torch.arange(7)[None], torch.arange(6)[None])
    assert rows[4:] == [1] * 7


def test_a_users_elementwise_block_is_computed_by_rows(compiled: Compiled, monkeypatch: pytest.MonkeyPatch) -> None:
    small_blocks(monkeypatch, 1)
    text = """
    extern block doubled(x: data[d]) -> data[d]
        reads x pointwise
        python "own:Doubled"
    model m[d = 8](x: tokens[n]) -> logits[n, vocab] {
        h = embed[d](x)
        s = softmax_keys[causal = true](doubled(scores[2](h, h)))
        return linear[vocab](weigh[causal = true](s, h))
    }
    """
    module = compiled(text.replace("own:Doubled", f"{Path(__file__).stem}:Doubled"), plugins=True)
    rows: list[int] = []
    noted(Doubled, rows, 1, monkeypatch)
    module(torch.randint(9, (1, 5)))
    assert rows == [1] * 5
    prompt = torch.randint(9, (2, 3))
    written, expected = (module.decode(begin=prompt, limit=3, cache=cache) for cache in (True, False))
    close(written.logits, expected.logits)
    assert rows[5:10] == [1] * 5  # three of the prompt, and two tokens


class Doubled(nn.Module):
    def __init__(self, *, d: int) -> None:
        super().__init__()

    def forward(self, x: Tensor) -> Tensor:
        return 2 * x


class ByColumn(Doubled):
    """y_ij = x_ij sin j"""

    def forward(self, x: Tensor, *, first_row: int = 0, **_: Tensor | None) -> Tensor:
        return x * torch.arange(x.shape[2]).sin()[:, None]


class WithoutSum(Doubled):
    """y_ij = x_ij - Σ_{l ≤ i} x_il"""

    def forward(self, x: Tensor, *, first_row: int = 0, **_: Tensor | None) -> Tensor:
        return x - x.permute(0, 3, 1, 2).tril(first_row).sum(-1).permute(0, 2, 1)[:, :, None]


@pytest.mark.parametrize(
    ("block", "says"),
    [("ByColumn", "pointwise acts absolute"), ("ByColumn", "pointwise acts relative, absolute"),
     ("ByColumn", "triangular acts window[2], absolute"), ("WithoutSum", "triangular acts relative")],
)  # fmt: skip
def test_a_window_leaves_the_columns_that_a_users_block_depends_on(
    block: str, says: str, compiled: Compiled, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = f"""
    extern block own(x: map[n, m, d]) -> map[n, m, d]
        reads x {says}
        python "{Path(__file__).stem}:{block}"
    model m[d = 8](x: tokens[n]) -> logits[n, vocab] {{
        h = embed[d](x)
        s = 0.1 * tanh(own(scores[2](h, h)))
        return linear[vocab](weigh[causal = true](softmax_keys[causal = true, window = 2](s), h))
    }}
    """
    module = compiled(text, plugins=True)
    tokens = torch.randint(9, (2, 7))
    expected = module(tokens)
    small_blocks(monkeypatch, 1)
    close(module(tokens), expected)
    close(*(module.decode(begin=tokens, limit=3, cache=cache).logits for cache in (True, False)))


# The bodies that `flex_attention` computes: one product of queries and keys, one softmax over keys, one result, and
# something that torch's attention cannot take without a map.
BY_PAIRS = {
    "attention by distance", "attention by distance, to all", "a window by distance", "scores with a soft cap",
    "a soft cap", "kept by another map", "a number for each sample", "a map that a layer after it reads too",
    "a map from outside of a loop", "a map added to itself", "a map and its exponential",
    "a soft cap in a long window", "a vector added to scores",
}  # fmt: skip


@pytest.fixture
def flexed(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Tensor]]:
    """Lets the uncompiled `flex_attention` compute what a GPU would, also in training, and returns its results."""
    results: list[Tensor] = []

    def attend(*arguments: Any, **keywords: Any) -> Tensor:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that it is not compiled, and what torch.compile reads of arguments
            results.append(flex.flex_attention(*arguments, **keywords))
        return results[-1]

    monkeypatch.setattr(flex, "_validate_device", lambda *_: None)
    monkeypatch.setattr(row_blocks, "kernel", lambda *_: attend)
    with unchecked_shapes():
        yield results


@pytest.mark.parametrize(("name", "body"), one_in(2, BODIES.items()), ids=BODIES)
def test_flex_attention_gives_the_numbers_and_gradients_of_whole_maps(
    name: str, body: str, flexed: list[Tensor], expected: Expected, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    small_blocks(monkeypatch, 1)
    monkeypatch.setattr(row_blocks, "_KEPT", 0)
    by_rows = built(tmp_path, body)
    for padded in (False, True) if name in BY_PAIRS else (True,):
        for got, value in zip(outcome(by_rows, padded), expected(body, padded, 7), strict=True):
            close(got, value)
    assert bool(flexed) is (name in BY_PAIRS)


def test_maps_are_computed_in_blocks_where_flex_attention_fails(build: Build, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[int] = []

    def refuse(*_: Tensor, **__: Any) -> Tensor:
        calls.append(1)
        raise NotImplementedError("this head is too small")

    small_blocks(monkeypatch, 1)
    monkeypatch.setattr(row_blocks, "kernel", lambda *_: refuse)
    by_rows, whole = build(BODIES["a soft cap"])
    with pytest.warns(UserWarning, match="in blocks of rows, because flex_attention fails: this head is too small"):
        got = outcome(by_rows, False)
    outcome(by_rows, False)
    assert len(calls) == 1  # it is not asked again
    for one, expected in zip(got, outcome(whole, False), strict=True):
        close(one, expected)


def test_a_processor_never_asks_flex_attention() -> None:
    assert row_blocks.kernel(torch.zeros(1), has_worked=True) is None


class OnGpu(Tensor):
    is_cuda = True


@pytest.mark.parametrize(("is_captured", "has_worked"), [(False, False), (False, True), (True, False), (True, True)])
def test_nothing_is_compiled_while_a_graph_is_captured(
    is_captured: bool, has_worked: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.cuda, "is_current_stream_capturing", lambda: is_captured)
    monkeypatch.setattr(row_blocks, "_compiled", lambda: flex.flex_attention)
    attend = row_blocks.kernel(torch.zeros(1).as_subclass(OnGpu), has_worked)
    assert (attend is None) == (is_captured and not has_worked)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")
@pytest.mark.parametrize("name", sorted(BY_PAIRS))
def test_flex_attention_on_a_gpu_equals_whole_maps(name: str, build: Build, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(row_blocks, "_BLOCK_ON_GPU", 1)
    monkeypatch.setattr(row_blocks, "_KEPT", 0)
    with unchecked_shapes(), torch.device("cuda"):
        by_rows, whole = (module.float().cuda() for module in build(BODIES[name], d=64))
        for length in (7, 200):
            for got, expected in zip(outcome(by_rows, False, length), outcome(whole, False, length), strict=True):
                torch.testing.assert_close(got, expected, rtol=1e-3, atol=1e-3 * float(expected.abs().max()))
