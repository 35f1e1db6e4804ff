"""Softmax attention against loops over heads, queries and keys; masks, causality and positions."""

import math
import sys
from collections.abc import Callable
from math import sqrt
from typing import Any

import pytest
import torch
from torch import Tensor

from archlang.backend.decode.block_cache import BlockCache
from archlang.backend.kernels import dropout as kernel
from archlang.backend.runtime.call_cache import call_scope
from archlang.blocks import attention as blocks_attention
from archlang.blocks.attention import Attention
from tests.blocks.conftest import agree, attended, wave
from tests.closeness import close, same_gradients


def attention(**statics: Any) -> Attention:
    defaults: dict[str, Any] = {
        "heads": 2, "position": "none", "causal": False, "dropout": 0.0, "output_dropout": 0.0, "head_dim": 0,
        "causal_rule": "always", "padded": "zero", "init": "xavier", "window": 0, "scale": 0.0, "softcap": 0.0,
        "qk_norm": False, "sinks": False, "bias": False, "gate": "none", "base": 1e4, "d": 8, "e": 8,
    }  # fmt: skip
    statics = defaults | statics
    return Attention(**{"kv_heads": statics["heads"]} | statics)


SETTINGS: dict[str, dict[str, Any]] = {
    **{
        f"{position}, heads of {head_dim or 4}": {"position": position, "head_dim": head_dim}
        for position in ("none", "absolute", "rotary", "xpos", "alibi")
        for head_dim in (0, 6)
    },
    "fewer keys": {"heads": 4, "kv_heads": 2},
    "one key": {"heads": 4, "kv_heads": 1, "position": "alibi"},
    "window": {"window": 2},
    "window of one": {"window": 1, "position": "rotary"},
    "scale": {"scale": 0.3},
    "soft cap": {"softcap": 0.5, "position": "alibi"},
    "normalised": {"qk_norm": True, "position": "rotary", "base": 50.0},
    "sinks": {"sinks": True, "window": 3},
    "bias": {"bias": True},
    "gate of heads": {"gate": "per_head"},
    "gate of features": {"gate": "per_feature", "bias": True},
    "all": {
        "heads": 6, "kv_heads": 2, "head_dim": 4, "window": 3, "scale": 0.4, "softcap": 2.0, "qk_norm": True,
        "sinks": True, "bias": True, "gate": "per_feature", "position": "xpos",
    },
}  # fmt: skip


def with_settings(causal: bool, **settings: Any) -> Attention:
    """A block whose weights that begin at 0 or 1 are drawn."""
    block = attention(causal=causal, **settings).double()
    for name, weight in block.named_parameters():
        if weight.dim() == 1:
            torch.nn.init.normal_(weight, 1.0 if "norm" in name else 0.0, 0.5)
    return block


