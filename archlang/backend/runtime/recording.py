"""Records attention, gates, halting, pointers and memories of a model while it computes.

During recording, modules have hooks, and wrappers that count turns replace the loops; otherwise it has no cost."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from archlang.backend import mistakes
from archlang.backend.architecture import Architecture
from archlang.backend.lower.code import Code, LoweredLoop
from archlang.backend.lower.lengths import chunk_lengths
from archlang.backend.lower.names import is_at
from archlang.backend.runtime.experts import ExpertLoop
from archlang.backend.runtime.gradients import GradientLoop
from archlang.backend.runtime.halting import HaltingState
from archlang.backend.runtime.loops import HaltingLoop, ObservedLoop, RepeatLoop, StackLoop
from archlang.backend.runtime.result_check import CallTypes, calls_of
from archlang.backend.runtime.scans import ChunkScan, PositionScan, ScanLoop
from archlang.graph import operations
from archlang.graph.graph import Graph, Instance, loop_layout
from archlang.graph.growth import growths
from archlang.types import Dim, Type

_TURNS = {"repeat": "step", "halting": "step", "stack": "layer", "scan": "chunk"}


@dataclass(frozen=True)
class Turn:
    """One turn of a loop, counted from 0. `loop` is the name of the loop, and `unit` that of its turns: step, layer,
    chunk or position. `first` is the position of the sequence at which a chunk begins, and `length` the length of that
    sequence; None in other loops."""

    loop: str
    unit: str
    index: int
    first: int = 0
    length: Dim | None = None


@dataclass(frozen=True, eq=False)
class Moment:
    """Values that the model computed once: `path` is the place in the model, and `turns` are those of the loops around
    it, outer loops first. `values` are

        attention   A, [b h n m]
        gate        g, [b n d]: how far each channel of a column is updated
        halting     the increase of the halting probability in a step, [b] or [b n]
        running     whether the step was taken, bool, [b] or [b n]
        pointer     w, [b t k n]
        change      |h' - h| / |h'| of a state of a loop in the turn, [b n]; `path` ends in its name
        memory      a state that a scan carries, after the chunk, [b s d]; `path` as above

    `lengths` are the lengths of the axes of positions, in the types of the program."""

    kind: str
    path: str
    turns: tuple[Turn, ...]
    values: Tensor
    lengths: tuple[Dim, ...]


@dataclass(eq=False)
class Recording:
    """The moments of the calls so far, in order."""

    moments: list[Moment] = field(default_factory=list)
    _turns: list[Turn] = field(default_factory=list)
    _regions: list[Mapping[str, CallTypes]] = field(default_factory=list)

    def add(self, kind: str, path: str, values: Tensor, lengths: tuple[Dim, ...]) -> None:
        """Records values in the current turns."""
        self.moments.append(Moment(kind, path, tuple(self._turns), values.detach(), lengths))


@contextmanager
def recording(module: Architecture) -> Iterator[Recording]:
    """Records the calls of the module inside of the `with` block.

        with recording(module) as record:
            logits = module(tokens)
        for moment in record.moments: ...

    The `records` clause of a block's signature names its recorded values. Attention is computed again, by the method
    `weights` of the block, from the arguments of the call, and so has no dropout."""
    record = Recording()
    program = module.program
    types = {id: kind for region in program.graph.region.regions() for id, kind in region.types().items()}
    record._regions.append(dict(calls_of(program.graph.region)))
    with ExitStack() as undo:
        _add_hooks(module, program.graph, record, undo)
        _wrap_loops(module, program.code, record, types, undo)
        yield record


# Blocks


def _add_hooks(module: nn.Module, graph: Graph, record: Recording, undo: ExitStack) -> None:
    """Adds a hook to every module whose signature has a `records` clause."""
    paths = [path for path, instance in graph.instances.items() if instance.records]
    for name, part in module.named_modules():
        path = next((path for path in paths if path.count(".") == name.count(".") and is_at(name, path)), None)
        if path is None:
            continue
        handle = part.register_forward_hook(_hook(record, graph.instances[path]), with_kwargs=True)
        undo.callback(handle.remove)


def _hook(record: Recording, instance: Instance) -> Callable[..., None]:
    def hook(
        block: nn.Module, arguments: tuple[Any, ...], options: dict[str, Any], result: Any
    ) -> None:  # Any: as in torch
        call = record._regions[-1].get(instance.path)
        if call is None:
            return  # called by another block, whose own record covers it
        for clause in instance.records:
            if clause.input is not None:
                values, lengths = arguments[clause.input], call.arguments[clause.input].lengths
            elif clause.kind == "attention":
                values = _attention(block, instance, arguments, options)
                lengths = (*call.arguments[0].lengths[:1], *call.arguments[-1].lengths[:1])
            else:
                values, lengths = result, call.result.lengths
            if lengths:
                record.add(clause.kind, instance.path, values, lengths)

    return hook


@torch.no_grad()
def _attention(block: Any, instance: Instance, arguments: tuple[Any, ...], options: Mapping[str, Any]) -> Tensor:
    """Computes A, [b h n m], from the arguments of a call and the mask of its keys, which is in `options`."""
    masks = {f"mask_{name}" for name in instance.axes[-1]}
    weights = block.weights(*arguments, **{name: options[name] for name in masks & options.keys()})
    if not isinstance(weights, Tensor) or weights.dim() != 4:
        raise mistakes.wrong_weights(instance, weights)
    return weights


# Loops


def _wrap_loops(owner: nn.Module, code: Code, record: Recording, types: Mapping[str, Type], undo: ExitStack) -> None:
    """Replaces each loop, also in loops, by a wrapper that counts its turns."""
    for loop in code.loops:
        runtime = owner.__dict__[loop.name]
        if isinstance(runtime, ExpertLoop | GradientLoop):
            continue  # a body runs on the chosen positions of all samples, or again for its gradient
        undo.callback(_restore, owner, loop.name, runtime, dict(vars(runtime)))
        runtime.split = runtime.parallel = runtime.gradient = None  # these run outside of turns
        owner.__dict__[loop.name] = _RecordedLoop(loop, runtime, record, runtime.body, types)
        for runner in runtime.steps() if isinstance(runtime, StackLoop) else [owner]:
            _wrap_loops(runner, loop.body, record, types, undo)


def _restore(owner: nn.Module, name: str, runtime: Any, attributes: Mapping[str, Any]) -> None:  # Any: one of the loops
    vars(runtime).update(attributes)
    owner.__dict__[name] = runtime


@dataclass(eq=False)
class _RecordedLoop(ObservedLoop):
    """A loop that records the current turn, and the states after each turn."""

    loop: LoweredLoop
    runtime: RepeatLoop | StackLoop | HaltingLoop | ChunkScan | PositionScan
    record: Recording
    body: Callable[..., tuple[Any, ...]]
    types: Mapping[str, Type]

    def __post_init__(self) -> None:
        node = self.loop.node
        region, shape = node.regions[0], loop_layout(node)
        self._calls = dict(calls_of(region))
        self._states = region.inputs[shape.inner : shape.inner + shape.states]
        self._first = shape.inner
        self._growing = growths(node)
        split = self.types.get(node.inputs[0]) if isinstance(self.runtime, ScanLoop) and node.inputs else None
        self._length = split.lengths[0] if split is not None and split.lengths else None
        self._unit = "position" if isinstance(self.runtime, PositionScan) else _TURNS[node.operation.mnemonic]
        self.runtime.body = self._turn

    def __call__(self, *values: Any, **masks: Any) -> Any:  # Any: as the loops
        record, runtime = self.record, self.runtime
        record._turns.append(Turn(self.loop.name, self._unit, -1))
        record._regions.append(self._calls)
        self._width = 0
        if isinstance(runtime, HaltingLoop):
            self._halted: Tensor | None = None
            runtime.watch = self._record_halting
        try:
            return runtime(*values, **masks)
        finally:
            record._turns.pop()
            record._regions.pop()

    def _turn(self, owner: nn.Module, *values: Any) -> tuple[Any, ...]:  # Any: as above
        turns = self.record._turns
        first = turns[-1].first + self._width
        turns[-1] = Turn(self.loop.name, self._unit, turns[-1].index + 1, first, self._length)
        takes_chunks = isinstance(self.runtime, ChunkScan)
        if isinstance(self.runtime, ScanLoop):
            self._width = values[0].shape[1] if takes_chunks else 1
        results = self.body(owner, *values)
        # Masks are behind a chunk and behind what is before it.
        begin = self._first + len(chunk_lengths(self.loop.node))
        for index, (value, before, after) in enumerate(zip(self._states, values[begin:], results, strict=False)):
            if index in self._growing:  # each turn has another number of positions
                continue
            if isinstance(after, Tensor) and after.dim() == 3 and after.is_floating_point():
                path, lengths = f"{self.loop.name}.{value.name}", value.type.lengths
                size = after.norm(dim=-1).clamp(min=torch.finfo(after.dtype).tiny)
                self.record.add("change", path, (after - before).norm(dim=-1) / size, lengths)
                if isinstance(self.runtime, ScanLoop):
                    self.record.add("memory", path, after, lengths)
        return results

    def _record_halting(self, halting: HaltingState) -> None:
        node, runtime = self.loop.node, self.runtime
        assert isinstance(runtime, HaltingLoop)
        assert isinstance(node.operation, operations.Halting)
        path = node.operation.instance
        lengths = node.types[runtime.halted].lengths[:1] if halting.live.dim() > 1 else ()
        self.record.add("running", path, halting.accepted, lengths)
        spent = getattr(halting, "spent", None)  # the probability of having halted, if the block keeps it
        if isinstance(spent, Tensor):
            before = torch.zeros_like(spent) if self._halted is None else self._halted
            self.record.add("halting", path, spent - before, lengths)
            self._halted = spent
