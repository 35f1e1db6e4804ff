"""What may replace the bodies of loops: bodies that torch.compile has compiled, or that keep nothing until backward."""

from collections.abc import Iterable
from dataclasses import replace
from functools import partial
from typing import Any

import torch
from torch import nn

from archlang.backend.architecture import Architecture
from archlang.backend.lower.code import Code
from archlang.backend.runtime.loops import Halting, Repeat, Stack, StepModules, computed_again


def compile_bodies(module: Architecture, backend: str = "inductor") -> int:
    """Replaces the body of each innermost loop by its `torch.compile`, shared by all steps; outer loops run eagerly.

    torch compiles at the first call, and again for each new shape of a batch. Returns the number of bodies."""
    return _compile(module, module.program.code, backend)


def _compile(owner: nn.Module, code: Code, backend: str) -> int:
    count = 0
    for loop in code.loops:
        runtime = owner.__dict__[loop.name]
        if loop.body.loops:
            count += sum(_compile(runner, loop.body, backend) for runner in _runners(owner, runtime))
        else:
            runtime.body = torch.compile(loop.body.function, backend=backend)
            split = runtime.split
            if split is not None:
                head, rest = (torch.compile(half, backend=backend) for half in (split.head, split.rest))
                runtime.split = replace(split, head=head, rest=rest)
            count += 1
    return count


def _runners(owner: nn.Module, runtime: Any) -> Iterable[nn.Module]:  # Any: one of the loops
    """Returns the modules that the body of a loop runs in."""
    return runtime.steps() if isinstance(runtime, StepModules) else [owner]


def rematerialize_bodies(module: Architecture, together: int = 1) -> int:
    """Lets each outermost loop over steps keep only its states until backward, which computes so many steps together
    again, and those of halting loops one after the other. The results and gradients stay the same, bit for bit. Returns
    the number of loops."""
    return _rematerialize(module, module.program.code, together)


def _rematerialize(owner: nn.Module, code: Code, together: int) -> int:
    count = 0
    for loop in code.loops:
        runtime = owner.__dict__[loop.name]
        if isinstance(runtime, Repeat | Stack):
            runtime.together = together
            count += 1
        elif isinstance(runtime, Halting):
            runtime.body = partial(computed_again, runtime.body)
            count += 1
        else:
            count += sum(_rematerialize(runner, loop.body, together) for runner in _runners(owner, runtime))
    return count
