"""The checker composes the reads of the blocks into the inputs on which a model's result depends."""

import pytest

from archlang.errors import Diagnostic
from archlang.plan.check import check_text

RECIPE = """
recipe r {
    task  flipflop
    model m
    train adamw[steps = 10]
}
"""


def leaks(body: str) -> list[Diagnostic]:
    program = f"model m[d = 16](x: tokens[n]) -> logits[n, vocab] {{\n    h = embed[d](x)\n{body}\n}}\n{RECIPE}"
    return list(check_text(program))


CAUSAL = {
    "pointwise": "return linear[vocab](relu(norm(h)))",
    "causal attention": "a = h + attention[2, causal = true](norm(h))\nreturn linear[vocab](a)",
    "attention with places": "a = attention[2, position = xpos, causal = true](h)\n"
    "return linear[vocab](geometric_attention[2, causal = true](a))",
    "a loop": "repeat 3 { h <- h + attention[2, causal = true](h) }\nreturn linear[vocab](h)",
    "a halting loop": "repeat 3 halting h by global_halt[causal = true] { h <- norm(h) }\nreturn linear[vocab](h)",
    "token halting": "repeat 3 halting h as s by token_halt { h <- h + attention[2, causal = true](h, s) }\n"
    "return linear[vocab](h)",
    "emission of token halting": "y = repeat 4 halting h by token_halt[0.9] {\n"
    "h <- h + attention[2, causal = true](h)\nemit linear[vocab](h) }\nreturn y",
    "memory read before it moves": "m = learned[4, d]()\n"
    "y = scan c in chunks[4](h) carry m {\n"
    "a = c + attention[2](c, m)\nm <- m + attention[2](m, a)\nemit a }\nreturn linear[vocab](y)",
    "a state that no chunk moves": "m = learned[4, d]()\n"
    "y = scan c in chunks[4](h) carry m { m <- norm(m)\nemit c }\nreturn linear[vocab](y + attention[2](h, m))",
    "addresses, which hold no data": "w = pointer_unit[hidden = 8, causal = true](addresses[4](h), h)\n"
    "return linear[vocab](linear[d](dereference[causal = true](w, h)))",
    "the first position of a chunk": "y = scan c in chunks[4](h) { emit gru[d](c, first(c)) }\nreturn linear[vocab](y)",
    "the first position of the sequence in a chunk": "s = first(h)\ny = scan c in chunks[4](h) { emit gru[d](c, s) }\n"
    "return linear[vocab](y)",
    "a vector of the chunks before": "m = mean(learned[2, d]())\n"
    "y = scan c in chunks[4](h) carry m { e = c + m\nm <- m + mean(c)\nemit e }\nreturn linear[vocab](y)",
    "the first positions, read causally": "return linear[vocab](attention[2, causal = true](h, slice[0, 3](h)))",
    "exclusive sums over the keys so far": "s = cumulative_sum_keys[exclusive = true](sigmoid(scores(h, h)))\n"
    "return linear[vocab](weigh[causal = true](lower_triangle(s), h))",
    "sums over the keys from the query back": "s = lower_triangle(sigmoid(scores(h, h)))\n"
    "return linear[vocab](weigh[causal = true](cumulative_sum_keys[backward = true](s), h))",
    "the positions before a chunk": "y = scan c after b[3] in chunks[4](h) { emit attention[2](c, b) }\n"
    "return linear[vocab](y)",
    "all positions before a position": "y = scan v after b in h { emit v + mean(attention[1](b)) }\n"
    "return linear[vocab](y)",
    "a state that grows by each chunk, and is read before that": "m = learned[2, d]()\n"
    "y = scan c in chunks[4](h) carry m growing { e = c + attention[1](c, m)\nm <- append(norm(m), e)\nemit e }\n"
    "return linear[vocab](y)",
    "a scan over the positions of a chunk": "m = learned[2, d]()\ny = scan c in chunks[4](h) carry m {\n"
    "s = mean(m)\nz = scan v in c carry s { s <- tanh(v + s)\nemit s }\nm <- m + attention[1](m, z)\nemit z }\n"
    "return linear[vocab](y)",
    "other states of act": "k = h\nrepeat 9 halting h by act { k <- tanh(k)\nh <- norm(h + linear[d](k)) }\n"
    "return linear[vocab](k)",
    "a state without data that halts by itself": "m = learned[3, d]()\n"
    "repeat 5 halting m by global_halt { m <- norm(m + linear[d](m)) }\nreturn linear[vocab](attention[2](h, m))",
    "a memory that reads only the chunk": "m = learned[4, d]()\n"
    "y = scan c in chunks[4](h) carry m { a = c + attention[2](c, m)\nm <- attention[2](m, c)\nemit a }\n"
    "return linear[vocab](y)",
    "a scan over a memory": "m = learned[4, d]()\n"
    "y = scan c in chunks[4](h) carry m {\nz = scan k in chunks[2](m) { emit norm(k) }\na = c + attention[2](c, z)\n"
    "m <- m + attention[2](m, c)\nemit a }\nreturn linear[vocab](y)",
    "attention written with maps": "a = softmax_keys[causal = true](scores[2](h, h))\n"
    "return linear[vocab](weigh[causal = true](a, h))",
    "patches that have ended": "p = linear[d](patches[3](h))\nrepeat 2 { p <- p + attention[1, causal = true](p) }\n"
    "return linear[vocab](h + hold[3](p, h) + hold[6](p, h) + hold[12](every[2](every[2](p)), h))",
    "a scan over the chunks of patches": "m = learned[2, d]()\n"
    "y = scan c in chunks[2](every[2](h)) carry m { e = c + attention[1](c, m)\nm <- m + attention[1](m, c)\n"
    "emit e + cumulative_sum(c) }\nreturn linear[vocab](hold[2](y, h))",
    "a scan over patches, written with maps": "s = mean(learned[1, d]())\n"
    "y = scan v in every[2](h) carry s { s <- tanh(v + s)\nemit s }\n"
    "a = softmax_keys[causal = true](scores(y, y))\nreturn linear[vocab](hold[2](weigh[causal = true](a, y), h))",
    "dilated and strided convolutions": "p = convolve[d, 3, stride = 2, causal = true](h)\n"
    "c = convolve[d, width = 2, dilation = 4, groups = 2, causal = true](h)\nreturn linear[vocab](c + hold[2](p, h))",
    "patches within a chunk": "y = scan c in chunks[4](h) {\n"
    "emit c + hold[2](cumulative_sum(every[2](c)), c) }\nreturn linear[vocab](y)",
    "groups of what was split": "k = tile_features[4](interleave[4](h))\n"
    "return linear[vocab](h + every[4](cumulative_sum(k)))",
    "a scan over what was split": "y = scan c in chunks[3](interleave[2](tile_features[2](h))) {\n"
    "emit c + first(c) }\nreturn linear[vocab](h + every[2](y))",
    "places that are not after the position": "p = 9 * sigmoid(linear[1](h))\n"
    "return linear[vocab](gather[causal = true](h, p) + h * gather[causal = true](p, indices(h) - 2))",
    "the lower triangle of a map": "p = sum_keys(sigmoid(lower_triangle(scores(h, h))))\nreturn linear[vocab](h * p)",
    "sums of keys before each position": "s = lower_triangle[-1](scores(h, h))\n"
    "a = exp(cumulative_sum_keys[backward = true](s))\nreturn linear[vocab](weigh[causal = true](a, h))",
    "elementwise arithmetic with maps": "s = tanh(scores(h, h)) + alibi_bias[1](h, h) + outer_sum(linear[1](h), "
    "linear[1](h))\nr = convolve_map[2](linear[2](s)) * transpose_map(s)\n"
    "return linear[vocab](weigh[causal = true](softmax_keys[causal = true](r), h))",
    "a map of a memory": "m = learned[4, d]()\n"
    "a = softmax_keys(outer_sum(linear[1](h), linear[1](m)))\nreturn linear[vocab](weigh(a, m))",
    "maps of a chunk": "y = scan c in chunks[4](h) {\n"
    "emit weigh[causal = true](softmax_keys[causal = true](scores(c, c)), c) }\nreturn linear[vocab](y)",
    "a map as a state": "s = lower_triangle(scores(h, h))\n"
    "repeat 3 { s <- lower_triangle(tanh(s + convolve_map[2](s))) }\nreturn linear[vocab](h * sum_keys(s))",
    "a gradient of what each position loses": "y = h\nrepeat 2 {\n"
    "e = sum_features(tanh(y + attention[1, causal = true](y, h)))\ny <- y - gradient(e, y) }\n"
    "return linear[vocab](y)",
    "a gradient in a scan": "m = learned[4, d]()\ny = scan v in h carry m {\n"
    "m <- m - gradient(mean(sum_features(tanh(m + v))), m)\nemit mean(m) }\nreturn linear[vocab](y)",
    "a gradient by a memory of the chunks before": "m = learned[4, d]()\ny = scan c in chunks[3](h) carry m {\n"
    "a = c + attention[1](c, m)\nm <- m - gradient(mean(linear[1](attention[1](c, m))), m)\nemit a }\n"
    "return linear[vocab](y)",
    "a nested scan": "m = learned[4, d]()\n"
    "y = scan c in chunks[8](h) carry m {\n"
    "k = m\n"
    "z = scan e in chunks[2](c) carry k { f = e + attention[2](e, k)\nk <- k + attention[2](k, f)\nemit f }\n"
    "m <- m + attention[2](m, z)\nemit z }\nreturn linear[vocab](y)",
}

