"""Sizes, types, values of statics, and horizons."""

from archlang.types.dimension import Dim
from archlang.types.type import CONSTRUCTORS, ISOLATED, Axis, Type

__all__ = ["CONSTRUCTORS", "ISOLATED", "Axis", "Dim", "Type"]
