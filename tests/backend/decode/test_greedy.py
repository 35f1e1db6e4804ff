"""Greedy decoding: incremental steps have the same results as the full model."""

from pathlib import Path

import pytest
import torch
from torch import Tensor

from archlang.backend import Architecture
from archlang.backend.decode import greedy as decoding
from archlang.backend.decode.greedy import target_of
from archlang.backend.decode.incremental import Extension
from archlang.backend.runtime.masks import code_inputs
from tests.closeness import close
from tests.conftest import Compiled
from tests.sampling import one_in
from tests.shipped_models import load_page, noisy

VOCAB, SOURCE = 7, 6
SMALL = {"d": 16, "heads": 2, "ff": 16, "layers": 2, "hidden": 16, "bits": 4, "width": 8}

HEAD = """
model m[d = 16](source: tokens[n], target: tokens[m]) -> logits[m, vocab] {
    memory = attention[2](embed[d](source))
    y = embed[d](target)
"""
LAYER = "y + attention[2](y, memory) + {}"
# How `z` comes of `y` and `memory`.
DECODERS = {
    "pointwise": "z = norm(feedforward[8](y) - y * 2)",
    "attention": "z = y + attention[2, causal = true](y)",
    "attention, xpos": "z = y + attention[2, position = xpos, causal = true](y)",
    "attention, alibi": "z = y + attention[2, position = alibi, causal = true](y)",
    "attention to a window":
        "z = y + attention[4, rotary, true, kv_heads = 2, window = 3, qk_norm = true, gate = per_head](y)",
    "attention to a window, with sinks and alibi":
        "a = y + attention[2, alibi, true, window = 2, sinks = true, softcap = 3.0, bias = true](y)\n"
        "b = a + attention[2, causal = true, window = 1](a)\n"
        "z = b + attention[2, causal = true, window = 3](b, memory)",
    "causal cross attention, alibi": "z = y + attention[2, position = alibi, causal = true](y, memory)",
    "causal cross attention": "z = y + attention[2, causal = true](y, memory)",
    "cross attention that is causal where lengths are equal":
        "z = y + attention[2, causal = true, causal_rule = equal_lengths](y, memory)",
    "relative attention": "z = y + relative_attention[2, causal = true](y)",
    "attention by distance and place": "z = y + absrel_attention[2, causal = true](y)",
    "cross attention by distance and place": "z = y + absrel_attention[2](y, memory)",
    "attention to the nearest": "z = y + geometric_attention[2, causal = true](y)",
    "attention to the nearest, normalised": "z = y + geometric_attention[2, causal = true, normalised = true](y)",
    "cross attention to the nearest": "z = y + geometric_attention[2](y, memory)",
    "absolute positions": "z = absolute_positions(y)",
    "reductions of the positions so far": "z = cumulative_sum(y) + cumulative_max(y) + cumulative_logsumexp(y)",
    "states at computed places":
        "z = gather[causal = true](y, 2 * sigmoid(linear[1](y)) * indices(y)) + gather(memory, indices(y) - 1)",
    "patches that have ended": "p = linear[d](patches[2](y))\n"
        "repeat 2 { p <- norm(p + attention[2, causal = true](p)) }\n"
        "z = y + hold[2](p, y)",
    "several positions for each":
        "z = every[2](gru_from_zero[d](interleave[2](linear[2 * d](y)))) + hold[3](every[3](y), y)",
    "a scan over patches": "m = learned[2, d]()\np = scan c in chunks[2](every[2](y)) carry m {\n"
        "e = c + attention[1](c, m)\nm <- norm(m + attention[1](m, c))\nemit e + attention[1, causal = true](c) }\n"
        "q = scan v after b[2] in interleave[2](concat(y, y)) { emit v + sum(b) }\nz = hold[2](p, y) + every[2](q)",
    "convolutions": "v = convolve[d, width = 3, dilation = 2, groups = 2, causal = true](y)\n"
        "w = v + hold[2](convolve[d, width = 3, stride = 2, causal = true](y), y)\nz = norm(w)",
    "reductions of rows":
        "s = scores(y, y)\nz = y * max_keys[causal = true](s) + logsumexp_keys[causal = true](s)",
    "rotary positions": "z = rotary_positions[1, scaling = yarn, factor = 2.0, trained = 9](y)",
    "rotary positions at computed ones": "z = rotary_positions_at[1](y, cumulative_sum(sigmoid(linear[1](y))))",
    "LSTM": "z = lstm[d, layers = 2](y)",
    "GRU": "z = gru[d](y, sum(memory))",
    "attentive GRU": "z = attentive_gru[d](y, memory, last(memory))",
    "stack RNN": "z = stack_rnn[d, slots = 5, width = 3](y)",
    "attention written with maps": "s = scores[2](y, y) + alibi_bias[2](y, y)\n"
        "z = y + weigh[causal = true](softmax_keys[causal = true](s), y)",
    "attention to a window, written with maps":
        "a = softmax_keys[causal = true, window = 3](scores[4, softcap = 2.0](y, linear[8](y)))\n"
        "b = sink_softmax_keys[causal = true, window = 2](scores[4](y, y), mean(learned[1, 4, init = normal]()))\n"
        "z = y + weigh[causal = true, times = 2](a * b, linear[8](y))",
    "windows of which no more is kept": "f = cumulative_sum(log(sigmoid(linear[2](y))))\n"
        "s = 2 * tanh(scores[2](y, y)) + alibi_bias[2](y, y) + outer_sum(f, -f)\n"
        "z = y + weigh[causal = true](softmax_keys[causal = true, window = 3](s), linear[16](y)) "
        "+ weigh[causal = true](softmax_keys[causal = true, window = 1](s), linear[16](y))",
    "sums of maps": "s = cumulative_sum_keys[backward = true](lower_triangle(sigmoid(convolve_map[2](scores(y, y)))))\n"
        "repeat 2 { y <- norm(y + sum_keys[causal = true](interpolate(scores(y, memory), s))) }\nz = y",
    "maps of a memory": "s = scores(y, memory)\n"
        "z = y + weigh(masked_softmax_keys(s, top_k_keys[2](s)), memory) "
        "+ weigh(softmax_keys[causal = true, window = 3](scores[2](y, memory)), memory)",
    "maps of a halting loop": "repeat 4 halting y by token_halt[0.8] {\n"
        "y <- norm(y + weigh[causal = true](softmax_keys[causal = true](scores[2](y, y)), y)) }\nz = y",
    "rows of maps": "s = scores[2](y, y)\n"
        "a = softmax_keys[causal = true](8 * tanh(s / 8) + relative_bias[2, 3](y, y))\n"
        "b = masked_softmax_keys[causal = true](s + outer_sum(linear[2](y), linear[2](y)),\n"
        "lower_triangle[diagonal = -1](2 - distances(y, y)) * top_k_keys[2, causal = true](s))\n"
        "z = y + weigh[causal = true](a * b + a / (1 + cumulative_sum_keys(sigmoid(s))), norm(y))",
    "places along rows": "g = lower_triangle(sigmoid(scores(y, y)))\n"
        "p = cumulative_sum_keys[backward = true, exclusive = true, causal = true](g)\n"
        "t = scores(y, learned[5, d, init = normal]())\ns = lower_triangle(scores(y, y) + interpolate(t, p))\n"
        "z = y + weigh[causal = true](s, y) / (1 + sum_keys[causal = true](abs(s)))",
    "a map that a loop and its transpose read": "s = lower_triangle(scores(y, y))\n"
        "w = s * lower_triangle(s + transpose_map(s))\n"
        "repeat 2 { y <- norm(y + weigh[causal = true](softmax_keys[causal = true](s * scores(y, y)), y)) }\n"
        "z = y + weigh[causal = true](w, y)",
    "pointers": "z = concat(y, dereference(pointer_unit[2, d](addresses[4](memory), y), memory))",
    "pointers of the paper": "p = dereference[paper](pointer_unit[3, d, paper](addresses[4](memory), y), memory)\n"
        "z = concat(y, p, relational_read[2, form = paper](p, memory))",
    "pointers into what was written":
        "p = dereference[causal = true](pointer_unit[2, d, causal = true, restart = true](addresses[4](y), y), y)\n"
        "z = concat(y, p, relational_read[1, causal = true](p, y))",
    "pointers step by step into the source":
        "p = dereference[causal = true](pointer_unit[2, d, causal = true](addresses[4](memory), y), memory)\n"
        "z = concat(y, p, relational_read[1, causal = true](p, memory))",
    "reads of what was written": "z = concat(y, relational_read[1, causal = true](y, y))",
    "addresses of what was written": "z = dereference[paper](pointer_unit[2, d](addresses[4](memory), y), memory)",
    "start and end around what was written": "z = y + attention[2, causal = true](y, start_end(y))",
    "repeat": "repeat 3 { y <- norm(" + LAYER.format("attention[2, causal = true](y)") + ") }\nz = y",
    "stack": "stack 3 { y <- norm(" + LAYER.format("relative_attention[2, causal = true](y)") + ") }\nz = y",
    "loops in loops": "stack 2 { y <- norm(y + attention[2](y, memory))\n"
        "repeat 2 { y <- y + gru_from_zero[d](y) } }\nz = y",
    "two states": "x = y\nrepeat 3 { y <- norm(y + attention[2, causal = true](x)) x <- x + linear[d](y) }\nz = x + y",
    "a state that begins as what is read":
        "repeat 2 { memory <- norm(memory + attention[2](memory)) }\nz = y + attention[2](y, memory)",
    "token halting": "repeat 6 halting y by token_halt[0.9] {\n"
        "y <- norm(" + LAYER.format("attention[2, causal = true](y)") + ") }\nz = y",
    "token halting, mixture and another state":
        "x = y\nrepeat 6 halting y as s by token_halt[0.8, transition = true] {\n"
        "x <- norm(x + attention[2, causal = true](y, s)) y <- norm(y + attention[2](x, memory)) }\nz = x + y",
    "what is around a halting loop": "x = lstm[d](y)\nrepeat 5 halting y by token_halt[0.7, length_cap = false] {\n"
        "y <- norm(y + attention[2, causal = true](y, x)) }\nz = y + attention[2, causal = true](y)",
    "global halting": "repeat 6 halting y by global_halt[0.9, transition = true, causal = true] {\n"
        "y <- norm(" + LAYER.format("attention[2, causal = true, position = xpos](y)") + ") }\nz = y",
    "adaptive computation time": "repeat 6 halting y by act {\n"
        "y <- norm(" + LAYER.format("relative_attention[2, causal = true](y)") + ") }\nz = y",
    "halting in halting": "repeat 3 halting y by token_halt[0.9] {\n"
        "repeat 3 halting y by token_halt[0.8] { y <- norm(y + attention[2, causal = true](y)) }\n"
        "y <- norm(y + attention[2](y, memory)) }\nz = y",
    "chunks": "s = learned[3, d, init = normal]()\nz = scan c in chunks[4](y) carry s {\n"
        "a = c + attention[2, causal = true](c)\nb = a + attention[2](a, s) + attention[2](a, memory)\n"
        "s <- norm(s + attention[2](s, b))\nemit b }",
    "chunks of a growing size, with what they make of what is carried": "s = learned[3, d, init = normal]()\n"
        "z = scan c in chunks[4, balanced = true](y) carry s {\n"
        "a = c + attention[2](c, norm(s))\ns <- norm(s + attention[2](s, a))\nemit a }",
    "chunks, so many": "z = scan c in chunks[count = 3](y) { emit c + attention[2, causal = true](c) }",
    "chunks that halt": "s = learned[4, d, init = normal]()\nw = scan c in chunks[4](y) carry s {\n"
        "repeat 5 halting c by global_halt[0.95, causal = true] {\n"
        "a = c + attention[2, causal = true](norm(c))\n"
        "c <- a + attention[2, causal = true, causal_rule = equal_lengths](norm(a), norm(s)) }\n"
        "s <- norm(s + attention[2](s, c))\nemit c }\nz = w + attention[2, causal = true](w)",
    "what is carried alone": "s = learned[3, d, init = normal]()\nz = scan c in chunks[4](y) carry s {\n"
        "s <- norm(s + attention[2](s, c))\nemit c }",
    "a state that grows": "s = constant[0, d]()\nz = scan v in y carry s growing {\n"
        "a = norm(v + mean(s))\ns <- append(s, expand(a))\nemit a }",
    "states that grow together": "k = constant[0, d]()\nu = constant[0, d]()\nz = scan v in y carry k and u growing {\n"
        "k <- append(k, expand(v))\nu <- append(u, expand(linear[d](v)))\n"
        "emit sum(softmax_positions(sum_features(k * v)) * u) }",
    "states that grow from padding and by chunks": "s = constant[1, d]()\nw = scan v in y carry memory growing {\n"
        "a = norm(v + mean(memory))\nmemory <- append(memory, expand(a))\nemit a }\n"
        "z = scan c in chunks[3](w) carry s growing {\n"
        "a = norm(c + attention[2](c, s))\ns <- append(s, expand(mean(a)))\nemit a }",
    "what is before positions": "w = scan v after b[2] in y { emit v + tanh(sum(b)) }\n"
        "s = mean(memory)\nz = scan v after b in w carry s { s <- tanh(s + mean(b))\nemit v * s }",
    "chunks and what is before them": "s = mean(memory)\nz = scan c after b[3] in chunks[4](y) carry s {\n"
        "a = norm(c + attention[2, causal = true](c))\ne = a + attention[2](a, linear[d](b))\n"
        "s <- s + mean(b)\nemit e + s }",
    "chunks and all before them": "z = scan c after b in chunks[2](y) { emit c + attention[2](c, b) }",
    "what is before in chunks": "z = scan c after b[2] in chunks[3](y) {\n"
        "w = scan v after e in c { emit v + sum(e) + mean(b) }\nemit w }",
    "states that grow with chunks": "s = constant[1, d]()\np = constant[0, d]()\n"
        "z = scan c after b[1] in chunks[3](y) carry s growing, p growing {\n"
        "a = norm(c + attention[2](c, s) + attention[2](c, append(b, norm(p))))\n"
        "s <- append(s, a)\np <- append(p, expand(mean(a)))\nemit a }",
    "stacks in chunks in a stack": "stack 2 { z0 = scan c in chunks[3](y) {\n"
        "stack 2 { c <- norm(c + attention[2, causal = true](c)) }\nemit c }\n"
        "y <- norm(z0 + attention[2](z0, memory)) }\nz = y",
}  # fmt: skip