LEAKING = {
    "a gradient of a loss of all positions": ("return linear[vocab](gradient(mean(sum_features(tanh(h))), h))", "mean"),
    "a gradient of a loss that reads earlier positions of the value": (
        "return linear[vocab](gradient(sum_features(tanh(cumulative_sum(h))), h))",
        "gradient",
    ),
    "a gradient by a memory of the chunk": (
        "m = learned[4, d]()\ny = scan c in chunks[3](h) carry m {\n"
        "m <- m - gradient(mean(linear[1](attention[1](c, m))), m)\nemit attention[1](c, m) }\n"
        "return linear[vocab](y)",
        "mean",
    ),
    "a state of another length in a halting loop": (
        "k = learned[3, d]()\nrepeat 6 halting h by token_halt { k <- k + 1\nh <- h + linear[d](h) }\n"
        "return linear[vocab](attention[1, causal = true](h, k))",
        "token_halt",
    ),
    "a memory that moves in a halting loop": (
        "m = learned[3, d]()\ny = scan c in chunks[4](h) carry m {\n"
        "repeat 6 halting c by token_halt { m <- m + 1\nc <- norm(c) }\nemit c + attention[2](c, m) }\n"
        "return linear[vocab](y)",
        "token_halt",
    ),
    "a scan over a memory that captures the chunk": (
        "m = learned[4, d]()\ny = scan c in chunks[4](h) carry m {\n"
        "z = scan k in chunks[2](m) { emit attention[1](k, c) }\nm <- m + attention[1](m, c)\n"
        "emit attention[1](c, z) }\nreturn linear[vocab](y)",
        "attention",
    ),
    "a scan over a memory that carries the chunk": (
        "m = learned[4, d]()\ny = scan c in chunks[4](h) carry m {\nq = c\n"
        "z = scan k in chunks[2](m) carry q { q <- q\nemit attention[1](k, q) }\nm <- m + attention[1](m, c)\n"
        "emit attention[1](c, z) }\nreturn linear[vocab](y)",
        "attention",
    ),
    "a scan over what holds no data that captures the sequence": (
        "y = scan c in chunks[2](learned[4, d]()) { emit attention[1](c, h) }\n"
        "return linear[vocab](attention[1, causal = true](h, y))",
        "attention",
    ),
    "a memory that the whole sequence moves": (
        "m = learned[2, d]()\ny = scan c in chunks[3](h) carry m {\na = c + attention[1](c, m)\n"
        "m <- m + attention[1](m, h)\nemit a }\nreturn linear[vocab](y)",
        "attention",
    ),
    "the first positions, read in full": ("return linear[vocab](attention[2](h, slice[0, 3](h)))", "attention"),
    "positions from the second on": (
        "return linear[vocab](attention[2, causal = true](h, slice[1, 3](h)))",
        "x -> slice -> attention",
    ),
    "sums over the keys so far that are read in full": (
        "s = cumulative_sum_keys(sigmoid(scores(h, h)))\nreturn linear[vocab](h * sum_keys(s))",
        "sum_keys",
    ),
    "sums over the keys from the last back": (
        "s = cumulative_sum_keys[backward = true](sigmoid(scores(h, h)))\n"
        "return linear[vocab](h * sum_keys[causal = true](s))",
        "x -> cumulative_sum_keys -> sum_keys",
    ),
    "the positions before the chunks of what sees the future": (
        "a = attention[2](h)\ny = scan c after b in chunks[4](a) { emit attention[1](norm(c), b) }\n"
        "return linear[vocab](y)",
        "attention",
    ),
    "the chunk beside the positions before it": (
        "y = scan c after b[2] in chunks[4](h) { emit attention[1](c, append(b, c)) }\nreturn linear[vocab](y)",
        "attention",
    ),
    "a state that has grown by the chunk": (
        "m = constant[0, d]()\ny = scan c in chunks[4](h) carry m growing { m <- append(m, c)\n"
        "emit attention[1](c, m) }\nreturn linear[vocab](y)",
        "attention",
    ),
    "a growing state that begins with all positions": (
        "m = h\ny = scan v in h carry m growing { e = v + mean(m)\nm <- append(m, expand(v))\nemit e }\n"
        "return linear[vocab](y)",
        "mean",
    ),
    "a growing state after the last position": (
        "m = constant[0, d]()\nscan v in h carry m growing { m <- append(m, expand(v)) }\n"
        "return linear[vocab](h + attention[1, causal = true](h, m))",
        "m",
    ),
    "a loop of no steps on the way": (
        "a = h + attention[2](h)\nrepeat 0 { a <- norm(a) }\nreturn linear[vocab](a)",
        "attention",
    ),
    "a vector of all positions": ("v = mean(h)\nreturn linear[vocab](h * v)", "x -> mean -> multiply"),
    "a vector of the chunk": ("y = scan c in chunks[4](h) { emit c + mean(c) }\nreturn linear[vocab](y)", "mean"),
    "patches that have not ended": (
        "return linear[vocab](h + attention[1, causal = true](h, every[2](h)))",
        "x -> every",
    ),
    "patches that are held too soon": ("return linear[vocab](h + hold[2](every[3](h), h))", "x -> every -> hold"),
    "patches that are split": (
        "p = interleave[2](patches[2](h))\nreturn linear[vocab](h + gather[causal = true](p, indices(h)))",
        "x -> interleave -> gather",
    ),
    "a convolution of positions around": ("return linear[vocab](convolve[d, width = 3](h))", "x -> convolve"),
    "a chunk of patches": (
        "y = scan c in chunks[2](every[2](h)) { emit attention[1](c) }\nreturn linear[vocab](hold[2](y, h))",
        "attention",
    ),
    "the patches of a reverse": ("return linear[vocab](reverse(hold[2](every[2](reverse(h)), h)))", "reverse"),
    "a loop whose every step sees twice as far": (
        "u = interleave[2](concat(h, h))\n"
        "repeat 3 { h <- every[2](attention[1, causal = true](u, h)) }\nreturn linear[vocab](h)",
        "x -> every -> h",
    ),
    "a reverse": ("return linear[vocab](h + reverse(h))", "reverse"),
    "a reverse of a reverse in between": (
        "return linear[vocab](reverse(attention[1, causal = true](reverse(h))))",
        "attention",
    ),
    "chunks of one position that read a sequence": (
        "y = scan c in chunks[1](h) { emit attention[2](c, h) }\nreturn linear[vocab](y)",
        "attention",
    ),
    "a softmax over all keys": (
        "a = softmax_keys(scores(h, h))\nreturn linear[vocab](weigh[causal = true](a, h))",
        "x -> softmax_keys -> weigh -> linear",
    ),
    "a map that weighs all keys": (
        "a = softmax_keys[causal = true](scores(h, h))\nreturn linear[vocab](weigh(a, h))",
        "weigh",
    ),
    "a softmax over all queries": (
        "return linear[vocab](weigh[causal = true](softmax_queries(scores(h, h)), h))",
        "softmax_queries",
    ),
    "a causal map that is transposed": (
        "a = transpose_map(softmax_keys[causal = true](scores(h, h)))\nreturn linear[vocab](h * sum_keys(a))",
        "sum_keys",
    ),
    "a map of the distances alone that weighs": (
        "a = exp(-abs(distances(h, h)))\nreturn linear[vocab](weigh(a, h))",
        "weigh",
    ),
    "an upper triangle": ("return linear[vocab](h * sum_keys(lower_triangle[1](scores(h, h))))", "lower_triangle"),
    "a map from outside of a scan": (
        "s = lower_triangle(scores(h, h))\n"
        "y = scan c in chunks[4](h) { emit attention[1](c, sum_keys(s)) }\nreturn linear[vocab](y)",
        "attention",
    ),
    "a map as a state that is read in full": (
        "s = scores(h, h)\nrepeat 3 { s <- tanh(s + softmax_keys(s)) }\nreturn linear[vocab](h * sum_keys(s))",
        "softmax_keys",
    ),
    "full attention": ("a = h + attention[2](norm(h))\nreturn linear[vocab](a)", "attention"),
    "halting on the whole inside of a loop": (
        "repeat 2 { repeat 3 halting h by global_halt { h <- norm(h) }\nh <- norm(h + linear[d](h)) }\n"
        "return linear[vocab](h)",
        "x -> global_halt -> add -> norm -> h -> linear",
    ),
    "halting on the whole of what a loop captures": (
        "repeat 2 { g = h\nrepeat 3 halting g by global_halt { g <- norm(g + h) }\n"
        "h <- h + attention[1, causal = true](h, g) }\nreturn linear[vocab](h)",
        "x -> global_halt -> attention",
    ),
    "halting on the whole around a reversed reverse": (
        "repeat 3 halting h by global_halt { h <- norm(reverse(norm(reverse(h)))) }\nreturn linear[vocab](h)",
        "x -> global_halt -> linear",
    ),
    "halting on the whole around a memory of the chunks before": (
        "repeat 3 halting h by global_halt {\nm = mean(learned[2, d]())\n"
        "y = scan c in chunks[4](h) carry m { e = c + m\nm <- m + mean(c)\nemit e }\nh <- y }\n"
        "return linear[vocab](h)",
        "x -> global_halt -> linear",
    ),
    "a chunk read beside the whole sequence": (
        "y = scan c in chunks[4](h) { q = c + mean(c)\nemit attention[1](q, h) }\nreturn linear[vocab](y)",
        "x -> attention -> y",
    ),
    "emission of halting on the whole": (
        "y = repeat 4 halting h by global_halt[0.9] { h <- h + linear[d](h)\nemit linear[vocab](h) }\nreturn y",
        "global_halt",
    ),
    "attention to the nearest": ("return linear[vocab](geometric_attention[2](h))", "geometric_attention"),
    "memory read after it moves": (
        "m = learned[4, d]()\ny = scan c in chunks[4](h) carry m {\n"
        "m <- m + attention[2](m, c)\nemit c + attention[2](c, m) }\nreturn linear[vocab](y)",
        "attention",
    ),
    "the whole sequence read at a position": (
        "s = mean(learned[1, d]())\ny = scan v in h carry s { s <- tanh(norm(v) + s + mean(h))\nemit s }\n"
        "return linear[vocab](y)",
        "mean",
    ),
    "the state after the last position": (
        "s = mean(learned[1, d]())\ny = scan v in h carry s { s <- tanh(v + s)\nemit s }\n"
        "return linear[vocab](gru[d](y, s))",
        "scan",
    ),
    "weights of experts": (
        "y = experts v in h by softmax_positions(linear[3](h)) { emit v }\nreturn linear[vocab](y)",
        "x -> softmax_positions -> y",
    ),
    "positions of experts": (
        "y = experts v in reverse(h) by softmax(linear[3](h)) { emit v }\nreturn linear[vocab](y)",
        "x -> reverse -> y",
    ),
}


