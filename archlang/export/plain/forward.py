"""The method `forward` of a model's class, with the loops of its graph as Python loops."""

from __future__ import annotations

import ast
import copy
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from archlang.backend.lower.lengths import divisor_lengths, grown_lengths, halted_lengths, named_lengths, needed_lengths
from archlang.export.plain.constructor import RESERVED, Blocks, attribute_of, class_of, step_name
from archlang.export.plain.expressions import (
    assignment,
    call_of,
    for_loop,
    function_of,
    mean_of,
    parsed_expression,
    parsed_statement,
    updates,
)
from archlang.export.plain.sources import Name, NotPlainError
from archlang.graph import operations
from archlang.graph.graph import NUMBER, Graph, Node, Region
from archlang.graph.loop_layout import has_halting_positions, loop_layout, takes_positions
from archlang.graph.operations import Arithmetic
from archlang.types import Dim, Type

_LOOPS = "archlang.backend.runtime.loops"
DIVIDE = Name("archlang.backend.runtime.ieee_division", "divide")
DIVIDE_WHERE_REAL = Name("archlang.backend.runtime.padded_division", "divide_where_real")
BROADCAST_MASK = Name(_LOOPS, "broadcast_mask")
MEAN_STEPS = Name(_LOOPS, "_mean_steps")
OVER_CHUNKS = Name("archlang.backend.runtime.scans", "_over_chunks")
REAL_POSITIONS = '''
def real_positions(x, lengths):
    """Returns the mask of the real positions of a padded batch, [b n]; None if all positions are real."""
    if lengths is None:
        return None
    return torch.arange(x.shape[1], device=x.device) < lengths[:, None]
'''
WHERE_REAL = '''
def where_real(mask, new, old):
    """Returns the new state; the old one for a sample that has no real position in a chunk."""
    if mask is None:
        return new
    return torch.where(mask.any(1).reshape(-1, *[1] * (new.dim() - 1)), new, old)
'''
POSITIONS = '''
def positions(x, mask):
    """Yields the vector of each position, and its mask."""
    for index, vector in enumerate(x.unbind(1)):
        yield vector, None if mask is None else mask[:, index : index + 1]
'''
BEFORE = '''
def with_before(parts, count):
    """Yields each part and its mask, with the positions before it, the last `count` or all if that is 0, and theirs."""
    parts = list(parts)
    pieces = [part.unsqueeze(1) if part.dim() == 2 else part for part, _ in parts]
    x = torch.cat(pieces, 1)
    mask = None if parts[0][1] is None else torch.cat([own for _, own in parts], 1)
    end = 0
    for part, piece in zip(parts, pieces):
        begin = max(0, end - count) if count else 0
        yield *part, x[:, begin:end], None if mask is None else mask[:, begin:end]
        end += piece.shape[1]
'''

ROUTED = '''
def routed(x, weights, mask):
    """Returns the real positions as rows, and for each expert the weights of the rows."""
    if mask is not None:
        weights = weights.masked_fill(~mask.unsqueeze(-1), 0)
    return x.reshape(-1, x.shape[-1]), weights.reshape(-1, weights.shape[-1]).unbind(-1)


def weighed(result, weight):
    """Returns results times their weights; 0 for a weight of 0, which has no gradient."""
    weight = weight.unsqueeze(-1)
    return result.masked_fill(weight == 0, 0) * weight


def for_rows(value, rows):
    """Returns a value of each sample for each of its rows."""
    return None if value is None else value.repeat_interleave(len(rows) // max(1, len(value)), 0)
'''

_OPERATORS: Mapping[Arithmetic, ast.operator] = {
    Arithmetic.ADD: ast.Add(), Arithmetic.SUBTRACT: ast.Sub(), Arithmetic.MULTIPLY: ast.Mult(),
    Arithmetic.DIVIDE: ast.Div(),
}  # fmt: skip


