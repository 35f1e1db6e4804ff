"""Every pass, in the order in which they run."""

from __future__ import annotations

from collections.abc import Callable

from archlang.graph.graph import Graph
from archlang.graph.verifier import verify
from archlang.passes.common import share_common
from archlang.passes.dead import remove_dead
from archlang.passes.fold import fold
from archlang.passes.inline import inline

# Blocks are dissolved first, so that the others see through them; what the others leave unused goes last.
PASSES: tuple[Callable[[Graph], Graph], ...] = (inline, fold, share_common, remove_dead)


def optimize(graph: Graph) -> Graph:
    """The graph that the backend builds: it computes the same with less."""
    verify(graph)
    for step in PASSES:
        graph = step(graph)
    verify(graph)
    return graph
