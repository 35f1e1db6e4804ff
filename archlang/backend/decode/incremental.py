"""A compiled model on a field that grows: what does not depend on the field is computed once, the rest at its new
positions.

The graphs of `torch.fx` that the model's Python was written from are walked value by value. A value is

    fixed    independent of the field, and kept
    new      a sequence as long as the field that does not see the future in it: the new positions are at hand
    whole    anything else that depends on the field: computed anew each time, and so is what depends on it

A loop has a memory for each of its steps, as the same instance sees other states in each. A loop that fits none of the
forms below is run on all positions, and its results are whole."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

import torch
from torch import Tensor, fx, nn

from archlang.backend.decode.cache import Past
from archlang.backend.lower.code import Code, Loop
from archlang.backend.lower.regions import Program
from archlang.backend.runtime.loops import Halting, Repeat, Scan, Stack, find, spread
from archlang.graph.causality import horizons
from archlang.graph.graph import Node
from archlang.graph.operations import Join
from archlang.types import Dim
from archlang.types.causality import Horizon


class Kind(Enum):
    """What a value is to the field that grows."""

    FIXED = "fixed"
    NEW = "new"
    WHOLE = "whole"


@dataclass(frozen=True, eq=False)
class Value:
    """A value, or of a new one its new positions (which stand on the second axis of a tensor)."""

    kind: Kind
    data: Any  # a tensor, a mask or None for one, a number, chunks; or a pair of these


@dataclass
class Memory:
    """What the walk of one region keeps, by the names that fx gave to its values. What is fixed outlives a restart."""

    fixed: dict[str, Any] = field(default_factory=dict)  # Any: as in Value; of a loop the list of its results
    pasts: dict[str, Past] = field(default_factory=dict)
    histories: dict[tuple[str, int], Tensor] = field(default_factory=dict)
    regimes: dict[str, object] = field(default_factory=dict)
    inner: dict[tuple[str, int], Memory] = field(default_factory=dict)
    seen: int = 0
    """how many positions were walked before"""
    total: int = 0
    """how many there are now"""
    carried: dict[str, list[tuple[Tensor, ...]]] = field(default_factory=dict)
    unfit: set[str] = field(default_factory=set)
    """the loops that are run on all positions"""

    def whole(self, name: str, index: int, value: Value) -> Any:
        """All positions of an input: those that this use of it has seen, and the new ones."""
        if value.kind is not Kind.NEW:
            return value.data
        before = self.histories.get((name, index))
        self.histories[name, index] = value.data if before is None else torch.cat((before, value.data), 1)
        return self.histories[name, index]

    def step(self, name: str, index: int) -> Memory:
        """The memory of a step of a loop."""
        return self.inner.setdefault((name, index), Memory())

    def forget(self) -> None:
        """Back to before the first position."""
        # What is fixed in a chunk may come from what the chunks before it left, and these may be others now.
        self.inner = {key: inner for key, inner in self.inner.items() if key[0] not in self.carried}
        for kept in (self.pasts, self.histories, self.regimes, self.carried):
            kept.clear()
        self.seen = self.total = 0
        for inner in self.inner.values():
            inner.forget()


class _Restart(Exception):
    """Earlier positions see something else now that there are more of them."""


class Extension:
    """A model that has read its other fields, and now gets the field `target` piece by piece.

    `fields` and `masks` are as the program's code takes them; what they have at the target's place is ignored."""

    def __init__(self, module: nn.Module, program: Program, target: int, fields: Sequence[Any], masks: Sequence[Any]):
        (length,) = program.graph.region.inputs[target].type.lengths
        self._module = module
        self._program = program
        self._target = target
        self._given = [*fields, *masks]
        self._walk = _Walk(program, length, horizons(program.graph, program.fields[target]))
        self._memory = Memory()
        self._tokens: Tensor | None = None

    def extend(self, tokens: Tensor) -> Tensor:
        """The result at positions that follow those that were given before; `tokens` [b k] are theirs."""
        before = self._tokens
        self._tokens = tokens if before is None else torch.cat((before, tokens), 1)
        try:
            return self._run(tokens)
        except _Restart:
            self._memory.forget()
            return self._run(self._tokens)[:, -tokens.shape[1] :]

    def _run(self, tokens: Tensor) -> Tensor:
        values = [Value(Kind.FIXED, one) for one in self._given]
        values[self._target] = Value(Kind.NEW, tokens)
        assert self._tokens is not None
        total = self._tokens.shape[1]
        (result,) = self._walk.region(self._program.code, self._module, values, self._memory, (0,), total)
        logits: Tensor = result.data
        assert result.kind is not Kind.FIXED, "the result does not depend on the target"
        return logits[:, -tokens.shape[1] :]


class _Walk:
    """Walks regions in which `length` grows."""

    def __init__(self, program: Program, length: Dim, known: Mapping[str, Horizon]) -> None:
        self._program = program
        self._horizons = known
        self._instances = program.graph.instances
        self._length = length
        self._needed: dict[tuple[int, tuple[int, ...]], list[fx.Node]] = {}
        self._within: dict[Dim, _Walk] = {}

    def region(
        self,
        code: Code,
        owner: nn.Module,
        values: Sequence[Value],
        memory: Memory,
        wanted: Sequence[int],
        total: int,
    ) -> list[Value]:
        """The wanted results of a region, now that there are `total` positions; `values` are its inputs, then masks."""
        memory.total = total
        found: dict[fx.Node, Any] = {}  # Any: a value, or the list of a loop's
        arguments = iter(values)
        for node in self._nodes(code, tuple(wanted)):
            if node.op == "placeholder":
                found[node] = next(arguments)
            else:
                found[node] = self._value(node, found, code, owner, memory)
        memory.seen = total
        return [found[node] for node in _results(code, wanted)]

    def _nodes(self, code: Code, wanted: tuple[int, ...]) -> list[fx.Node]:
        """What the wanted results need, in order, and all inputs."""
        key = (id(code), wanted)
        if key not in self._needed:
            needed = set(_results(code, wanted))
            for node in reversed(code.graph.nodes):
                if node in needed:
                    needed.update(node.all_input_nodes)
            self._needed[key] = [node for node in code.graph.nodes if node in needed or node.op == "placeholder"]
        return self._needed[key]

    def _value(self, node: fx.Node, found: dict[fx.Node, Any], code: Code, owner: nn.Module, memory: Memory) -> Any:
        if node.name in memory.fixed:
            return memory.fixed[node.name]
        arguments = [_argument(one, found) for one in node.args]
        masks = {name: _argument(one, found) for name, one in node.kwargs.items() if name != _PRODUCTS}
        products = {name: _argument(one, found) for name, one in _products(node).items()}
        origin = code.nodes.get(node.name)
        result: Any
        if node.op == "call_method":
            result = Value(Kind.FIXED, arguments[0].data.size(0))
        elif node.op == "call_function":
            result = self._function(node, arguments, memory)
        elif (loop := next((one for one in code.loops if one.name == node.target), None)) is not None:
            result = self._loop(node, loop, owner, arguments, masks, memory)
        elif origin is not None and isinstance(origin.operation, Join):
            found_join = find(owner, str(node.target).split("."))
            if arguments:
                parts = found_join(*(one.data for one in arguments))
                result = [Value(arguments[0].kind, one) for one in parts]
            else:
                result = Value(Kind.FIXED, found_join())
        else:
            assert origin is not None
            module = find(owner, str(node.target).split("."))
            result = self._call(node.name, origin, module, arguments, masks, products, memory)
        if all(one.kind is Kind.FIXED for one in (result if isinstance(result, list) else [result])):
            memory.fixed[node.name] = result
        return result

    def _grown(self, node: Node) -> Kind:
        """What a call's result is that depends on the target."""
        kind, names = node.type, self._length.names
        if self._horizons[node.id].sees_future:
            return Kind.WHOLE  # it changes with every position that follows
        growing = [length for length in kind.lengths if length.names & names]
        plain = kind.name != "chunks" and kind.lengths[:1] == (self._length,) and len(growing) == 1
        return Kind.NEW if plain else Kind.WHOLE

    # Values

    def _function(self, node: fx.Node, arguments: Sequence[Any], memory: Memory) -> Any:
        """Arithmetic, or a part of what was computed before."""
        first = arguments[0]
        if isinstance(first, list):
            return first[arguments[1].data]
        kind = _joint(arguments)
        target: Any = node.target
        if kind is Kind.WHOLE:
            data = target(*(memory.whole(node.name, index, one) for index, one in enumerate(arguments)))
        else:
            data = target(*(one.data for one in arguments))
        return Value(kind if data is not None else Kind.FIXED, data)

    def _call(
        self,
        name: str,
        origin: Node,
        module: Any,  # a block, with what it offers
        arguments: Sequence[Value],
        masks: Mapping[str, Value],
        products: Mapping[str, Value],
        memory: Memory,
    ) -> Value:
        """A block: as it offers to be extended, else on all positions, of which it computes its products itself."""
        given: dict[str, Any] = {key: one.data for key, one in masks.items()}
        new = {**given, _PRODUCTS: {key: one.data for key, one in products.items()}} if products else given
        if _joint([*arguments, *masks.values()]) is Kind.FIXED:
            return Value(Kind.FIXED, module(*(one.data for one in arguments), **new))
        data = [one.data for one in arguments]
        assert origin.instance is not None
        instance = self._instances[origin.instance]
        kind = self._grown(origin)
        if hasattr(module, "regime"):
            _hold(memory, name, module.regime(memory.total, *data))
        if kind is Kind.WHOLE or instance.grows or _joint([*arguments, *masks.values()]) is Kind.WHOLE:
            data = [memory.whole(name, index, one) for index, one in enumerate(arguments)]
            return Value(Kind.WHOLE, module(*data, **given))
        if getattr(module, "placeless", False) or (not instance.lengths and set(instance.reads) == {"pointwise"}):
            return Value(Kind.NEW, module(*data, **new))
        if hasattr(module, "extend"):
            past = memory.pasts.setdefault(name, Past(tuple(one.kind is Kind.NEW for one in arguments)))
            result = module.extend(past, *data, **new)
            past.start = memory.total
            return Value(Kind.NEW, result)
        data = [memory.whole(name, index, one) for index, one in enumerate(arguments)]
        return Value(Kind.NEW, module(*data, **given)[:, memory.seen :])

    # Loops

    def _loop(
        self,
        node: fx.Node,
        loop: Loop,
        owner: nn.Module,
        arguments: Sequence[Value],
        masks: Mapping[str, Value],
        memory: Memory,
    ) -> Any:  # Any: a value, or the list of all results
        name = node.name
        runtime = find(owner, [loop.name])
        kinds = {one.kind for one in (*arguments, *masks.values())}
        results: list[Value] | None = None
        if name in memory.unfit:
            pass
        elif Kind.NEW in kinds and Kind.WHOLE not in kinds:
            match runtime:
                case Repeat(count=count):
                    results = self._steps(name, loop, [owner] * count, arguments, memory)
                case Stack():
                    results = self._steps(name, loop, list(runtime.steps()), arguments, memory)
                case Halting():
                    results = self._halting(name, loop, runtime, arguments, memory)
        elif isinstance(runtime, Scan) and arguments[0].kind is Kind.WHOLE and not _uses(node, runtime.carried):
            results = self._scan(name, loop, runtime, arguments, memory)
        if results is None:
            # What was begun of it is of no use, now and later.
            if name not in memory.unfit:
                memory.unfit.add(name)
                if memory.seen:
                    raise _Restart
            data = [memory.whole(name, index, one) for index, one in enumerate(arguments)]
            found = runtime(*data, **{key: one.data for key, one in masks.items()})
            kind = Kind.FIXED if kinds <= {Kind.FIXED} else Kind.WHOLE
            results = [Value(kind, one) for one in (found if isinstance(found, tuple) else (found,))]
        alone = len(loop.node.types) == 1 and not loop.body.extras and not isinstance(runtime, Halting)
        return results[0] if alone else results

    def _steps(
        self, name: str, loop: Loop, owners: Sequence[nn.Module], arguments: Sequence[Value], memory: Memory
    ) -> list[Value]:
        """A loop with a known number of steps."""
        count = len(loop.node.types)
        states, captured = list(arguments[:count]), arguments[count:]
        for index, owner in enumerate(owners):
            inner = memory.step(name, index)
            states = self.region(loop.body, owner, [*states, *captured], inner, range(count), memory.total)
        return states

    def _halting(
        self, name: str, loop: Loop, runtime: Halting, arguments: Sequence[Value], memory: Memory
    ) -> list[Value] | None:
        """A loop in which each position halts by itself; None for another.

        Bodies run at new positions only; the tally is made of all of them anew, from what the bodies gave. A position
        may go on for longer than all before it: then a body sees for the first time what those have become."""
        count, halted = len(loop.node.types), runtime.halted
        block: Any = runtime.block  # with what it offers
        if any(one.kind is not Kind.NEW for one in arguments[:count]) or not all(runtime.along):
            return None
        beside = memory.step(name, _BESIDE)
        whole = [beside.whole(name, index, one) for index, one in enumerate(arguments)]
        states = whole[:count]
        tally = block.start(states[halted], None)
        if tally.live.dim() == 1:
            return None
        if hasattr(block, "regime"):
            _hold(memory, name, block.regime(memory.total, runtime.limit))
        for step in range(runtime.limit):
            inner = memory.step(name, step)
            states[halted] = tally.state
            given = [*states, *([tally.mixture] if runtime.mixture else [])]
            values = [Value(Kind.NEW, one[:, inner.seen :]) for one in given]
            for one, data in zip(arguments[count:], whole[count:], strict=True):
                values.append(one if one.kind is Kind.FIXED else Value(Kind.NEW, data[:, inner.seen :]))
            moved = self.region(loop.body, runtime.owner, values, inner, range(count), memory.total)
            if any(one.kind is not Kind.NEW for one in moved):
                return None
            results = [inner.whole("", index, one) for index, one in enumerate(moved)]
            tally = block.advance(tally, results[halted], None)
            for index in range(count):
                if index != halted:
                    took = spread(tally.accepted, results[index].dim(), along=True)
                    states[index] = torch.where(took, results[index], states[index])
            if step + 1 < runtime.limit and not tally.live.any():
                break
        states[halted] = tally.mixture
        return [Value(Kind.NEW, one[:, memory.seen :]) for one in states]

    def _scan(
        self, name: str, loop: Loop, runtime: Scan, arguments: Sequence[Value], memory: Memory
    ) -> list[Value] | None:
        """A loop over chunks, of which the last one grows. What it carries moves when a chunk is full. None where what
        is cut has another length than the field, or changes at positions that were there before."""
        fixed = arguments[1:]
        if not runtime.emits or any(one.kind is not Kind.FIXED for one in fixed):
            return None
        cut = loop.node.inputs[0]
        if loop.node.types[-1].lengths != (self._length,) or self._horizons[cut].sees_future:
            return None
        (length,) = loop.node.regions[0].inputs[0].type.lengths
        walk = self._within.setdefault(length, _Walk(self._program, length, self._horizons))
        carried, captured = runtime.carried, [one.data for one in fixed[runtime.carried :]]
        before = memory.carried.setdefault(name, [tuple(one.data for one in fixed[:carried])])
        emitted: list[Tensor] = []
        end = 0
        for index, (chunk, mask) in enumerate(arguments[0].data):
            begin, end = end, end + chunk.shape[1]
            if end > memory.seen:
                values = [Value(Kind.NEW, chunk[:, max(memory.seen - begin, 0) :]), Value(Kind.FIXED, mask)]
                values += [Value(Kind.FIXED, one) for one in (*before[index], *captured)]
                inner = memory.step(name, index)
                (result,) = walk.region(loop.body, runtime.owner, values, inner, (carried,), chunk.shape[1])
                if result.kind is not Kind.NEW:
                    return None
                emitted.append(result.data)
            if index + 1 == len(before) and index + 1 < len(arguments[0].data):
                moved = runtime.body(runtime.owner, chunk, mask, *before[index], *captured)
                before.append(moved[:carried])
                memory.inner.pop((name, index), None)
        return [*[Value(Kind.WHOLE, None)] * carried, Value(Kind.NEW, torch.cat(emitted, 1))]


