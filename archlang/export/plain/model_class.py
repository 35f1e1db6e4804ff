"""The class of a model: a constructor that makes its blocks, and a `forward` with its loops."""

from __future__ import annotations

import ast

from archlang.export.plain.constructor import Blocks, Constructor, class_of
from archlang.export.plain.expressions import parsed_expression
from archlang.export.plain.forward import Forward
from archlang.export.plain.sources import Name
from archlang.graph.graph import Graph


def model_class(graph: Graph, name: str, blocks: Blocks) -> ast.ClassDef:
    """Returns the class of a graph on which `inline` has run, in which `name` is the name of the class."""
    function = Forward(graph, blocks).function()
    init = Constructor(graph, blocks).function()
    return ast.ClassDef(name, [parsed_expression("nn.Module")], [], [init, function], [])


def helpers_of(graph: Graph) -> list[Name]:
    """Returns the helpers that the class of a graph calls."""
    nothing = {class_of(instance.python): "" for instance in graph.instances.values()}
    forward = Forward(graph, Blocks(nothing, dict.fromkeys(nothing, ()), dict.fromkeys(nothing, ())))
    forward.function()
    return list(dict.fromkeys(forward.helpers))
