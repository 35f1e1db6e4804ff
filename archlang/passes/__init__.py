"""Graph to graph."""

from archlang.passes.pipeline import PASSES, optimize

__all__ = ["PASSES", "optimize"]
