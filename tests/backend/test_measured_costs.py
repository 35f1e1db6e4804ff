"""Costs that are counted while a model runs."""

from functools import partial

import pytest
import torch

from archlang.backend import measured_costs
from archlang.backend.architecture import Architecture
from archlang.backend.attach import rematerialize_bodies
from archlang.backend.measured_costs import LiveBytes, measure_costs, peak_in_training
from archlang.backend.runtime.loops import halting_loops
from archlang.backend.runtime.row_blocks import keep_freed_memory
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


def peak_with_numbers(module: Architecture, batch: int, together: int, numbers: torch.dtype) -> int:
    for loop in halting_loops(module):
        loop.all_steps = True
    if together:
        rematerialize_bodies(module, module.program.code, together)
    x, lengths = torch.zeros(batch, 300, dtype=torch.int64), torch.full((batch,), 300)
    keep_freed_memory()
    live = LiveBytes()
    with live:
        with torch.autocast("cpu", numbers, enabled=numbers != torch.float32):
            result = module(x, lengths=lengths)
        result.float().log_softmax(-1).sum().backward()
    return live.most - sum(weight.grad.nbytes for weight in module.parameters() if weight.grad is not None)


STEPS = "s = mean(learned[1, d]()) y = scan v in h carry s { s <- tanh(linear[d](s) + v) emit s }"
STACK = "y = 1 * h stack 3 { y <- y + feedforward[64](norm(y)) }"
HALTS = "y = 1 * h repeat 4 halting y by token_halt[threshold = 0.999] { y <- y + feedforward[64](norm(y)) }"
STATES = "s = mean(learned[1, d]()) y = scan v in linear[d](h) carry s { s <- s * sigmoid(v) emit s }"


@pytest.mark.parametrize("body", [ATTEND, STATES, STACK, HALTS, STEPS])
@pytest.mark.parametrize(("together", "numbers"), [(0, torch.float32), (2, torch.bfloat16)])
def test_the_peak_of_a_step_without_numbers_is_that_of_a_step(
    body: str, together: int, numbers: torch.dtype, compiled: Compiled
) -> None:
    make = partial(compiled, MODEL.format(body), vocab=5)
    peak = peak_in_training(make, 300, 3, numbers, together)
    assert peak == peak_with_numbers(make(), 3, together, numbers)
    unpadded = peak_in_training(make, 300, 3, numbers, together, is_padded=False)
    assert unpadded is not None
    assert unpadded <= peak


def test_what_runs_by_its_numbers_or_too_long_has_no_peak(compiled: Compiled, monkeypatch: pytest.MonkeyPatch) -> None:
    experts = "p = softmax(linear[4](h)) y = experts v in h by p * top_k[1](p) { emit linear[d](v) }"
    for body in (experts, "y = lstm[8](h)"):
        assert peak_in_training(partial(compiled, MODEL.format(body), vocab=5), 8, 2, torch.float32, 0) is None
    plain = partial(compiled, MODEL.format(STACK), vocab=5)
    assert peak_in_training(plain, 8, 2, torch.float32, 0) is not None
    monkeypatch.setattr(measured_costs, "_MOST_SECONDS", -1.0)
    assert peak_in_training(plain, 8, 2, torch.float32, 0) is None