def program(body: str) -> str:
    return f"{HEAD}{body}\nreturn linear[vocab](z)\n}}\n"


def make_fields(module: Architecture, length: int = SOURCE) -> tuple[list[Tensor], dict[str, Tensor]]:
    """All fields except for the written one, and their lengths."""
    target = target_of(module.program.graph)
    others = [name for index, name in enumerate(module.program.fields) if index != target]
    lengths = torch.tensor([length, 3, length - 1])
    return [torch.randint(0, VOCAB, (3, length)) for _ in others], dict.fromkeys(others, lengths)


def extended(module: Architecture, tokens: Tensor, pieces: list[int]) -> tuple[Tensor, Tensor]:
    """The logits of pieces of a target, and those of the full model for each prefix."""
    fields, lengths = make_fields(module)
    target = target_of(module.program.graph)
    assert target is not None
    inputs = [*fields[:target], tokens, *fields[target:]]
    arguments = module.program, target, code_inputs(module.program, inputs, lengths)
    extension, of_last = Extension(module, *arguments), Extension(module, *arguments, last=True)
    pieced, expected, end = [], [], 0
    with torch.no_grad():
        for piece in pieces:
            begin, end = end, end + piece
            pieced.append(extension.extend(tokens[:, begin:end]))
            last = of_last.extend(tokens[:, begin:end])[:, -1:]
            torch.testing.assert_close(last, pieced[-1][:, -1:], rtol=1e-4, atol=1e-4)
            inputs[target] = tokens[:, :end]
            expected.append(module(*inputs, lengths=lengths or None)[:, begin:])
    return torch.cat(pieced, 1), torch.cat(expected, 1)


