"""Incremental decoding: runs a compiled model on a growing field, and computes only the new positions.

The walk evaluates the graphs of `torch.fx` of the model's Python, value by value. A value is

    fixed    independent of the field: computed once, and cached
    new      a sequence as long as the field that does not see its future: only the new positions are computed
    full     any other value that depends on the field: all positions are computed again, as are its dependents

A group of maps is computed by rows, as in a call of the model. A loop has a cache for each of its steps, because the
same instance reads other states in each. A loop that has none of the forms below runs on all positions, and its results
are full."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from functools import partial
from typing import Any

import torch
from torch import Tensor, fx, nn

from archlang.backend.decode.block_cache import BlockCache
from archlang.backend.lower.code import Code, LoweredLoop
from archlang.backend.lower.regions import PythonProgram
from archlang.backend.runtime.call_cache import call_scope
from archlang.backend.runtime.experts import ExpertLoop
from archlang.backend.runtime.loops import HaltingLoop, RepeatLoop, StackLoop, broadcast_mask, resolve
from archlang.backend.runtime.row_blocks import RowBlocks
from archlang.backend.runtime.scans import ChunkScan, PositionScan
from archlang.graph.causality import horizons
from archlang.graph.graph import Node, loop_layout
from archlang.graph.operations import Product
from archlang.types import Dim
from archlang.types.causality import Horizon


class Dependence(Enum):
    """How a value depends on the growing field."""

    FIXED = "fixed"
    NEW = "new"
    FULL = "full"


@dataclass(frozen=True, eq=False)
class Value:
    """A value. The data of a new one are its new positions, on the second axis of a tensor."""

    growth: Dependence
    data: Any  # a tensor, a mask or None for one, a number, chunks; or a pair of these


@dataclass
class RegionCache:
    """What the walk of one region caches, by the names of values in its graph. Fixed values survive a restart."""

    fixed: dict[str, Any] = field(default_factory=dict)  # Any: as in Value; for a loop the list of its results
    block_caches: dict[str, BlockCache] = field(default_factory=dict)
    histories: dict[tuple[str, int], Tensor] = field(default_factory=dict)
    regimes: dict[str, object] = field(default_factory=dict)
    inner: dict[tuple[str, int], RegionCache] = field(default_factory=dict)
    seen: int = 0
    """the number of positions before this walk"""
    total: int = 0
    """the number of positions now"""
    carried: dict[str, list[tuple[Tensor, ...]]] = field(default_factory=dict)
    full_loops: set[str] = field(default_factory=set)
    """the loops that run on all positions"""

    def all_positions(self, name: str, index: int, value: Value) -> Any:
        """Returns the cached positions of an input and its new ones, and caches them."""
        if value.growth is not Dependence.NEW:
            return value.data
        before = self.histories.get((name, index))
        self.histories[name, index] = value.data if before is None else torch.cat((before, value.data), 1)
        return self.histories[name, index]

    def step(self, name: str, index: int) -> RegionCache:
        """Returns the cache of a step of a loop."""
        return self.inner.setdefault((name, index), RegionCache())

    def forget(self) -> None:
        """Clears everything except for fixed values."""
        # Values that are fixed in a chunk may depend on states from the chunks before it, which may have changed.
        self.inner = {key: inner for key, inner in self.inner.items() if key[0] not in self.carried}
        for cache in (self.block_caches, self.histories, self.regimes, self.carried):
            cache.clear()
        self.seen = self.total = 0
        for inner in self.inner.values():
            inner.forget()


def joint_growth(values: Iterable[Value]) -> Dependence:
    """The growth of a value that depends on all of these."""
    joint = Dependence.FIXED
    for value in values:
        if value.growth is Dependence.FULL:
            return Dependence.FULL
        if value.growth is Dependence.NEW:
            joint = Dependence.NEW
    return joint


class _Restart(Exception):
    """Results at earlier positions have changed because positions were added."""


# A node, or the value of a constant.
_Source = fx.Node | Value


@dataclass(frozen=True, eq=False)
class _Operands:
    """What a node is computed from. An argument is a value, or the list of a loop's."""

    arguments: Sequence[Any]
    masks: Mapping[str, Value]
    products: Mapping[str, Value]

    def growth(self) -> Dependence:
        """The growth of a result that depends on all arguments and masks."""
        return joint_growth([*self.arguments, *self.masks.values()])


# Computes a value, or the list of a loop's.
_Evaluate = Callable[[_Operands, RegionCache], Any]


