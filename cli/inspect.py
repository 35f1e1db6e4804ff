"""`archlang inspect`: what a trained model does with an input."""

from pathlib import Path
from typing import Annotated

import typer

from archlang.cli import completion, console
from archlang.cli.settings import Plugin
from archlang.cli.train import Device, plain_warnings

_MOST_ANSWERS = 12  # printed


def inspect(
    run: Annotated[Path, typer.Argument(help="A run folder.", show_default=False, autocompletion=completion.runs)],
    inputs: Annotated[
        list[str] | None,
        typer.Option(
            "--input",
            "-i",
            help="Tokens separated by spaces, or rows of numbers, as [[0.5, 1], [2, 3]]; repeat for each field.",
        ),
    ] = None,
    split: Annotated[str, typer.Option("--split", help="Without --input, the split to take an item from.")] = "",
    index: Annotated[int, typer.Option("--index", min=0, help="The index of the item in the split.")] = 0,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="The page. Default: inspect.html in the run folder.")
    ] = None,
    png: Annotated[Path | None, typer.Option("--png", help="A folder for a PNG of each panel.")] = None,
    device: Device = "auto",
    plugin: Plugin = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, and write no page.")] = False,
) -> None:
    """Run a trained model on one input and show its attention, gates, halting, pointers and memories.

    The page shows each of them at every step. It is one file that needs no network.

    Example: archlang inspect runs/ndr/2026-01-31_12-00-00 --split test --index 7 -o seven.html
    """
    from archlang.api.saved_folder import is_saved
    from archlang.pages.files import write_file, write_inside
    from archlang.pages.inspection.inspect import inspect as inspect_batch
    from archlang.pages.inspection.inspect import source_lines, split_item, typed_input
    from archlang.record.reading import RECIPE
    from archlang.runs.evaluation import open_run
    from archlang.runs.stored_model import explaining_stored_model

    if is_saved(run):
        console.fail(
            f"{run} is a saved model, which has no page of its own",
            "name the run folder; in Python, `archlang.inspect(archlang.load_run(…), input)` shows a saved model",
        )
    with plain_warnings():
        opened = open_run(run, device=device, plugins=plugin or ())
        if inputs:
            if split:
                console.fail("--input and --split are both given", "choose one of them")
            batch, title = typed_input(opened.module, opened.input_format, inputs), " ".join(inputs)
        else:
            split = split or ("test" if "test" in opened.task.split_names() else opened.task.split_names()[-1])
            batch, title = split_item(opened, split, index), f"{split} {index}"
        lines = source_lines(run / RECIPE, opened.recipe)
        with explaining_stored_model(run):
            inspection = inspect_batch(opened.module, opened.input_format, batch, title, lines)
    if as_json:
        console.out.write_json(inspection.to_json())
        return
    for answer in inspection.answers[:_MOST_ANSWERS]:
        place = f"{answer.place}: " if answer.place else ""
        if answer.probability is None:
            console.out.print(f"{place}{answer.predicted}{'' if answer.target is None else f', it is {answer.target}'}")
            continue
        correctness = {True: "  right", False: f"  wrong, it is {answer.target}", None: ""}[answer.right]
        console.out.print(f"{place}{answer.predicted} ({answer.probability:.1%}){correctness}")
    if len(inspection.answers) > _MOST_ANSWERS:
        has_targets = any(answer.right is not None for answer in inspection.answers)
        right = sum(answer.right is True for answer in inspection.answers)
        console.out.print(f"… {len(inspection.answers)} in all{f', {right} right' if has_targets else ''}")
    for number, step in enumerate(inspection.steps, start=1):
        facts = [step.text, *([f"{step.right} right"] if step.right else [])]
        facts += [f"{name} {x:.3f}" for name, x in (("loss", step.loss), ("halts here", step.halting)) if x is not None]
        console.out.print(f"step {number}: {', '.join(facts)}")
    if png is not None:
        from archlang.pages.inspection.heatmap import save_panels

        for file in save_panels(inspection.panels, png):
            console.out.print(f"wrote {file}")
    if out is None:
        out = write_inside(run, "inspect.html", inspection.html())
    else:
        write_file(out, inspection.html())
    console.out.print(f"wrote {out}")
