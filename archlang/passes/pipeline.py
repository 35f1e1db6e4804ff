"""Every pass, in the order in which they run."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass

from archlang.graph.graph import Graph
from archlang.graph.inline import inline
from archlang.graph.prune import prune, remove_dead
from archlang.graph.verifier import verify
from archlang.passes.common import share_common
from archlang.passes.fold import fold
from archlang.passes.invariants import leave_loops
from archlang.passes.join import join_maps


@dataclass(frozen=True)
class Pass:
    """A pass by its name. One that is `needed` cannot be left out: what follows relies on it. One without `run` belongs
    to the backend, and works on the Python that it writes."""

    name: str
    run: Callable[[Graph], Graph] | None
    says: str
    needed: bool = False


# Blocks are dissolved first, so that the others see through them. Then the model is what docs/semantics.md says, and no
# other pass changes what a user sees; what they leave unused goes last.
PASSES: tuple[Pass, ...] = (
    Pass("inline", inline, "dissolves applied blocks into what they are made of", needed=True),
    Pass("prune", prune, "removes what no result needs, with its weights and its ponder", needed=True),
    Pass("fold", fold, "does arithmetic with literals, and drops what changes nothing"),
    Pass("common", share_common, "computes once what is written twice"),
    Pass("join", join_maps, "makes one product of linear maps of one value, in loops"),
    Pass("invariants", leave_loops, "moves out of a loop what is the same in each of its steps"),
    Pass("dead", remove_dead, "removes what the passes have left unused"),
    Pass("ahead", None, "computes for all chunks of a scan at once what does not depend on its memory"),
)
NAMES = tuple(one.name for one in PASSES if not one.needed)


def optimize(graph: Graph, without: Collection[str] = ()) -> Graph:
    """The graph that the backend builds: it computes the same with less. `without` names passes that are left out.

    Raises:
        ValueError: there is no such pass, or it is needed."""
    names = {without} if isinstance(without, str) else set(without)
    if unknown := names - set(NAMES):
        called = ", ".join(sorted(unknown))
        raise ValueError(f"no pass that can be left out is called {called}; they are {', '.join(NAMES)}")
    verify(graph)
    for step in PASSES:
        if step.run is not None and step.name not in names:
            graph = step.run(graph)
    verify(graph)
    return graph
