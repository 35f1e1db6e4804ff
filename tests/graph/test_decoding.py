"""What decoding keeps, beside the caches of a decoder."""

from pathlib import Path

import pytest
import torch

from archlang.backend.decode import incremental
from archlang.compile import build, compile_graph
from archlang.graph.decoding import decoding_state
from archlang.types import Dim

MODEL = """use archlang.models.linear_recurrences

model m[d = 8](x: tokens[n]) -> logits[n, vocab] {{
    h = embed[d](x)
    {}
    return linear[vocab](y)
}}
"""
PROJECTED = "q = linear[d](h)\nk = linear[d](h)\ng = log(sigmoid(linear[d](h)))\n"
ATTEND = "y = weigh[causal = true](softmax_keys[causal = true]({}), linear[d](h))"
ROWS = [
    ("y = attention[heads = 2, causal = true](h)", "16*n"),
    ("y = attention[heads = 4, kv_heads = 2, causal = true](h)", "8*n"),
    ("y = attention[heads = 2, causal = true, window = 4](h)", "48"),
    ("y = geometric_attention[heads = 2, causal = true](h)", "16*n"),
    ("y = lstm[6, layers = 2](h)", "24"),
    ("y = stack_rnn[slots = 9](h)", "53"),
    ("y = norm(h) + linear[d](h)", "0"),
    ("y = cumulative_sum(h) + shift[3](h)", "32"),
    ("y = gather[causal = true](h, linear[1](h))", "8*n"),
    ("y = convolve[d, width = 3, dilation = 2, causal = true](h)", "32"),
    ("y = cumulative_max(h) + cumulative_logsumexp(h)", "16"),
    (PROJECTED + "y = linear_attention[heads = 2](q, k, h, g)", "32"),
    (PROJECTED + "y = linear_attention_by_position[heads = 2](q, k, h, g, constant[d / 2, d]())", "32"),
    ("s = scores[2](linear[d](h), linear[d](h))\n" + ATTEND.format("5 * tanh(s / 5)"), "16*n"),
    ("f = cumulative_sum(log(sigmoid(linear[2](h))))\n"
     "s = scores[2](linear[d](h), linear[d](h)) + outer_sum(f, -f)\n" + ATTEND.format("s"), "18*n + 2"),
    *((f"a = {weights}\ny = weigh[causal = true](a, linear[d](h))", state) for weights, state in (
        ("softmax_keys[causal = true, window = 4](scores[2](linear[d](h), linear[d](h)))", "48"),
        ("softmax_keys[causal = true, window = 1](scores[2](linear[d](h), linear[d](h)))", "0"),
        ("softmax_keys[causal = true, window = 4](5 * tanh(scores[2, softcap = 3.0](h, h)) + alibi_bias[2](h, h))",
         "48"),
        ("sink_softmax_keys[causal = true, window = 4](scores[2](h, linear[d](h)), mean(learned[1, 2]()))", "48"),
        ("2 * softmax_keys[causal = true, window = 4](scores[2](h, linear[d](h)))", "16*n"),
        ("softmax_keys[causal = true](scores[2](h, linear[d](h)))", "16*n"),
    )),
    ("y = scan v after b[3] in h { emit v + sum(b) }", "24"),
    ("y = scan v after b in h { emit v + sum(b) }", "8*n"),
    ("y = h\nstack 3 { y <- y + attention[heads = 2, causal = true](y) }", "48*n"),
    ("y = h\nrepeat 2 { y <- attention[heads = 2, causal = true](y) }", "32*n"),
]  # fmt: skip


def kept(cache: incremental.RegionCache) -> int:
    """Returns the numbers in the caches of a decoder."""
    tensors = [tensor for block in cache.block_caches.values() for tensor in block.tensors.values()]
    tensors += [state for states in cache.carried.values() for state in states[-1]]
    return sum(tensor.numel() for tensor in tensors) + sum(kept(inner.cache) for inner in cache.inner.values())


@pytest.mark.parametrize(("body", "state"), ROWS)
def test_the_state_is_what_a_decoder_keeps(
    body: str, state: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "m.arch"
    file.write_text(MODEL.format(body), encoding="utf-8")
    graph = compile_graph(file, None, {"vocab": 7})
    stated = decoding_state(graph)
    assert stated is not None
    assert str(stated) == state
    caches: list[incremental.RegionCache] = []
    run = incremental.Extension._run

    def recorded(self: incremental.Extension, tokens: torch.Tensor, total: int) -> torch.Tensor:
        caches.append(self._region.cache)
        return run(self, tokens, total)

    monkeypatch.setattr(incremental.Extension, "_run", recorded)
    build(graph).eval().decode(begin=torch.randint(2, 7, (1, 12)), limit=3)
    outer = caches[-1]
    assert kept(outer) == stated.substitute({"n": Dim.of(outer.total)}).constant


def test_a_model_that_sees_its_future_keeps_nothing(tmp_path: Path) -> None:
    file = tmp_path / "m.arch"
    file.write_text(MODEL.format("y = attention[heads = 2](h)"), encoding="utf-8")
    assert decoding_state(compile_graph(file, None, {"vocab": 7})) is None
