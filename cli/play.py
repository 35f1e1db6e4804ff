"""`archlang play`: a page in which one writes programs."""

from contextlib import closing
from pathlib import Path
from typing import Annotated

import typer

from archlang.cli import console


def play(
    port: Annotated[int, typer.Option("--port", min=0, max=65535, help="The port; 0 takes a free one.")] = 0,
    open_page: Annotated[bool, typer.Option("--open", help="Open the page in the browser.")] = False,
    folder: Annotated[
        Path | None,
        typer.Option("--build", metavar="FOLDER", help="Write the page to a folder for any file server instead."),
    ] = None,
) -> None:
    """Serve a page in which one writes programs: mistakes, the picture and the costs are shown as one types.

    Only this machine can reach it, with the address that is printed. Nothing is downloaded. Ctrl-C ends it. With
    `--build`, write a static folder in which the compiler runs in the browser; npm fetches Pyodide for it once.

    Example: archlang play
    """
    if folder is not None:
        from archlang.play.build import build

        build(folder)
        console.out.print(f"wrote {folder}", markup=False)
        console.out.print("next, type", markup=False)
        console.out.print(f"    python -m http.server --directory {folder}", markup=False)
        return
    import tempfile
    import webbrowser
    from importlib.util import find_spec

    from archlang.play.server import Server, serve
    from archlang.play.service import Service
    from archlang.play.training import Trainer

    trainer = Trainer()
    trains = find_spec("torch") is not None
    with tempfile.TemporaryDirectory(prefix="archlang-") as empty, closing(trainer):
        server = Server(Service(empty, trainer if trains else None).answer, port, trainer.inspection)
        console.out.write(f"The playground is at {server.url}")
        console.out.write("Ctrl-C ends it.")
        if open_page:
            webbrowser.open(server.url)
        serve(server)