@dataclass
class _Scope:
    """The values of a region: expressions by ids, masks by lengths, and what it adds to the loss."""

    region: Region
    values: dict[str, ast.expr]
    masks: dict[Dim, ast.expr]
    is_outermost: bool
    types: dict[str, Type]
    body: list[ast.stmt] = field(default_factory=list)
    parts: dict[tuple[str, int], ast.expr] = field(default_factory=dict)
    pending: dict[str, tuple[Node, ast.expr]] = field(default_factory=dict)
    uses: Counter[str] = field(default_factory=Counter)
    names: dict[str, str] = field(default_factory=dict)
    """the variables of values of this region, which are free after their last use"""
    replaceable: set[str] = field(default_factory=set)
    """the inputs whose variables a loop may overwrite after their last use"""
    ponders: dict[frozenset[str], list[ast.expr]] = field(default_factory=dict)
    depths: list[ast.expr] = field(default_factory=list)


class Forward:
    """Writes `forward`, with its loops in it."""

    def __init__(self, graph: Graph, blocks: Blocks) -> None:
        self._graph = graph
        self._blocks = blocks
        self.helpers: list[Name] = []
        self.texts: list[str] = []
        steps = {step_name(node.operation.path) for node in graph.region.walk()
                 if isinstance(node.operation, operations.OwnWeights)}  # fmt: skip
        self._taken = {*RESERVED, *steps, *blocks.names.values()}
        self._batch: ast.expr = ast.Constant(0)
        self._lasting: set[str] = set()

    def function(self) -> ast.FunctionDef:
        region = self._graph.region
        values: dict[str, ast.expr] = {}
        fields = []
        for value in region.inputs:
            name = self._name(value.name or "x")
            fields.append(name)
            values[value.id] = ast.Name(name, ast.Load())
        self._batch = parsed_expression(f"{fields[0]}.shape[0]")
        lengths = needed_lengths(region, self._graph.instances)
        body: list[ast.stmt] = []
        masks: dict[Dim, ast.expr] = {}
        with_lengths = {name: kind.lengths[0] for name, kind in
                        zip(fields, (value.type for value in region.inputs), strict=True) if kind.lengths}  # fmt: skip
        if lengths:
            self.texts.append(REAL_POSITIONS)
        if lengths and len(fields) > 1:
            body.append(parsed_statement("lengths = lengths or {}"))
        for length in lengths:
            candidates = [name for name, own in with_lengths.items() if own == length]
            name = self._name(f"mask_{_words(length)}")
            source = "lengths"
            if len(fields) > 1:
                keys = [region.inputs[fields.index(candidate)].name for candidate in candidates]
                source = f'lengths.get("{keys[-1]}")'
                for key in reversed(keys[:-1]):
                    source = f'lengths.get("{key}", {source})'
            body.append(parsed_statement(f"{name} = real_positions({candidates[0]}, {source})"))
            masks[length] = ast.Name(name, ast.Load())
        scope = self._region(region, values, masks, True, set(values))
        result = self._take_pending(scope, region.results[0])
        self._flush(scope)
        body += scope.body
        ponders = self._ponder(scope)
        if ponders is not None:
            body.append(parsed_statement(f"self.ponder = ({ast.unparse(ponders)}).mean()"))
            if scope.depths:
                depth = ast.unparse(mean_of(scope.depths))
                body.append(parsed_statement(f"self.sample_depth = ({depth}).detach()"))
        last = region.results[0]
        returned: ast.stmt = ast.Return(result)
        final = next((node for node in region.nodes if node.id == last), None)
        body.append(returned if final is None else _placed(returned, final))
        body = _without_unused_masks(body)
        arguments = ", ".join(f"{name}: Tensor" for name in fields)
        if lengths:
            kind = "Tensor" if len(fields) == 1 else "dict[str, Tensor]"
            arguments += f", lengths: {kind} | None = None"
        return function_of(f"def forward(self, {arguments}) -> Tensor:", body)

    # Names

    def _name(self, preferred: str) -> str:
        """Takes an unused name."""
        name, count = re.sub(r"\W", "_", preferred), 1
        while name in self._taken:
            count += 1
            name = f"{preferred}_{count}"
        self._taken.add(name)
        return name

    # Regions

    def _region(
        self, region: Region, values: dict[str, ast.expr], masks: dict[Dim, ast.expr], outermost: bool,
        replaceable: set[str],
    ) -> _Scope:  # fmt: skip
        """Writes the nodes of a region. Values that are used once wait to become part of an expression."""
        types = {value.id: value.type for value in region.inputs}
        scope = _Scope(region, dict(values), dict(masks), outermost, types, replaceable=replaceable)
        for node in region.nodes:
            scope.uses.update(self._inputs(node))
        scope.uses.update(region.results)
        for node in region.nodes:
            self._node(scope, node)
            scope.uses.subtract(self._inputs(node))
            self._release(scope)
            if len(node.types) == 1:
                scope.types[node.id] = node.type
        return scope

    def _release(self, scope: _Scope) -> None:
        """Frees the names of values that are no longer used."""
        waiting = {
            part.id
            for _, expression in scope.pending.values()
            for part in ast.walk(expression)
            if isinstance(part, ast.Name)
        }
        for source, name in list(scope.names.items()):
            if scope.uses[source] <= 0 and name not in waiting:
                del scope.names[source]
                self._taken.discard(name)

    @staticmethod
    def _inputs(node: Node) -> Sequence[str]:
        """The inputs that a node reads here, where blocks apply their own linear maps."""
        return () if isinstance(node.operation, operations.Join) else node.arguments

    def _node(self, scope: _Scope, node: Node) -> None:
        if isinstance(node.operation, operations.Join):
            return
        if isinstance(node.operation, operations.Part):
            part = scope.parts.get((node.inputs[0], node.operation.index))
            if part is not None:  # of a join otherwise
                scope.values[node.id] = part
            return
        if isinstance(node.operation, operations.Loop):
            self._loop(scope, node)
            return
        if not scope.uses[node.id]:
            return
        arguments = [self._take_pending(scope, source) for source in self._inputs(node)]
        match node.operation:
            case operations.Literal(value=value):
                scope.values[node.id] = ast.Constant(float(value))
                return
            case Arithmetic.NEGATE:
                expression: ast.expr = ast.UnaryOp(ast.USub(), arguments[0])
            case Arithmetic() as operation:
                if operation is Arithmetic.DIVIDE and node.type == NUMBER:
                    self.helpers.append(DIVIDE)
                    expression = call_of(_helper(DIVIDE), arguments, {})
                else:
                    left, right = (
                        _per_position(argument, node.type) if scope.types[source].name == "vec" else argument
                        for source, argument in zip(node.inputs, arguments, strict=True)
                    )
                    if lengths := divisor_lengths(node, scope.types):
                        self.helpers.append(DIVIDE_WHERE_REAL)
                        masks = [self._mask(scope, length) or ast.Constant(None) for length in lengths]
                        expression = call_of(_helper(DIVIDE_WHERE_REAL), [left, right, *masks], {})
                    else:
                        expression = ast.BinOp(left, _OPERATORS[operation], right)
            case operations.Call():
                called = self._apply(scope, node, arguments)
                if called is None:
                    return
                expression = called
            case _:
                raise AssertionError(node.operation)
        if scope.uses[node.id] == 1 and (not node.name or node.id in scope.region.results):
            scope.pending[node.id] = node, expression
        else:
            self._set(scope, node, expression)

    def _set(self, scope: _Scope, node: Node, expression: ast.expr) -> None:
        """Sets a variable, which may be one that this value is the last to read."""
        read = Counter(self._inputs(node))
        for source in [source for source in read if source in scope.names and scope.uses[source] == read[source]]:
            waiting = (part for _, value in scope.pending.values() for part in ast.walk(value))
            if not any(isinstance(part, ast.Name) and part.id == scope.names[source] for part in waiting):
                self._taken.discard(scope.names.pop(source))
        preferred = node.name or _preferred(node, self._graph)
        name = self._name(preferred)
        scope.body.append(_placed(assignment(name, expression), node))
        scope.values[node.id] = ast.Name(name, ast.Load())
        scope.names[node.id] = name

    def _take_pending(self, scope: _Scope, source: str) -> ast.expr:
        """The expression of a value."""
        if source in scope.pending:
            return scope.pending.pop(source)[1]
        return copy.copy(scope.values[source])

    def _flush(self, scope: _Scope) -> None:
        """Sets variables for the values that wait."""
        for key, (node, expression) in list(scope.pending.items()):
            del scope.pending[key]
            self._set(scope, node, expression)

    def _apply(self, scope: _Scope, node: Node, arguments: list[ast.expr]) -> ast.expr | None:
        assert isinstance(node.operation, operations.Call)
        instance = self._graph.instances[node.operation.instance]
        types = [scope.types[source] for source in node.arguments]
        lengths = named_lengths(instance, types)
        keywords: dict[str, ast.expr] = {}
        for name in instance.lengths:
            mask = self._mask(scope, lengths.get(name))
            if mask is not None and f"mask_{name}" in self._blocks.keywords[class_of(instance.python)]:
                keywords[f"mask_{name}"] = mask
        block = parsed_expression(attribute_of(instance.path))
        if not arguments:
            return call_of(block, [self._batch], {})
        expression = call_of(block, arguments, keywords)
        if not instance.grows:
            return expression
        name = self._name(node.name or _preferred(node, self._graph))
        new = [length for length in grown_lengths(instance, types, node.type) if length not in scope.masks]
        mask_name = self._name(f"mask_{_words(new[0])}") if new else "_"
        targets = ast.Tuple([ast.Name(name, ast.Store()), ast.Name(mask_name, ast.Store())], ast.Store())
        scope.body.append(_placed(ast.Assign([targets], expression, lineno=0), node))
        scope.values[node.id] = ast.Name(name, ast.Load())
        scope.names[node.id] = name
        scope.masks.update((length, ast.Name(mask_name, ast.Load())) for length in new)
        return None

    def _mask(self, scope: _Scope, length: Dim | None) -> ast.expr | None:
        return None if length is None or length.constant is not None else scope.masks[length]

    # Loops

    def _loop(self, scope: _Scope, node: Node) -> None:
        shape, region = loop_layout(node), node.regions[0]
        inner_inputs = region.inputs
        first = {source for source in node.inputs[: shape.outer_captured] if source in scope.pending}
        initial = {source: scope.pending.pop(source)[1] for source in list(scope.pending) if source in first}
        self._flush(scope)
        # Captured values.
        values: dict[str, ast.expr] = {}
        for inner, outer in zip(inner_inputs[shape.inner_captured :], node.inputs[shape.outer_captured :], strict=True):
            if outer in scope.values:
                values[inner.id] = copy.copy(scope.values[outer])
        # States.
        states: list[str] = []
        for index in range(shape.states):
            source = node.inputs[shape.outer + index]
            inner = inner_inputs[shape.inner + index]
            states.append(self._state(scope, node, source, initial, inner.name))
            values[inner.id] = ast.Name(states[-1], ast.Load())
        taken = set(self._taken)
        match node.operation:
            case operations.Repeat(count=count, truncated=truncated):
                detached = 0 if truncated is None else max(0, count - truncated)
                step = self._name("step") if detached else "_"
                loop: ast.For = for_loop(step, f"range({count})")
                self._counted(scope, node, loop, states, values, count)
                if detached:
                    _stop_gradients(loop, step, detached, _tensors(states, node))
            case operations.Stack(count=count, path=path):
                loop = for_loop(step_name(path), attribute_of(path))
                self._counted(scope, node, loop, states, values, count)
            case operations.Halting():
                self._halting(scope, node, states, values)
            case operations.Experts():
                sources = [initial.get(source, scope.values.get(source)) for source in node.inputs[:2]]
                self._experts(scope, node, values, [source for source in sources if source is not None])
                return
            case operations.Scan():
                scanned = node.inputs[0]
                parts = initial[scanned] if scanned in initial else scope.values[scanned]
                self._scan(scope, node, states, values, parts)
        self._taken = taken | self._lasting
        for index in range(shape.states):
            scope.parts[node.id, index] = ast.Name(states[index], ast.Load())
        if len(node.types) == 1 and states:
            scope.values[node.id] = scope.parts[node.id, 0]

    def _state(self, scope: _Scope, node: Node, source: str, initial: Mapping[str, ast.expr], preferred: str) -> str:
        """The variable of a state, with its initial value."""
        if source in initial:
            name = self._name(preferred or "state")
            scope.body.append(_placed(assignment(name, initial[source]), node))
            return name
        value = scope.values[source]
        is_own = source in scope.replaceable or source not in {entry.id for entry in scope.region.inputs}
        if isinstance(value, ast.Name) and is_own and scope.uses[source] == 1 and value.id == (preferred or value.id):
            scope.names.pop(source, None)
            return value.id
        name = self._name(preferred or "state")
        scope.body.append(assignment(name, copy.copy(value)))
        return name

    def _counted(
        self, scope: _Scope, node: Node, loop: ast.For, states: list[str], values: dict[str, ast.expr], count: int
    ) -> None:
        region = node.regions[0]
        own = {value.id for value in region.inputs[: len(states)]}
        body = self._region(region, values, scope.masks, scope.is_outermost, own)
        results = [self._take_pending(body, result) for result in region.results]
        self._flush(body)
        lasting: set[str] = set()
        if operations.emits(node.operation):
            emitted = self._lasting_name(node.name or "result", lasting)
            body.body.append(assignment(emitted, results.pop()))
            scope.parts[node.id, len(states)] = ast.Name(emitted, ast.Load())
            if len(node.types) == 1:
                scope.values[node.id] = ast.Name(emitted, ast.Load())
        body.body += updates(states, results)
        sums: list[tuple[str, ast.expr]] = []
        ponder = self._ponder(body)
        if ponder is not None:
            name = self._lasting_name("ponder", lasting)
            sums.append((name, ponder))
            self._add_ponder(scope, node, ast.Name(name, ast.Load()))
            if body.depths and scope.is_outermost:
                name = self._lasting_name("depth", lasting)
                sums.append((name, mean_of(body.depths)))
                scope.depths.append(parsed_expression(f"{name} / {count}"))
        for name, value in sums:
            scope.body.append(assignment(name, ast.Constant(0)))
            body.body.append(assignment(name, ast.BinOp(ast.Name(name, ast.Load()), ast.Add(), value)))
        loop.body = body.body or [ast.Pass()]
        scope.body.append(_described(loop, node))
        self._lasting = lasting

    def _lasting_name(self, preferred: str, lasting: set[str]) -> str:
        name = self._name(preferred)
        lasting.add(name)
        return name

    def _halting(self, scope: _Scope, node: Node, states: list[str], values: dict[str, ast.expr]) -> None:
        operation = node.operation
        assert isinstance(operation, operations.Halting)
        region, lasting = node.regions[0], set[str]()
        block = attribute_of(self._graph.instances[operation.instance].path)
        tally, halted = self._lasting_name("tally", lasting), operation.state
        mask = self._mask(scope, *(halted_lengths(node) or (None,)))
        mask_text = ast.unparse(mask) if mask is not None else "None"
        scope.body.append(_described(parsed_statement(f"{tally} = {block}.start({states[halted]}, {mask_text})"), node))
        loop = for_loop("_", f"range({operation.limit})")
        begin: list[ast.stmt] = [parsed_statement(f"{states[halted]} = {tally}.state")]
        if operation.mixture:
            mixture = region.inputs[len(states)]
            name = self._name(mixture.name or "mixture")
            begin.append(parsed_statement(f"{name} = {tally}.mixture"))
            values[mixture.id] = ast.Name(name, ast.Load())
        # The state before the step is in the tally; the other states are read again after the step.
        body = self._region(region, values, scope.masks, False, {region.inputs[halted].id})
        results = [self._take_pending(body, result) for result in region.results]
        self._flush(body)
        emitted = self._lasting_name(node.name or "result", lasting) if operation.emits else ""
        if emitted:
            scope.body.append(assignment(emitted, ast.Constant(None)))
            scope.parts[node.id, len(states)] = ast.Name(emitted, ast.Load())
        updated = [*states, emitted] if emitted else states
        new: list[ast.expr] = []
        for index, result in enumerate(results):
            if index != halted and not isinstance(result, ast.Name):
                name = self._name(f"new_{updated[index]}")
                body.body.append(assignment(name, result))
                result = ast.Name(name, ast.Load())
            new.append(result)
        advance = call_of(parsed_expression(f"{block}.advance"), [ast.Name(tally, ast.Load()), new[halted]], {})
        advance.args.append(parsed_expression(mask_text))
        body.body.append(assignment(tally, advance))
        for index, state in enumerate(updated):
            if index == halted:
                continue
            self.helpers.append(BROADCAST_MASK)
            kind = node.types[index]
            rank = 1 + len(kind.tensor_dims)
            moved = f"{tally}.accepted, {rank}, has_positions={has_halting_positions(node, index)}"
            value = ast.unparse(new[index])
            chosen = f"torch.where({BROADCAST_MASK.name}({moved}), {value}, {state})"
            if index == len(states):
                chosen = f"{value} if {state} is None else {chosen}"
            body.body.append(parsed_statement(f"{state} = {chosen}"))
        inner = self._ponder(body)
        ponder = f"{tally}.ponder"
        if inner is not None:
            self.helpers.append(BROADCAST_MASK)
            name = self._lasting_name("inner_ponder", lasting)
            scope.body.append(assignment(name, ast.Constant(0)))
            closed = f"~{BROADCAST_MASK.name}({tally}.accepted, 1, has_positions=False)"
            body.body.append(parsed_statement(f"{name} = {name} + ({ast.unparse(inner)}).masked_fill({closed}, 0)"))
            ponder = f"{tally}.ponder + {name}"
        loop.body = [*begin, *body.body, parsed_statement(f"if not {tally}.live.any():\n    break")]
        scope.body += [loop, parsed_statement(f"{states[halted]} = {tally}.mixture")]
        self._add_ponder(scope, node, parsed_expression(ponder))
        if scope.is_outermost:
            self.helpers.append(MEAN_STEPS)
            scope.depths.append(parsed_expression(f"{MEAN_STEPS.name}({tally}, {mask_text})"))
        self._lasting = lasting

    def _experts(self, scope: _Scope, node: Node, values: dict[str, ast.expr], sources: list[ast.expr]) -> None:
        operation, region = node.operation, node.regions[0]
        assert isinstance(operation, operations.Experts)
        self.texts.append(ROUTED)
        mask = self._mask(scope, *node.type.lengths or (None,)) or ast.Constant(None)
        result = self._name(node.name or "mixture")
        taken = set(self._taken)
        whole, rows, weights, weight = (self._name(name) for name in ("x", "rows", "weights", "weight"))
        scope.body.append(_described(assignment(whole, sources[0]), node))
        routed = call_of(parsed_expression("routed"), [ast.Name(whole, ast.Load()), sources[1], mask], {})
        targets = ast.Tuple([ast.Name(rows, ast.Store()), ast.Name(weights, ast.Store())], ast.Store())
        scope.body.append(ast.Assign([targets], routed, lineno=0))
        values[region.inputs[0].id] = ast.Name(rows, ast.Load())
        for value in region.inputs[1:]:
            if value.type.name == "chunks":
                raise NotPlainError("experts read chunks from outside")
            if value.id in values and value.type != NUMBER:
                values[value.id] = parsed_expression(f"for_rows({ast.unparse(values[value.id])}, {rows})")
        masks: dict[Dim, ast.expr] = {
            length: parsed_expression(f"for_rows({ast.unparse(own)}, {rows})") for length, own in scope.masks.items()
        }
        batch, self._batch = self._batch, parsed_expression(f"len({rows})")
        body = self._region(region, values, masks, False, set())
        self._batch = batch
        emitted = self._take_pending(body, region.results[0])
        self._flush(body)
        weighed = call_of(parsed_expression("weighed"), [emitted, ast.Name(weight, ast.Load())], {})
        body.body.append(assignment(result, ast.BinOp(ast.Name(result, ast.Load()), ast.Add(), weighed)))
        scope.body.append(assignment(result, ast.Constant(0)))
        loop = for_loop(f"{step_name(operation.path)}, {weight}", f"zip({attribute_of(operation.path)}, {weights})")
        loop.body = body.body
        scope.body.append(loop)
        scope.body.append(parsed_statement(f"{result} = {result}.unflatten(0, {whole}.shape[:-1])"))
        self._taken = taken
        scope.values[node.id] = ast.Name(result, ast.Load())
        scope.names[node.id] = result

    def _scan(self, scope: _Scope, node: Node, states: list[str], values: dict[str, ast.expr], parts: ast.expr) -> None:
        operation = node.operation
        assert isinstance(operation, operations.Scan)
        region, lasting = node.regions[0], set[str]()
        by_position = takes_positions(node)
        emitted = self._lasting_name("outputs", lasting) if operation.emits else ""
        part = self._name(region.inputs[0].name or ("vector" if by_position else "chunk"))
        mask_name = self._name(f"mask_{part}")
        values[region.inputs[0].id] = ast.Name(part, ast.Load())
        masks = dict(scope.masks)
        own = {value.id for value in region.inputs[: loop_layout(node).inner]}
        for length in region.inputs[0].type.lengths:
            masks[length] = ast.Name(mask_name, ast.Load())
        targets = f"{part}, {mask_name}"
        if operation.before is not None:
            before = self._name(region.inputs[1].name or "before")
            mask_before = self._name(f"mask_{before}")
            values[region.inputs[1].id] = ast.Name(before, ast.Load())
            masks[region.inputs[1].type.lengths[0]] = ast.Name(mask_before, ast.Load())
            targets = f"{targets}, {before}, {mask_before}"
        # Every mask that a carried state needs must still be the chunk's.
        body = self._region(region, values, masks, scope.is_outermost, own)
        results = [self._take_pending(body, result) for result in region.results]
        self._flush(body)
        if states:
            self.texts.append(WHERE_REAL)
        carried = [
            call_of(
                parsed_expression("where_real"),
                [ast.Name(mask_name, ast.Load()), result, ast.Name(state, ast.Load())],
                {},
            )
            for state, result in zip(states, results, strict=False)
        ]
        if operation.emits:
            body.body.append(ast.Expr(call_of(parsed_expression(f"{emitted}.append"), [results[-1]], {})))
        body.body += updates(states, carried)
        ponder = self._ponder(body)
        extras: list[str] = []
        if ponder is not None:
            self.helpers.append(OVER_CHUNKS)
            costs, reals = self._lasting_name("costs", lasting), self._lasting_name("reals", lasting)
            extras.append(self._lasting_name("ponder", lasting))
            costs_of_chunk = [ponder]
            if body.depths and scope.is_outermost:
                extras.append(self._lasting_name("depth", lasting))
                costs_of_chunk.append(mean_of(body.depths))
            scope.body += [parsed_statement(f"{costs} = []"), parsed_statement(f"{reals} = []")]
            entry = ast.Tuple(costs_of_chunk, ast.Load())
            body.body.append(ast.Expr(call_of(parsed_expression(f"{costs}.append"), [entry], {})))
            real = f"None if {mask_name} is None else {mask_name}.any(1)"
            body.body.append(parsed_statement(f"{reals}.append({real})"))
        if emitted:
            scope.body.append(parsed_statement(f"{emitted} = []"))
        loop = for_loop(targets, "x")
        if by_position:
            self.texts.append(POSITIONS)
            mask = self._mask(scope, scope.types[node.inputs[0]].lengths[0]) or ast.Constant(None)
            parts = call_of(parsed_expression("positions"), [parts, mask], {})
        if operation.before is not None:
            self.texts.append(BEFORE)
            parts = call_of(parsed_expression("with_before"), [parts, ast.Constant(operation.before)], {})
        loop.iter, loop.body = parts, body.body
        if operation.truncated is not None and states:
            self._cut_gradients(loop, operation.truncated, states, mask_name)
        scope.body.append(_described(loop, node))
        if emitted:
            joined = "torch.stack" if by_position else "torch.cat"
            scope.body.append(parsed_statement(f"{emitted} = {joined}({emitted}, 1)"))
            scope.parts[node.id, len(states)] = ast.Name(emitted, ast.Load())
            if len(node.types) == 1:
                scope.values[node.id] = ast.Name(emitted, ast.Load())
        if extras:
            scope.body.append(
                parsed_statement(
                    f"{', '.join(extras)}{',' * (len(extras) == 1)} = {OVER_CHUNKS.name}({costs}, {reals})"
                )
            )
            self._add_ponder(scope, node, ast.Name(extras[0], ast.Load()))
            if len(extras) > 1:
                scope.depths.append(ast.Name(extras[1], ast.Load()))
        self._lasting = lasting

    def _cut_gradients(self, loop: ast.For, parts: int, states: Sequence[str], mask: str) -> None:
        """Detaches the carried states of a scan before every part that begins a new group of `parts`, except those of
        samples that have ended."""
        index = self._name("index")
        loop.target = ast.Tuple([ast.Name(index, ast.Store()), loop.target], ast.Store())
        loop.iter = call_of(parsed_expression("enumerate"), [loop.iter], {})
        detached = "".join(f"\n    {state} = where_real({mask}, {state}.detach(), {state})" for state in states)
        loop.body.insert(0, parsed_statement(f"if {index} and {index} % {parts} == 0:{detached}"))

    def _add_ponder(self, scope: _Scope, node: Node, ponder: ast.expr) -> None:
        """Adds what a loop adds to the loss. Loops that halt by the same weights count once."""
        inside = (inner.operation for inner in (node, *node.regions[0].walk()))
        instances = frozenset(inner.instance for inner in inside if isinstance(inner, operations.Halting))
        scope.ponders.setdefault(instances, []).append(ponder)

    @staticmethod
    def _ponder(scope: _Scope) -> ast.expr | None:
        """The sum of what the loops of a region add to the loss."""
        total: ast.expr | None = None
        for values in scope.ponders.values():
            mean = mean_of(values)
            total = mean if total is None else ast.BinOp(total, ast.Add(), mean)
        return total


