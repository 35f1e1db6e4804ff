"""What can go wrong with a run, worded for the person who started it."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from archlang.diagnostics import ArchlangError
from archlang.diagnostics.names import listed


class RunError(ArchlangError):
    """A run that cannot begin, go on or be read."""

    def __init__(self, message: str, remedy: str) -> None:
        self.message = message
        self.remedy = remedy
        super().__init__(f"{message}\n  {remedy}")


# The folder


def another_run(folder: Path, difference: str) -> RunError:
    return RunError(
        f"{folder} holds another run: {difference}",
        "name a new folder with `--out`; nothing was changed",
    )


def in_use(folder: Path) -> RunError:
    return RunError(f"another process is training in {folder}", "wait for it, or name a new folder with `--out`")


def not_a_run(folder: Path, missing: str) -> RunError:
    return RunError(f"{folder} is no run folder: there is no {missing}", "name a folder that `archlang train` has made")


def not_empty(folder: Path) -> RunError:
    found = "holds something else" if folder.is_dir() else "is a file"
    return RunError(f"{folder} exists and {found}", "name a new folder with `--out`; nothing was changed")


def not_written(path: Path, reason: str) -> RunError:
    return RunError(
        f"{path} cannot be written: {reason}", "make room or choose another folder; what was written before is whole"
    )


def damaged(path: Path, reason: str) -> RunError:
    return RunError(f"{path} is damaged: {reason}", "take the run up from an older checkpoint, or train anew")


# Checkpoints


def no_checkpoint(folder: Path) -> RunError:
    return RunError(f"{folder} has no checkpoint yet", f"train it further: `archlang train FILE --out {folder}`")


def no_whole_checkpoint(folder: Path) -> RunError:
    return RunError(
        f"every checkpoint in {folder} is damaged", "name a new folder with `--out` to train anew; nothing was changed"
    )


def does_not_fit(folder: Path, reason: str) -> RunError:
    return RunError(
        f"the weights in {folder} do not fit its model: {reason}",
        "measure the run, or go on with it, with the version of archlang in its versions.json",
    )


# The machine


def no_device(wanted: str) -> RunError:
    return RunError(
        f"there is no device `{wanted}` here", "use `--device cpu`, or a torch that was built for your accelerator"
    )


def too_few_devices(kind: str, wanted: int, there: int) -> RunError:
    return RunError(f"there are not {wanted} devices `{kind}` here", f"there are {there}; give `--devices {there}`")


def batch_too_small(batch: int, processes: int) -> RunError:
    return RunError(
        f"a batch of {batch} cannot be shared by {processes} processes", "raise `train.batch`, or use fewer devices"
    )


def unknown_device(wanted: str) -> RunError:
    return RunError(f"`{wanted}` names no device", "write auto, cpu, cuda, cuda:1 or mps")


def unknown_precision(wanted: str, known: Iterable[str]) -> RunError:
    return RunError(f"there is no precision `{wanted}`", f"choose one of {', '.join(known)}")


def no_such_precision_here(wanted: str, device: str) -> RunError:
    return RunError(f"the device `{device}` does not compute in precision {wanted}", "use `--precision 32` or `bf16`")


def out_of_memory(device: str, batch: int) -> RunError:
    return RunError(
        f"the memory of `{device}` does not hold a step with a batch of {batch}",
        "lower `train.batch`, or the sizes of the model",
    )


# What the recipe asks for


def seed_out_of_bounds(seed: int, highest: int) -> RunError:
    return RunError(f"the seed is {seed}", f"choose a seed between 0 and {highest}")


def no_weights() -> RunError:
    return RunError("the model has no weights to train", "use a block with weights, such as `linear`")


def foreign_optimizer(optimizer: str) -> RunError:
    return RunError(f"the optimizer `{optimizer}` is not one of archlang's", "use adamw, adam, rmsprop or sgd")


def no_such_split(task: str, split: str, known: Iterable[str]) -> RunError:
    return RunError(f"the task `{task}` has no split `{split}`", f"its splits are {', '.join(known)}")


def no_such_metric(task: str, metric: str, known: Iterable[str]) -> RunError:
    if metric in ("exact_match", "oracle_match"):
        why = f"`{metric}` is measured when a run ends, as a model writes its answers slowly"
        return RunError(why, f"select by one of {', '.join(known)}")
    return RunError(f"the task `{task}` has no metric `{metric}`", f"its metrics are {', '.join(known)}")


def empty_split(task: str, split: str) -> RunError:
    return RunError(f"the split `{split}` of `{task}` has no items", "ask for a larger size of this split")


# Training


def not_finite(what: str, step: int, last: int | None) -> RunError:
    kept = "there was no checkpoint yet" if last is None else f"the checkpoint of step {last} is kept"
    return RunError(f"the {what} any more at step {step}", f"lower `train.lr` or clip gradients; {kept}")


def no_graphs(reason: str) -> RunError:
    return RunError(f"there are no CUDA graphs of this run: {reason}", "leave `--graphs` out")


def not_captured(reason: str) -> RunError:
    return RunError(
        f"a step of this run cannot become a CUDA graph: {reason}",
        "leave `--graphs` out: the run goes on from its last checkpoint",
    )


def not_compiled(reason: str) -> RunError:
    return RunError(
        f"torch's compiler has failed: {reason}", "leave `--compile` out; on the CPU it needs a C++ compiler"
    )


# Tables


def unknown_engine(name: str, known: Iterable[str]) -> RunError:
    return RunError(f"there is no engine `{name}`", f"the engines are {listed(known)}")


def engine_missing(name: str) -> RunError:
    return RunError(f"what `{name}` needs is not installed", f"run `pip install 'archlang[{name}]'`")


def engine_option(name: str, option: str) -> RunError:
    return RunError(
        f"the engine `{name}` does not take the option `{option}`", "see `archlang table --help` for what it takes"
    )


def unknown_tracker(name: str, known: Iterable[str]) -> RunError:
    return RunError(f"there is no tracker `{name}`", f"the trackers are {listed(known)}; TensorBoard is always written")


def tracker_refuses(name: str, reason: str) -> RunError:
    return RunError(f"{name} does not begin: {reason}", f"see how {name} is set up, or leave `--track {name}` out")


def no_cluster(reason: str) -> RunError:
    return RunError(f"there is no SLURM here: {reason}", "try `--engine-option cluster=local`, or `--engine local`")
