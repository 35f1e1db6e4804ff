"""The graph that a command line names, before the passes."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from archlang import compile as compiler
from archlang.graph.graph import Graph


def read_graph(file: Path, model: str | None, recipe: str | None, sets: Mapping[str, str]) -> Graph:
    """Returns the graph of a recipe, or of a model with its default statics.

    Without `model` the recipe is the named one, or the first of the file. A file without recipes must have one model.

    Raises:
        ProgramError: The file has errors, or no such model or recipe."""
    if model is None and (recipe is not None or compiler.has_recipe(file)):
        return compiler.plan(file, recipe, sets).graph
    return compiler.graph(file, model, compiler.statics_of(sets))
