"""The typed graph: its operations, verifier, text and causality. `passes` simplify it."""

from archlang.graph.graph import Graph, Input, Instance, Node, Region

__all__ = ["Graph", "Input", "Instance", "Node", "Region"]
