"""What the tests of passes share: two small texts, before and after."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from archlang.graph import Graph
from archlang.graph.text import parse_graph, print_graph
from archlang.graph.verifier import verify

Becomes = Callable[[Callable[[Graph], Graph], str, str], None]


@pytest.fixture
def becomes() -> Becomes:
    """Checks that a pass makes one text of another, that both are sound, and that a second run changes nothing."""

    def check(step: Callable[[Graph], Graph], before: str, after: str) -> None:
        graph, wanted = parse_graph(before), parse_graph(after)
        verify(graph)
        made = step(graph)
        verify(made)
        verify(wanted)
        assert print_graph(_without_places(made)) == print_graph(_without_places(wanted))
        assert made == wanted
        assert step(made) == made

    return check


def _without_places(graph: Graph) -> Graph:
    text = "\n".join(line.partition("  # ")[0] for line in print_graph(graph).splitlines())
    return parse_graph(text)
