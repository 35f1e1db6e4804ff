"""Passes: from graph to graph."""

from archlang.graph.passes.pipeline import PASSES, optimize

__all__ = ["PASSES", "optimize"]
