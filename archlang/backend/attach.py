"""Sets the loops of a program on the modules that run them, and lets them keep less until backward."""

from functools import partial
from typing import Any

from torch import nn

from archlang.backend import mistakes
from archlang.backend.lower.code import Code, LoweredLoop
from archlang.backend.lower.names import relative_path
from archlang.backend.lower.regions import PythonProgram
from archlang.backend.runtime import loops
from archlang.backend.runtime.bound import bound
from archlang.backend.runtime.experts import ExpertLoop
from archlang.backend.runtime.gradients import GradientLoop
from archlang.backend.runtime.halting import HaltingBlock
from archlang.backend.runtime.scans import ChunkScan, GrowingState, PositionScan
from archlang.graph import operations
from archlang.graph.graph import Graph, has_halting_positions, loop_layout, takes_positions
from archlang.graph.growth import growths


def attach_program(architecture: nn.Module, program: PythonProgram) -> None:
    """Sets the loops of a program on the module of its model and on the steps of its stacks.

    Raises:
        BuildError: the block that should halt a loop is not a halting block."""
    _attach(architecture, program.code, program.graph)


def _attach(owner: nn.Module, code: Code, graph: Graph) -> None:
    """Sets the loops of code on the module that runs it, as plain attributes: they own no weights."""
    for loop in code.loops:
        runtime = _runtime(owner, loop, graph)
        owner.__dict__[loop.name] = runtime
        for runner in map(_unwrapped, runtime.steps()) if isinstance(runtime, loops.StepModules) else [owner]:
            _attach(runner, loop.body, graph)


def _unwrapped(step: nn.Module) -> loops.StackStep:
    """The step of a stack, which a wrapper may have replaced."""
    return next(part for part in step.modules() if isinstance(part, loops.StackStep))


def _runtime(owner: nn.Module, loop: LoweredLoop, graph: Graph) -> loops.Loop:
    node = loop.node
    split = None
    if loop.split is not None:
        split = loops.SplitBody(loop.split.head.function, bound(loop.split.rest.function), loop.split.reads)
    common: dict[str, Any] = {  # Any: arguments of different types
        "owner": owner,
        "body": bound(loop.body.function),
        "extras": loop.body.extras,
        "split": split,
    }
    match node.operation:
        case operations.Repeat(count=count, emits=emits, truncated=truncated, drawn=drawn, settled=settled):
            states, drawn = loop_layout(node).states, relative_path(drawn, loop.scope) if drawn else ""
            common |= {"emits": emits, "truncated": truncated, "settled": settled}
            return loops.RepeatLoop(**common, states=states, count=count, drawn=drawn)
        case operations.Stack(path=path, emits=emits):
            path = relative_path(path, loop.scope)
            return loops.StackLoop(**common, states=loop_layout(node).states, emits=emits, path=path)
        case operations.Experts(path=path):
            return ExpertLoop(**common, path=relative_path(path, loop.scope))
        case operations.Gradient():
            return GradientLoop(**common)
        case operations.Scan(carried=carried, emits=emits, truncated=truncated, before=before):
            growing = [
                GrowingState(index, growth.each.constant or 0, growth.per_position)
                for index, growth in growths(node).items()
            ]
            common |= {"carried": carried, "emits": emits, "truncated": truncated, "before": before}
            parallel = None if loop.parallel is None else loop.parallel.function
            common |= {"growing": tuple(growing), "parallel": parallel}
            if not takes_positions(node):
                return ChunkScan(**common)
            return PositionScan(**common, gradient=loop.gradient)
    assert isinstance(node.operation, operations.Halting)
    instance = graph.instances[node.operation.instance]
    path = relative_path(instance.path, loop.scope)
    if not isinstance(loops.resolve(owner, path.split(".")), HaltingBlock):
        raise mistakes.not_halting(instance)
    paths = (inner.instance for inner in node.regions[0].walk() if inner.instance is not None)
    return loops.HaltingLoop(
        **common,
        path=path,
        limit=node.operation.limit,
        states=loop_layout(node).states,
        emits=node.operation.emits,
        halted=node.operation.state,
        mixture=node.operation.mixture,
        ranks=tuple(1 + len(kind.tensor_dims) for kind in node.types),
        has_positions=tuple(has_halting_positions(node, index) for index in range(len(node.types))),
        depth=loop.has_depth,
        # Samples that halt leave the batch, unless results for a sample depend on the others.
        compact=not any("batch" in graph.instances[path].caveats for path in paths),
    )


def rematerialize_bodies(owner: nn.Module, code: Code, together: int = 1) -> int:
    """Lets each outermost loop over steps of a module with this code keep only its states until backward, which
    computes so many steps together again, and those of halting loops one after the other. The results and gradients
    stay the same, bit for bit. Returns the number of loops."""
    count = 0
    for loop in code.loops:
        runtime = owner.__dict__[loop.name]
        if isinstance(runtime, loops.RepeatLoop | loops.StackLoop):
            runtime.together = together
            count += 1
        elif isinstance(runtime, loops.HaltingLoop):
            runtime.body = partial(loops.computed_again, runtime.body)
            count += 1
        else:
            runners = runtime.steps() if isinstance(runtime, loops.StepModules) else [owner]
            count += sum(rematerialize_bodies(runner, loop.body, together) for runner in runners)
    return count
