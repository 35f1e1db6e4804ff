"""What happens inside of a model while it computes: attention, gates, halting, pointers, memories.

A model's author does nothing for it, and it costs nothing while it is off: for as long as it is on, modules have hooks,
and loops stand behind others that count their turns."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from archlang.backend.architecture import Architecture
from archlang.backend.lower.code import Code, Loop
from archlang.backend.lower.names import module_path
from archlang.backend.runtime.halting import Tally
from archlang.backend.runtime.loops import Halting, Halves, Repeat, Scan, Stack
from archlang.graph import operations
from archlang.graph.graph import Graph, Instance, Region
from archlang.graph.loop_layout import loop_layout
from archlang.types import Dim, Type

_TURNS = {"repeat": "step", "halting": "step", "stack": "layer", "scan": "chunk"}


@dataclass(frozen=True)
class Turn:
    """One turn of a loop, counted from 0. `loop` tells loops apart, `unit` is what a turn is: a step, a layer, a chunk.
    A chunk begins at `first` of the sequence."""

    loop: str
    unit: str
    index: int
    first: int = 0


@dataclass(frozen=True, eq=False)
class Moment:
    """What was computed once. `path` is where in the model, `turns` when, outer loops first. `values` are

        attention   A, [b h n m]
        gate        g, [b n d]: how far each channel of a column is updated
        halting     what a step adds to the probability of having halted, [b] or [b n]
        running     whether the step was taken, bool, [b] or [b n]
        pointer     w, [b t k n]
        change      how far a state of a loop has moved in the turn, |h' - h| / |h'|, [b n]; `path` ends in its name
        memory      what a scan carries, after the chunk, [b s d]; `path` as above

    `lengths` are the sizes of the axes that are positions, as the types of the program have them."""

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
    _regions: list[Mapping[str, _Call]] = field(default_factory=list)

    def add(self, kind: str, path: str, values: Tensor, lengths: tuple[Dim, ...]) -> None:
        self.moments.append(Moment(kind, path, tuple(self._turns), values.detach(), lengths))


@dataclass(frozen=True)
class _Call:
    """The types of a call's arguments, and of what it gives."""

    takes: tuple[Type, ...]
    gives: Type


@contextmanager
def recording(module: Architecture) -> Iterator[Recording]:
    """Records what the module computes meanwhile.

        with recording(module) as found:
            logits = module(tokens)
        for moment in found.moments: ...

    The `records` clause of a block's signature says what is recorded of it. Attention is computed again, by the method
    `weights` of the block, from the arguments of the call, and so has no dropout."""
    found = Recording()
    program = module.program
    found._regions.append(_calls(program.graph.region))
    with ExitStack() as undo:
        _listen(module, program.graph, found, undo)
        _count(module, program.code, found, undo)
        yield found


# Blocks


def _listen(module: nn.Module, graph: Graph, found: Recording, undo: ExitStack) -> None:
    """Sets a hook on every module that has something to record."""
    paths = {module_path(path): path for path in graph.instances}
    for name, part in module.named_modules():
        path = paths.get(re.sub(r"(^|\.)\d+(?=\.|$)", r"\1*", name))
        if path is None or not graph.instances[path].records:
            continue
        handle = part.register_forward_hook(_hook(found, graph.instances[path]), with_kwargs=True)
        undo.callback(handle.remove)


def _hook(found: Recording, instance: Instance) -> Callable[..., None]:
    def hook(
        block: nn.Module, arguments: tuple[Any, ...], options: dict[str, Any], result: Any
    ) -> None:  # Any: as in torch
        call = found._regions[-1].get(instance.path)
        if call is None:
            return  # called by another block, whose own record covers it
        for record in instance.records:
            if record.input is not None:
                values, lengths = arguments[record.input], call.takes[record.input].lengths
            elif record.kind == "attention":
                values = _attention(block, instance, arguments, options)
                lengths = (*call.takes[0].lengths[:1], *call.takes[-1].lengths[:1])
            else:
                values, lengths = result, call.gives.lengths
            if lengths:
                found.add(record.kind, instance.path, values, lengths)

    return hook


@torch.no_grad()
def _attention(block: Any, instance: Instance, arguments: tuple[Any, ...], options: Mapping[str, Any]) -> Tensor:
    """A, [b h n m], of the arguments of a call. `options` has the masks; that of the keys hides padding."""
    masks = {f"mask_{name}" for name in instance.axes[-1]}
    weights: Tensor = block.weights(*arguments, **{name: options[name] for name in masks & options.keys()})
    return weights


