"""Costs that are counted while a model runs."""

import pytest

from archlang.backend.measured_costs import measure_costs
from archlang.graph.summary import summarize
from tests.conftest import Compiled

MODEL = "model m[d = 16](x: tokens[n]) -> logits[n, vocab] {{ h = embed[d](x) {} return linear[vocab](y) }}"
ATTEND = "y = weigh[causal = true](softmax_keys[causal = true](tanh(scores[2](linear[d](h), h))), linear[d](h))"


@pytest.mark.parametrize(
    ("body", "kept"),
    [
        ("y = feedforward[24](norm(h)) + attention[2, causal = true](h)", (0.7, 1.3)),
        # Maps that are computed by rows, and a recurrence that is computed for all positions at once.
        (ATTEND, (0.2, 0.7)),
        ("s = mean(learned[1, d]()) y = scan v in linear[d](h) carry s { s <- s * sigmoid(v) emit s }", (1.2, 3)),
    ],
)
def test_flops_are_those_that_are_stated_and_activations_those_of_what_runs(
    body: str, kept: tuple[float, float], compiled: Compiled
) -> None:
    module = compiled(MODEL.format(body), vocab=5)
    assert module.program.origin is not None
    stated, measured = summarize(module.program.origin.graph, 300), measure_costs(module, 300, batch=3)
    assert measured["flops"] == 3 * stated.flops
    least, most = kept
    assert least < measured["activation_bytes"] / (3 * 4 * stated.activations) < most


def test_written_attention_costs_what_the_block_does_and_a_window_less(compiled: Compiled) -> None:
    bodies = {
        "block": "y = attention[2, causal = true](h)",
        "page": "a = softmax_keys[causal = true](scores[2](linear[d](h), linear[d](h)))\n"
        "y = linear[d](weigh[causal = true](a, linear[d](h)))",
        "window": "a = softmax_keys[causal = true, window = 8](scores[2, softcap = 3.0](h, h))\n"
        "y = weigh[causal = true](a, h)",
    }
    costs = {name: measure_costs(compiled(MODEL.format(body), vocab=5), 2048, batch=1) for name, body in bodies.items()}
    assert costs["page"]["flops"] == costs["block"]["flops"]
    assert costs["page"]["activation_bytes"] == pytest.approx(costs["block"]["activation_bytes"], rel=0.1)
    assert costs["window"]["flops"] < costs["block"]["flops"] / 10