def _without_unused_masks(body: list[ast.stmt]) -> list[ast.stmt]:
    read = {
        node.id
        for statement in body
        for node in ast.walk(statement)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)
    }
    return [
        statement
        for statement in body
        if not (
            isinstance(statement, ast.Assign)
            and isinstance(statement.targets[0], ast.Name)
            and statement.targets[0].id.startswith("mask_")
            and statement.targets[0].id not in read
        )
    ]


def _per_position(vector: ast.expr, result: Type) -> ast.expr:
    """A vector with an axis for each length of the result, for arithmetic with a sequence or a map."""
    for _ in result.lengths:
        vector = call_of(ast.Attribute(vector, "unsqueeze", ast.Load()), [ast.Constant(1)], {})
    return vector


def _helper(name: Name) -> ast.expr:
    return ast.Name(name.name, ast.Load())


def _preferred(node: Node, graph: Graph) -> str:
    if isinstance(node.operation, operations.Call):
        return graph.instances[node.operation.instance].block
    return node.operation.mnemonic


def _placed(statement: ast.stmt, node: Node) -> ast.stmt:
    """Notes the line of the program beside a statement."""
    if node.span is not None and node.span.source.path.endswith(".arch"):
        path = node.span.source.path.replace("\\", "/").rpartition("/")[2]
        statement.trailing = f"# {path}:{node.span.line}"  # type: ignore[attr-defined]
    return statement


