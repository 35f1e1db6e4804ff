"""Models whose weights are divided among processes by torch's FSDP2: each process holds some rows of every weight."""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import nn

from archlang.backend.architecture import Architecture
from archlang.backend.lower.code import Code
from archlang.backend.runtime.loops import RepeatLoop, StepModules
from archlang.train import mistakes


def shard(module: Architecture, device: torch.device) -> None:
    """Divides the weights of a module among all processes, and moves them to the device.

    Each step of a `stack` and each expert is gathered when it runs, and all other weights for the whole call. So are
    those inside a loop whose number of steps depends on the data: processes gather in step with each other."""
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    require_axes(module)
    # Nothing changes the results of a module in place.
    warnings.filterwarnings("ignore", "FSDP2-wrapped module .* returned a view")
    mesh = init_device_mesh(device.type, (torch.distributed.get_world_size(),))
    is_unit: dict[nn.Module, bool] = {}
    for step, is_counted in _steps(module, module.program.code):
        is_unit[step] = is_unit.get(step, True) and is_counted  # several loops may have the same steps
    for unit in (*(step for step, is_counted in is_unit.items() if is_counted), module):
        fully_shard(unit, mesh=mesh)
    # Otherwise processes whose loops have halted differently would add up different weights.
    module.set_reduce_scatter_unused_params(True)


def require_axes(module: nn.Module) -> None:
    """Raises a RunError if a weight has no axis to divide."""
    for name, weight in module.named_parameters():
        if not weight.dim():
            raise mistakes.no_shard(f"the weight `{name}` is a single number without an axis", "omit `--shard`")


def _steps(owner: nn.Module, code: Code, is_counted: bool = True) -> Iterator[tuple[nn.Module, bool]]:
    """Yields the steps of stacks and the experts, inner ones first, and whether they run as often in every process."""
    for loop in code.loops:
        runtime = owner.__dict__[loop.name]
        is_inner_counted = is_counted and isinstance(runtime, RepeatLoop | StepModules)
        for runner in runtime.steps() if isinstance(runtime, StepModules) else [owner]:
            yield from _steps(runner, loop.body, is_inner_counted)
            if runner is not owner:
                yield runner, is_counted


@contextmanager
def resharded(module: nn.Module) -> Iterator[list[Any]]:  # Any: torch's FSDPModule
    """Afterwards each process has its rows alone of a module that `shard` has divided: without a backward pass, the
    weights that were gathered for the whole call stay. Yields the parts that are gathered at a time; none of a module
    that is not divided."""
    units = [part for part in module.modules() if hasattr(part, "unshard")]
    try:
        yield units
    finally:
        for unit in units:
            unit.reshard()  # type: ignore[operator]  # as above


@contextmanager
def gathered(module: nn.Module) -> Iterator[None]:
    """Inside, every process has all weights of a module that `shard` has divided: its calls need no other process."""
    with resharded(module) as units:
        for unit in units:
            unit.set_reshard_after_forward(False, recurse=False)
            unit.unshard()
        try:
            yield
        finally:
            for unit in units:
                unit.set_reshard_after_forward(unit is not module, recurse=False)
