"""`archlang export`: writes a model as a file that runs without archlang."""

from __future__ import annotations

import os.path
from pathlib import Path
from typing import Annotated

import typer

from archlang.cli import completion, console
from archlang.cli.settings import Allow, Plugin, parse_sets
from archlang.cli.shipped import program
from archlang.cli.train import plain_warnings


def export(
    source: Annotated[
        Path,
        typer.Argument(
            metavar="RUN|FILE",
            help="A run folder, a saved model, or a program.",
            show_default=False,
            callback=program,
            autocompletion=completion.programs,
        ),
    ],
    out: Annotated[Path, typer.Option("--out", "-o", help="The file: .py, .pt2 or .onnx.", show_default=False)],
    model: Annotated[str | None, typer.Option("--model", "-m", help="A model of the program.")] = None,
    recipe: Annotated[str | None, typer.Option("--recipe", "-r", help="A recipe of the program.")] = None,
    sets: Annotated[
        list[str] | None, typer.Option("--set", help="A static of the program, such as `model.d=128`.")
    ] = None,
    allow: Allow = None,
    checkpoint: Annotated[
        str | None, typer.Option("--checkpoint", help="The weights of a run: best (the default), last or a step.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite existing files.")] = False,
    plugin: Plugin = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the model and the files as JSON.")] = False,
) -> None:
    """Write a model as a file that runs without archlang: a run with its selected weights, a program with new weights.

    The suffix of the file is its format. `.py` is plain torch code, with the weights in a `.pt` file beside it;
    `.pt2` is a program of torch.export, and `.onnx` runs in onnxruntime.

    Example: archlang export runs/ndr/2026-01-31_12-00-00 -o ndr.py
    """
    from archlang.api.run import load_module
    from archlang.compile import load_named
    from archlang.export.formats import check_target
    from archlang.export.formats import export as write

    if source.is_dir() and (model is not None or recipe is not None or sets):
        console.fail("a run folder has its own model, recipe and statics", "omit --model, --recipe and --set", code=2)
    if not source.is_dir() and checkpoint is not None:
        console.fail("a program has no checkpoints", "omit --checkpoint, or name a run folder", code=2)
    if source.suffix != ".arch" and not os.path.lexists(source):
        remedy = "check the path; `archlang runs list` lists the runs"
        console.fail(f"there is no run, saved model or program {source}", remedy)
    check_target(out, overwrite=force)
    with plain_warnings():
        module = (
            load_module(source, checkpoint or "best", plugin or ())
            if source.is_dir()
            else load_named(source, model, recipe, parse_sets(sets), plugins=plugin or (), allow=allow or ())
        )
        files = write(module.eval(), out, overwrite=force, is_stored=source.is_dir())
    if as_json:
        sizes = [{"path": str(file), "bytes": file.stat().st_size} for file in files]
        console.out.write_json({"model": module.program.graph.name, "files": sizes})
        return
    for file in files:
        console.out.print(f"wrote {file}", markup=False)
