"""Names that a definition binds and never reads."""

from __future__ import annotations

from collections.abc import Iterator

from archlang.diagnostics import Diagnostic
from archlang.names import mistakes
from archlang.syntax.tree import Assign, Call, Definition, Halting, Let, Move, Name, Scan
from archlang.syntax.walk import walk


def unused_names(definition: Definition) -> Iterator[Diagnostic]:
    """A warning for each value or instance that is bound in a definition and mentioned nowhere else."""
    mentioned = {node.parts[0] for node in walk(definition) if isinstance(node, Name)}
    mentioned |= {node.callee.parts[0] for node in walk(definition) if isinstance(node, Call)}
    mentioned |= {node.state for node in walk(definition) if isinstance(node, Halting)}
    mentioned |= {node.name for node in walk(definition) if isinstance(node, Move)}
    for node in walk(definition):
        if isinstance(node, Assign | Let) and node.name not in mentioned and not node.name.startswith("_"):
            yield mistakes.unused_name(node.name_span, node.name)
        elif isinstance(node, Scan) and node.target is not None and node.target not in mentioned:
            yield mistakes.unused_name(node.target_span or node.span, node.target)
