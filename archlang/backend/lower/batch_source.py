"""Gives every loop body a tensor from which blocks without inputs, such as `learned`, take the size of the batch.

A body has none if its loop emits a value that needs no state and nothing from outside."""

from collections.abc import Sequence
from dataclasses import replace

from archlang.graph.graph import Graph, Input, Node, Region


def with_batch_sources(graph: Graph) -> Graph:
    """Returns the graph in which every body has a tensor among its inputs."""
    return replace(graph, region=_region(graph.region))


def batch_source(inputs: Sequence[Input]) -> Input | None:
    """Returns the first tensor among the inputs of a region; None if there is none."""
    return next((value for value in inputs if value.type.name not in ("number", "chunks")), None)


def _region(region: Region) -> Region:
    source = batch_source(region.inputs)
    return replace(region, nodes=tuple(_node(node, source) if node.regions else node for node in region.nodes))


def _node(node: Node, source: Input | None) -> Node:
    """Returns a loop whose body captures the source, if it has no tensor of its own."""
    (body,) = node.regions
    if source is not None and batch_source(body.inputs) is None:
        captured = Input(f"{node.id}.batch", source.type, source.name)
        body = replace(body, inputs=(*body.inputs, captured))
        node = replace(node, inputs=(*node.inputs, source.id))
    return replace(node, regions=(_region(body),))
