"""Builds the module of an optimized graph."""

from collections.abc import Collection

from archlang.backend import mistakes
from archlang.backend.architecture import Architecture
from archlang.backend.attach import attach_program
from archlang.backend.lower.instances import add_instances, classes_of
from archlang.backend.lower.regions import lower
from archlang.graph.graph import Graph
from archlang.plugins import NO_PLUGINS, Plugins


def build_module(graph: Graph, *, plugins: Plugins = NO_PLUGINS, without: Collection[str] = ()) -> Architecture:
    """Returns the module of an optimized graph, whose classes are those of archlang's blocks and of `plugins`.
    `without` names passes of the backend to omit.

    Raises:
        BuildError: a size is unknown, or a block's class is missing or its constructor raises.
        PluginError: a class is in no plugin, or its plugin cannot be imported."""
    # Features must be constant here; lengths may vary.
    if unknown := graph.unknown_sizes:
        raise mistakes.unknown_sizes(graph.name, unknown)
    classes = classes_of(graph, plugins)
    program = lower(graph, without, classes=classes)
    architecture = Architecture(program)
    add_instances(architecture, graph, classes)
    attach_program(architecture, program)
    return architecture