def holds(module: Architecture, length: int = 11) -> None:
    """Asserts that a target in pieces has the logits of the full model, in both precisions."""
    tokens = torch.randint(0, VOCAB, (3, length))
    for pieces, dtype, tolerance in (
        ([1] * length, torch.float64, 1e-10),
        ([4, 1, 1, 2, 1, 1, 1], torch.float64, 1e-10),
        ([1, 1, 2, 1, 2, 3, 1], torch.float32, 1e-4),
    ):
        pieced, expected = extended(module.to(dtype), tokens, pieces)
        torch.testing.assert_close(pieced, expected, rtol=tolerance, atol=tolerance)


# Equal to the full model


@pytest.mark.parametrize("body", one_in(3, DECODERS.values()), ids=DECODERS)
def test_incremental_logits_equal_those_of_the_full_model(body: str, compiled: Compiled) -> None:
    holds(noisy(compiled(program(body), vocab=VOCAB)))


GUT = """
model gut[d = 16, depth = 5](x: tokens[n]) -> logits[n, vocab] {
    h = embed[d](x)
    repeat depth halting h by global_halt[0.9, transition = true, causal = true] {
        a = h + attention[2, position = xpos, causal = true](norm(h))
        u = a + feedforward[16, activation = gelu](norm(a))
        h <- copy_gate(gate[16](norm(a)), u, h)
    }
    return linear[vocab](h)
}
"""


