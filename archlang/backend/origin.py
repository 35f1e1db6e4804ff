"""What a module was built from, so that it can be built again and drawn."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from archlang.graph.graph import Graph
from archlang.source import Source
from archlang.types.statics import StaticValue


@dataclass(frozen=True, eq=False)
class Origin:
    """The graph of a module before all passes, and the passes that were left out.

    `program` is the file of the model and `used` the files that it uses, if they are known; `settings` are those that
    were passed with it, by dotted path."""

    graph: Graph
    without_passes: tuple[str, ...] = ()
    program: Source | None = None
    used: tuple[Source, ...] = ()
    settings: Mapping[str, StaticValue] = field(default_factory=dict)
