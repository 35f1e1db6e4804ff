"""Graphs as torch modules. The first layer that imports torch."""

from archlang.backend.architecture import Architecture
from archlang.backend.build import build
from archlang.backend.load import load
from archlang.backend.mistakes import BuildError
from archlang.backend.text import print_torch

__all__ = ["Architecture", "BuildError", "build", "load", "print_torch"]
