"""`archlang train`: a recipe, trained, tested, and set beside its paper's claim."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from archlang.cli import console
from archlang.cli.settings import parse_sets

if TYPE_CHECKING:
    from archlang.run.runner import Outcome


def train(
    file: Annotated[Path, typer.Argument(help="A program with a recipe.", show_default=False)],
    recipe: Annotated[str | None, typer.Argument(help="The recipe; without it, the first of the file.")] = None,
    sets: Annotated[
        list[str] | None, typer.Option("--set", help="A static of the recipe, as in `model.d=128`; may be repeated.")
    ] = None,
    steps: Annotated[int | None, typer.Option("--steps", min=1, help="Short for `--set train.steps=N`.")] = None,
    seed: Annotated[int | None, typer.Option("--seed", min=0, help="Short for `--set seed=N`.")] = None,
    device: Annotated[str, typer.Option("--device", help="auto, cpu, cuda, cuda:1, mps.")] = "auto",
    precision: Annotated[str, typer.Option("--precision", help="32, bf16 or 16.")] = "32",
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="The run folder; one that holds this run is gone on with.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the results as JSON, and nothing else.")] = False,
) -> None:
    """Train a recipe on its task, and measure every split.

    Everything about the run is kept in its folder, `runs/RECIPE/TIME` if none is named. Ctrl-C stops after the step at
    hand with a checkpoint; the same command with `--out` goes on from there.

    Example: archlang train recipes/gutlb.arch --steps 100
    """
    from archlang import compile as compiler

    if precision not in ("32", "bf16", "16"):
        console.fail(f"there is no precision `{precision}`", "choose one of 32, bf16, 16", code=2)
    settings = parse_sets(sets)
    if steps is not None:
        settings["train.steps"] = str(steps)
    if seed is not None:
        settings["seed"] = str(seed)
    plan = compiler.plan(file, recipe, settings)
    folder = out or Path("runs") / plan.recipe / datetime.now().strftime("%Y-%m-%d_%H-%M-%S")

    from archlang.run import runner

    shown = None if as_json else console.out
    if shown is not None:
        shown.print(f"training {plan.model} on {plan.task.name}, seed {plan.seed}, in {folder}", markup=False)
    outcome = runner.train(plan, folder, device=device, precision=precision, console=shown)
    if outcome.stopped:
        console.err.print(f"stopped at step {outcome.step}; `--out {folder}` goes on from there", markup=False)
        return
    report(outcome, as_json)


def report(outcome: Outcome, as_json: bool) -> None:
    """Prints what a run has measured."""
    if as_json:
        print((outcome.folder / "results.json").read_text(encoding="utf-8"), end="")
        return
    from archlang.run.progress import claim_table, result_table

    console.out.print(
        result_table(outcome.scores, outcome.breakdown, outcome.metrics, outcome.trained), soft_wrap=False
    )
    if outcome.claims:
        console.out.print(claim_table(outcome.claims), soft_wrap=False)
    console.out.print(f"the run is in {outcome.folder}", markup=False)
