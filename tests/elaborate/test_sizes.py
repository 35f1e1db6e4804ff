"""A length is no static, and every other size is known and in range when a model is built."""

import pytest

from archlang.plan.check import check_text
from archlang.plan.model_graphs import model_graph
from archlang.resolve.resolve import load_command_line

PROGRAM = """model m[d = 8](x: tokens[n]) -> logits[n, vocab] {{
    h = embed[d](x)
    {}
}}
recipe r {{
    task  flipflop
    model m
    train adamw[steps = 10]
}}
"""
LENGTHS = (
    "repeat n { h <- norm(h) } return linear[vocab](h)",
    "stack n { h <- norm(h) } return linear[vocab](h)",
    "repeat n halting h by token_halt { h <- norm(h) } return linear[vocab](h)",
    "if n < 3 { y = h } else { y = norm(h) } return linear[vocab](y)",
    "y = h when n < 3 else norm(h) return linear[vocab](y)",
    "return linear[vocab](attention[1](h, learned[n, d]()))",
    "y = scan c in chunks[n](h) { emit c } return linear[vocab](y)",
    "return linear[vocab](linear[n](h))",
    "return linear[vocab](linear[n / 2](h))",
    "return linear[vocab](linear[d + n](h))",
    "return linear[vocab](h * n)",
    "return linear[vocab](attention[1, causal = n > 3](h))",
)
UNKNOWN = (
    "return linear[vocab](linear[classes](h))",
    "repeat classes { h <- norm(h) } return linear[vocab](h)",
    "if classes > 3 { y = h } else { y = norm(h) } return linear[vocab](y)",
    "return linear[vocab](h * classes)",
    "return linear[vocab](attention[classes](h))",
    "repeat 3 halting h by global_halt[causal = classes > 3] { h <- norm(h) } return linear[vocab](h)",
)
OUT_OF_RANGE = (
    "return linear[vocab](linear[1000000000](h))",
    "return linear[vocab](attention[1](h, learned[100000000, d]()))",
)


def test_a_number_of_tokens_may_exceed_the_largest_size() -> None:
    pair = "pair_tokens(x, hash_tokens[2_000_000](x))"
    assert (
        codes(PROGRAM.format(f"p = pair_tokens({pair}, {pair}) return linear[vocab](embed[d](modulo_tokens[9](p)))"))
        == set()
    )
    triple = f"pair_tokens({pair}, pair_tokens({pair}, {pair}))"
    (mistake,) = check_text(PROGRAM.format(f"return linear[vocab](embed[d](modulo_tokens[9]({triple})))"))
    assert mistake.code == "E0307"
    assert "hash tokens before they are paired" in mistake.remedy


def codes(text: str) -> set[str]:
    return {diagnostic.code for diagnostic in check_text(text) if diagnostic.is_error}


@pytest.mark.parametrize("body", LENGTHS)
def test_a_length_is_rejected_where_a_static_is_expected(body: str) -> None:
    (mistake,) = check_text(PROGRAM.format(body))
    assert mistake.code == "E0318"
    assert mistake.span.text == "n"


@pytest.mark.parametrize("body", UNKNOWN)
def test_a_size_that_the_task_does_not_set_is_reported_where_it_is_needed(body: str) -> None:
    assert codes(PROGRAM.format(body)) == {"E0608"}


@pytest.mark.parametrize("body", OUT_OF_RANGE)
def test_a_size_out_of_range_is_reported_where_it_is_written(body: str) -> None:
    (mistake,) = check_text(PROGRAM.format(body))
    assert mistake.code == "E0426"
    assert mistake.span.text in ("1000000000", "100000000")


