"""Incremental decoding: runs a compiled model on a growing field, and computes only the new positions.

The first positions are computed value by value, from the graphs of `torch.fx` of the model's Python. Meanwhile, each
region writes the function that computes the next ones, in which modules, fixed values and caches are bound. A value is

    fixed    independent of the field: computed once, and cached
    new      a sequence as long as the field that does not see its future: only the new positions are computed
    full     any other value that depends on the field: all positions are computed again, as are its dependents

A group of maps is computed by rows, as in a call of the model. A loop has a cache for each of its steps, because the
same instance reads other states in each. A loop that has none of the forms below runs on all positions, and its results
are full."""

from __future__ import annotations

import operator
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from functools import lru_cache, partial
from itertools import count
from typing import Any

import torch
from torch import Tensor, fx, nn

from archlang.backend.decode.block_cache import BlockCache
from archlang.backend.lower.code import Code, LoweredLoop
from archlang.backend.lower.regions import PythonProgram
from archlang.backend.runtime.bound import direct
from archlang.backend.runtime.call_cache import call_scope
from archlang.backend.runtime.experts import ExpertLoop
from archlang.backend.runtime.loops import HaltingLoop, RepeatLoop, StackLoop, broadcast_mask, resolve
from archlang.backend.runtime.row_blocks import RowBlocks
from archlang.backend.runtime.scans import ChunkScan, PositionScan
from archlang.graph.causality import horizons
from archlang.graph.graph import Instance, Node, loop_layout
from archlang.graph.operations import Arithmetic, Call, Product
from archlang.types import Dim
from archlang.types.causality import NOTHING, Horizon


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


# Computes a node of the next positions from the data of its arguments, masks and products. Any: as in `Value.data`, or
# several of these.
_Compute = Callable[..., Any]


@dataclass
class RegionCache:
    """What a region in one step of a loop caches, by the names of values in its graph. Fixed values survive a
    restart."""

    fixed: dict[str, Any] = field(default_factory=dict)  # Any: as in Value; for a loop the list of its results
    block_caches: dict[str, BlockCache] = field(default_factory=dict)
    regimes: dict[str, object] = field(default_factory=dict)
    inner: dict[tuple[str, int], GrowingRegion] = field(default_factory=dict)
    seen: int = 0
    """the number of positions before this run"""
    total: int = 0
    """the number of positions now"""
    carried: dict[str, list[tuple[Tensor, ...]]] = field(default_factory=dict)
    full_loops: set[str] = field(default_factory=set)
    """the loops that run on all positions"""

    def of(self, name: str) -> BlockCache:
        """Returns the cache of a value: of a block, or of the positions of arguments, by their indices."""
        return self.block_caches.setdefault(name, BlockCache())

    def all_positions(self, name: str, index: int, growth: Dependence, data: Any) -> Any:
        """Returns the cached positions of an argument and its new ones, and caches them."""
        return self.of(name).append(str(index), data) if growth is Dependence.NEW else data

    def step(self, name: str, index: int, *region: Any) -> GrowingRegion:
        """Returns the region of a step of a loop; `region` are the first arguments of `GrowingRegion`."""
        if (name, index) not in self.inner:
            self.inner[name, index] = GrowingRegion(*region)
        return self.inner[name, index]

    def check_regime(self, name: str, regime: object) -> None:
        if self.regimes.setdefault(name, regime) != regime:
            raise _Restart

    def forget(self) -> None:
        """Clears everything except for fixed values."""
        # Values that are fixed in a chunk may depend on states from the chunks before it, which may have changed.
        self.inner = {key: inner for key, inner in self.inner.items() if key[0] not in self.carried}
        for cache in (self.block_caches, self.regimes, self.carried):
            cache.clear()
        self.seen = self.total = 0
        for inner in self.inner.values():
            inner.forget()


def joint_growth(values: Iterable[Value]) -> Dependence:
    """The growth of a value that depends on all of these."""
    growths = {value.growth for value in values}
    return next((growth for growth in (Dependence.FULL, Dependence.NEW) if growth in growths), Dependence.FIXED)


class _Restart(Exception):
    """Results at earlier positions have changed because positions were added."""


