"""The typed graph."""

from archlang.graph.graph import Graph, Input, Instance, Node, Region

__all__ = ["Graph", "Input", "Instance", "Node", "Region"]
