"""Programs that an earlier checker accepted or rejected wrongly: each is rejected with a diagnostic in the user's file,
or has all properties. Those of tests/graph/test_causality.py are not repeated here."""

import time

import pytest

from tests.sampling import one_in
from tests.semantics.compiled import PATH, RECIPES, Compiled, Refused, compile_text, errors_of
from tests.semantics.failures import failures

HEAD = "model m[d = 8](x: tokens[n]) -> logits[n, vocab] {\n    h = embed[d](x)\n"
# Seeds of weights and inputs: an error that depends on when samples halt shows with some of them only.
SEEDS = range(3)
# In seconds, far above the time on a slow machine: a hang takes hours.
SLOWEST = 60.0


def model(body: str) -> str:
    """Returns the text of a model with one field and the embedding `h`."""
    return f"{HEAD}{body}\n}}\n\n"


def recipe(body: str) -> str:
    """Returns the text of a model and of a recipe that trains it to predict its input."""
    return f"{model(body)}{RECIPES[1]}"


# Each of these programs is rejected or has all properties.
EITHER = {
    "emission called A": "a = tanh(h) y = scan A in chunks[9](h) carry a { a <- norm(a) emit A * 2 }"
    " return linear[vocab](y + a)",
    "what a scan emits of a memory that the step before has moved": "m = learned[1, d, init = normal]()"
    " stack 2 { y = scan c in h + attention[1](h, m) carry m { m <- m + expand(c) emit c }"
    " h <- attention[1, causal = true](y) } return linear[vocab](h)",
    "scan over another sequence, carrying the input": "m = learned[4, d, init = normal]()"
    " y = scan c in chunks[2](m) carry h { h <- h + attention[1](h, c) emit c }"
    " return linear[vocab](attention[1, causal = true](h, y) + h)",
    "counted steps": "k = h repeat 30 halting h by act { k <- k + 1 h <- h } return linear[vocab](k)",
    "number of a halting loop": "a = 1 repeat 5 halting h by token_halt[0.8] { a <- a + 1 h <- h * a }"
    " return linear[vocab](h * a)",
    "START and END around a memory": "s = start_end(learned[3, d]()) return linear[vocab](attention[1](h, s))",
    "chunks of a halting loop": "c = chunks[2](h) repeat 5 halting h by token_halt[0.8] {"
    " c <- chunks[3](h) h <- h + 1 } y = scan k in c { emit k } return linear[vocab](y)",
    "negative tokens": "g = embed[d](-x) return linear[vocab](g + h)",
    "stack of no steps": "stack 0 { h <- norm(h) } return linear[vocab](h)",
    "halting in a loop of no steps": "repeat 0 { repeat 3 halting h by token_halt { h <- norm(h) } }"
    " return linear[vocab](h)",
    "unused probabilities": "p = token_halt(h) return linear[vocab](h)",
    "scan without emission": "m = learned[2, d]()"
    " scan c in chunks[2](h) carry m { c <- norm(c) m <- m + attention[1](m, c) }"
    " return linear[vocab](attention[1](h, m))",
    "unused code": "v = feedforward[4](h) repeat 3 halting v by token_halt { v <- norm(v) } return linear[vocab](h)",
    "halting loops of no steps": "repeat 0 halting h by token_halt { h <- norm(h) }"
    " repeat 3 halting h by act { h <- norm(h) } return linear[vocab](h)",
    "loop of no steps around loops": "k = h repeat 0 { k <- linear[d](k) stack 2 { k <- linear[d](k) } }"
    " return linear[vocab](h)",
    "division by zero": "return linear[vocab](h / (1 / 0))",
    "division of zero by zero in unused code": "v = 0 / 0 repeat 2 { h <- norm(h) v <- v + 1 } return linear[vocab](h)",
    "mixture of an outer loop": "repeat 3 halting h as w by token_halt { repeat 2 { w <- norm(w) } h <- norm(h + w) }"
    " return linear[vocab](h)",
    **{
        f"state of {loop} that grows in a scan": "g = constant[0, d]() m = h "
        f"{loop} {{ y = scan v in m carry g growing {{ g <- append(g, expand(v)) emit v + mean(g) }} h <- norm(y) }}"
        " return linear[vocab](h)"
        for loop in ("repeat 2", "stack 2", "repeat 2 halting h by token_halt", "scan c in m carry g, h")
    },
    "name of a loop that grows in a scan": "m = h repeat 2 { g = constant[0, d]()"
    " y = scan v in m carry g growing { g <- append(g, expand(v)) emit v + mean(g) } h <- norm(y + h) }"
    " return linear[vocab](h)",
}

