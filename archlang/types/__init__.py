"""Sizes, types, values of statics, and horizons."""

from archlang.types.dimension import Dim
from archlang.types.type import CONSTRUCTORS, FEATURED, ISOLATED, Axis, Type

__all__ = ["CONSTRUCTORS", "FEATURED", "ISOLATED", "Axis", "Dim", "Type"]
