"""`archlang summary`: what an architecture costs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from archlang.cli import console
from archlang.cli.settings import Allow, Plugin, ProgramOrInput, parse_sets
from archlang.cli.standard_input import text_or_path

if TYPE_CHECKING:
    from archlang.graph.graph import Graph

_FLOAT_BYTES = 4
_DEFAULT_LENGTH = 64  # positions


def summary(
    file: ProgramOrInput,
    batch: Annotated[int, typer.Option("--batch", "-b", min=1, help="Samples per batch.")] = 1,
    length: Annotated[list[int] | None, typer.Option("--length", "-n", min=1, help="Positions per sample.")] = None,
    depth: Annotated[
        list[int] | None,
        typer.Option("--depth", min=0, help="Steps of loops with shared weights, at most their limits."),
    ] = None,
    model: Annotated[str | None, typer.Option("--model", "-m", help="A model or block of the file.")] = None,
    recipe: Annotated[str | None, typer.Option("--recipe", "-r", help="A recipe of the file.")] = None,
    sets: Annotated[list[str] | None, typer.Option("--set", help="A static, such as `model.d=128`.")] = None,
    plugin: Plugin = None,
    allow: Allow = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Count the parameters of an architecture, and the FLOPs and activations of a batch.

    Loops run to their limits, or `--depth` steps if that is less. Of experts, only those count whose weights may differ
    from 0. FLOPs are those of matrix products, two for each multiplication. Activations are about as many float32
    numbers as training keeps until backward.

    Example: archlang summary recipes/gutlb.arch --length 64 --length 1024
    """
    from archlang.compile import compile_named
    from archlang.graph.summary import summarize
    from archlang.plugins import Plugins

    Plugins.read(plugin or ())  # no Python is needed to count
    graph = compile_named(text_or_path(file), model, recipe, parse_sets(sets), allow or ())
    depths: list[int | None] = [*depth] if depth else [None]
    summaries = [
        (steps, summarize(graph, positions, steps)) for positions in length or [_DEFAULT_LENGTH] for steps in depths
    ]
    if as_json:
        facts = [
            {
                "model": costs.model, "length": costs.length, "depth": steps, "batch": batch, "unique": costs.unique,
                "executed": costs.executed, "flops": costs.flops * batch,
                "idle_flops": costs.idle_flops * batch, "activation_bytes": _FLOAT_BYTES * costs.activations * batch,
                "unknown": costs.unknown, "uncounted": costs.uncounted, "unmeasured": costs.unmeasured,
            }
            for steps, costs in summaries
        ]  # fmt: skip
        console.out.write_json(facts)
        return
    first = summaries[0][1]
    console.out.write(
        f"{first.model}: {first.unique:,} parameters, {first.executed:,} executed at length {first.length}"
    )
    for steps, costs in summaries:
        at_depth = "" if steps is None else f", depth {steps}"
        megabytes = _FLOAT_BYTES * costs.activations * batch / 1e6
        console.out.write(
            f"length {costs.length}{at_depth}, batch {batch}: {costs.flops * batch:,} FLOPs, "
            f"{megabytes:,.1f} MB of activations"
        )
        if costs.idle_flops:
            total = (costs.flops + costs.idle_flops) * batch
            console.out.write(f"  all experts, also those with a weight of 0: {total:,} FLOPs")
    for what, blocks in (
        ("parameters", first.unknown), ("FLOPs", first.uncounted), ("activations", first.unmeasured),
    ):  # fmt: skip
        if blocks:
            reason = "a size is unknown, or the signature does not state them"
            console.out.write(f"The sums do not include the {what} of {', '.join(blocks)}: {reason}.")
    if first.unknown and recipe is None and graph.unknown_sizes:
        console.out.write(_remedy(graph))


def _remedy(graph: Graph) -> str:
    """Returns how to give a graph its unknown sizes, which a task sets for a model, and the inputs for a block."""
    from archlang.elaborate.binding import TASK_SIZES

    settings = " ".join(f"--set {size}={10 if size in TASK_SIZES else 16}" for size in graph.unknown_sizes)
    if graph.word == "model":
        return f"`--recipe NAME` or `{settings}` sets sizes that a task sets."
    return f"`{settings}` sets sizes that the inputs have."
