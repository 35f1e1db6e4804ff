"""`archlang summary`: what an architecture costs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from archlang.cli import console

_BYTES = 4  # of a number


def summary(
    file: Annotated[Path, typer.Argument(help="The program.", show_default=False)],
    batch: Annotated[int, typer.Option("--batch", "-b", min=1, help="Samples of a batch.")] = 1,
    length: Annotated[list[int] | None, typer.Option("--length", "-n", min=1, help="Positions of a sample.")] = None,
    depth: Annotated[
        list[int] | None,
        typer.Option("--depth", min=0, help="Steps of loops with shared weights, up to their limits."),
    ] = None,
    model: Annotated[str | None, typer.Option("--model", "-m", help="A model or block of the file.")] = None,
    recipe: Annotated[str | None, typer.Option("--recipe", "-r", help="A recipe of the file.")] = None,
    sets: Annotated[list[str] | None, typer.Option("--set", help="A static, as in `model.d=128`.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="For machines.")] = False,
) -> None:
    """Count an architecture's parameters, the FLOPs of a batch, and the activations that its blocks give.

    Loops run to their limits, or as many steps as `--depth` says. FLOPs are those of matrix products, two for each
    multiplication. Activations are an estimate from below: the float32 values that blocks and arithmetic give. With
    what blocks keep for themselves, training keeps 1.5 to 3.5 times as much.

    Example: archlang summary recipes/gutlb.arch --length 64 --length 1024
    """
    from archlang.cli.settings import parse_sets
    from archlang.graph.summary import summarize
    from archlang.pages.pictures.architecture import read

    graph = read(file, model, recipe, parse_sets(sets)).graph
    depths: list[int | None] = [*depth] if depth else [None]
    asked = [(one, steps) for one in length or [64] for steps in depths]
    found = [(steps, summarize(graph, one, steps)) for one, steps in asked]
    if as_json:
        told = [
            {
                "model": one.model, "length": one.length, "depth": steps, "batch": batch, "unique": one.unique,
                "executed": one.executed, "flops": one.flops * batch, "activation_bytes": _BYTES * one.values * batch,
                "unknown": one.unknown, "uncounted": one.uncounted,
            }
            for steps, one in found
        ]  # fmt: skip
        print(json.dumps(told, indent=2))
        return
    first = found[0][1]
    print(f"{first.model}: {first.unique:,} parameters, {first.executed:,} executed at length {first.length}")
    for steps, one in found:
        deep = "" if steps is None else f", depth {steps}"
        size = _BYTES * one.values * batch / 1e6
        print(f"length {one.length}{deep}, batch {batch}: {one.flops * batch:,} FLOPs, {size:,.1f} MB of activations")
    if first.unknown:
        console.say(f"the parameters of {', '.join(first.unknown)} are not known", "they are counted as none")
    if first.uncounted:
        console.say(f"the FLOPs of {', '.join(first.uncounted)} are not known", "they are counted as none")