@pytest.mark.parametrize(
    ("signature", "code"),
    [
        ("(h: seq[n, -3]) -> seq[n, 4]", "E0426"),
        ("(h: seq[0, d]) -> seq[n, 4]", "E0426"),
        ("(h: seq[n, n]) -> seq[n, 4]", "E0425"),
        ("(h: seq[n, d], g: vec[n]) -> seq[n, 4]", "E0425"),
    ],
)
def test_an_impossible_size_in_a_signature_is_reported(signature: str, code: str) -> None:
    assert code in codes(f"block b{signature} {{ return linear[4](h) }}")


def test_a_length_of_a_model_has_another_name_than_the_sizes_of_tasks() -> None:
    assert "E0425" in codes(
        "model m(x: tokens[vocab]) -> logits[classes] { return embed[8](x) |> mean |> linear[classes] }"
    )


def test_a_length_may_be_computed_in_the_length_of_a_type() -> None:
    assert check_text("block b(h: seq[n, d]) -> seq[n + 2, d] { return start_end(h) }") == ()


def test_a_model_for_one_length_does_not_fit_a_task_of_any_length() -> None:
    assert codes(PROGRAM.format("return linear[vocab](h)").replace("tokens[n]", "tokens[5]").replace("[n,", "[5,")) == {
        "E0416"
    }


def test_stacks_in_stacks_are_counted_with_all_their_copies() -> None:
    body = "stack 10000 { stack 10000 { h <- norm(h) } } return linear[vocab](h)"
    assert codes(PROGRAM.format(body)) == {"E0421"}
    empty = "stack 10000 { stack 10000 { h <- h * 2 } } return linear[vocab](h)"
    assert codes(PROGRAM.format(empty)) == {"E0421"}


def test_a_mistake_in_the_library_is_reported_at_the_call() -> None:
    text = PROGRAM.format("let e = embed[d]\n    y = unembed[e](h)\n    return y + unembed[e](e(x))")
    (mistake,) = check_text(text)
    assert mistake.span.source.path == "<text>"
    assert mistake.span.text == "e"


def test_a_size_that_a_signature_writes_as_a_number_is_named_by_the_number() -> None:
    (mistake,) = check_text("block b(h: seq[n, 3]) -> seq[n, 3] { return gather(h, h) }")
    assert mistake.message == "`gather` expects a size of 1 here, but this is 3"


@pytest.mark.parametrize("statics", ["", "[k = w + 2]"])
@pytest.mark.parametrize("exchanged", [False, True])
def test_a_size_may_be_computed_from_one_of_a_later_input(statics: str, exchanged: bool) -> None:
    inputs = ["h: seq[n + 2, k]" if statics else "h: seq[n + 2, w]", "g: seq[n, w]"]
    arguments = ["start_end(concat(x, ones))" if statics else "start_end(x)", "x"]
    if exchanged:
        inputs, arguments = inputs[::-1], arguments[::-1]
    cut = f"block cut{statics}({', '.join(inputs)}) -> seq[n, w] {{ return g }}\n"
    call = "block use(x: seq[m, d], ones: seq[m, 2]) -> seq[m, d] {{ return cut({}) }}\n"
    assert check_text(cut + call.format(", ".join(arguments))) == ()
    assert codes(cut + call.format(", ".join(arguments[::-1]))) == {"E0401"}


@pytest.mark.parametrize("classes", [3, 7])
def test_a_model_that_a_model_calls_has_the_sizes_of_the_task_and_the_vocabulary_of_its_own_input(classes: int) -> None:
    text = """
    model inner(x: tokens[n]) -> logits[n, classes] { return linear[classes](embed[4](x)) }
    block pairs(x: tokens[n]) -> seq[n, e] { return inner(pair_tokens(x, x)) }
    model outer(x: tokens[n]) -> logits[n, classes] { return inner(x) + pairs(x) }
    """
    assert check_text(text) == ()
    graph = model_graph(load_command_line(text), "outer", {"vocab": 5, "classes": classes})
    assert [each.costs.parameters for each in graph.instances.values()] == [20, 5 * classes, 0, 100, 5 * classes]
