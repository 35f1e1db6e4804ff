"""Graphs as torch modules. The first layer that imports torch.

`lower` writes the Python of a graph, `runtime` has what that calls, `decode` generates answers, and `kernels` has fast
implementations for blocks.
"""

from archlang.backend.architecture import Architecture
from archlang.backend.lower.text import print_torch
from archlang.backend.mistakes import BuildError
from archlang.backend.runtime.loops import halting_loops

__all__ = ["Architecture", "BuildError", "halting_loops", "print_torch"]