class Extension:
    """A model whose field with the index `target` grows, while its other fields are fixed.

    `inputs` are those that the program's code takes; the value of the target is ignored. With `last`, the results at
    other positions than the last one are not needed: blocks after the last one that mixes positions compute one."""

    def __init__(
        self, module: nn.Module, program: PythonProgram, target: int, inputs: Sequence[Any], *, last: bool = False
    ) -> None:
        (length,) = program.graph.region.inputs[target].type.lengths
        self._target = target
        self._inputs = inputs
        walk = _Walk(program, length, horizons(program.graph, program.fields[target]))
        self._region = GrowingRegion(walk, program.code, module, (0,), last=last)
        self._tokens = BlockCache()

    def extend(self, tokens: Tensor) -> Tensor:
        """Appends `tokens` [b k] to the field. Returns the result at their positions, [b k vocab], or at the last."""
        known = self._tokens.append("tokens", tokens)
        try:
            return self._run(tokens, known.shape[1])
        except _Restart:
            self._region.forget()
            return self._run(known, known.shape[1])[:, -tokens.shape[1] :]

    def _run(self, tokens: Tensor, total: int) -> Tensor:
        values = [Value(Dependence.FIXED, value) for value in self._inputs]
        values[self._target] = Value(Dependence.NEW, tokens)
        with call_scope():
            (result,) = self._region(values, total)
        logits: Tensor = result.data
        assert result.growth is not Dependence.FIXED, "the result does not depend on the target"
        return logits[:, -tokens.shape[1] :]


@dataclass(frozen=True, eq=False)
class _Walk:
    """A program in which `length` grows."""

    program: PythonProgram
    length: Dim
    horizons: Mapping[str, Horizon]
    _in_chunks: dict[Dim, _Walk] = field(default_factory=dict)

    def in_chunks(self, length: Dim) -> _Walk:
        """Returns the walk of chunks of this length."""
        return self._in_chunks.setdefault(length, _Walk(self.program, length, self.horizons))

    def growth(self, node: Node) -> Dependence:
        """The growth of a call's result that depends on the target."""
        kind, names = node.type, self.length.names
        if self.horizons[node.id].sees_future:
            return Dependence.FULL  # later positions change it
        growing = [length for length in kind.lengths if length.names & names]
        is_sequence = kind.name != "chunks" and kind.lengths[:1] == (self.length,) and len(growing) == 1
        return Dependence.NEW if is_sequence else Dependence.FULL


class _Writer:
    """Writes the function of the next positions of a region."""

    def __init__(self, inputs: Sequence[fx.Node]) -> None:
        self._names = {node: f"v{index}" for index, node in enumerate(inputs)}
        self._lines = [f"def run({', '.join(f'{name}=None' for name in self._names.values())}, *_):"]
        self._constants: dict[str, Any] = {}

    def call(
        self, node: fx.Node, compute: _Compute, values: Mapping[fx.Node, Any], cut: Collection[fx.Node] = ()
    ) -> None:
        """Adds a value. It takes the last position of those that are `cut`."""
        arguments = [self._expression(source, values) + "[:, -1:]" * (source in cut) for source in node.args]
        for name, source in node.kwargs.items():
            if isinstance(source, Mapping):  # products
                products = (f"{key!r}: {self._expression(product, values)}" for key, product in source.items())
                arguments.append(f"{name}={{{', '.join(products)}}}")
            else:
                arguments.append(f"{name}={self._expression(source, values)}")
        self._names[node] = f"v{len(self._names)}"
        self._lines.append(f"    {self._names[node]} = {self._constant(compute)}({', '.join(arguments)})")

    def function(self, results: Sequence[fx.Node], values: Mapping[fx.Node, Any]) -> _Compute:
        """Returns the function, of which these are the results."""
        self._lines.append(f"    return [{', '.join(self._expression(result, values) for result in results)}]")
        exec(_compiled("\n".join(self._lines)), self._constants)
        function: _Compute = self._constants.pop("run")  # so that the caches live no longer than the decoder
        return function

    def _expression(self, source: Any, values: Mapping[fx.Node, Any]) -> str:  # Any: an argument in torch.fx
        value = values[source] if isinstance(source, fx.Node) else Value(Dependence.FIXED, source)
        return self._constant(value.data) if _is_fixed(value) else self._names[source]

    def _constant(self, value: Any) -> str:  # Any: as in `Value.data`, or what computes one
        name = f"c{len(self._constants)}"
        self._constants[name] = value
        return name