def turned(vector: Tensor, place: int, xpos: bool, sign: int, base: float = 1e4) -> Tensor:
    """Returns pairs of channels as complex numbers, rotated and, for xpos, scaled."""
    c = len(vector)
    parts = []
    for i in range(c // 2):
        angle = place * base ** (-2 * i / c)
        zeta = (2 * i + 0.4 * c) / (1.4 * c)
        size = zeta ** (sign * place / 512) if xpos else 1.0
        a, b = vector[2 * i], vector[2 * i + 1]
        parts += [
            size * (a * math.cos(angle) - b * math.sin(angle)),
            size * (a * math.sin(angle) + b * math.cos(angle)),
        ]
    return torch.stack(parts)


def gates_of(block: Attention, x: Tensor, h: int, c: int) -> Tensor:
    """The factors of the features of a head."""
    if block.gate is None:
        return x.new_ones(c)
    per_head = block.gate.out_features // block.heads
    return torch.sigmoid(block.gate(x)[h * per_head : (h + 1) * per_head]).expand(c)


def normalised(x: Tensor, norm: torch.nn.RMSNorm | None) -> Tensor:
    return x if norm is None else norm.weight * x / torch.sqrt((x * x).mean() + 1e-6)


def slow_attention(block: Attention, c: int) -> Callable[..., Tensor]:
    group = block.heads // block.kv_heads

    def slow(q: Tensor, kv: Tensor, mask_n: Tensor | None, mask_m: Tensor | None) -> Tensor:
        if block.position == "absolute":
            q, kv = (x + torch.stack([wave(i, x.shape[2]) for i in range(x.shape[1])]) for x in (q, kv))
        samples = []
        for b in range(len(q)):
            rows = []
            for i in range(q.shape[1]):
                heads = []
                for h in range(block.heads):
                    part, own = (slice(head * c, (head + 1) * c) for head in (h, h // group))
                    query = normalised(block.query(q[b, i])[part], block.query_norm)
                    logits, values = [], []
                    for j in range(kv.shape[1]):
                        if (mask_m is not None and not mask_m[b, j]) or (block.causal and j > i):
                            continue
                        if block.window and abs(i - j) >= block.window:
                            continue
                        key = normalised(block.key(kv[b, j])[own], block.key_norm)
                        first, second = query, key
                        if block.position in ("rotary", "xpos"):
                            first = turned(query, i, block.position == "xpos", 1, block.base)
                            second = turned(key, j, block.position == "xpos", -1, block.base)
                        bias = 2 ** (-8 * (h + 1) / block.heads) * abs(i - j) if block.position == "alibi" else 0.0
                        logit = first @ second * (block.scale or 1 / sqrt(c))
                        if block.softcap:
                            logit = block.softcap * torch.tanh(logit / block.softcap)
                        logits.append(logit - bias)
                        values.append(block.value(kv[b, j])[own])
                    mean = attended(logits, values, c, None if block.sinks is None else block.sinks[h])
                    heads.append(mean * gates_of(block, q[b, i], h, c))
                y = block.output(torch.cat(heads))
                rows.append(y if mask_n is None or mask_n[b, i] else torch.zeros_like(y))
            samples.append(torch.stack(rows))
        return torch.stack(samples)

    return slow


REAL = torch.arange(5) < torch.tensor([[5], [3], [0]])


@pytest.mark.parametrize("name", SETTINGS)
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("mask", [None, REAL], ids=["no mask", "ragged"])
def test_attention_is_its_equations(name: str, causal: bool, mask: Tensor | None) -> None:
    block = with_settings(causal, **SETTINGS[name])
    x = torch.randn(3, 5, 8, dtype=torch.float64)
    agree(block, slow_attention(block, block.query.out_features // block.heads), x, x.clone(), mask_n=mask, mask_m=mask)


@pytest.mark.parametrize("name", [name for name, settings in SETTINGS.items() if "window" in settings])
@pytest.mark.parametrize("mask", [None, REAL], ids=["no mask", "ragged"])
def test_blocks_of_queries_read_the_keys_of_their_windows(
    name: str, mask: Tensor | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(blocks_attention, "_LEAST_QUERIES", 1)
    block = with_settings(True, **SETTINGS[name] | {"window": min(2, SETTINGS[name]["window"])})
    slow = slow_attention(block, block.query.out_features // block.heads)
    x = torch.randn(3, 5, 8, dtype=torch.float64)
    agree(block, slow, x, x.clone(), mask_n=mask, mask_m=mask)
    agree(block, slow, x, x[:, :2].clone(), mask_n=mask, mask_m=None)  # fewer keys than queries


@pytest.mark.parametrize("mask", [None, REAL[:2]], ids=["no mask", "ragged"])
@pytest.mark.parametrize("window", [1, 3])
def test_decoding_keeps_the_keys_of_a_window(window: int, mask: Tensor | None) -> None:
    block = with_settings(True, window=window, position="alibi", heads=4, kv_heads=2)
    x = torch.randn(2, 5, 8, dtype=torch.float64)
    cache, rows = BlockCache((True, True)), []
    for start, end in ((0, 2), (2, 3), (3, 5)):
        part = x[:, start:end]
        rows.append(block.extend(cache, part, part, mask_m=None if mask is None else mask[:, :end]))
        cache.start = end
        assert cache.tensors["key"].shape[2] == min(end, window - 1)
    close(torch.cat(rows, 1), block(x, x, mask_m=mask))


def test_cross_attention_reads_keys_of_another_width_and_length() -> None:
    q, kv = torch.randn(3, 3, 8, dtype=torch.float64), torch.randn(3, 5, 6, dtype=torch.float64)
    for block in (attention(e=6).double(), with_settings(False, e=6, kv_heads=1, window=2, gate="per_head")):
        agree(block, slow_attention(block, 4), q, kv, mask_n=None, mask_m=REAL)


@pytest.mark.parametrize("settings", [{"position": "xpos"}, {"position": "alibi"}, {"window": 3, "softcap": 1.0}])
@pytest.mark.parametrize("causal", [False, True])
def test_weights_returns_the_weights_that_forward_uses(causal: bool, settings: dict[str, Any]) -> None:
    block = with_settings(causal, **settings)
    x = torch.randn(2, 5, 8, dtype=torch.float64)
    weights = block.weights(x, x, mask_m=REAL[:2])
    values = block.value(x).reshape(2, 5, 2, 4).transpose(1, 2)
    expected = block.output((weights @ values).transpose(1, 2).flatten(2))
    close(block(x, x, mask_m=REAL[:2]), expected)
    close(weights.sum(-1), torch.ones(2, 2, 5, dtype=torch.float64))


def test_equal_lengths_is_causal_only_for_equal_lengths() -> None:
    block, always, never = (
        attention(causal=causal, causal_rule=rule)
        for causal, rule in ((True, "equal_lengths"), (True, "always"), (False, "always"))
    )
    for fixed in (always, never):
        fixed.load_state_dict(block.state_dict())
    q, same, longer = torch.randn(2, 4, 8), torch.randn(2, 4, 8), torch.randn(2, 5, 8)
    assert block(q, same).equal(always(q, same))
    assert block(q, longer).equal(never(q, longer))


@pytest.mark.parametrize("position", ["rotary", "xpos"])
def test_only_differences_of_positions_matter(position: str) -> None:
    block = attention(position=position).double()
    x = torch.randn(1, 4, 8, dtype=torch.float64)
    shifted = torch.cat((torch.randn(1, 9, 8, dtype=torch.float64), x), dim=1)
    mask = torch.arange(13)[None] >= 9
    torch.testing.assert_close(block(shifted, shifted, mask_m=mask)[:, 9:], block(x, x), atol=1e-12, rtol=1e-12)


def test_xpos_stays_finite_far_beyond_training_lengths() -> None:
    block = attention(position="xpos", heads=1)
    x = torch.randn(1, 8192, 8)
    query, key, _ = block._project(x, x, None)
    assert query.isfinite().all()
    assert key.isfinite().all()


def test_dropout_is_on_the_weights_and_output_dropout_on_the_result() -> None:
    inside = attention(dropout=0.5, heads=1)
    x = torch.randn(1, 1, 8).expand(500, 1, 8)
    assert inside(x, x).eq(0).all(-1).float().mean().item() == pytest.approx(0.5, abs=0.1)
    outside = attention(output_dropout=0.5)
    assert outside(x, x).eq(0).float().mean().item() == pytest.approx(0.5, abs=0.05)


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("settings", [{"position": "rotary"}, {"position": "alibi"}, {"sinks": True, "window": 3}])
def test_dropout_is_the_same_for_a_few_samples_and_heads_at_a_time(
    settings: dict[str, Any], masked: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kernel, "LEAST", 1)
    block = with_settings(True, dropout=0.3, heads=3, d=12, e=12, **settings)
    x = torch.randn(3, 6, 12).double().requires_grad_()
    mask = torch.arange(6) < torch.tensor([6, 4, 2])[:, None] if masked else None
    results = []
    for most in (sys.maxsize, 40):
        monkeypatch.setattr(blocks_attention, "_MOST_WEIGHTS", most)
        torch.manual_seed(1)
        results.append(block(x, x, mask_n=mask, mask_m=mask))
    same_gradients(results[0], results[1], [x, *block.parameters()])


@pytest.mark.parametrize(
    ("settings", "causal"),
    [({}, False), ({"position": "rotary"}, True), ({"position": "alibi"}, True), ({"kv_heads": 1, "window": 3}, True),
     ({"scale": 0.7, "window": 2}, False)],
)  # fmt: skip
@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("has_gradients", [False, True])
def test_attention_to_few_keys_is_that_of_torch_s_kernel(
    settings: dict[str, Any], causal: bool, masked: bool, has_gradients: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    block = attention(causal=causal, heads=3, d=12, e=12, **settings).requires_grad_(has_gradients)
    x = torch.randn(3, 6, 12).requires_grad_(has_gradients)
    mask = torch.arange(6) < torch.tensor([6, 4, 0])[:, None] if masked else None
    results = []
    for least in (1, sys.maxsize):
        monkeypatch.setattr(blocks_attention, "_LEAST_WEIGHTS", least)
        results.append(block(x, x, mask_n=mask, mask_m=mask))
    same_gradients(results[0], results[1], [x, *block.parameters()] if has_gradients else [], tolerance=1e-5)


def test_padded_queries_may_be_computed() -> None:
    block = attention(padded="computed")
    x = torch.randn(3, 5, 8)
    assert block(x, x, mask_n=REAL, mask_m=REAL).equal(block(x, x, mask_m=REAL))


def in_pairs(x: Tensor, turns: Tensor) -> Tensor:
    """Rotates pairs of channels in real numbers, as exported models do."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(blocks_attention, "is_exporting", lambda: True)
        return blocks_attention.rotate(x, turns)


def drawn_with_layout(layout: str) -> Tensor:
    storage = torch.randn(481, dtype=torch.float64)
    if layout == "heads":
        return storage[:480].view(2, 5, 6, 8).transpose(1, 2)
    if layout == "odd offset":
        return storage[1:].view(2, 6, 5, 8)
    return storage[:480].view(2, 6, 8, 5).transpose(2, 3)


@pytest.mark.parametrize("layout", ["heads", "odd offset", "channels apart"])
def test_complex_products_rotate_as_real_ones_for_any_layout(layout: str) -> None:
    turns = blocks_attention.turns(torch.arange(-2, 3, dtype=torch.float64), 8)
    x = drawn_with_layout(layout).requires_grad_()
    probe = torch.randn(2, 6, 5, 8, dtype=torch.float64)
    results = [rotated(x, turns) for rotated in (blocks_attention.rotate, in_pairs)]
    torch.testing.assert_close(*results, atol=1e-12, rtol=0)
    gradients = [torch.autograd.grad((result * probe).square().sum(), x, create_graph=True)[0] for result in results]
    torch.testing.assert_close(*gradients, atol=1e-12, rtol=0)
    close(*[torch.autograd.grad(first.square().sum(), x)[0] for first in gradients])


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision_is_rotated_in_single_precision(dtype: torch.dtype) -> None:
    turns = blocks_attention.turns(torch.arange(5.0), 8)
    x = torch.randn(2, 6, 5, 8).to(dtype)
    rotated = blocks_attention.rotate(x, turns)
    assert rotated.dtype == dtype
    assert torch.equal(rotated, blocks_attention.rotate(x.float(), turns).to(dtype))


def test_steps_of_a_call_share_the_turns_of_positions(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[int] = []
    turns = blocks_attention.turns

    def counted_turns(*arguments: Any) -> Tensor:
        calls.append(1)
        return turns(*arguments)

    monkeypatch.setattr(blocks_attention, "turns", counted_turns)
    block, x = attention(position="xpos"), torch.randn(2, 5, 8)
    with call_scope():
        expected = block(x, x)
        close(block(x, x), expected)
    assert len(calls) == 2  # of queries and of keys