def test_a_language_model_continues_a_prompt(compiled: Compiled) -> None:
    module = noisy(compiled(GUT, vocab=VOCAB))
    holds(module)
    prompt = torch.randint(0, VOCAB, (2, 4))
    written = module.decode(begin=prompt, limit=5)
    assert written.tokens.shape == (2, 5)
    sequence = torch.cat((prompt, written.tokens), 1)
    assert module(sequence)[:, 3:-1].argmax(-1).equal(written.tokens)


@pytest.mark.parametrize("body", one_in(3, (body for body in DECODERS.values() if "halting" not in body)))
def test_all_cached_tensors_are_on_the_device_of_the_model(body: str, compiled: Compiled) -> None:
    # Tensors of the device `meta` have no values, and meet no tensors of another device.
    module = compiled(program(body), vocab=VOCAB).to("meta")
    fields, lengths = make_fields(module)
    meta_lengths = {name: length.to("meta") for name, length in lengths.items()}
    written = module.decode(*(field.to("meta") for field in fields), lengths=meta_lengths, begin=1, limit=3)
    assert written.logits.shape == (3, 3, VOCAB)
    assert {written.tokens.device.type, written.lengths.device.type} == {"meta"}


PLUGIN = '''
"""A block without `extend`."""
import torch
from torch import nn

class Average(nn.Module):
    def __init__(self, *, d): super().__init__()
    def forward(self, x, *, mask_n=None):
        return x.cumsum(1) / torch.arange(1, x.shape[1] + 1, device=x.device)[:, None]
'''


