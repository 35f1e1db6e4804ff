"""What may replace the bodies of loops: bodies that torch.compile has compiled, or that keep nothing until backward."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

from archlang.backend.architecture import Architecture
from archlang.backend.lower.code import Code
from archlang.backend.runtime.call_cache import in_same_call
from archlang.backend.runtime.loops import Body, Halting, Repeat, Stack, StepModules
from archlang.backend.runtime.stacking import is_plain


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


def rematerialize_bodies(module: Architecture) -> int:
    """Lets each outermost loop over steps keep only its states until backward, which computes one step after the other
    again. The results and gradients stay the same, bit for bit. Returns the number of bodies."""
    return _rematerialize(module, module.program.code)


def _rematerialize(owner: nn.Module, code: Code) -> int:
    count = 0
    for loop in code.loops:
        runtime = owner.__dict__[loop.name]
        if isinstance(runtime, Repeat | Stack | Halting):
            runtime.body = _rematerialized(runtime.body)
            count += 1
        else:
            count += sum(_rematerialize(runner, loop.body) for runner in _runners(owner, runtime))
    return count


def _rematerialized(body: Body) -> Body:
    def rematerialized(*arguments: Any) -> tuple[Any, ...]:  # Any: as in `Body`
        if not (torch.is_grad_enabled() and is_plain()):
            return body(*arguments)
        results: tuple[Any, ...] = checkpoint(body, *arguments, use_reentrant=False, context_fn=in_same_call)
        return results

    return rematerialized