def _described(statement: ast.stmt, node: Node) -> ast.stmt:
    """Notes the line of the program above a loop."""
    if node.span is not None and node.span.source.path.endswith(".arch"):
        path = node.span.source.path.replace("\\", "/").rpartition("/")[2]
        first = node.span.text.split("\n", 1)[0].strip().removesuffix("{").strip()
        statement.comments = [f"# {path}:{node.span.line}: {first}"]  # type: ignore[attr-defined]
    return statement


def _tensors(states: Sequence[str], node: Node) -> list[str]:
    """The states of a loop that are no numbers."""
    return [state for state, kind in zip(states, node.types, strict=False) if kind.name != "number"]


def _stop_gradients(loop: ast.For, step: str, detached: int, states: Sequence[str]) -> None:
    """Lets the first steps of a loop compute no gradients."""
    block = parsed_statement(
        f"with torch.set_grad_enabled(torch.is_grad_enabled() and {step} >= {detached}):\n    pass"
    )
    assert isinstance(block, ast.With)
    block.body = loop.body
    detach = "".join(f"\n    {state} = {state}.detach()" for state in states)
    loop.body = [block, parsed_statement(f"if {step} < {detached}:{detach}")] if states else [block]


def _words(length: Dim) -> str:
    text = str(length)
    for sign, word in ((" + ", "_plus_"), (" - ", "_minus_"), ("*", "_times_"), ("-", "minus_"), (".", "_")):
        text = text.replace(sign, word)
    return text
