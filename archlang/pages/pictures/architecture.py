"""The architecture that a command line names, before any block is dissolved."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from archlang.compile import named_graph
from archlang.graph.costs import parameters
from archlang.graph.graph import Graph, Node
from archlang.graph.summary import summarize
from archlang.pages.pictures.box import Box
from archlang.pages.pictures.picture import picture

LENGTH = 64  # of a sample whose costs are told


@dataclass(frozen=True)
class Architecture:
    """A graph as it is written."""

    graph: Graph

    def picture(self) -> Box:
        """What is drawn of it, with the parameters of each set of weights and of the whole."""
        whole = summarize(self.graph, LENGTH)
        notes: dict[str, tuple[str, ...]] = {}
        for node in self.graph.region.walk():
            cost = whole.nodes.get(node.id)
            if node.instance is None or cost is None:
                continue
            own = parameters(self.graph.instances[node.instance], _width(node))
            said = []
            if own:
                more = f", {cost.parameters:,} executed" if cost.parameters > own and not node.regions else ""
                said.append(f"{own:,} parameters{more}")
            if cost.flops:
                said.append(f"{cost.flops:,} FLOPs")
            if said:
                notes[node.id] = tuple(said)
        notes[""] = (
            f"{'at least ' if whole.unknown else ''}{whole.unique:,} parameters, {whole.executed:,} executed",
            f"{'at least ' if whole.uncounted else ''}{whole.flops:,} FLOPs a sample of {LENGTH} positions",
        )
        return picture(self.graph, notes)


def _width(node: Node) -> int | None:
    """The last size of what a call gives."""
    feature = node.type.feature if len(node.types) == 1 else None
    return None if feature is None else feature.constant


def read(path: Path, model: str | None, recipe: str | None, sets: Mapping[str, str]) -> Architecture:
    """The architecture of a recipe of a file (its first unless one is named), or of a model with its own statics.

    Raises:
        ProgramError: the file has mistakes, or no such model or recipe."""
    return Architecture(named_graph(path, model, recipe, sets))