def test_a_block_without_extend_runs_on_all_positions(compiled: Compiled, tmp_path: Path) -> None:
    plugin = tmp_path / "average_plugin.py"
    plugin.write_text(PLUGIN)
    extern = 'extern block average(x: seq[n, d]) -> seq[n, d] reads x causal python "average_plugin:Average"\n'
    body = "repeat 2 { y <- y + linear[d](average(y)) }\nz = y + attention[2](y, memory)"
    holds(noisy(compiled(extern + program(body), vocab=VOCAB, plugins=[plugin])))


def test_values_independent_of_the_answer_are_computed_once(compiled: Compiled) -> None:
    body = "stack 2 { memory <- norm(memory + attention[2](memory)) }\nz = y + attention[2](y, memory)"
    module = noisy(compiled(program(body), vocab=VOCAB))
    called = {name: 0 for name, _ in module.named_modules()}

    def count(name: str) -> None:
        called[name] += 1

    for name, part in module.named_modules():
        part.register_forward_hook(lambda *_, name=name: count(name))
    fields, lengths = make_fields(module)
    module.decode(*fields, lengths=lengths, begin=1, limit=9)
    once = {name for name, times in called.items() if times == 1}
    assert {"embed", "attention", "stack.0.attention", "stack.1.attention", "stack.0.norm"} <= once
    assert called["linear"] == 9


