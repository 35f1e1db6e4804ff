"""The wording of errors about seeds, splits, metrics and engines."""

from collections.abc import Iterable
from pathlib import Path

from archlang.diagnostics.names import listed
from archlang.record.mistakes import RunError


def no_checkpoint(folder: Path) -> RunError:
    return RunError(f"{folder} has no checkpoint yet", f"train it first: `archlang train FILE --out {folder}`")


def seed_out_of_bounds(seed: int, highest: int) -> RunError:
    return RunError(f"the seed is {seed}", f"choose a seed between 0 and {highest}")


def no_such_split(task: str, split: str, possible: Iterable[str]) -> RunError:
    return RunError(f"the task `{task}` has no split `{split}`", f"its splits are {', '.join(possible)}")


def no_such_metric(task: str, metric: str, possible: Iterable[str]) -> RunError:
    if metric in ("exact_match", "oracle_match"):
        message = f"`{metric}` is measured only at the end of a run, because generating answers is slow"
        return RunError(message, f"select by one of {', '.join(possible)}")
    return RunError(f"the task `{task}` has no metric `{metric}`", f"its metrics are {', '.join(possible)}")


def empty_split(task: str, split: str) -> RunError:
    return RunError(f"the split `{split}` of `{task}` has no items", "set a larger size of this split")


def unknown_engine(name: str, possible: Iterable[str]) -> RunError:
    return RunError(f"there is no engine `{name}`", f"the engines are {listed(possible)}")


def engine_option(name: str, option: str) -> RunError:
    message = f"the engine `{name}` does not take the option `{option}`"
    return RunError(message, "see the options of engines in `archlang table --help`")


def no_cluster(reason: str) -> RunError:
    return RunError(f"SLURM is not available: {reason}", "try `--engine-option cluster=local`, or `--engine local`")
