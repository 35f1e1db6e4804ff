"""Graphs as torch modules. The first layer that imports torch."""

from archlang.backend.architecture import Architecture
from archlang.backend.lower.text import print_torch
from archlang.backend.mistakes import BuildError
from archlang.backend.runtime.loops import halting_loops

__all__ = ["Architecture", "BuildError", "halting_loops", "print_torch"]
