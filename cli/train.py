"""`archlang train`: trains a recipe, evaluates it, and prints it beside the claims of its paper."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from archlang.cli import arguments, console
from archlang.cli.arguments import deadline_of, flag, output, parse_sets, program_argument, remat_of, save_interval
from archlang.cli.data import ask_for

if TYPE_CHECKING:
    import torch

    from archlang.plan.plan import Plan
    from archlang.train.memory import Remat
    from archlang.train.record.schemas import Results
    from archlang.train.runs.cost import RunCost
    from archlang.train.runs.evaluation import Result


def train(
    file: Annotated[Path | None, program_argument("A program with a recipe.")] = None,
    recipe: arguments.RecipeName = None,
    sets: arguments.Sets = None,
    steps: Annotated[int | None, typer.Option(min=1, help="Short for `--set train.steps=N`.")] = None,
    seed: Annotated[int | None, typer.Option(min=0, max=2**32 - 1, help="Short for `--set seed=N`.")] = None,
    weights: Annotated[
        Path | None,
        typer.Option("--from", help="A run or a saved model to begin with: short for the setting `weights`."),
    ] = None,
    device: arguments.Device = "auto",
    precision: arguments.Precision = "32",
    devices: Annotated[int | None, typer.Option(min=1, help="Processes on this machine, one for each device.")] = None,
    nodes: Annotated[int | None, typer.Option(min=1, help="Machines; start the command on each.")] = None,
    eager: arguments.Eager = False,
    remat: arguments.Remat = None,
    shard: Annotated[
        bool, flag("--shard", "Divide the weights, gradients and optimizer state among the devices, for larger models.")
    ] = False,
    track: Annotated[
        list[str] | None,
        typer.Option(
            help="wandb, mlflow or trackio, or a function such as mine.rows of a plugin, besides TensorBoard."
        ),
    ] = None,
    dry_run: Annotated[
        bool, flag("--dry-run", "Train nothing: say how many steps, FLOPs and bytes a device the run needs.")
    ] = False,
    out: Annotated[Path | None, output("The run folder; if it holds this run, the run resumes.")] = None,
    resume: Annotated[Path | None, typer.Option(help="A run folder to resume, without the program.")] = None,
    time_limit: arguments.TimeLimit = None,
    save: arguments.Save = "15m",
    yes: arguments.Yes = False,
    plugin: arguments.Plugin = None,
    allow: arguments.Allow = None,
    as_json: arguments.AsJson = False,
) -> None:
    """Train a recipe on its task, and evaluate every split.

    Everything about the run is in its folder, by default `runs/RECIPE/TIME`. Ctrl-C stops after the current step with a
    checkpoint, as `--for 8m` does after eight minutes. To resume, rerun the command with `--out FOLDER`, or run
    `archlang train --resume FOLDER`. Missing published files of the task are fetched after you confirm.

    Example: archlang train recipes/gutlb.arch --steps 100
    """
    from archlang.plan.from_file import plan_recipe
    from archlang.plan.trust import require_trust
    from archlang.train.refusals import describe_steps, is_compiled, refusal, why_eager

    deadline = deadline_of(time_limit)
    if (file is None) == (resume is None):
        amount = "and none is given" if file is None else "not both"
        console.fail(f"name a program or `--resume FOLDER`, {amount}", "see `archlang train --help`", code=2)
    if resume is not None:
        if recipe or sets or weights or steps is not None or seed is not None or out is not None or precision != "32":
            message = "a resumed run keeps its settings: name no recipe, setting, precision or folder with `--resume`"
            console.fail(message, "leave the others out; to train with other settings, name the program", code=2)
        from archlang.train.record.reading import read_plan

        plan, precision = read_plan(resume, plugin or ())
        folder = resume
    else:
        assert file is not None
        settings = parse_sets(sets) | ({} if steps is None else {"train.steps": str(steps)})
        settings |= {} if seed is None else {"seed": str(seed)}
        settings |= {} if weights is None else {"train.weights": json.dumps(str(weights), ensure_ascii=False)}
        plan = plan_recipe(file, recipe, settings, allow or (), plugin or ())
        folder = out or _new_folder(Path("runs") / plan.recipe)

    for option, given, name in (("--devices", devices, "LOCAL_WORLD_SIZE"), ("--nodes", nodes, "GROUP_WORLD_SIZE")):
        if given not in (None, started := _torchrun_count(name)) and "TORCHELASTIC_RUN_ID" in os.environ:
            console.fail(f"torchrun has started {started}, and `{option}` names {given}", f"omit `{option}`", code=2)
    require_trust([plan])
    count, machines = devices or _torchrun_count("LOCAL_WORLD_SIZE"), nodes or _torchrun_count("GROUP_WORLD_SIZE")
    together = remat_of(remat)
    options = {"shard": shard, "remat": bool(together)}
    if error := refusal(plan, device, precision, count * machines, **options):
        raise error
    ask_for([plan], yes, console.err if as_json else console.out)
    if dry_run:
        from archlang.train.devices import require_device
        from archlang.train.runs.training import check_files, describe_start

        # Before torch is imported, the kind of `auto` is not known.
        place = require_device(plan, device, precision, count, machines, **options)
        check_files(plan, folder, precision, track or ())
        if start := describe_start(plan, folder):
            console.out.print(start)
        cost = _print_needs(plan, place, precision, count, machines, shard, together)
        reason = why_eager(plan, place.type, precision, count * machines, remat=bool(together), eager=eager)
        compiled = is_compiled(plan, place.type, cost.steps, cost.longest, eager=eager, **options)
        if steps_run := describe_steps(place.type, reason, compiled):
            console.out.print(f"steps run {steps_run}")
        return
    terminal = None if as_json or not _is_first_process() else console.out
    if terminal is not None:
        # Before torch is imported, which takes seconds.
        terminal.print(f"training {plan.model} on {plan.task.name}, seed {plan.seed}, in {folder}")
    # Otherwise every process of a run prints torch's warning that all weights have gradients.
    os.environ.setdefault("TORCH_CPP_LOG_LEVEL", "ERROR")
    from archlang.cli.progress import ProgressDisplay
    from archlang.train.record.reading import has
    from archlang.train.record.schemas import RESULTS
    from archlang.train.runs import training
    from archlang.train.runs.evaluation import explaining_stored_model
    from archlang.train.stop import Stop
    from archlang.train.trainer import SILENT

    stop, watcher = Stop(), SILENT if terminal is None else ProgressDisplay(terminal, plan.recipe)
    with (
        stop.at(deadline),
        console.plain_warnings(),
        nullcontext() if resume is None else explaining_stored_model(folder),
    ):
        outcome = training.train(
            plan, folder, device=device, precision=precision, devices=count, nodes=machines,
            track=track or (), eager=eager, remat=together, shard=shard,
            save=save_interval(save), watcher=watcher, stop=stop,
        )  # fmt: skip
    if not _is_first_process():
        return
    after = ""
    if outcome.stopped:
        after = f" after {time_limit}" if stop.number is None and time_limit is not None else ""
        is_done = has(folder, RESULTS)
        rest = "the run was done before and keeps its results" if is_done else f"resume with `--resume {folder}`"
        console.err.print(f"stopped{after} at step {outcome.step}; {rest}")
    if as_json:
        console.out.write_json(_outcome_json(outcome))
    elif outcome.results is not None:
        _print_results(folder, outcome.results, outcome.trained)
    if outcome.stopped and not after:
        raise typer.Exit(stop.exit_code)


def _print_needs(
    plan: Plan, device: torch.device, precision: str, devices: int, nodes: int, shard: bool, remat: Remat
) -> RunCost:
    """Prints what a run needs, and returns what it costs. Raises a RunMachineError if that is more memory than there
    is, or a RunError if a weight cannot be divided."""
    from archlang.cli.progress import ProgressDisplay
    from archlang.compile import build
    from archlang.errors.names import plural, rounded
    from archlang.plan.trust import is_users_own
    from archlang.train.memory import memory_by_devices
    from archlang.train.runs.cost import estimate_cost, measured_activations
    from archlang.train.runs.training import require_memory
    from archlang.train.sharding import require_axes

    progress = ProgressDisplay(console.out)
    cost = estimate_cost(plan, progress)
    console.out.print(f"{plural(cost.steps, 'step')}, about {rounded(cost.flops, ' ')}FLOP")
    measure = measured_activations(plan, cost.longest, precision, remat)
    with progress.working("measuring the memory of a step"):
        needs = memory_by_devices(plan, cost.longest, devices * nodes, remat=remat, measure=measure)
    for name, memory in needs.items():
        console.out.print(f"on {name}: {memory}")
    require_memory(plan, device, devices, nodes, sharded=shard, remat=remat, length=cost.longest, measure=measure)
    if shard and any(is_users_own(instance.python) for instance in plan.graph.instances.values()):
        require_axes(build(plan.graph, plan.plugins))  # only the classes of blocks know the axes of their weights
    console.out.print(f"`{device}` has enough memory")
    return cost


def _is_first_process() -> bool:
    rank = os.environ.get("RANK") or os.environ.get("SLURM_PROCID") or os.environ.get("LOCAL_RANK") or "0"
    return rank == "0" and os.environ.get("NODE_RANK", "0") == "0"


def _torchrun_count(name: str) -> int:
    text = os.environ.get(name, "1")
    return int(text) if text.isdecimal() and "TORCHELASTIC_RUN_ID" in os.environ else 1


def _new_folder(parent: Path) -> Path:
    name = datetime.now().strftime("%Y-%m-%d_%H-%M-%S")
    folder, count = parent / name, 1
    while folder.exists():
        count += 1
        folder = parent / f"{name}-{count}"
    return folder


def _outcome_json(outcome: Result) -> dict[str, object]:
    from archlang.train.record.schemas import json_value

    facts: dict[str, object] = {"folder": str(outcome.folder), "step": outcome.step, "stopped": outcome.stopped}
    return facts if outcome.results is None else facts | json_value(outcome.results)


def _print_results(folder: Path, results: Results, trained: Mapping[str, Sequence[int]]) -> None:
    from archlang.reports.run_results import claim_table, result_notes, result_table

    console.out.print(result_table(results, trained).terminal(), soft_wrap=False)
    if results.claims:
        console.out.print(claim_table(results.claims).terminal(), soft_wrap=False)
    for note in result_notes(results):
        console.out.print(note)
    console.out.print(f"the run is in {folder}")
