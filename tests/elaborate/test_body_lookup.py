"""Checks share the body of a block between models, with the same mistakes and as many steps as without."""

from collections.abc import Iterator

import pytest

from archlang.diagnostics.effort import Memo, limited
from archlang.editor.document import Document, Memory
from archlang.elaborate import known_bodies
from archlang.graph.causality import KnownHorizons, find_leak
from archlang.graph.graph import Graph
from archlang.names.load import load_command_line
from archlang.plan.check import check_text
from archlang.plan.model_graph import model_graph

# A shared instance, a block in a stack, a scan with a length of its own, and a block that is used twice.
_MODEL = """
use archlang.models.seq2seq
use archlang.models.dynamic_halt

model several(x: tokens[n]) -> logits[n, vocab] {
    h = embed[8](x)
    let layer = encoder_layer[heads = 2, ff = 16]
    a = layer(layer(h))
    stack 2 { a <- encoder_layer[2, 16](a) }
    b = encoder_layer[2, 16](a)
    c = bottleneck_layers[2, 16, 2, size = 3, readout = sequence](b)
        + bottleneck_layers[2, 16, 2, size = 3, readout = sequence](a)
    return linear[vocab](c)
}
"""
_TASK = "recipe r {\n    task  dyck\n    model several\n    train adamw[steps = 1]\n}\n"


@pytest.fixture(autouse=True)
def forgotten() -> Iterator[None]:
    known_bodies.of_library.forget()
    yield
    known_bodies.of_library.forget()


def _graph(text: str, needs_costs: bool = False) -> tuple[Graph, int]:
    """Returns the graph of a check, and its steps."""
    with limited(100_000, needs_costs) as budget:
        graph = model_graph(load_command_line(text), None, {"vocab": 5})
    return graph, budget.spent


def _without_ids(graph: Graph) -> list[tuple[object, ...]]:
    return [(node.operation, node.types, node.name, node.span) for node in graph.region.walk()]


def test_a_known_body_is_that_of_an_elaboration_and_costs_as_many_steps() -> None:
    (first, steps), (second, steps_again) = _graph(_MODEL), _graph(_MODEL)
    assert len(known_bodies.of_library.by_key) > 0
    assert _without_ids(first) == _without_ids(second)
    assert first.instances == second.instances
    assert steps == steps_again
    regions = [{id(node.regions[0]) for node in graph.region.nodes if node.regions} for graph in (first, second)]
    assert regions[0] & regions[1]


def test_ids_are_unique_in_a_model_with_known_bodies() -> None:
    _graph(_MODEL)
    graph, _ = _graph(_MODEL)
    ids = [node.id for node in graph.region.walk()]
    assert len(set(ids)) == len(ids)


def test_a_block_that_is_applied_again_after_a_mistake_is_not_known() -> None:
    inner = "block inner(h: seq[n, d]) -> seq[n, d] {\n    a = linear[d](h)\n    return linear[8](a)\n}\n"
    user = (
        "block user(h: seq[n, 8], m: seq[n, 4]) -> seq[n, 8] {\n    let f = inner\n    b = f(m)\n    return f(h)\n}\n"
    )
    memory = Memory()
    for text in (inner + user, inner + user.replace("    b = f(m)\n", "")):
        document = Document("p.arch", text, memory=memory)
        fresh = Document("p.arch", text)
        assert [str(each) for each in document.diagnostics] == [str(each) for each in fresh.diagnostics]
        for known in memory.bodies.model_graphs.bodies.by_key.values():
            used = {node.instance for node in known.region.walk()} - {None}
            assert used <= known.instances.keys()


def test_a_graph_that_is_drawn_or_built_shares_nothing() -> None:
    _graph(_MODEL)
    first, _ = _graph(_MODEL, needs_costs=True)
    second, _ = _graph(_MODEL, needs_costs=True)
    assert first == second
    assert {node.id for node in first.region.walk()} <= {f"%{number}" for number in range(1, 1_000)}


def test_a_known_body_counts_toward_the_size_of_a_model() -> None:
    text = _MODEL.replace("stack 2 {", "stack 9000 {")
    codes = [[diagnostic.code for diagnostic in check_text(text)] for _ in range(2)]
    assert codes[0] == codes[1] == ["E0421"]


def test_the_leak_of_a_known_body_is_reported_each_time_with_its_path() -> None:
    reports = [[(each.code, each.message) for each in check_text(_MODEL + _TASK)] for _ in range(2)]
    assert reports[0] == reports[1]
    ((code, message),) = reports[0]
    assert code == "E0501"
    assert "x -> attention" in message


def test_a_leak_is_found_with_the_horizons_of_other_graphs() -> None:
    known: KnownHorizons = Memo()
    for model in (_MODEL, _MODEL.replace("layer(layer(h))", "layer(h)")):
        graph, _ = _graph(model)
        leak = find_leak(graph, "x", known)
        assert leak is not None
        assert leak == find_leak(graph, "x")


def test_an_own_block_is_elaborated_again_after_a_change_of_what_it_uses() -> None:
    inner = "block inner(h: seq[n, d]) -> seq[n, d] {\n    return linear[8](h)\n}\n"
    outer = "block outer(h: seq[n, d]) -> seq[n, d] {\n    return inner(h)\n}\n"
    user = "block user(h: seq[n, 8]) -> seq[n, 8] {\n    return outer(h) + h\n}\n"
    memory = Memory()
    texts = (inner + outer + user, inner.replace("linear[8]", "linear[d]") + outer + user + "# more\n")
    for text in (*texts, inner.replace("linear[8]", "lienar[8]") + outer + user, *texts):
        known, fresh = (Document("p.arch", text, memory=each) for each in (memory, Memory()))
        assert [str(each) for each in known.diagnostics] == [str(each) for each in fresh.diagnostics]
    assert memory.bodies.model_graphs.bodies.by_key
