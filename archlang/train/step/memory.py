"""Steps that run out of memory are computed again in smaller parts."""

import warnings
from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from archlang.diagnostics.machine import is_out_of_memory
from archlang.train.training_run import TrainingRun


class MemoryWarning(UserWarning):
    """A step ran out of memory; this step and later ones are computed in smaller parts."""


def compute_within_memory(
    compute: Callable[[], Tensor], shrink: Callable[[], str | None], device: torch.device
) -> Tensor:
    """Returns `compute()`. If that runs out of memory, calls `shrink` and tries again, with a warning.

    `shrink` makes the parts smaller and returns the change, for the warning; if it returns None, they cannot become
    smaller, and the error is raised."""
    while True:
        try:
            return compute()
        except (RuntimeError, MemoryError) as error:
            if not is_out_of_memory(error) or (change := shrink()) is None:
                raise
        # The error's traceback holds the tensors of the failed step; only here they are freed.
        if device.type == "cuda":
            torch.cuda.empty_cache()
        warnings.warn(f"not enough memory for {change}; the batch size is unchanged", MemoryWarning, stacklevel=2)


def halve_micro(runs: Sequence[TrainingRun], count: int) -> str | None:
    """Halves the samples that go through the model at a time, of batches of `count`. Returns the change, or None if it
    is one sample already."""
    size = min(runs[0].micro or count, count)
    if size == 1:
        return None
    for run in runs:
        run.micro = (size + 1) // 2
    return f"{size} samples at a time; continuing with {runs[0].micro}"
