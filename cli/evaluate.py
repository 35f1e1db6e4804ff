"""`archlang eval`: evaluates a run again."""

from pathlib import Path
from typing import Annotated

import typer

from archlang.cli import completion, console
from archlang.cli.settings import Plugin
from archlang.cli.train import Device, plain_warnings


def evaluate(
    run: Annotated[Path, typer.Argument(help="A run folder.", show_default=False, autocompletion=completion.runs)],
    split: Annotated[list[str] | None, typer.Option("--split", help="A split; may be repeated.")] = None,
    device: Device = "auto",
    decode: Annotated[
        int | None, typer.Option("--decode", min=0, help="The number of answers per split that the model generates.")
    ] = None,
    plugin: Plugin = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print as JSON.")] = False,
) -> None:
    """Evaluate the selected weights of a run on the splits of its task.

    The run may still be training; its folder is not changed. If the answers of a task are sequences, the model also
    generates some token by token: 1,000 of each split, or the number after `--decode`.

    Example: archlang eval runs/gutlb/2026-01-31_12-00-00 --split test
    """
    from archlang.record.schemas import json_value
    from archlang.runs import evaluation
    from archlang.runs.progress import result_table
    from archlang.train.decoding import DEFAULT_ANSWERS

    with plain_warnings():
        outcome = evaluation.evaluate_run(
            run, split, device=device, written=DEFAULT_ANSWERS if decode is None else decode,
            plugins=plugin or (),
            console=None if as_json else console.out,
        )  # fmt: skip
    if as_json:
        splits = {score.split: json_value(score.result()) for score in outcome.scores}
        names = {"group_names": outcome.group_names} if outcome.group_names else {}
        console.out.write_json({"step": outcome.step, "splits": splits, **names})
        return
    console.out.print(f"the weights of step {outcome.step}")
    console.out.print(
        result_table(outcome.scores, outcome.breakdown, outcome.metrics, outcome.trained, outcome.group_names),
        soft_wrap=False,
    )
