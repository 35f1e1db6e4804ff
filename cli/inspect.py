"""`archlang inspect`: what a trained model does with an input."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from archlang.cli import console
from archlang.cli.train import Device, Plugin, warnings_said


def inspect(
    run: Annotated[Path, typer.Argument(help="A run folder.", show_default=False)],
    given: Annotated[
        list[str] | None,
        typer.Option("--input", "-i", help="An input, tokens separated by spaces; once for each field."),
    ] = None,
    split: Annotated[str, typer.Option("--split", help="Without --input, the split that an item is taken from.")] = "",
    index: Annotated[int, typer.Option("--index", min=0, help="Which item of the split.")] = 0,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="The page; inspect.html in the run folder if not said.")
    ] = None,
    png: Annotated[
        Path | None, typer.Option("--png", help="A folder that gets each panel as a PNG for a paper.")
    ] = None,
    device: Device = "auto",
    plugin: Plugin = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print what was found as JSON, and write no page.")] = False,
) -> None:
    """Run a trained model on one input, and show what happens inside of it.

    The page has every attention map, gate, halting probability, pointer and memory of every step. It is one file that
    needs no network.

    Example: archlang inspect runs/ndr/2026-01-31_12-00-00 --split test --index 7 -o seven.html
    """
    from archlang.pages.files import write_file
    from archlang.pages.inspection.inspection import inspect as look
    from archlang.pages.inspection.inspection import item_of, own_input
    from archlang.pages.inspection.page import inspection_page
    from archlang.runs.evaluation import open_run

    with warnings_said():
        opened = open_run(run, device=device, plugin="" if plugin is None else str(plugin.absolute()))
        if given:
            if split:
                console.fail("--input and --split are both given", "choose one of them")
            batch, title = own_input(opened, given), " ".join(given)
        else:
            split = split or ("test" if "test" in opened.task.split_names() else opened.task.split_names()[-1])
            batch, title = item_of(opened, split, index), f"{split} {index}"
        found = look(opened, batch, title)
    if as_json:
        print(json.dumps(found.to_json(), indent=2, ensure_ascii=False))
        return
    known = [one for one in found.answers if one.right is not None]
    for one in found.answers[:12]:
        right = {True: "  right", False: f"  wrong, it is {one.target}", None: ""}[one.right]
        place = f"{one.place}: " if one.place else ""
        console.out.print(f"{place}{one.predicted} ({one.probability:.1%}){right}", markup=False)
    if len(found.answers) > 12:
        right_ones = f", {sum(one.right is True for one in known)} right" if known else ""
        console.out.print(f"… {len(found.answers)} in all{right_ones}", markup=False)
    if png is not None:
        from archlang.pages.inspection.panel_images import save_panels

        for file in save_panels(found.panels, png):
            console.out.print(f"wrote {file}", markup=False)
    written = out if out is not None else run / "inspect.html"
    write_file(written, inspection_page(found))
    console.out.print(f"wrote {written}", markup=False)
