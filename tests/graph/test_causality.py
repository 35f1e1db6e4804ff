"""The checker composes what blocks read into what a model's result depends on."""

import pytest

from archlang.compile import check_text
from archlang.diagnostics import Diagnostic

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
    "a loop": "repeat 3 { h <- h + attention[2, causal = true](h) }\nreturn linear[vocab](h)",
    "a halting loop": "repeat 3 halting h by global_halt[causal = true] { h <- norm(h) }\nreturn linear[vocab](h)",
    "token halting": "repeat 3 halting h as s by token_halt { h <- h + attention[2, causal = true](h, s) }\n"
    "return linear[vocab](h)",
    "memory read before it moves": "m = learned[4, d]()\n"
    "y = scan c in chunks[4](h) carry m {\n"
    "a = c + attention[2](c, m)\nm <- m + attention[2](m, a)\nemit a }\nreturn linear[vocab](y)",
    "a nested scan": "m = learned[4, d]()\n"
    "y = scan c in chunks[8](h) carry m {\n"
    "k = m\n"
    "z = scan e in chunks[2](c) carry k { f = e + attention[2](e, k)\nk <- k + attention[2](k, f)\nemit f }\n"
    "m <- m + attention[2](m, z)\nemit z }\nreturn linear[vocab](y)",
}

LEAKING = {
    "full attention": ("a = h + attention[2](norm(h))\nreturn linear[vocab](a)", "attention"),
    "one loop of many": (
        "repeat 2 { h <- h + attention[2, causal = true](h) }\nstack 2 { h <- h + attention[2](h) }\n"
        "return linear[vocab](h)",
        "attention",
    ),
    "halting on the whole": (
        "repeat 3 halting h by global_halt { h <- norm(h) }\nreturn linear[vocab](h)",
        "global_halt",
    ),
    "memory read after it moves": (
        "m = learned[4, d]()\ny = scan c in chunks[4](h) carry m {\n"
        "m <- m + attention[2](m, c)\nemit c + attention[2](c, m) }\nreturn linear[vocab](y)",
        "attention",
    ),
    "memory that starts from the whole": (
        "m = attention[2](learned[4, d](), h)\ny = scan c in chunks[4](h) carry m {\n"
        "a = c + attention[2](c, m)\nm <- m + attention[2](m, a)\nemit a }\nreturn linear[vocab](y)",
        "attention",
    ),
    "the whole sequence read inside a chunk": (
        "y = scan c in chunks[4](h) { emit c + attention[2](c, h) }\nreturn linear[vocab](y)",
        "attention",
    ),
}


@pytest.mark.parametrize("body", CAUSAL.values(), ids=CAUSAL)
def test_a_causal_model_may_do_language_modelling(body: str) -> None:
    assert leaks(body) == []


@pytest.mark.parametrize(("body", "culprit"), LEAKING.values(), ids=LEAKING)
def test_a_leak_is_refused_and_named(body: str, culprit: str) -> None:
    (found,) = leaks(body)
    assert found.code == "E0501"
    assert culprit in found.message


def test_the_path_of_a_leak_names_every_block_on_it() -> None:
    (found,) = leaks("a = h + attention[2](norm(h))\nb = feedforward[8](a)\nreturn linear[vocab](b)")
    assert "x -> attention -> a -> feedforward -> linear -> result" in found.message
    assert found.span.text == "attention[2](norm(h))"


def test_a_block_around_the_leak_does_not_hide_it() -> None:
    program = (
        "block layer(h: seq[n, d]) -> seq[n, d] { return h + attention[2](h) }\n"
        "model m[d = 16](x: tokens[n]) -> logits[n, vocab] { return embed[d](x) |> layer |> linear[vocab] }\n" + RECIPE
    )
    (found,) = check_text(program)
    assert found.code == "E0501"
    assert found.span.text == "attention[2](h)"
