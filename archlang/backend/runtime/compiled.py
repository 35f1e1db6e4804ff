"""Bodies of loops in the hands of torch's compiler."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import nn

from archlang.backend.architecture import Architecture
from archlang.backend.lower.code import Code
from archlang.backend.runtime.loops import Stack


def compile_bodies(module: Architecture, backend: str = "inductor") -> int:
    """Has torch compile the body of each innermost loop, once for all its steps; a loop around others stays as it is.
    It happens at the first call, and again where a batch has another shape. Gives how many bodies there are."""
    return _compile(module, module.program.code, backend)


def _compile(owner: nn.Module, code: Code, backend: str) -> int:
    count = 0
    for loop in code.loops:
        runtime = owner.__dict__[loop.name]
        if loop.body.loops:
            runners = runtime.steps() if isinstance(runtime, Stack) else [owner]
            count += sum(_compile(runner, loop.body, backend) for runner in runners)
        else:
            runtime.body = torch.compile(loop.body.function, backend=backend)
            if runtime.halves is not None:
                head, rest = (torch.compile(one, backend=backend) for one in (runtime.halves.head, runtime.halves.rest))
                runtime.halves = replace(runtime.halves, head=head, rest=rest)
            count += 1
    return count