@lru_cache
def _compiled(source: str) -> Any:  # Any: Python's code
    return compile(source, "<archlang decoding>", "exec")


class GrowingRegion:
    """Some results of a region in one step of a loop. What it computes the next positions with must not hold it, so
    that its caches are freed with it."""

    def __init__(
        self, walk: _Walk, code: Code, owner: nn.Module, results: Sequence[int], *, last: bool = False
    ) -> None:
        self._walk = walk
        self._code = code
        self._owner = owner
        self._results = _result_nodes(code, results)
        self._tail = self._after_mixing() if last else set[fx.Node]()
        self._next: _Compute | None = None
        self._growths: Sequence[Dependence] = ()
        self.cache = RegionCache()

    def __call__(self, values: Sequence[Value], total: int) -> list[Value]:
        """Returns the results at `total` positions; `values` are the inputs of the region, then masks."""
        self.cache.total = total
        if self._next is None:
            results = self._first(values)
        else:
            results = list(map(Value, self._growths, self._next(*[value.data for value in values])))
        self.cache.seen = total
        return results

    def forget(self) -> None:
        """Clears everything except for fixed values."""
        self._next = None
        self.cache.forget()

    def _first(self, inputs: Sequence[Value]) -> list[Value]:
        """Computes the region value by value, and writes what computes it from now on."""
        fixed, graph = self.cache.fixed, self._code.fused
        needed = set(self._results)
        for node in reversed(graph.nodes):
            if node in needed:
                needed.update(node.all_input_nodes)
        arguments = [node for node in graph.nodes if node.op == "placeholder"]
        values: dict[fx.Node, Any] = dict(zip(arguments, inputs, strict=False))  # Any: a value, or a loop's list
        writer = _Writer(arguments)
        for node in graph.nodes:
            if node.op == "placeholder" or node not in needed:
                continue
            if node.name in fixed:
                values[node] = fixed[node.name]  # it depends on no position, so its first value stays right
                continue
            sources = node.all_input_nodes if node in self._tail else ()
            if any(values[source].growth is Dependence.FULL for source in sources):
                # A loop that runs on all positions: so must what is computed of its results.
                self._tail, total = set(), self.cache.total
                self.cache.forget()
                self.cache.total = total
                return self._first(inputs)
            cut = {each for each in sources if each not in self._tail and values[each].growth is Dependence.NEW}
            last = {source: Value(Dependence.NEW, values[source].data[:, -1:]) for source in cut}
            compute, values[node] = self._computed(node, {**values, **last} if cut else values)
            if _is_fixed(values[node]):
                fixed[node.name] = values[node]
            else:
                writer.call(node, compute, values, cut)
        self._next = writer.function(self._results, values)
        results = [values[node] for node in self._results]
        self._growths = [result.growth for result in results]
        return results

    def _after_mixing(self) -> set[fx.Node]:
        """Returns the values that only results read, at the same position, and that are computed position by
        position."""
        tail: set[fx.Node] = set()
        nodes, horizons, instances = self._code.nodes, self._walk.horizons, self._walk.program.graph.instances
        for node in reversed(self._code.fused.nodes):
            origin = nodes.get(node.name)
            is_result = node.target is operator.getitem  # of several
            if origin is None or is_result or not all(user in tail or user.op == "output" for user in node.users):
                continue
            if isinstance(origin.operation, Call):
                instance = instances[origin.operation.instance]
                module = resolve(self._owner, str(node.target).split("."))
                is_pointwise = _is_pointwise(instance, module) and not instance.caveats
            else:
                is_pointwise = isinstance(origin.operation, Arithmetic)
            growing = horizons.get(origin.id, NOTHING) != NOTHING
            if is_pointwise and growing and self._walk.growth(origin) is Dependence.NEW:
                tail.add(node)
        return tail

    def _computed(self, node: fx.Node, values: Mapping[fx.Node, Any]) -> tuple[_Compute, Any]:
        """Returns what computes the next positions of a node, and its value, or the list of a loop's."""

        def value(source: Any) -> Any:  # Any: an argument in torch.fx; a value, or the list of a loop's
            return values[source] if isinstance(source, fx.Node) else Value(Dependence.FIXED, source)

        code, owner = self._code, self._owner
        arguments = list(map(value, node.args))
        if node.target == "size":
            return Tensor.size, Value(Dependence.FIXED, arguments[0].data.size(0))
        if node.target is operator.getitem:
            results, index = arguments
            if not isinstance(results, Value):
                return operator.getitem, results[index.data]
            return operator.getitem, _value(results.growth, results.data[index.data])
        if node.name in code.groups:
            return self._rows(node, code.groups[node.name], arguments)
        if node.op in ("call_function", "call_method"):
            joint = joint_growth(arguments)
            function: Any = getattr(Tensor, str(node.target)) if node.op == "call_method" else node.target
            if joint is Dependence.FULL:
                function = self._on_all(node.name, function, arguments)
            return function, _value(joint, function(*(argument.data for argument in arguments)))
        masks = {name: value(mask) for name, mask in node.kwargs.items() if name != _PRODUCTS}
        loop = next((loop for loop in code.loops if loop.name == node.target), None)
        module = resolve(owner, str(node.target).split("."))
        if loop is not None:
            return self._loop(node, loop, module, arguments, masks)
        if isinstance(code.nodes[node.name].operation, Product):
            (argument,) = arguments
            return module, Value(argument.growth, module(argument.data))
        products = {name: value(product) for name, product in _products(node).items()}
        return self._call(node, module, arguments, masks, products)

    def _on_all(self, name: str, function: _Compute, arguments: Sequence[Value]) -> _Compute:
        """Returns the function of all positions of its arguments, which computes without products."""
        cache, growths = self.cache, [argument.growth for argument in arguments]

        def compute(*data: Any, products: object = None, **masks: Any) -> Any:  # Any: as in `Value.data`
            known = (cache.all_positions(name, *of_argument) for of_argument in zip(count(), growths, data))
            # As in a call of the model, which a block may rely on.
            return function(*(each.contiguous() if isinstance(each, Tensor) else each for each in known), **masks)

        return compute

    def _new_of(self, compute: _Compute) -> _Compute:
        """Returns what computes the new positions of a result of all."""
        cache = self.cache
        return lambda *data, **masks: compute(*data, **masks)[:, cache.seen :]

    def _rows(self, node: fx.Node, group: RowBlocks, arguments: Sequence[Value]) -> tuple[_Compute, list[Value]]:
        """Computes the new rows of a group of maps; all rows if later positions change any."""
        results = [self._walk.growth(self._code.nodes[part.name]) for part in sorted(node.users, key=_result_index)]
        cache, joint, growths = self.cache, joint_growth(arguments), [argument.growth for argument in arguments]
        # Only then do earlier rows keep their values.
        is_new = joint is not Dependence.FIXED and set(results) == {Dependence.NEW}
        is_row = [is_new and bool(part.rows) for part in group.slices]
        run, name = group.bound(self._owner), node.name
        growing = [index for index, growth in enumerate(growths) if growth is Dependence.NEW and not is_row[index]]
        in_columns = [
            index
            for index, (part, value) in enumerate(zip(group.slices, arguments, strict=True))
            if part.columns is not None and value.data is not None
        ]
        # Of columns that no later row reads, none is kept.
        window = group.window if is_new and growing == in_columns else 0

        def compute(*data: Any) -> Sequence[Tensor]:  # Any: as in `Value.data`
            seen, taken = cache.seen, []
            for index, (growth, each) in enumerate(zip(growths, data, strict=True)):
                if not is_row[index]:
                    each = cache.all_positions(name, index, growth, each)
                elif growth is Dependence.FULL:
                    each = each[:, seen:]
                taken.append(each)
            columns_before = min(seen, window - 1) if window else seen
            parts = run(columns_before if is_new else 0, taken)
            for index in growing if window else ():
                tensors = cache.of(name).tensors
                columns = tensors[str(index)]
                tensors[str(index)] = columns[:, max(0, columns.shape[1] - window + 1) :]
            if is_new or joint is Dependence.FIXED:
                return parts
            return [
                part[:, seen:] if growth is Dependence.NEW else part
                for growth, part in zip(results, parts, strict=True)
            ]

        parts = compute(*(argument.data for argument in arguments))
        return compute, [
            Value(joint if joint is Dependence.FIXED else growth, part)
            for growth, part in zip(results, parts, strict=True)
        ]

    def _call(
        self,
        node: fx.Node,
        module: Any,  # a block, perhaps with the methods of decode/block_cache.py
        arguments: Sequence[Value],
        masks: Mapping[str, Value],
        products: Mapping[str, Value],
    ) -> tuple[_Compute, Value]:
        """Calls a block: on the new positions if it states how, else on all positions and without `products`."""
        cache, name, origin = self.cache, node.name, self._code.nodes[node.name]
        assert origin.instance is not None
        instance = self._walk.program.graph.instances[origin.instance]
        joint, growth = joint_growth([*arguments, *masks.values()]), self._walk.growth(origin)
        compute = direct(module)
        if joint is not Dependence.FIXED:
            if Dependence.FULL in (joint, growth) or instance.grows:
                compute = self._on_all(name, compute, arguments)
                if growth is Dependence.NEW and not instance.grows:  # such as what a causal map weighs
                    joint, compute = Dependence.NEW, self._new_of(compute)
                else:
                    joint = Dependence.FULL
            elif not _is_pointwise(instance, module):
                if hasattr(module, "extend"):
                    cache.of(name).grows = tuple(argument.growth is Dependence.NEW for argument in arguments)
                    compute = partial(_extended, cache, cache.of(name), module.extend)
                else:  # it is causal, and does not say how it extends
                    compute = self._new_of(self._on_all(name, compute, arguments))
            # The cache was filled in one regime, such as without a mask below some length; another one restarts.
            if hasattr(module, "regime"):
                compute = partial(_in_regime, cache, name, module.regime, compute)
        keywords: dict[str, Any] = {mask: value.data for mask, value in masks.items()}
        if products:
            keywords[_PRODUCTS] = {product: value.data for product, value in products.items()}
        return compute, _value(joint, compute(*(argument.data for argument in arguments), **keywords))

    # Loops

    def _loop(
        self,
        node: fx.Node,
        loop: LoweredLoop,
        runtime: Any,  # one of the loops of backend/runtime
        arguments: Sequence[Value],
        masks: Mapping[str, Value],
    ) -> tuple[_Compute, Any]:  # Any: a value, or the list of all results
        cache, name, growths = self.cache, node.name, [argument.growth for argument in arguments]
        joint = joint_growth([*arguments, *masks.values()])
        on_all = self._on_all(name, runtime, arguments)
        on_new = None if name in cache.full_loops else self._on_new(node, loop, runtime, arguments, joint)
        block: Any = runtime.block if isinstance(runtime, HaltingLoop) else None
        has_one_result = len(loop.node.types) == 1 and not loop.body.extras and not isinstance(runtime, HaltingLoop)

        def results(*data: Any, **masks: Any) -> list[Value]:  # Any: as in `Value.data`
            if on_new is not None and name not in cache.full_loops:
                new = on_new(list(map(Value, growths, data)))
                if new is not None:
                    return new
            if hasattr(block, "regime"):
                # Earlier positions may take more steps in a longer sequence.
                cache.check_regime(name, block.regime(cache.total, runtime.limit))
            # The caches of its steps are incomplete.
            if name not in cache.full_loops:
                cache.full_loops.add(name)
                if cache.seen:
                    raise _Restart
            all_results = on_all(*data, **masks)
            growth = Dependence.FIXED if joint is Dependence.FIXED else Dependence.FULL
            return [Value(growth, each) for each in (all_results if isinstance(all_results, tuple) else (all_results,))]

        def compute(*data: Any, **masks: Any) -> Any:  # Any: as above
            new = [result.data for result in results(*data, **masks)]
            return new[0] if has_one_result else new

        mask_data = {mask: value.data for mask, value in masks.items()}
        first = results(*(argument.data for argument in arguments), **mask_data)
        return compute, first[0] if has_one_result else first

    def _on_new(
        self, node: fx.Node, loop: LoweredLoop, runtime: Any, arguments: Sequence[Value], joint: Dependence
    ) -> _OnNew | None:
        """Returns what runs a loop on new positions, if it has a form for them."""
        cache, walk, name, growths = self.cache, self._walk, node.name, [argument.growth for argument in arguments]
        if joint is Dependence.NEW:
            match runtime:
                case RepeatLoop(count=count):
                    return self._steps(name, loop, [self._owner] * count)
                case StackLoop():
                    return self._steps(name, loop, list(runtime.steps()))
                case HaltingLoop():
                    return partial(_halting, cache, walk, name, loop, runtime)
                case ExpertLoop():
                    is_new = growths[:2] == [Dependence.NEW] * 2 and {*growths[2:]} <= {Dependence.FIXED}
                    if is_new and loop.node.type.lengths == (walk.length,):
                        return lambda values: [Value(Dependence.NEW, runtime(*(value.data for value in values)))]
                case PositionScan() if not _uses_results(node, runtime.carried):
                    return self._position_scan(name, loop, runtime, arguments)
        elif isinstance(runtime, ChunkScan) and not _uses_results(node, runtime.carried) and runtime.emits:
            is_as_long = loop.node.types[-1].lengths == (walk.length,)
            is_causal = not walk.horizons[loop.node.inputs[0]].sees_future
            if is_as_long and is_causal and growths[0] is Dependence.FULL and {*growths[1:]} <= {Dependence.FIXED}:
                return partial(_chunk_scan, cache, walk, name, loop, runtime)
        return None

    def _steps(self, name: str, loop: LoweredLoop, owners: Sequence[nn.Module]) -> _OnNew:
        """Returns what runs a loop with a known number of steps."""
        cache, count, results = self.cache, loop_layout(loop.node).states, len(loop.node.types)
        regions = [
            # Only the last step emits a result.
            cache.step(name, index, self._walk, loop.body, owner, range(results if index + 1 == len(owners) else count))
            for index, owner in enumerate(owners)
        ]

        def run(values: Sequence[Value]) -> list[Value]:
            states, captured = list(values[:count]), values[count:]
            for region in regions:
                states = region([*states, *captured], cache.total)
            return states

        return run

    def _position_scan(
        self, name: str, loop: LoweredLoop, runtime: PositionScan, arguments: Sequence[Value]
    ) -> _OnNew | None:
        """Returns what runs a scan over the new positions of a sequence; None if it reads another growing value, if its
        sequence has another length than the field, or if a growing state began with padding."""
        _, *others = arguments
        if not runtime.emits or runtime.extras or any(value.growth is not Dependence.FIXED for value in others):
            return None
        if loop.node.types[-1].lengths != (self._walk.length,):
            return None
        data, count = [value.data for value in others], runtime.carried
        masks = data[count : count + len(runtime.growing)]
        if any(mask is not None for mask in masks):  # they grow with their states, but are no results
            return None
        cache, before = self.cache, runtime.before
        states = cache.carried.setdefault(name, [tuple(data[:count])])

        def run(values: Sequence[Value]) -> list[Value]:
            sequence, tensors = values[0].data, cache.of(name).tensors
            results = runtime(sequence, *states.pop(), *data[count:], earlier=tensors.get("earlier"))
            if before is not None:
                tensors["earlier"] = cache.of(name).append("earlier", sequence)[:, -before:]
            results = results if isinstance(results, tuple) else (results,)
            states.append(results[:-1])
            return [*[Value(Dependence.FULL, None)] * count, Value(Dependence.NEW, results[-1])]

        return run


