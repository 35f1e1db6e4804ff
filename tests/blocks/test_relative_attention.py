"""Relative attention, and its form with a gate, against loops over heads, queries and keys."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from archlang.blocks.relative_attention import AbsrelAttention, RelativeAttention
from tests.blocks.conftest import agree, attended, wave
from tests.closeness import close


def relative(*, gates: str = "", **statics: Any) -> RelativeAttention:  # Any: statics of several types
    """Returns relative attention, with `gates` absrel_attention, with random b and c instead of zeros."""
    usual = {"heads": 2, "scale": "learned", "causal": False, "dropout": 0.0, "key_dropout": 0.0, "output_dropout": 0.0}
    statics = {**usual, "head_dim": 0, "init": "torch", "d": 8, "e": 8, **statics}
    block = AbsrelAttention(gates=gates, **statics) if gates else RelativeAttention(**statics)
    nn.init.normal_(block.content_bias)
    nn.init.normal_(block.position_bias)
    return block


def slow_relative(block: RelativeAttention, c: int) -> Callable[..., Tensor]:
    def slow(q: Tensor, kv: Tensor, mask_n: Tensor | None, mask_m: Tensor | None) -> Tensor:
        d = q.shape[2]
        samples = []
        for b in range(len(q)):
            rows = []
            for i in range(q.shape[1]):
                heads = []
                for h in range(block.heads):
                    part = slice(h * c, (h + 1) * c)
                    query = block.query.weight[part] @ q[b, i]
                    logits, values = [], []
                    for j in range(kv.shape[1]):
                        if (mask_m is not None and not mask_m[b, j]) or (block.causal and j > i):
                            continue
                        place = block.position.weight[part] @ wave(j - i, d)
                        by_place = (query + block.position_bias[h]) @ place
                        if isinstance(block, AbsrelAttention):
                            gate = h if len(block.relative_gate.bias) > 1 else 0
                            logit = block.relative_gate.weight[gate] @ q[b, i] + block.relative_gate.bias[gate]
                            r = 1 / (1 + torch.exp(-logit))
                            fixed = (query + block.position_bias[h]) @ (block.position.weight[part] @ wave(j, d))
                            by_place = r * by_place + (1 - r) * fixed
                        content = (query + block.content_bias[h]) @ (block.key.weight[part] @ kv[b, j])
                        logits.append(block.scale * (content + by_place))
                        values.append(block.value.weight[part] @ kv[b, j])
                    heads.append(attended(logits, values, c))
                rows.append(block.output.weight @ torch.cat(heads))
            samples.append(torch.stack(rows))
        return torch.stack(samples)

    return slow


REAL = torch.arange(5) < torch.tensor([[5], [3], [0]])
GATES = ["", "per_head", "shared"]


@pytest.mark.parametrize("gates", GATES)
@pytest.mark.parametrize("scale", ["fixed", "learned"])
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("mask", [None, REAL], ids=["no mask", "ragged"])
def test_logits_are_sums_of_content_and_position_terms(
    gates: str, scale: str, causal: bool, mask: Tensor | None
) -> None:
    block = relative(gates=gates, scale=scale, causal=causal).double()
    x = torch.randn(3, 5, 8, dtype=torch.float64)
    agree(block, slow_relative(block, 4), x, x.clone(), mask_n=mask, mask_m=mask)


@pytest.mark.parametrize("gates", GATES)
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize(("n", "m"), [(1, 1), (1, 5), (3, 5), (6, 5)])
def test_keys_may_differ_in_number_and_width(gates: str, causal: bool, n: int, m: int) -> None:
    block = relative(gates=gates, causal=causal, e=6, head_dim=3).double()
    q, kv = torch.randn(2, n, 8, dtype=torch.float64), torch.randn(2, m, 6, dtype=torch.float64)
    agree(block, slow_relative(block, 3), q, kv, mask_n=None, mask_m=None)


def test_relative_attention_ignores_absolute_positions() -> None:
    block = relative().double()
    x = torch.randn(1, 4, 8, dtype=torch.float64)
    shifted = torch.cat((torch.randn(1, 9, 8, dtype=torch.float64), x), dim=1)
    mask = torch.arange(13)[None] >= 9
    torch.testing.assert_close(block(shifted, shifted, mask_m=mask)[:, 9:], block(x, x), atol=1e-12, rtol=1e-12)


def test_an_open_gate_is_relative_attention() -> None:
    gated, plain = relative(gates="per_head"), relative()
    plain.load_state_dict(gated.state_dict(), strict=False)
    assert isinstance(gated, AbsrelAttention)
    nn.init.zeros_(gated.relative_gate.weight)
    nn.init.constant_(gated.relative_gate.bias, 100.0)
    x = torch.randn(2, 5, 8)
    close(gated(x, x), plain(x, x))


def test_the_scale_starts_at_one_over_the_root_of_the_head_width() -> None:
    learned, fixed = relative(scale="learned").scale, relative(scale="fixed").scale
    assert isinstance(learned, nn.Parameter)
    assert learned.tolist() == [0.5]
    assert fixed == 0.5


def test_dropout_applies_in_three_places() -> None:
    x = torch.randn(1, 1, 8).expand(500, 1, 8)
    weights = relative(dropout=0.5, heads=1)
    assert weights(x, x).eq(0).all(-1).float().mean().item() == pytest.approx(0.5, abs=0.1)
    result = relative(output_dropout=0.5)
    assert result(x, x).eq(0).float().mean().item() == pytest.approx(0.5, abs=0.05)
    keys = relative(key_dropout=0.5)
    longer = torch.randn(1, 5, 8)
    assert keys.weights(longer, longer).ne(keys.weights(longer, longer)).any()
    close(keys.weights(longer, longer).sum(-1), torch.ones(1, 2, 5))