# How a call's products are given.
_PRODUCTS = "products"
# The step of a halting loop that none has: it keeps what the loop was given.
_BESIDE = -1


def _results(code: Code, wanted: Sequence[int]) -> list[fx.Node]:
    """The values that a region's results are."""
    (output,) = (node for node in code.graph.nodes if node.op == "output")
    (results,) = output.args
    every = results if isinstance(results, tuple) else (results,)
    found = []
    for index in wanted:
        one = every[index]
        assert isinstance(one, fx.Node)
        found.append(one)
    return found


def _argument(value: Any, found: Mapping[fx.Node, Any]) -> Any:  # Any: as torch.fx has arguments
    return found[value] if isinstance(value, fx.Node) else Value(Kind.FIXED, value)


def _products(node: fx.Node) -> Mapping[str, Any]:  # Any: as torch.fx has arguments
    found = node.kwargs.get(_PRODUCTS, {})
    assert isinstance(found, Mapping)
    return found


def _uses(loop: fx.Node, count: int) -> bool:
    """Whether anything needs one of the first results of a loop."""
    # A loop with one result is not taken apart.
    parts = {user.args[1]: user for user in loop.users if user.target is operator.getitem}
    used = {index for index, part in parts.items() if part.users} if parts else {0}
    return not used.isdisjoint(range(count))


def _joint(values: Iterable[Value]) -> Kind:
    """What depends on all of these."""
    kinds = {one.kind for one in values}
    return Kind.WHOLE if Kind.WHOLE in kinds else Kind.NEW if Kind.NEW in kinds else Kind.FIXED


def _hold(memory: Memory, name: str, regime: object) -> None:
    if memory.regimes.setdefault(name, regime) != regime:
        raise _Restart