def test_only_new_positions_are_computed(compiled: Compiled) -> None:
    module = noisy(compiled(program(DECODERS["stack"]), vocab=VOCAB))
    widths = []
    module.get_submodule("stack.0.norm").register_forward_hook(
        lambda _, inputs, result: widths.append(inputs[0].shape[1])
    )
    fields, lengths = make_fields(module)
    module.decode(*fields, lengths=lengths, begin=1, limit=9)
    assert widths == [1] * 9


def test_a_prompt_has_logits_at_its_last_position_alone(compiled: Compiled) -> None:
    body = "h = embed[8](x) return linear[vocab](norm(h + attention[2, causal = true](h)) * 2)"
    module = noisy(compiled(f"model m(x: tokens[n]) -> logits[n, vocab] {{ {body} }}", vocab=VOCAB))
    widths = []
    for name in ("norm", "linear"):
        module.get_submodule(name).register_forward_hook(lambda _, inputs, __: widths.append(inputs[0].shape[1]))
    module.decode(begin=torch.randint(0, VOCAB, (2, 6)), limit=2)
    assert widths == [1] * 4


def test_only_new_rows_of_maps_are_computed(compiled: Compiled) -> None:
    module = noisy(compiled(program(DECODERS["rows of maps"]), vocab=VOCAB))
    shapes: dict[str, list[torch.Size]] = {"scores": [], "softmax_keys": [], "weigh": []}
    for name, seen in shapes.items():
        module.get_submodule(name).register_forward_hook(lambda _, inputs, __, seen=seen: seen.append(inputs[0].shape))
    fields, lengths = make_fields(module)
    module.decode(*fields, lengths=lengths, begin=1, limit=9)
    assert {name: [shape[1] for shape in seen] for name, seen in shapes.items()} == dict.fromkeys(shapes, [1] * 9)
    assert [shape[2] for shape in shapes["weigh"]] == list(range(1, 10))


def test_a_scan_over_positions_computes_only_new_ones(compiled: Compiled) -> None:
    text = "s = mean(learned[1, d]()) y = scan v in embed[d](x) carry s { s <- tanh(linear[d](v) + norm(s)) emit s }"
    module = compiled(f"model m[d = 4](x: tokens[n]) -> logits[n, vocab] {{ {text} return linear[vocab](y) }}")
    steps: list[int] = []
    module.get_submodule("norm").register_forward_hook(lambda *_: steps.append(1))
    prompt = torch.randint(11, (2, 3))
    written = module.decode(begin=prompt, limit=4)
    assert len(steps) == 3 + 3  # the last token is not read
    assert torch.equal(written.tokens, module.decode(begin=prompt, limit=4, cache=False).tokens)


def test_scans_with_what_is_before_and_states_that_grow_compute_only_new_positions(compiled: Compiled) -> None:
    text = "y = embed[d](x) s = constant[1, d]() z = scan c after b[2] in chunks[3](y) carry s growing { "
    text += "e = c + attention[2](c, s) a = norm(e + attention[2](e, b)) s <- append(s, a) emit a } "
    text += "w = scan v after e in z { emit norm(v + mean(e)) }"
    module = compiled(f"model m[d = 4](x: tokens[n]) -> logits[n, vocab] {{ {text} return linear[vocab](w) }}")
    shapes: list[int] = []
    module.get_submodule("norm").register_forward_hook(lambda _, inputs, result: shapes.append(inputs[0].shape[1]))
    module.decode(begin=torch.randint(11, (2, 4)), limit=6)
    # A prompt of a chunk and one position, and of a chunk again once it is full.
    assert shapes == [3, 3, 1, 1, 1, 3, 1, 1, 1]


# Writing


@pytest.fixture
def writer(compiled: Compiled) -> Architecture:
    return noisy(compiled(program(DECODERS["repeat"]), vocab=VOCAB))