# Runs a loop on the new positions of its arguments; None if it cannot.
_OnNew = Callable[[Sequence[Value]], list[Value] | None]


def _extended(cache: RegionCache, own: BlockCache, extend: _Compute, *data: Any, **keywords: Any) -> Any:
    own.start = cache.seen
    return extend(own, *data, **keywords)


def _in_regime(
    cache: RegionCache, name: str, regime: Callable[..., object], compute: _Compute, *data: Any, **keywords: Any
) -> Any:
    cache.check_regime(name, regime(cache.total, *data))
    return compute(*data, **keywords)


def _halting(
    cache: RegionCache, walk: _Walk, name: str, loop: LoweredLoop, runtime: HaltingLoop, arguments: Sequence[Value]
) -> list[Value] | None:
    """Runs a loop whose positions halt separately. Returns None for any other loop.

    Bodies run at new positions only; the halting state is computed again for all positions, from the cached results of
    bodies. If a position takes more steps than all before it, a body reads the states of those for the first time."""
    count, halted, results_count = runtime.states, runtime.halted, len(loop.node.types)
    block: Any = runtime.block  # perhaps with a regime
    if any(state.growth is not Dependence.NEW for state in arguments[:count]) or not all(runtime.has_positions):
        return None
    full = [
        cache.all_positions(f"{name}'s inputs", index, argument.growth, argument.data)
        for index, argument in enumerate(arguments)
    ]
    states = full[:count]
    halting = block.start(states[halted], None)
    if halting.live.dim() == 1:
        return None
    if hasattr(block, "regime"):
        cache.check_regime(name, block.regime(cache.total, runtime.limit))
    for step in range(runtime.limit):
        inner = cache.step(name, step, walk, loop.body, runtime.owner, range(results_count))
        seen = inner.cache.seen
        states[halted] = halting.state
        body_states = [*states[:count], *([halting.mixture] if runtime.mixture else [])]
        values = [Value(Dependence.NEW, state[:, seen:]) for state in body_states]
        for captured, data in zip(arguments[count:], full[count:], strict=True):
            values.append(captured if captured.growth is Dependence.FIXED else Value(Dependence.NEW, data[:, seen:]))
        moved = inner(values, cache.total)
        if any(value.growth is not Dependence.NEW for value in moved):
            return None
        results = [inner.cache.all_positions("", index, value.growth, value.data) for index, value in enumerate(moved)]
        halting = block.advance(halting, results[halted], None)
        if runtime.emits and step == 0:
            states.append(results[count])
        for index in range(results_count):
            if index != halted:
                accepted = broadcast_mask(halting.accepted, results[index].dim(), has_positions=True)
                states[index] = torch.where(accepted, results[index], states[index])
        if not runtime.all_steps and step + 1 < runtime.limit and not halting.live.any():
            break
    states[halted] = halting.mixture
    return [Value(Dependence.NEW, state[:, cache.seen :]) for state in states]


