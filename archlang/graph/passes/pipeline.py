"""The passes, in the order in which they run."""

from collections.abc import Callable, Collection
from dataclasses import dataclass

from archlang.graph.graph import Graph
from archlang.graph.inline import inline
from archlang.graph.passes.loop_invariants import hoist_invariants, share_common
from archlang.graph.prune import prune, remove_dead
from archlang.graph.verifier import verify


@dataclass(frozen=True)
class Pass:
    """A pass. One with `needed` cannot be omitted: the later ones rely on it. One without `run` belongs to the backend,
    and transforms the lowered program."""

    name: str
    run: Callable[[Graph], Graph] | None
    effect: str
    needed: bool = False


# `inline` runs first, so that the others see through composed blocks. After `prune` the model is that of
# docs/semantics.md, and no later pass changes what a user sees. `dead` runs after the passes that leave values unused.
PASSES: tuple[Pass, ...] = (
    Pass("inline", inline, "replaces composed blocks by their bodies", needed=True),
    Pass("prune", prune, "removes values that no result needs, with their weights and their ponder", needed=True),
    Pass("common", share_common, "computes equal values once"),
    Pass(
        "invariants",
        hoist_invariants,
        "moves values, and linear maps of them, that are the same in every step out of a loop",
    ),
    Pass("dead", remove_dead, "removes values that the passes leave unused"),
    Pass("batch_chunks", None, "computes values that do not depend on a scan's memory for all chunks at once"),
    Pass("parallel_scans", None, "computes all positions of a scan at once, if each of its states has a parallel form"),
    Pass("scan_gradients", None, "writes the backward pass of other scans, if it can; an LSTM is torch's own"),
    Pass("slices", None, "cuts the features of a value once, where blocks take parts of it"),
    Pass("rows", None, "computes maps in blocks of rows, and attention by torch's fused kernels or flex_attention"),
)
NAMES = tuple(step.name for step in PASSES if not step.needed)


def optimize(graph: Graph, without: Collection[str] = ()) -> Graph:
    """Returns an equivalent graph that costs less. `without` names passes to omit.

    Raises:
        ValueError: there is no pass of such a name, or it is needed."""
    omitted = {without} if isinstance(without, str) else set(without)
    if unknown := omitted.difference(NAMES):
        called = ", ".join(sorted(unknown))
        raise ValueError(f"unknown optional pass {called}; the optional passes are {', '.join(NAMES)}")
    verify(graph)
    for step in PASSES:
        if step.run is not None and step.name not in omitted:
            graph = step.run(graph)
    verify(graph)
    return graph
