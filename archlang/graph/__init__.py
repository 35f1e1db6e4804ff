"""The typed graph."""

from archlang.graph.graph import ARITHMETIC, LOOPS, OPERATIONS, Graph, Input, Instance, Node, Region

__all__ = ["ARITHMETIC", "LOOPS", "OPERATIONS", "Graph", "Input", "Instance", "Node", "Region"]