@pytest.mark.parametrize("body", CAUSAL.values(), ids=CAUSAL)
def test_a_causal_model_may_do_language_modelling(body: str) -> None:
    assert leaks(body) == []


@pytest.mark.parametrize(("body", "culprit"), LEAKING.values(), ids=LEAKING)
def test_a_leak_is_reported_with_its_culprit(body: str, culprit: str) -> None:
    (diagnostic,) = leaks(body)
    assert diagnostic.code == "E0501"
    assert culprit in diagnostic.message


def test_a_leak_in_a_loop_points_at_the_loop_that_halts_by_all_positions() -> None:
    (diagnostic,) = leaks(
        "repeat 2 {\nrepeat 3 halting h by global_halt { h <- norm(h) }\nh <- h + linear[d](h) }\n"
        "return linear[vocab](h)"
    )
    assert diagnostic.span.text == "repeat 3 halting h by global_halt { h <- norm(h) }"
    assert "`global_halt` halts by all positions together" in diagnostic.label


def test_the_path_of_a_leak_names_every_block_on_it() -> None:
    (diagnostic,) = leaks("a = h + attention[2](norm(h))\nb = feedforward[8](a)\nreturn linear[vocab](b)")
    assert "x -> attention -> a -> feedforward -> linear -> result" in diagnostic.message
    assert diagnostic.span.text == "attention[2](norm(h))"


