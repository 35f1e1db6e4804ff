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
