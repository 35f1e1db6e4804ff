"""`archlang lsp`, `mcp` and `play`: the servers of an editor, of an agent, and of a page for writing programs."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from archlang.cli import console
from archlang.cli.arguments import flag
from archlang.errors.machine import needs_extra

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


def _draw(graph: Graph) -> str:
    from archlang.reports.pictures.formats import print_svg
    from archlang.reports.pictures.picture import draw

    return str(print_svg(draw(graph)))


def mcp(
    folder: Annotated[Path, typer.Argument(help="The folder whose programs are served.", exists=True, file_okay=False)],
    minutes: Annotated[float, typer.Option(min=0.1, help="The most minutes that one training takes.")] = 10.0,
) -> None:
    """Answer an agent over standard input and output, by the Model Context Protocol.

    Its tools check, correct, explain, count, compare and train the programs of a folder. They name no other file, and
    run no Python of your own. Needs the extra `mcp`; docs/agents.md says how an agent starts it.

    Example: archlang mcp my_project
    """
    import os

    from archlang.play.agent_tools import make_agent_server

    server = make_agent_server(folder, minutes)
    os.chdir(folder)
    server.run()


def play(
    port: Annotated[int, typer.Option(min=0, max=65535, help="The port; 0 takes a free one.")] = 0,
    open_page: Annotated[bool, flag("--open", "Open the page in the browser.")] = False,
    folder: Annotated[
        Path | None,
        typer.Option("--build", metavar="FOLDER", help="Write the page to a folder for any file server instead."),
    ] = None,
) -> None:
    """Serve a page for writing programs, which shows errors, the picture and the costs while you type.

    Only this machine can reach it, with the address that is printed. Nothing is downloaded. Ctrl-C ends it. With
    `--build`, write a static folder in which the compiler runs in the browser; npm fetches Pyodide for it once.

    Example: archlang play
    """
    if folder is not None:
        from archlang.play.build import build

        build(folder)
        console.out.print(f"wrote {folder}\nnext, type\n    python -m http.server --directory {folder}")
        return
    import tempfile
    import webbrowser
    from importlib.util import find_spec

    from archlang.play.server import Server, serve
    from archlang.play.service import Service
    from archlang.play.training import PlaygroundTrainer

    trainer = PlaygroundTrainer()
    trains = find_spec("torch") is not None
    with tempfile.TemporaryDirectory(prefix="archlang-") as empty, closing(trainer):
        server = Server(Service(empty, trainer if trains else None).answer, port, trainer.inspection)
        console.out.write(f"The playground is at {server.url}")
        console.out.write("Ctrl-C ends it.")
        if open_page:
            webbrowser.open(server.url)
        serve(server)