@pytest.mark.parametrize(
    ("held", "groups"), [("hold[{}](every[3](h), h)", 3), ("hold[{}](norm(every[3](every[2](h))), h)", 6)]
)
def test_the_remedy_of_a_leak_of_groups_names_a_hold_that_is_large_enough(held: str, groups: int) -> None:
    (diagnostic,) = leaks(f"return linear[vocab](h + {held.format(2)})")
    assert (diagnostic.code, f"with `hold[{groups}]`" in diagnostic.remedy) == ("E0501", True)
    assert leaks(f"return linear[vocab](h + {held.format(groups)})") == []


def test_a_block_around_the_leak_does_not_hide_it() -> None:
    program = (
        "block layer(h: seq[n, d]) -> seq[n, d] { return h + attention[2](h) }\n"
        "model m[d = 16](x: tokens[n]) -> logits[n, vocab] { return embed[d](x) |> layer |> linear[vocab] }\n" + RECIPE
    )
    (diagnostic,) = check_text(program)
    assert diagnostic.code == "E0501"
    assert diagnostic.span.text == "attention[2](h)"


def test_a_mirrored_value_of_another_length_is_not_mirrored_back() -> None:
    program = (
        'extern block cut(x: seq[n, d]) -> seq[n - 2, d] reads x pointwise python "mine:Cut"\n'
        "model m[d = 8](x: tokens[n]) -> logits[n, vocab] {\n    h = embed[d](x)\n"
        "    y = start_end(reverse(cut(reverse(h))))\n    return linear[vocab](h + y)\n}\n" + RECIPE
    )
    assert [mistake.code for mistake in check_text(program)] == ["E0501"]
