"""`archlang lsp`: the language server, which editors start."""

from __future__ import annotations

from typing import TYPE_CHECKING

from archlang.diagnostics.machine import needs_extra

if TYPE_CHECKING:
    from archlang.graph.graph import Graph


def lsp() -> None:
    """Answer an editor over standard input and output, by the Language Server Protocol.

    Needs the extra `lsp`. An editor starts it; docs/editors.md says how.

    Example: archlang lsp
    """
    from archlang.editor.workspace import collect_rarely

    with needs_extra("lsp"):
        from archlang.editor.server import make_server
    collect_rarely()
    make_server(_draw).start_io()


def _draw(graph: Graph, picture_format: str) -> str:
    from archlang.pages.pictures.formats import print_dot, print_svg
    from archlang.pages.pictures.picture import draw

    picture = draw(graph)
    return str(print_svg(picture)) if picture_format == "svg" else print_dot(picture)
