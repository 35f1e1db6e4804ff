"""Bodies of loops that keep nothing until backward, which computes their steps again."""

from functools import partial

from torch import nn

from archlang.backend.architecture import Architecture
from archlang.backend.lower.code import Code
from archlang.backend.runtime.loops import Halting, Repeat, Stack, StepModules, computed_again


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
            runners = runtime.steps() if isinstance(runtime, StepModules) else [owner]
            count += sum(_rematerialize(runner, loop.body, together) for runner in runners)
    return count
