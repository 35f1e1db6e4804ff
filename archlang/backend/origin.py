"""What a module was built from, so that it can be built again and drawn."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from archlang.errors import Source
from archlang.graph.graph import Graph
from archlang.plugins import NO_PLUGINS, Plugins
from archlang.types.statics import StaticValue


@dataclass(frozen=True, eq=False)
class Origin:
    """The graph of a module before all passes, the passes that were left out, and the trusted Python files.

    `program` is the file of the model and `used` the files that it uses, if they are known; `settings` are those that
    were passed with it, by dotted path; `recipe` is the recipe that trains it, if it was named or trained."""

    graph: Graph
    without_passes: tuple[str, ...] = ()
    plugins: Plugins = NO_PLUGINS
    program: Source | None = None
    used: tuple[Source, ...] = ()
    settings: Mapping[str, StaticValue] = field(default_factory=dict)
    recipe: str | None = None
