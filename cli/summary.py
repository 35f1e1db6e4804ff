"""`archlang summary`: what an architecture costs."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from archlang.cli import console


def summary(
    file: Annotated[Path, typer.Argument(help="The program.", show_default=False)],
    batch: Annotated[int, typer.Option("--batch", "-b", min=1, help="Samples of a batch.")] = 1,
    length: Annotated[list[int] | None, typer.Option("--length", "-n", min=1, help="Positions of a sample.")] = None,
    model: Annotated[str | None, typer.Option("--model", "-m", help="A model or block of the file.")] = None,
    recipe: Annotated[str | None, typer.Option("--recipe", "-r", help="A recipe of the file.")] = None,
    sets: Annotated[list[str] | None, typer.Option("--set", help="A static, as in `model.d=128`.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="For machines.")] = False,
) -> None:
    """Count an architecture's parameters and the FLOPs of a batch, where every loop runs to its limit.

    Example: archlang summary recipes/gutlb.arch --length 64 --length 1024
    """
    from archlang.cli.settings import parse_sets
    from archlang.view.read import read
    from archlang.view.summary import summarize

    graph = read(file, model, recipe, parse_sets(sets)).graph
    found = [summarize(graph, one) for one in length or [64]]
    if as_json:
        print(json.dumps([{**asdict(one), "batch": batch, "flops": one.flops * batch} for one in found], indent=2))
        return
    first = found[0]
    print(f"{first.model}: {first.unique:,} parameters, {first.executed:,} executed at length {first.length}")
    for one in found:
        print(f"length {one.length}, batch {batch}: {one.flops * batch:,} FLOPs")
    if first.unknown:
        console.say(f"the parameters of {', '.join(first.unknown)} are not known", "they are counted as none")
    if first.uncounted:
        console.say(f"the FLOPs of {', '.join(first.uncounted)} are not known", "they are counted as none")