def _calls(region: Region) -> dict[str, _Call]:
    """The calls of a region, not of those in it, by the instances that they are of."""
    types = {value.id: value.type for value in region.inputs}
    types |= {node.id: node.type for node in region.nodes if len(node.types) == 1}
    return {
        node.operation.instance: _Call(tuple(types[one] for one in node.arguments), node.type)
        for node in region.nodes
        if isinstance(node.operation, operations.Call)
    }


# Loops


def _count(owner: nn.Module, code: Code, found: Recording, undo: ExitStack) -> None:
    """Puts a counting one in the place of each loop, also of those in loops."""
    for loop in code.loops:
        runtime = owner.__dict__[loop.name]
        undo.callback(_restore, owner, loop.name, runtime, runtime.body, runtime.halves)
        runtime.halves = None  # what is computed ahead would be of no turn
        owner.__dict__[loop.name] = _Counted(loop, runtime, found, runtime.body)
        for runner in runtime.steps() if isinstance(runtime, Stack) else [owner]:
            _count(runner, loop.body, found, undo)


def _restore(
    owner: nn.Module, name: str, runtime: Any, body: Callable[..., Any], halves: Halves | None
) -> None:  # Any: one of the loops
    runtime.body, runtime.halves = body, halves
    if isinstance(runtime, Halting):
        runtime.watch = None
    owner.__dict__[name] = runtime


@dataclass(eq=False)
class _Counted:
    """A loop that says which of its turns is being computed, and what its states are after each."""

    loop: Loop
    runtime: Repeat | Stack | Halting | Scan
    found: Recording
    body: Callable[..., tuple[Any, ...]]

    def __post_init__(self) -> None:
        node = self.loop.node
        region, shape = node.regions[0], loop_layout(node)
        self._inside = _calls(region)
        self._states = region.inputs[shape.inner : shape.inner + shape.states]
        self._first = shape.inner
        self._unit = _TURNS[node.operation.mnemonic]
        self.runtime.body = self._turn

    def __call__(self, *values: Any, **masks: Any) -> Any:  # Any: as the loops
        found, runtime = self.found, self.runtime
        found._turns.append(Turn(self.loop.name, self._unit, -1))
        found._regions.append(self._inside)
        self._width = 0
        if isinstance(runtime, Halting):
            self._spent: Tensor | None = None
            runtime.watch = self._halts
        try:
            return runtime(*values, **masks)
        finally:
            found._turns.pop()
            found._regions.pop()

    def _turn(self, owner: nn.Module, *values: Any) -> tuple[Any, ...]:  # Any: as above
        turns = self.found._turns
        first = turns[-1].first + self._width
        turns[-1] = Turn(self.loop.name, self._unit, turns[-1].index + 1, first)
        if isinstance(self.runtime, Scan):
            self._width = values[0].shape[1]
        results = self.body(owner, *values)
        # A chunk comes with its mask.
        begin = self._first + isinstance(self.runtime, Scan)
        for value, before, after in zip(self._states, values[begin:], results, strict=False):
            if isinstance(after, Tensor) and after.dim() == 3 and after.is_floating_point():
                path, lengths = f"{self.loop.name}.{value.name}", value.type.lengths
                size = after.norm(dim=-1).clamp(min=torch.finfo(after.dtype).tiny)
                self.found.add("change", path, (after - before).norm(dim=-1) / size, lengths)
                if isinstance(self.runtime, Scan):
                    self.found.add("memory", path, after, lengths)
        return results

    def _halts(self, tally: Tally) -> None:
        """What a step has changed. A block of another kind than the library's may not say where its probability is."""
        node, runtime = self.loop.node, self.runtime
        assert isinstance(runtime, Halting)
        assert isinstance(node.operation, operations.Halting)
        path = node.operation.instance
        lengths = node.types[runtime.halted].lengths[:1] if tally.live.dim() > 1 else ()
        self.found.add("running", path, tally.accepted, lengths)
        spent = getattr(tally, "spent", None)
        if isinstance(spent, Tensor):
            before = torch.zeros_like(spent) if self._spent is None else self._spent
            self.found.add("halting", path, spent - before, lengths)
            self._spent = spent