class Extension:
    """A model whose field with the index `target` grows, while its other fields are fixed.

    `inputs` are those that the program's code takes; the value of the target is ignored."""

    def __init__(self, module: nn.Module, program: PythonProgram, target: int, inputs: Sequence[Any]):
        (length,) = program.graph.region.inputs[target].type.lengths
        self._module = module
        self._program = program
        self._target = target
        self._inputs = inputs
        self._walk = _Walk(program, length, horizons(program.graph, program.fields[target]))
        self._cache = RegionCache()
        self._tokens: Tensor | None = None

    def extend(self, tokens: Tensor) -> Tensor:
        """Appends `tokens` [b k] to the field. Returns the result at their positions, [b k vocab]."""
        before = self._tokens
        self._tokens = tokens if before is None else torch.cat((before, tokens), 1)
        try:
            return self._run(tokens)
        except _Restart:
            self._cache.forget()
            return self._run(self._tokens)[:, -tokens.shape[1] :]

    def _run(self, tokens: Tensor) -> Tensor:
        values = [Value(Dependence.FIXED, value) for value in self._inputs]
        values[self._target] = Value(Dependence.NEW, tokens)
        assert self._tokens is not None
        total = self._tokens.shape[1]
        with call_scope():
            (result,) = self._walk.region(self._program.code, self._module, values, self._cache, (0,), total)
        logits: Tensor = result.data
        assert result.growth is not Dependence.FIXED, "the result does not depend on the target"
        return logits[:, -tokens.shape[1] :]


@dataclass(frozen=True, eq=False)
class _CallSite:
    """A call of a block. `growth` is that of a result that depends on the field."""

    name: str
    module: Any  # a block, perhaps with the methods of decode/block_cache.py
    growth: Dependence
    grows: bool
    placeless: bool


@dataclass(frozen=True, eq=False)
class _Step:
    """A node of a region's graph, with what its evaluation would look up for each new position."""

    node: fx.Node
    name: str
    arguments: tuple[_Source, ...]
    masks: Mapping[str, _Source]
    products: Mapping[str, _Source]
    evaluate: _Evaluate


@dataclass(frozen=True, eq=False)
class _RegionSteps:
    """The steps that some results of a region need, in order, and the nodes of its inputs and of these results."""

    inputs: tuple[fx.Node, ...]
    constants: Mapping[_Source, Value]
    steps: tuple[_Step, ...]
    results: tuple[fx.Node, ...]


