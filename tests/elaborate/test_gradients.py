"""`gradient(loss, value)` has as its body what leads from the value to the loss, and explains what is no gradient."""

import pytest

from archlang.errors import Source
from archlang.graph.graph import Node
from archlang.graph.operations import Call, Gradient, Halting, Literal, Loss, Scan
from archlang.graph.text import parse_graph, print_graph
from archlang.graph.verifier import verify
from archlang.plan.check import check_text
from archlang.syntax.parser import parse
from archlang.syntax.printer import format_program
from tests.semantics.compiled import graph_of

MODEL = "model m[d = 4](x: tokens[n]) -> logits[n, vocab] {{ h = embed[d](x) {} return linear[vocab](y) }}"


def gradients(body: str) -> list[Node]:
    graph = graph_of(MODEL.format(body))
    verify(graph)
    assert parse_graph(print_graph(graph)) == graph
    return [node for node in graph.region.walk() if isinstance(node.operation, Gradient)]


def test_the_body_is_what_leads_from_the_value_to_the_loss() -> None:
    (node,) = gradients(
        "a = norm(h) b = tanh(a) k = 3 * linear[d](x |> embed[d]) y = gradient(sum_features(b * k * 2), a)"
    )
    (body,) = node.regions
    assert [value.name for value in body.inputs] == ["a", "k"]
    assert [type(inner.operation) for inner in body.nodes if not isinstance(inner.operation, Call)].count(Literal) == 1
    assert [inner.operation.instance for inner in body.nodes if isinstance(inner.operation, Call)] == [
        "tanh", "sum_features",
    ]  # fmt: skip


def test_a_loss_outside_of_a_loop_is_differentiated_outside() -> None:
    (node,) = gradients("e = sum_features(tanh(h)) y = h repeat 2 { y <- y - gradient(e, h) }")
    assert len(node.inputs) == 1


def test_a_loss_in_the_loss_counts_where_it_is_written() -> None:
    program = "block f(v: seq[n, d]) -> seq[n, 1] { loss size = mean(linear[1](v)) return sum_features(tanh(v)) }\n"
    graph = graph_of(program + MODEL.format("y = gradient(f(h), h)"))
    assert len([node for node in graph.region.walk() if isinstance(node.operation, Loss)]) == 1


def test_a_gradient_of_a_gradient_and_of_a_loop() -> None:
    outer, *inner = gradients(
        "s = h repeat 2 { s <- tanh(s + h) } g = gradient(sum_features(s * s), h) y = gradient(sum_features(g * g), h)"
    )
    assert len(inner) == 2
    assert not any(isinstance(node.operation, Halting | Scan) for node in outer.regions[0].walk())


def test_a_pipe_gives_the_loss() -> None:
    (node,) = gradients("y = h |> tanh |> sum_features |> gradient(h)")
    assert len(node.regions[0].nodes) == 2


def test_a_block_and_a_value_of_the_name_hide_the_form() -> None:
    block = "block gradient(a: seq[n, d], b: seq[n, d]) -> seq[n, d] { return a * b }\n"
    graph = graph_of(block + MODEL.format("y = gradient(h, h)"))
    assert not any(isinstance(node.operation, Gradient) for node in graph.region.walk())
    assert gradients("gradient = tanh(h) y = gradient + 1") == []


@pytest.mark.parametrize(
    ("body", "place", "words"),
    [
        ("y = gradient(h)", "gradient(h)", "takes two values"),
        ("y = gradient[2](mean(h), h)", "gradient[2](mean(h), h)", "takes two values"),
        ("y = h + gradient(mean(linear[1](h)), x)", "x", "but this is `tokens[n, vocab]`"),
        ("y = gradient(h, h)", "h", "or for each position of the value, but this is `seq[n, 4]`"),
        ("v = mean(h) y = h + gradient(linear[1](h), v)", "linear[1](h)", "one number for each sample but"),
        ("e = mean(linear[1](h)) k = norm(h) y = gradient(e, k)", "e", "does not depend on the value"),
        ("e = mean(linear[1](h)) y = h repeat 2 { y <- gradient(e, y) }", "e", "does not depend on the value"),
        ("s = h repeat 3 halting s by token_halt { s <- tanh(s) } y = gradient(mean(linear[1](s)), h)",
         "mean(linear[1](s))", "halting loop is not defined"),
        ("s = h repeat 3 settled { s <- tanh(s) } y = gradient(mean(linear[1](s)), h)", "mean(linear[1](s))",
         "a first derivative only"),
    ],
)  # fmt: skip
def test_what_is_no_gradient_is_explained(body: str, place: str, words: str) -> None:
    recipe = "\nrecipe r {\n    task  flipflop\n    model m\n    train adamw[steps = 1]\n}\n"
    mistakes = [mistake for mistake in check_text(MODEL.format(body) + recipe) if mistake.code != "E0501"]
    assert [mistake.code for mistake in mistakes] == ["E0439"], mistakes
    assert (mistakes[0].span.text, words in mistakes[0].message) == (place, True), mistakes[0].message
    assert mistakes[0].remedy


def test_a_near_name_is_corrected() -> None:
    (mistake,) = check_text("block b(h: seq[n, d]) -> seq[n, d] { return gradiant(mean(linear[1](h)), h) }")
    assert (mistake.code, "`gradient`" in mistake.remedy) == ("E0202", True)


def test_a_gradient_is_formatted_as_a_call() -> None:
    text = "block b(h: seq[n, d]) -> seq[n, d] {\n    return gradient(mean(linear[1](h)), h)\n}\n"
    assert format_program(parse(Source("b.arch", text))) == text
