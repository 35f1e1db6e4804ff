"""Finds the text of a model in its program."""

from __future__ import annotations

from contextlib import suppress

from archlang.backend.architecture import Architecture
from archlang.diagnostics import ProgramError
from archlang.names import library
from archlang.source import Source
from archlang.syntax.parser import parse
from archlang.syntax.tree import Definition


def definition_of(module: Architecture) -> Definition | None:
    """Returns the definition of a module's model, in its program or in the library; None if neither has it."""
    origin = module.program.origin
    sources: dict[str, Source] = {}
    if origin is not None and origin.program is not None:
        sources.update((source.path, source) for source in (origin.program, *origin.used))
    for node in module.program.graph.region.walk():
        if node.span is not None and node.span.source.path.endswith(".arch"):
            sources.setdefault(node.span.source.path, node.span.source)
    for file in sorted((library.BLOCKS / "models").glob("*.arch")):
        sources.setdefault(str(file), Source(str(file), file.read_text(encoding="utf-8")))
    for source in sources.values():
        with suppress(ProgramError):
            for item in parse(source).items:
                if isinstance(item, Definition) and item.name == module.program.graph.name:
                    return item
    return None
