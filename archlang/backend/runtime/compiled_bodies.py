"""Compiles the bodies of loops with torch.compile."""

from dataclasses import replace

import torch
from torch import nn

from archlang.backend.architecture import Architecture
from archlang.backend.lower.code import Code
from archlang.backend.runtime.loops import StepModules


def compile_bodies(module: Architecture, backend: str = "inductor") -> int:
    """Replaces the body of each innermost loop by its `torch.compile`, shared by all steps; outer loops run eagerly.

    torch compiles at the first call, and again for each new shape of a batch. Returns the number of bodies."""
    return _compile(module, module.program.code, backend)


def _compile(owner: nn.Module, code: Code, backend: str) -> int:
    count = 0
    for loop in code.loops:
        runtime = owner.__dict__[loop.name]
        if loop.body.loops:
            runners = runtime.steps() if isinstance(runtime, StepModules) else [owner]
            count += sum(_compile(runner, loop.body, backend) for runner in runners)
        else:
            runtime.body = torch.compile(loop.body.function, backend=backend)
            split = runtime.split
            if split is not None:
                head, rest = (torch.compile(half, backend=backend) for half in (split.head, split.rest))
                runtime.split = replace(split, head=head, rest=rest)
            count += 1
    return count
