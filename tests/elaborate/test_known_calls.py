"""A call of a library block that is equal to an earlier one has its own path and place."""

from collections.abc import Iterator

import pytest

from archlang.errors import effort
from archlang.graph.graph import Graph
from archlang.plan.check import check_text
from archlang.plan.model_graphs import model_graph
from archlang.resolve.resolve import load_command_line

_TWO = """
model two(x: tokens[n]) -> logits[classes] {
    h = embed[8](x)
    a = linear[8](h)
    b = linear[8](a)
    c = linear[4](b)
    return c |> last |> linear[classes]
}
"""


@pytest.fixture(autouse=True)
def forgotten() -> Iterator[None]:
    effort.forget()
    yield
    effort.forget()


def _graph(text: str) -> Graph:
    return model_graph(load_command_line(text), None, {"vocab": 5, "classes": 3})


def test_equal_calls_have_their_own_paths_and_places() -> None:
    graph = _graph(_TWO)
    first, second = graph.instances["linear"], graph.instances["linear_2"]
    assert first.span is not None
    assert second.span is not None
    assert (first.path, first.span.line, second.path, second.span.line) == ("linear", 4, "linear_2", 5)
    assert (first.statics, first.features) == (second.statics, second.features)
    assert graph.instances["linear_3"].statics != second.statics


def test_a_mistake_of_a_call_is_reported_each_time() -> None:
    text = "block layer(h: seq[n, d]) -> seq[n, d] {\n    return dropout[2.0](h)\n}\n"
    codes = [[diagnostic.code for diagnostic in check_text(text)] for _ in range(2)]
    assert codes[0] == codes[1] != []


def test_a_default_argument_of_a_known_call_is_the_right_value() -> None:
    text = """
    model one(x: tokens[n]) -> logits[classes] {
        h = embed[8](x)
        g = linear[8](h)
        a = attention[2](h)
        b = attention[2](g)
        return a + b |> last |> linear[classes]
    }
    """
    inputs_of_calls = []
    for node in _graph(text).region.nodes:
        if getattr(node.operation, "instance", "").startswith("attention"):
            inputs_of_calls.append(set(node.inputs))
    assert [len(inputs) for inputs in inputs_of_calls] == [1, 1]
    assert inputs_of_calls[0] != inputs_of_calls[1]