class _Walk:
    """Evaluates regions in which `length` grows."""

    def __init__(self, program: PythonProgram, length: Dim, horizons: Mapping[str, Horizon]) -> None:
        self._program = program
        self._horizons = horizons
        self._instances = program.graph.instances
        self._length = length
        self._regions: dict[tuple[Code, nn.Module, tuple[int, ...]], _RegionSteps] = {}
        self._chunk_walks: dict[Dim, _Walk] = {}

    def region(
        self,
        code: Code,
        owner: nn.Module,
        values: Sequence[Value],
        region_cache: RegionCache,
        result_indices: Sequence[int],
        total: int,
    ) -> list[Value]:
        """Returns some results of a region at `total` positions; `values` are its inputs, then masks."""
        key = code, owner, tuple(result_indices)
        if key not in self._regions:
            self._regions[key] = self._region(*key)
        region, fixed = self._regions[key], region_cache.fixed
        region_cache.total = total
        results: dict[_Source, Any] = dict(region.constants)  # Any: a value, or the list of a loop's
        results.update(zip(region.inputs, values, strict=False))
        for step in region.steps:
            name = step.name
            # It depends on no position of the field, so its first value stays right.
            if name in fixed:
                results[step.node] = fixed[name]
                continue
            arguments = [results[source] for source in step.arguments]
            masks = {mask: results[source] for mask, source in step.masks.items()} if step.masks else _NONE
            products = (
                {product: results[source] for product, source in step.products.items()} if step.products else _NONE
            )
            result = step.evaluate(_Operands(arguments, masks, products), region_cache)
            results[step.node] = result
            if _is_fixed(result):
                fixed[name] = result
        region_cache.seen = total
        return [results[node] for node in region.results]

    def _region(self, code: Code, owner: nn.Module, result_indices: tuple[int, ...]) -> _RegionSteps:
        results = _result_nodes(code, result_indices)
        needed = set(results)
        for node in reversed(code.fused.nodes):
            if node in needed:
                needed.update(node.all_input_nodes)
        inputs = tuple(node for node in code.fused.nodes if node.op == "placeholder")
        steps = tuple(self._step(node, code, owner) for node in code.fused.nodes if node in needed - {*inputs})
        sources = (
            source for step in steps for source in (*step.arguments, *step.masks.values(), *step.products.values())
        )
        constants: dict[_Source, Value] = {source: source for source in sources if isinstance(source, Value)}
        return _RegionSteps(inputs, constants, steps, tuple(results))

    def _step(self, node: fx.Node, code: Code, owner: nn.Module) -> _Step:
        return _Step(
            node,
            node.name,
            tuple(map(_source, node.args)),
            {name: _source(mask) for name, mask in node.kwargs.items() if name != _PRODUCTS},
            {name: _source(product) for name, product in _products(node).items()},
            self._evaluation(node, code, owner),
        )

    def _evaluation(self, node: fx.Node, code: Code, owner: nn.Module) -> _Evaluate:
        if node.target == "size":
            return _batch_size
        if node.target is operator.getitem:
            return _one_of_several
        if node.name in code.groups:
            results = tuple(self._growth(code.nodes[part.name]) for part in sorted(node.users, key=_result_index))
            return partial(self._rows, node.name, code.groups[node.name], owner, results)
        if node.op in ("call_function", "call_method"):
            return partial(self._function, node)
        loop = next((loop for loop in code.loops if loop.name == node.target), None)
        module = resolve(owner, str(node.target).split("."))
        if loop is not None:
            return partial(self._loop, node, loop, module, owner)
        origin = code.nodes[node.name]
        if isinstance(origin.operation, Product):
            return partial(_product, module)
        assert origin.instance is not None
        instance = self._instances[origin.instance]
        is_pointwise = not instance.lengths and set(instance.reads) == {"pointwise"}
        placeless = getattr(module, "placeless", False) or is_pointwise
        return partial(self._call, _CallSite(node.name, module, self._growth(origin), instance.grows, placeless))

    def _growth(self, node: Node) -> Dependence:
        """The growth of a call's result that depends on the target."""
        kind, names = node.type, self._length.names
        if self._horizons[node.id].sees_future:
            return Dependence.FULL  # later positions change it
        growing = [length for length in kind.lengths if length.names & names]
        is_sequence = kind.name != "chunks" and kind.lengths[:1] == (self._length,) and len(growing) == 1
        return Dependence.NEW if is_sequence else Dependence.FULL

    # Values

    def _function(self, node: fx.Node, operands: _Operands, region_cache: RegionCache) -> Value:
        arguments, growth = operands.arguments, operands.growth()
        target: Any = getattr(Tensor, str(node.target)) if node.op == "call_method" else node.target
        if growth is Dependence.FULL:
            data = target(
                *(region_cache.all_positions(node.name, index, value) for index, value in enumerate(arguments))
            )
        else:
            data = target(*[value.data for value in arguments])
        return Value(growth if data is not None else Dependence.FIXED, data)

    def _rows(
        self,
        name: str,
        group: RowBlocks,
        owner: nn.Module,
        results: Sequence[Dependence],
        operands: _Operands,
        region_cache: RegionCache,
    ) -> list[Value]:
        """Computes the new rows of a group of maps; all rows if later positions change any."""
        joint, seen, data = operands.growth(), region_cache.seen, []
        # Only then do earlier rows keep their values.
        is_new = joint is not Dependence.FIXED and set(results) == {Dependence.NEW}
        for index, (value, part) in enumerate(zip(operands.arguments, group.slices, strict=True)):
            if not (is_new and part.rows):
                data.append(region_cache.all_positions(name, index, value))
            else:
                data.append(value.data[:, seen:] if value.growth is Dependence.FULL else value.data)
        parts = group(owner, seen if is_new else 0, data)
        if is_new or joint is Dependence.FIXED:
            return [Value(joint if joint is Dependence.FIXED else Dependence.NEW, part) for part in parts]
        return [
            Value(growth, part[:, seen:] if growth is Dependence.NEW else part)
            for growth, part in zip(results, parts, strict=True)
        ]

    def _call(self, site: _CallSite, operands: _Operands, region_cache: RegionCache) -> Value:
        """Calls a block: on the new positions if it states how, else on all positions and without `products`."""
        name, module, arguments = site.name, site.module, operands.arguments
        mask_data: dict[str, Any] = {mask: value.data for mask, value in operands.masks.items()}
        product_data = {product: value.data for product, value in operands.products.items()}
        keywords = {**mask_data, _PRODUCTS: product_data} if product_data else mask_data
        data = [argument.data for argument in arguments]
        joint = operands.growth()
        if joint is Dependence.FIXED:
            return Value(Dependence.FIXED, module(*data, **keywords))
        # The cache was filled in one regime, such as without a mask below some length; another one restarts.
        if hasattr(module, "regime"):
            _check_regime(region_cache, name, module.regime(region_cache.total, *data))
        if site.growth is Dependence.FULL or site.grows or joint is Dependence.FULL:
            data = [region_cache.all_positions(name, index, argument) for index, argument in enumerate(arguments)]
            result = module(*data, **mask_data)
            if site.growth is Dependence.NEW and not site.grows:  # such as what a causal map weighs
                return Value(Dependence.NEW, result[:, region_cache.seen :])
            return Value(Dependence.FULL, result)
        if site.placeless:
            return Value(Dependence.NEW, module(*data, **keywords))
        if hasattr(module, "extend"):
            cache = region_cache.block_caches.get(name)
            if cache is None:
                cache = BlockCache(tuple(argument.growth is Dependence.NEW for argument in arguments))
                region_cache.block_caches[name] = cache
            result = module.extend(cache, *data, **keywords)
            cache.start = region_cache.total
            return Value(Dependence.NEW, result)
        # The block is causal, and does not say how it extends: compute all positions and keep the new ones.
        data = [region_cache.all_positions(name, index, argument) for index, argument in enumerate(arguments)]
        return Value(Dependence.NEW, module(*data, **mask_data)[:, region_cache.seen :])

    # Loops

    def _loop(
        self,
        node: fx.Node,
        loop: LoweredLoop,
        runtime: Any,  # one of the loops of backend/runtime
        owner: nn.Module,
        operands: _Operands,
        region_cache: RegionCache,
    ) -> Any:  # Any: a value, or the list of all results
        name, arguments, masks = node.name, operands.arguments, operands.masks
        joint = operands.growth()
        results: list[Value] | None = None
        if name in region_cache.full_loops:
            pass
        elif joint is Dependence.NEW:
            match runtime:
                case RepeatLoop(count=count):
                    results = self._steps(name, loop, [owner] * count, arguments, region_cache)
                case StackLoop():
                    results = self._steps(name, loop, list(runtime.steps()), arguments, region_cache)
                case HaltingLoop():
                    results = self._halting(name, loop, runtime, arguments, region_cache)
                case ExpertLoop() if all(value.growth is Dependence.FIXED for value in arguments[2:]):
                    results = self._experts(loop, runtime, arguments)
                case PositionScan() if not _uses_results(node, runtime.carried):
                    results = self._position_scan(name, loop, runtime, arguments, region_cache)
        elif (
            isinstance(runtime, ChunkScan)
            and arguments[0].growth is Dependence.FULL
            and not _uses_results(node, runtime.carried)
        ):
            results = self._scan(name, loop, runtime, arguments, region_cache)
        if results is None:
            block: Any = runtime.block if isinstance(runtime, HaltingLoop) else None
            if hasattr(block, "regime"):
                # Earlier positions may take more steps in a longer sequence.
                _check_regime(region_cache, name, block.regime(region_cache.total, runtime.limit))
            # The caches of its steps are incomplete.
            if name not in region_cache.full_loops:
                region_cache.full_loops.add(name)
                if region_cache.seen:
                    raise _Restart
            data = [region_cache.all_positions(name, index, argument) for index, argument in enumerate(arguments)]
            data_results = runtime(*data, **{name: mask.data for name, mask in masks.items()})
            growth = Dependence.FIXED if joint is Dependence.FIXED else Dependence.FULL
            data_results = data_results if isinstance(data_results, tuple) else (data_results,)
            results = [Value(growth, result) for result in data_results]
        has_one_result = len(loop.node.types) == 1 and not loop.body.extras and not isinstance(runtime, HaltingLoop)
        return results[0] if has_one_result else results

    def _steps(
        self,
        name: str,
        loop: LoweredLoop,
        owners: Sequence[nn.Module],
        arguments: Sequence[Value],
        region_cache: RegionCache,
    ) -> list[Value]:
        """Runs a loop with a known number of steps."""
        count, results = loop_layout(loop.node).states, len(loop.node.types)
        states, captured = list(arguments[:count]), arguments[count:]
        for index, owner in enumerate(owners):
            inner = region_cache.step(name, index)
            # Only the last step emits a result.
            needed = range(results if index + 1 == len(owners) else count)
            states = self.region(loop.body, owner, [*states, *captured], inner, needed, region_cache.total)
        return states

    def _halting(
        self, name: str, loop: LoweredLoop, runtime: HaltingLoop, arguments: Sequence[Value], region_cache: RegionCache
    ) -> list[Value] | None:
        """Runs a loop whose positions halt separately. Returns None for any other loop.

        Bodies run at new positions only; the tally is computed again for all positions, from the cached results of the
        bodies. If a position takes more steps than all before it, a body reads the states of those for the first
        time."""
        count, halted, results_count = runtime.states, runtime.halted, len(loop.node.types)
        block: Any = runtime.block  # perhaps with a regime
        if any(state.growth is not Dependence.NEW for state in arguments[:count]) or not all(runtime.has_positions):
            return None
        loop_cache = region_cache.step(name, _LOOP_INPUTS)
        full = [loop_cache.all_positions(name, index, argument) for index, argument in enumerate(arguments)]
        states = full[:count]
        tally = block.start(states[halted], None)
        # It halts whole samples, so new positions change when earlier ones halt.
        if tally.live.dim() == 1:
            return None
        if hasattr(block, "regime"):
            _check_regime(region_cache, name, block.regime(region_cache.total, runtime.limit))
        for step in range(runtime.limit):
            inner = region_cache.step(name, step)
            states[halted] = tally.state
            body_states = [*states[:count], *([tally.mixture] if runtime.mixture else [])]
            values = [Value(Dependence.NEW, state[:, inner.seen :]) for state in body_states]
            for captured, data in zip(arguments[count:], full[count:], strict=True):
                values.append(
                    captured if captured.growth is Dependence.FIXED else Value(Dependence.NEW, data[:, inner.seen :])
                )
            moved = self.region(loop.body, runtime.owner, values, inner, range(results_count), region_cache.total)
            if any(value.growth is not Dependence.NEW for value in moved):
                return None
            results = [inner.all_positions("", index, value) for index, value in enumerate(moved)]
            tally = block.advance(tally, results[halted], None)
            if runtime.emits and step == 0:
                states.append(results[count])
            for index in range(results_count):
                if index != halted:
                    accepted = broadcast_mask(tally.accepted, results[index].dim(), has_positions=True)
                    states[index] = torch.where(accepted, results[index], states[index])
            # `live` waits for the device, so the last step does not ask.
            if step + 1 < runtime.limit and not tally.live.any():
                break
        states[halted] = tally.mixture
        return [Value(Dependence.NEW, state[:, region_cache.seen :]) for state in states]

    def _scan(
        self, name: str, loop: LoweredLoop, runtime: ChunkScan, arguments: Sequence[Value], region_cache: RegionCache
    ) -> list[Value] | None:
        """Runs a scan whose last chunk grows; its carried states change when a chunk is full. Returns None if
        the chunked sequence has another length than the field, or sees the future."""
        fixed = arguments[1:]
        if not runtime.emits or any(value.growth is not Dependence.FIXED for value in fixed):
            return None
        cut = loop.node.inputs[0]
        if loop.node.types[-1].lengths != (self._length,) or self._horizons[cut].sees_future:
            return None
        (length,) = loop.node.regions[0].inputs[0].type.lengths
        walk = self._chunk_walks.setdefault(length, _Walk(self._program, length, self._horizons))
        carried, captured = runtime.carried, [value.data for value in fixed[runtime.carried :]]
        before = region_cache.carried.setdefault(name, [tuple(value.data for value in fixed[:carried])])
        parts = runtime.with_before(arguments[0].data)
        emitted: list[Tensor] = []
        end = 0
        for index, (chunk, *others) in enumerate(parts):
            begin, end = end, end + chunk.shape[1]
            if end > region_cache.seen:
                values = [Value(Dependence.NEW, chunk[:, max(region_cache.seen - begin, 0) :])]
                values += [Value(Dependence.FIXED, data) for data in (*others, *before[index], *captured)]
                inner = region_cache.step(name, index)
                (result,) = walk.region(loop.body, runtime.owner, values, inner, (carried,), chunk.shape[1])
                if result.growth is not Dependence.NEW:
                    return None
                emitted.append(result.data)
            # A chunk with a successor is full: its states are final, and its caches are no longer read.
            if index + 1 == len(before) and index + 1 < len(parts):
                moved = runtime.body(runtime.owner, chunk, *others, *before[index], *captured)
                before.append(moved[:carried])
                region_cache.inner.pop((name, index), None)
        return [*[Value(Dependence.FULL, None)] * carried, Value(Dependence.NEW, torch.cat(emitted, 1))]

    def _experts(self, loop: LoweredLoop, runtime: ExpertLoop, arguments: Sequence[Value]) -> list[Value] | None:
        """Runs experts on the new positions. Returns None if their sequence has another length than the field."""
        is_new = all(value.growth is Dependence.NEW for value in arguments[:2])
        if loop.node.type.lengths != (self._length,) or not is_new:
            return None
        return [Value(Dependence.NEW, runtime(*(value.data for value in arguments)))]

    def _position_scan(
        self, name: str, loop: LoweredLoop, runtime: PositionScan, arguments: Sequence[Value], region_cache: RegionCache
    ) -> list[Value] | None:
        """Runs a scan over the new positions of a sequence. Returns None if it reads another growing value, if its
        sequence has another length than the field, or if a growing state began with padding."""
        sequence, *others = arguments
        if not runtime.emits or runtime.extras or any(value.growth is not Dependence.FIXED for value in others):
            return None
        if loop.node.types[-1].lengths != (self._length,):
            return None
        data = [value.data for value in others]
        masks = data[runtime.carried : runtime.carried + len(runtime.growing)]
        if any(mask is not None for mask in masks):  # they grow with their states, but are no results
            return None
        states = region_cache.carried.setdefault(name, [tuple(data[: runtime.carried])])
        earlier = region_cache.histories.get((name, 0))
        results = runtime(sequence.data, *states.pop(), *data[runtime.carried :], earlier=earlier)
        if runtime.before is not None:
            known = region_cache.all_positions(name, 0, sequence)
            region_cache.histories[name, 0] = known[:, -runtime.before :]
        results = results if isinstance(results, tuple) else (results,)
        states.append(results[:-1])
        return [*[Value(Dependence.FULL, None)] * runtime.carried, Value(Dependence.NEW, results[-1])]


