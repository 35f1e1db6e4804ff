"""Builds the tree of a program from the rules that the parser completes."""

from archlang.syntax.builders.context import DEEPEST, LineTaken, TooDeep
from archlang.syntax.builders.tree_builder import TreeBuilder

__all__ = ["DEEPEST", "LineTaken", "TooDeep", "TreeBuilder"]
