"""Samples without positions have finite results and gradients in every block of the library."""

import itertools
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from torch import nn

from archlang.backend import Architecture
from archlang.compile import load
from archlang.names import library
from archlang.syntax.tree import Extern

# The bodies of models: `h` is a sequence of width 8, `q` a sequence of another length, and `v` a vector.
ATTENTION = [
    "position = rotary", "position = xpos", "position = absolute", "causal = true", "dropout = 0.5",
    "position = alibi, causal = true", "causal = true, causal_rule = equal_lengths", "padded = computed",
    "causal = true, dropout = 0.5",
]  # fmt: skip
BODIES = {
    "absrel_attention": [
        f"{block}[2, gates = {gates}, causal = {causal}, dropout = {rate}]({inputs})"
        for block, gates, causal, rate, inputs in itertools.product(
            ["absrel_attention"], ["per_head", "shared"], ["true", "false"], ["0.0", "0.5"], ["h", "h, q"]
        )
    ],
    "attention": [f"attention[2, {statics}]({inputs})" for statics in ATTENTION for inputs in ("h", "h, q")],
    "attentive_gru": ["attentive_gru[8](h, q, v)"],
    "bilstm": ["bilstm[8, layers = 2](h)"],
    "chunks": [
        "scan c in chunks[2](h) { emit c + attention[2](c, q) }",
        "scan c in chunks[2, balanced = true](h) { emit c + attention[2](c) }",
        "scan c in chunks[count = 2](h) { emit norm(c) }",
    ],
    "geometric_attention": [
        f"geometric_attention[2, normalised = {normalised}, causal = {causal}, key_dropout = {rate}]({inputs})"
        for normalised, causal, rate, inputs in itertools.product(
            ["true", "false"], ["true", "false"], ["0.0", "0.5"], ["h", "h, q"]
        )
    ],
    "gru": ["gru[8](h, v)"],
    "gru_from_zero": ["gru_from_zero[8](h)"],
    "lstm": ["lstm[8, layers = 2](h)"],
    "dereference": [
        f"dereference[{statics}](pointer_unit[hidden = 4, pointers = 1, form = {form}{more}](addresses(q), h), q)"
        for statics, form, more in (
            ("form = code", "code", ""),
            ("form = paper", "paper", ""),
            ("form = code", "code", ", scrambled = true"),
            ("causal = true", "code", ", causal = true"),
        )
    ],
    "relational_read": [
        f"relational_read[hidden = 4, form = {form}, causal = {causal}](h, q)"
        for form in ("code", "paper")
        for causal in ("true", "false")
    ],
    "relative_attention": [
        f"relative_attention[2, scale = {scale}, causal = {causal}, dropout = {rate}]({inputs})"
        for scale, causal, rate, inputs in itertools.product(
            ["fixed", "learned"], ["true", "false"], ["0.0", "0.5"], ["h", "h, q"]
        )
    ],
    "reverse": ["reverse(h)"],
    "stack_rnn": ["stack_rnn[8, slots = 4](h)"],
    "start_end": ["start_end(h)"],
    "absolute_positions": ["absolute_positions(h)"],
    "zeros": ["zeros[8](x)"],
    "one_hot": ["one_hot(x)"],
    "unembed": ["unembed[e](h)"],
    "exact_match": ["h + exact_match(h)"],
    "first": ["first(h)"],
    "last": ["last(h)"],
    "mean": ["mean(h)"],
    "sum": ["sum(h)"],
    "max": ["max(h)"],
    "min": ["min(h)"],
    "distance_buckets": ["weigh(distance_buckets(distances(h, q)), q)"],
    "nondeterministic_stack": ["nondeterministic_stack[2, 2, 2](h)"],
    "rotary_positions": ["rotary_positions[2](h)"],
    "top_k_positions": ["top_k_positions[2](h)"],
    "transpose": ["h * mean(transpose[8](transpose[2](learned[2, 8]())))"],
    "softmax_positions": ["softmax_positions(h)"],
    "cumulative_sum": ["cumulative_sum(h)"],
    "head_columns": ["h * sum(sum_features(head_columns[2](v)))"],
    "linear_attention": [f"linear_attention[2](h, h, h, {g})" for g in ("-exp(h)", "-exp(linear[2](h))")],
    "retention": ["retention[2](h, h, h)"],
    "delta_rule": ["delta_rule[2](h, h, h, linear[2](h))"],
    "gated_delta_rule": ["gated_delta_rule[2](h, h, h, linear[2](h), -exp(linear[2](h)))"],
    "linear_recurrence": ["linear_recurrence[2](h, h, h, -exp(h), h, h, constant[4, 8]())"],
    "linear_recurrence_state": ["linear_recurrence_state[2](h, h, -exp(h), h, h, constant[4, 8]())"],
    "shift": ["shift(h) + shift[-1](h)"],
    "slice": ["slice[0, 2](h) + slice[-2, 2](h)"],
    "append": ["append(h, q)"],
    "pad": ["pad[1, 1](h)"],
    "expand": ["append(expand(v), h)"],
    "indices": ["h * indices(h)"],
    "gather": ["gather(h, indices(q))"],
    "weigh": ["weigh(scores[2](h, q), q)", "weigh[causal = true](scores(h, h), h)"],
    "sum_keys": ["h * sum_keys(scores(h, q))", "h * sum_keys[causal = true](scores(h, h))"],
    "outer_sum": ["weigh(outer_sum(linear[1](h), linear[1](q)), q)"],
    **{
        block: [f"weigh({block}{statics}({inner}), q)" for inner in ("scores[2](h, q)", "scores(h, q)")]
        for block, statics in {
            "softmax_keys": "",
            "softmax_queries": "",
            "lower_triangle": "",
            "cumulative_sum_keys": "",
            "convolve_map": "[3]",
            "top_k_keys": "[2]",
        }.items()
    },
    "scores": ["weigh(softmax_keys[causal = true](scores[4](h, q)), q)"],
    "masked_softmax_keys": ["weigh(masked_softmax_keys(scores(h, q), scores(h, q)), q)"],
    "transpose_map": ["weigh(transpose_map(scores(q, h)), q)"],
    "distances": ["weigh(distances(h, q), q)"],
    "alibi_bias": ["weigh(alibi_bias[2](h, q), q)"],
    "relative_bias": ["weigh(relative_bias[2, span = 2](h, q), q)"],
    "interpolate": [
        "weigh(interpolate(scores[2](h, h), scores[2](h, q)), q)",
        "weigh(interpolate(scores(h, q), scores(h, q)), q)",
    ],
    "bilstm_final": ["bilstm_final[8, layers = 2](h)", "bilstm_final[8, layers = 2, reads = misread](h)"],
}
# Blocks that read each position alone, or that test_halting.py, test_act.py and models/test_bert.py test.
POINTWISE = {
    "abs", "concat", "copy_gate", "dropout", "embed", "exp", "feedforward", "gate", "gelu", "linear", "mlp", "norm",
    "relu", "sigmoid", "silu", "softplus", "tanh", "log", "softmax", "sum_features", "max_features", "min_features",
    "product_features", "length_features", "integer_arithmetic", "clamp", "uniform_noise",
    "top_k", "detach", "noise", "gumbel_noise", "greater", "equal", "slice_features", "repeat_features",
    "tile_features", "group_norm", "rms_norm", "unit_norm",
}  # fmt: skip
OTHERS = {
    "act", "token_halt", "global_halt", "bernoulli_halt", "learned", "constant", "addresses", "pointer_unit",
    "uniform_steps", "log_normal_poisson", "models.bert.bert",
}  # fmt: skip
VECTORS = {"first", "last", "mean", "sum", "max", "min", "bilstm_final"}
RESULT_LENGTHS = {
    "start_end": "n + 2", "pad": "n + 2", "append": "n + m", "expand": "n + 1", "slice": "2", "gather": "m",
    "linear_recurrence_state": "4",
}  # fmt: skip
LENGTHS = [[0, 3], [0, 0]]
"""beside a longer sample, and where the padding is longer than every sample"""