@pytest.mark.parametrize("cache", [True, False])
def test_the_model_reads_the_likeliest_token_next(writer: Architecture, cache: bool) -> None:
    fields, lengths = make_fields(writer)
    written = writer.decode(*fields, lengths=lengths, begin=2, limit=8, cache=cache)
    seen = torch.cat((torch.full((3, 1), 2), written.choices[:, :-1]), 1)
    logits = writer(*fields, seen, lengths=lengths)
    close(written.logits, logits)
    assert logits.argmax(-1).equal(written.choices)
    assert written.tokens.equal(written.choices)
    assert written.lengths.tolist() == [8, 8, 8]


def scripted(rows: list[list[int]]) -> Architecture:
    """A model that writes fixed answers."""
    columns = iter(torch.tensor(rows).unbind(1))

    class Script(torch.nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return torch.nn.functional.one_hot(next(columns)[:, None], VOCAB).float()

    module = load_page("panm", "panm_bigru", vocab=VOCAB, hidden=4)
    module.linear = Script()
    return module


ROWS = [[3, 4, 0, 1, 5, 2, 6, 6], [0, 4, 3, 1, 0, 2, 0, 6], [5, 5, 5, 0, 3, 0, 6, 6]]


def test_an_answer_stops_before_its_first_end_and_decoding_when_all_have_ended() -> None:
    written = scripted(ROWS).decode(torch.zeros(3, 2, dtype=torch.int64), begin=1, end=0, limit=8)
    assert written.choices.tolist() == [row[:4] for row in ROWS]
    assert written.lengths.tolist() == [2, 0, 3]
    assert written.tokens.tolist() == [[3, 4, 0, 0], [0, 0, 0, 0], [5, 5, 5, 0]]


def test_an_answer_that_never_ends_is_as_long_as_the_limit() -> None:
    written = scripted(ROWS).decode(torch.zeros(3, 2, dtype=torch.int64), begin=1, end=0, limit=3)
    assert written.lengths.tolist() == [2, 0, 3]
    assert written.choices.shape == (3, 3)
    assert scripted(ROWS).decode(torch.zeros(3, 2, dtype=torch.int64), begin=1, end=0, limit=0).tokens.shape == (3, 0)


def test_an_answer_that_never_ends_stops_somewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    assert decoding.LIMIT == 1_000
    monkeypatch.setattr(decoding, "LIMIT", 20)
    written = scripted([[3] * 30] * 2).decode(torch.zeros(2, 2, dtype=torch.int64), begin=1, end=0)
    assert written.lengths.tolist() == [20, 20]


def test_a_known_length_puts_the_second_best_where_the_end_was_chosen(writer: Architecture) -> None:
    fields, lengths = make_fields(writer)
    free = writer.decode(*fields, lengths=lengths, begin=2, limit=7)
    end = int(free.choices.flatten().mode().values)
    answer_lengths = torch.tensor([6, 2, 4])
    written = writer.decode(*fields, lengths=lengths, begin=2, end=end, answer_lengths=answer_lengths)
    # The choices are the same, also after an end, and one step longer than the longest answer.
    assert written.choices.equal(free.choices)
    assert (written.choices == end).any()
    others = free.logits.clone()
    others[..., end] = -torch.inf
    for row, length in enumerate(answer_lengths.tolist()):
        assert written.tokens[row, :length].equal(others[row, :length].argmax(-1))
        assert written.tokens[row, length:].eq(end).all()
    assert written.lengths.equal(answer_lengths)


def test_an_answer_without_an_end_has_its_answer_length(writer: Architecture) -> None:
    fields, lengths = make_fields(writer)
    written = writer.decode(*fields, lengths=lengths, begin=2, answer_lengths=torch.tensor([3, 5, 0]))
    assert written.choices.shape == (3, 5)
    assert written.tokens[0, 3:].eq(0).all()
    assert written.tokens[2].eq(0).all()


def test_decoding_does_not_change_the_module(compiled: Compiled) -> None:
    module = compiled(program("z = y + dropout[0.5](attention[2, causal = true](y))"), vocab=VOCAB).train()
    fields, lengths = make_fields(module)
    written = module.decode(*fields, lengths=lengths, begin=2, limit=6)
    assert module.training
    assert written.logits.equal(module.decode(*fields, lengths=lengths, begin=2, limit=6).logits)
    assert not written.logits.requires_grad


@pytest.mark.parametrize("cache", [True, False])
def test_a_model_that_draws_at_test_time_draws_once(cache: bool) -> None:
    module = noisy(load_page("panm", "panm_bigru", vocab=VOCAB, hidden=16, bits=4))
    fields, lengths = make_fields(module)
    torch.manual_seed(3)
    written = module.decode(*fields, lengths=lengths, begin=2, limit=6, cache=cache)
    torch.manual_seed(3)
    logits = module(*fields, torch.zeros(3, 6, dtype=torch.int64), lengths=lengths)
    close(written.logits, logits)


# Which models write


@pytest.mark.parametrize(
    "text",
    [
        "model m[d = 8](source: tokens[n], target: tokens[m]) -> logits[m, vocab] {\n"
        "y = embed[d](target)\nreturn linear[vocab](y + attention[2](y))\n}",
        "model m[d = 8](x: tokens[n]) -> logits[classes] {\nreturn embed[d](x) |> last |> linear[classes]\n}",
        "model m[d = 8](a: tokens[n], b: tokens[n]) -> logits[n, vocab] {\n"
        "return linear[vocab](embed[d](a) + embed[d](b))\n}",
        "model m[d = 8](x: tokens[n]) -> logits[n, 3] {\nreturn linear[3](embed[d](x))\n}",
    ],
    ids=["sees the future", "no positions", "two fields of one length", "another vocabulary"],
)
def test_a_model_that_writes_no_sequence_raises_an_error(text: str, compiled: Compiled) -> None:
    module = compiled(text, vocab=VOCAB)
    assert target_of(module.program.graph) is None
    with pytest.raises(TypeError, match="`m` writes no sequence"):
        module.decode(torch.zeros(1, 2, dtype=torch.int64), begin=0, limit=2)


def test_errors_of_wrong_calls_name_the_expected_arguments(writer: Architecture, compiled: Compiled) -> None:
    alone = compiled("model m(x: tokens[n]) -> logits[n, vocab] { return linear[vocab](embed[4](x)) }")
    with pytest.raises(TypeError, match="`m` takes no lengths: it reads `x` alone"):
        alone.decode(begin=torch.zeros(2, 3, dtype=torch.int64), lengths=[3, 2], limit=2)
    source = torch.zeros(1, 2, dtype=torch.int64)
    with pytest.raises(TypeError, match="`m` writes `target` from the field `source`, and got 2"):
        writer.decode(source, source, begin=0, limit=2)
    with pytest.raises(TypeError, match="decoding has no limit"):
        writer.decode(source, begin=0)


@pytest.mark.parametrize(
    "body",
    [
        "y = scan c in chunks[3](h) { z = scan e in chunks[2](c) { emit reverse(reverse(e)) }\n emit z }",
        "y = scan c in chunks[3](h) { z = scan e in chunks[1](c) { emit attention[1](e) }\n emit z }",
        "e = start_end(h)\n s = scan c in chunks[3](e) { emit c }\n y = attention[1, causal = true](h, s)",
        "y = lstm[d](attention[1](absolute_positions(zeros[d](x))))",
        "y = attention[1, causal = true](h, reverse(absolute_positions(zeros[d](x))))",
        "m = learned[2, d, init = normal]()\n"
        " s = scan c in chunks[2](h) carry m { emit c + attention[1](c, m)\n m <- m }\n y = s + attention[1](h, m)",
    ],
)
@pytest.mark.parametrize("prompt", [1, 4, 7])
def test_results_that_change_as_the_answer_grows_are_computed_again(compiled: Compiled, body: str, prompt: int) -> None:
    head = "model m[d = 8](x: tokens[n]) -> logits[n, vocab] {\n h = embed[d](x)\n"
    module = compiled(f"{head} {body}\n return linear[vocab](y)\n}}").double().eval()
    begin = torch.randint(0, 11, (2, prompt))
    cached = module.decode(begin=begin, limit=5)
    close(cached.logits, module.decode(begin=begin, limit=5, cache=False).logits)
