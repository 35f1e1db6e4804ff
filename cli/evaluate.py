"""`archlang eval`: a run measured again."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Annotated

import typer

from archlang.cli import console


def evaluate(
    run: Annotated[Path, typer.Argument(help="A run folder.", show_default=False)],
    split: Annotated[list[str] | None, typer.Option("--split", help="A split; may be repeated.")] = None,
    device: Annotated[str, typer.Option("--device", help="auto, cpu, cuda, cuda:1, mps.")] = "auto",
    as_json: Annotated[bool, typer.Option("--json", help="Print as JSON.")] = False,
) -> None:
    """Measure the selected weights of a run on its task's splits.

    Example: archlang eval runs/gutlb/2026-01-31_12-00-00 --split test
    """
    from archlang.run import runner
    from archlang.run.progress import result_table

    outcome = runner.evaluate_run(run, split, device=device, console=None if as_json else console.out)
    if as_json:
        print(json.dumps([dataclasses.asdict(score) for score in outcome.scores], indent=2))
        return
    console.out.print(
        result_table(outcome.scores, outcome.breakdown, outcome.metrics, outcome.trained), soft_wrap=False
    )
