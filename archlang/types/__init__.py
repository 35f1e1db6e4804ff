"""Sizes, types, and how they agree."""

from archlang.types.dimension import Dim
from archlang.types.type import CONSTRUCTORS, Axis, Type

__all__ = ["CONSTRUCTORS", "Axis", "Dim", "Type"]