def _chunk_scan(
    cache: RegionCache, walk: _Walk, name: str, loop: LoweredLoop, runtime: ChunkScan, arguments: Sequence[Value]
) -> list[Value] | None:
    """Runs a scan whose last chunk grows; its carried states change when a chunk is full. Returns None if the chunked
    sequence sees the future."""
    fixed = arguments[1:]
    (length,) = loop.node.regions[0].inputs[0].type.lengths
    carried, captured = runtime.carried, [value.data for value in fixed[runtime.carried :]]
    before = cache.carried.setdefault(name, [tuple(value.data for value in fixed[:carried])])
    parts = runtime.with_before(arguments[0].data)
    emitted: list[Tensor] = []
    end = 0
    for index, (chunk, *others) in enumerate(parts):
        begin, end = end, end + chunk.shape[1]
        if end > cache.seen:
            values = [Value(Dependence.NEW, chunk[:, max(cache.seen - begin, 0) :])]
            values += [Value(Dependence.FIXED, data) for data in (*others, *before[index], *captured)]
            inner = cache.step(name, index, walk.in_chunks(length), loop.body, runtime.owner, (carried,))
            (result,) = inner(values, chunk.shape[1])
            if result.growth is not Dependence.NEW:
                return None
            emitted.append(result.data)
        # A chunk with a successor is full: its states are final, and its caches are no longer read.
        if index + 1 == len(before) and index + 1 < len(parts):
            moved = runtime.body(runtime.owner, chunk, *others, *before[index], *captured)
            before.append(moved[:carried])
            cache.inner.pop((name, index), None)
    return [*[Value(Dependence.FULL, None)] * carried, Value(Dependence.NEW, torch.cat(emitted, 1))]


def _is_pointwise(instance: Instance, module: nn.Module) -> bool:
    """Whether a block computes each position by itself, wherever it is."""
    is_of_data = not instance.lengths and set(instance.reads) == {"pointwise"}
    return is_of_data or bool(getattr(module, "placeless", False))


# The keyword argument of a call that has its products.
_PRODUCTS = "products"


def _value(growth: Dependence, data: Any) -> Value:  # Any: as in `Value`
    return Value(Dependence.FIXED if data is None else growth, data)


def _result_nodes(code: Code, indices: Sequence[int]) -> list[fx.Node]:
    """The nodes of some results of a region."""
    (output,) = (node for node in code.fused.nodes if node.op == "output")
    (results,) = output.args
    all_results = results if isinstance(results, tuple) else (results,)
    nodes = []
    for index in indices:
        node = all_results[index]
        assert isinstance(node, fx.Node)
        nodes.append(node)
    return nodes


def _products(node: fx.Node) -> Mapping[str, Any]:  # Any: an argument in torch.fx
    products = node.kwargs.get(_PRODUCTS, {})
    assert isinstance(products, Mapping)
    return products


def _result_index(part: fx.Node) -> int:
    """Returns which of several results a value is."""
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
