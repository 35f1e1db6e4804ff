"""`archlang eval`: evaluates a run again."""

from pathlib import Path
from typing import Annotated

import typer

from archlang.cli import completion, console
from archlang.cli.settings import Plugin, parse_sets
from archlang.cli.train import Device, plain_warnings


def evaluate(
    run: Annotated[Path, typer.Argument(help="A run folder.", show_default=False, autocompletion=completion.runs)],
    split: Annotated[list[str] | None, typer.Option("--split", help="A split; may be repeated.")] = None,
    sets: Annotated[
        list[str] | None,
        typer.Option("--set", help="Another static of the task, as in `task.test=64..128`; may be repeated."),
    ] = None,
    checkpoint: Annotated[str, typer.Option("--checkpoint", help="best, last or a step.")] = "best",
    device: Device = "auto",
    decode: Annotated[
        int | None, typer.Option("--decode", min=0, help="The number of answers per split that the model generates.")
    ] = None,
    plugin: Plugin = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print as JSON.")] = False,
) -> None:
    """Evaluate the selected weights of a run on the splits of its task, or of the task with other statics.

    The run may still be training; its folder is not changed. If the answers of a task are sequences, the model also
    generates some token by token: 1,000 of each split, or the number after `--decode`.

    Example: archlang eval runs/gutlb/2026-01-31_12-00-00 --set "task.test_length=[2048]"
    """
    from archlang.record.schemas import json_value
    from archlang.runs import evaluation
    from archlang.runs.progress import result_table
    from archlang.train.score import DEFAULT_ANSWERS

    changes = parse_sets(sets)
    if fixed := next((path for path in changes if not path.startswith("task.")), None):
        console.fail(f"`{fixed}` cannot change after training", "set statics of the task, as `task.test`", code=2)
    with plain_warnings():
        outcome = evaluation.evaluate_run(
            run, split, checkpoint=checkpoint, device=device, written=DEFAULT_ANSWERS if decode is None else decode,
            plugins=plugin or (), sets=changes,
            console=None if as_json else console.out,
        )  # fmt: skip
    if decode and not any(score.written for score in outcome.scores):
        console.err.print("warning: `--decode` has no effect: the answers of this task are no sequences")
    if as_json:
        splits = {score.split: json_value(score.result()) for score in outcome.scores}
        names = {"group_names": outcome.group_names} if outcome.group_names else {}
        settings = {"set": changes} if changes else {}
        console.out.write_json({"step": outcome.step, **settings, "splits": splits, **names})
        return
    settings_text = "".join(f", {path} = {value}" for path, value in changes.items())
    console.out.print(f"the weights of step {outcome.step}{settings_text}", markup=False)
    console.out.print(
        result_table(outcome.scores, outcome.breakdown, outcome.metrics, outcome.trained, outcome.group_names),
        soft_wrap=False,
    )