# The keyword argument of a call that has its products.
_PRODUCTS = "products"
_NONE: Mapping[str, Value] = {}
# An index that no step has: its cache holds the inputs of a halting loop.
_LOOP_INPUTS = -1


def _result_nodes(code: Code, indices: Sequence[int]) -> list[fx.Node]:
    (output,) = (node for node in code.fused.nodes if node.op == "output")
    (results,) = output.args
    all_results = results if isinstance(results, tuple) else (results,)
    nodes = []
    for index in indices:
        node = all_results[index]
        assert isinstance(node, fx.Node)
        nodes.append(node)
    return nodes


def _source(source: Any) -> _Source:  # Any: an argument in torch.fx
    return source if isinstance(source, fx.Node) else Value(Dependence.FIXED, source)


def _products(node: fx.Node) -> Mapping[str, Any]:  # Any: an argument in torch.fx
    products = node.kwargs.get(_PRODUCTS, {})
    assert isinstance(products, Mapping)
    return products


def _result_index(part: fx.Node) -> int:
    index = part.args[1]
    assert isinstance(index, int)
    return index


def _uses_results(loop: fx.Node, count: int) -> bool:
    """Whether any of the first `count` results of a loop is used."""
    # A loop with one result has no `getitem`.
    parts = {user.args[1]: user for user in loop.users if user.target is operator.getitem}
    used = {index for index, part in parts.items() if part.users} if parts else {0}
    return not used.isdisjoint(range(count))


def _is_fixed(result: Any) -> bool:  # Any: a value, or the list of a loop's
    return joint_growth(result if isinstance(result, list) else [result]) is Dependence.FIXED


def _one_of_several(operands: _Operands, region_cache: RegionCache) -> Value:
    results, index = operands.arguments
    if isinstance(results, Value):  # a tuple
        part = results.data[index.data]
        return Value(Dependence.FIXED if part is None else results.growth, part)
    result: Value = results[index.data]
    return result


def _batch_size(operands: _Operands, region_cache: RegionCache) -> Value:
    return Value(Dependence.FIXED, operands.arguments[0].data.size(0))


def _product(linear: nn.Linear, operands: _Operands, region_cache: RegionCache) -> Value:
    (argument,) = operands.arguments
    return Value(argument.growth, linear(argument.data))


def _check_regime(region_cache: RegionCache, name: str, regime: object) -> None:
    if region_cache.regimes.setdefault(name, regime) != regime:
        raise _Restart