def programs() -> Iterator[str]:
    for block, body in ((block, body) for block, bodies in BODIES.items() for body in bodies):
        length = "" if block in VECTORS else f"{RESULT_LENGTHS.get(block, 'n')}, "
        yield (
            f"model m(x: tokens[n], z: tokens[m]) -> logits[{length}vocab] {{\n"
            "    let e = embed[8]\n    h = e(x)\n    q = linear[8](e(z))\n    v = mean(h)\n"
            f"    y = {body}\n    return linear[vocab](y)\n}}\n"
        )


@pytest.fixture
def module(tmp_path: Path, request: pytest.FixtureRequest) -> Architecture:
    path = tmp_path / "program.arch"
    path.write_text(request.param)
    return load(path, vocab=5)


def test_every_block_of_the_library_is_tested() -> None:
    names = {name for name, item in library.blocks().items() if isinstance(item, Extern)}
    assert {*BODIES, *POINTWISE, *OTHERS} == names


@pytest.mark.parametrize("lengths", LENGTHS)
@pytest.mark.parametrize(
    "module", list(programs()), indirect=True, ids=list(itertools.chain.from_iterable(BODIES.values()))
)
def test_a_sample_without_positions_is_finite(module: Architecture, lengths: list[int]) -> None:
    for weight in module.parameters():
        nn.init.normal_(weight)
    for x_lengths, z_lengths in ((lengths, [2, 2]), ([3, 3], lengths), (lengths, lengths)):
        module.zero_grad()
        result = module(
            torch.ones(2, 3, dtype=torch.int64),
            torch.ones(2, 3, dtype=torch.int64),
            lengths={"x": x_lengths, "z": z_lengths},
        )
        assert result.isfinite().all()
        (result * torch.randn_like(result)).sum().backward()
        for name, weight in module.named_parameters():
            assert weight.grad is None or weight.grad.isfinite().all(), name


@pytest.mark.parametrize(
    "module", list(programs()), indirect=True, ids=list(itertools.chain.from_iterable(BODIES.values()))
)
def test_empty_samples_have_the_same_results_alone_and_beside_longer_samples(module: Architecture) -> None:
    for weight in module.parameters():
        nn.init.normal_(weight)
    module.eval()
    none, some = torch.ones(2, 0, dtype=torch.int64), torch.ones(2, 3, dtype=torch.int64)
    for x, z in ((none, some), (some, none), (none, none)):
        alone = module(x, z)
        assert alone.isfinite().all()
        lengths = {"x": [x.shape[1]] * 2, "z": [z.shape[1]] * 2}
        beside = module(some, some, lengths=lengths)
        torch.testing.assert_close(alone, beside[:, : alone.shape[1]], atol=1e-4, rtol=1e-4)