REJECTED = {
    "repeat of a length": "repeat n { h <- norm(h) } return linear[vocab](h)",
    "stack of a length": "stack n { h <- norm(h) } return linear[vocab](h)",
    "halting after a length": "repeat n halting h by token_halt { h <- norm(h) } return linear[vocab](h)",
    "length compared": "if n < 3 { g = h } else { g = norm(h) } return linear[vocab](g)",
    "length compared in an expression": "return linear[vocab](h when n < 3 else norm(h))",
    "slots of a length": "m = learned[n, d]() return linear[vocab](h + m)",
    "chunks of a length": "y = scan c in chunks[n](h) { emit c } return linear[vocab](y)",
    "width of a length": "return linear[vocab](attention[1, causal = true](h, linear[n](h)))",
    "width of half a length": "return linear[vocab](attention[1, causal = true](h, linear[n / 2](h)))",
    "data times a length": "return linear[vocab](h * n)",
    "state carried twice": "m = learned[2, d]() y = scan c in chunks[2](h) carry m, m { m <- m + 1 emit c }"
    " return linear[vocab](y)",
}

CAUSAL = {
    "sequence carried unchanged": "k = tanh(h) y = scan c in chunks[3](h) carry k { k <- k emit norm(c) }"
    " return linear[vocab](y + k)",
    "full read of zeros": "return linear[vocab](attention[1](h, zeros[d](x)))",
    "chunks of one position": "y = scan c in chunks[1](h) { emit attention[1](c) } return linear[vocab](y)",
    "reversed twice": "return linear[vocab](reverse(reverse(h)))",
    "memory of as many cells as positions": "g = learned[1, d]() scan c in h carry g growing {"
    " g <- append(g, slice[0, 1](linear[d](g))) } v = shift[1](attention[1](h, g))"
    " return linear[vocab](v + shift[1](v))",
    "state moved as often as there are positions": "let f = linear[d] g = f(first(learned[1, d]()))"
    " scan c in h carry g { g <- f(g) } v = shift[1](h * g) return linear[vocab](v + shift[1](v))",
    "value called self": "self = embed[d](x) return linear[vocab](self + linear[d](self) + h)",
}


@pytest.mark.parametrize("body", EITHER.values(), ids=EITHER)
@pytest.mark.parametrize("seed", one_in(3, SEEDS))
def test_a_program_is_rejected_in_its_file_or_has_all_properties(body: str, seed: int) -> None:
    assert [str(failure) for failure in failures(model(body), seed)] == []


@pytest.mark.parametrize("body", REJECTED.values(), ids=REJECTED)
def test_a_program_is_rejected_at_a_position_in_its_file(body: str) -> None:
    assert_rejected(recipe(body))


@pytest.mark.parametrize("body", CAUSAL.values(), ids=CAUSAL)
def test_a_causal_program_is_accepted_and_has_all_properties(body: str) -> None:
    program = compile_text(recipe(body))
    assert isinstance(program, Compiled), program.errors
    assert [str(failure) for failure in failures(recipe(body), 1)] == []


@pytest.mark.parametrize(
    "text",
    [
        "block b(h: seq[n, -3]) -> seq[n, 3] { return linear[3](h) }",
        model("return linear[vocab](linear[1000000000](h))"),
        model("stack 10000 { stack 10000 { h <- linear[d](h) } } return linear[vocab](h)"),
        model("return linear[vocab](mlp[1000000000, 1000000000](h))"),
    ],
    ids=["negative width", "wide map", "tall stack", "wide network"],
)
def test_a_program_that_no_machine_can_run_is_rejected_quickly(text: str) -> None:
    start = time.perf_counter()
    assert_rejected(text)
    assert time.perf_counter() - start < SLOWEST


def test_a_table_that_is_used_before_its_embedding_is_reported_in_the_program() -> None:
    text = (
        "model m[d = 8](x: tokens[n]) -> logits[n, vocab] {\n    let e = embed[d]\n    h = zeros[d](x)\n"
        "    y = unembed[e](h)\n    return y + linear[vocab](e(x))\n}\n"
    )
    assert [str(failure) for failure in failures(text, 1)] == []


def test_earlier_positions_that_halt_later_in_a_longer_sequence_are_decoded_again() -> None:
    text = model(
        "repeat 4 halting h by token_halt { scan v in learned[1, d]() carry h { h <- h } h <- sigmoid(h) } "
        "y = scan c in chunks[4](h) { emit gru_from_zero[d](c) } return linear[vocab](y)"
    )
    assert [str(failure) for failure in failures(text, 72, ("decoding",))] == []


def test_updating_the_mixture_of_an_outer_loop_names_the_mixture() -> None:
    errors = errors_of(model(EITHER["mixture of an outer loop"]))
    assert errors
    assert "`w`" in errors[0].message
    assert "mixture" in f"{errors[0].message} {errors[0].label} {errors[0].remedy}"


def assert_rejected(text: str) -> None:
    """Asserts that `check` reports errors, each at a position in the program."""
    program = compile_text(text)
    assert isinstance(program, Refused)
    assert {error.span.source.path.rpartition("/")[2] for error in program.errors} == {PATH}
