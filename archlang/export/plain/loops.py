"""The loops of a graph as Python loops, for the method `forward` of an exported model."""

from __future__ import annotations

import ast
import copy
from collections.abc import Mapping, Sequence

from archlang.backend.lower.lengths import halted_lengths
from archlang.export.plain.constructor import attribute_of, step_name
from archlang.export.plain.expressions import (
    assignment,
    call_of,
    for_loop,
    mean_of,
    parsed_expression,
    parsed_statement,
    updates,
)
from archlang.export.plain.loop_helpers import (
    BEFORE,
    BROADCAST_MASK,
    FILLED_PARTS,
    FOR_ROWS,
    GROWN_BY_PART,
    MEAN_STEPS,
    OVER_CHUNKS,
    POSITIONS,
    ROUTED,
    WEIGHED,
    WHERE_REAL,
)
from archlang.export.plain.places import described, placed
from archlang.export.plain.regions import Regions, Scope
from archlang.export.plain.sources import NotPlainError
from archlang.graph import operations
from archlang.graph.graph import NUMBER, Node
from archlang.graph.growth import growths
from archlang.graph.loop_layout import has_halting_positions, loop_layout, takes_positions
from archlang.types import Dim


class Loops(Regions):
    """Writes each kind of loop."""

    def loop(self, scope: Scope, node: Node) -> None:
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
        names_before = set(self._taken)
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
        self._taken = names_before | self._lasting
        for index in range(shape.states):
            scope.parts[node.id, index] = ast.Name(states[index], ast.Load())
        if len(node.types) == 1 and states:
            scope.values[node.id] = scope.parts[node.id, 0]

    def _state(self, scope: Scope, node: Node, source: str, initial: Mapping[str, ast.expr], preferred: str) -> str:
        """The variable of a state, with its initial value."""
        if source in initial:
            name = self._name(preferred or "state")
            scope.body.append(placed(assignment(name, initial[source]), node))
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
        self, scope: Scope, node: Node, loop: ast.For, states: list[str], values: dict[str, ast.expr], count: int
    ) -> None:
        region = node.regions[0]
        replaceable = {value.id for value in region.inputs[: len(states)]}
        body = self._region(region, values, scope.masks, scope.is_outermost, replaceable)
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
        scope.body.append(described(loop, node))
        self._lasting = lasting

    def _lasting_name(self, preferred: str, lasting: set[str]) -> str:
        name = self._name(preferred)
        lasting.add(name)
        return name

    def _halting(self, scope: Scope, node: Node, states: list[str], values: dict[str, ast.expr]) -> None:
        operation = node.operation
        assert isinstance(operation, operations.Halting)
        region, lasting = node.regions[0], set[str]()
        block = attribute_of(self._graph.instances[operation.instance].path)
        tally, halted = self._lasting_name("tally", lasting), operation.state
        mask = self._mask(scope, *(halted_lengths(node) or (None,)))
        mask_text = ast.unparse(mask) if mask is not None else "None"
        scope.body.append(described(parsed_statement(f"{tally} = {block}.start({states[halted]}, {mask_text})"), node))
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
        new_states: list[ast.expr] = []
        for index, result in enumerate(results):
            if index != halted and not isinstance(result, ast.Name):
                name = self._name(f"new_{updated[index]}")
                body.body.append(assignment(name, result))
                result = ast.Name(name, ast.Load())
            new_states.append(result)
        advance = call_of(parsed_expression(f"{block}.advance"), [ast.Name(tally, ast.Load()), new_states[halted]], {})
        advance.args.append(parsed_expression(mask_text))
        body.body.append(assignment(tally, advance))
        for index, state in enumerate(updated):
            if index == halted:
                continue
            broadcast = self._helper(BROADCAST_MASK).id
            kind = node.types[index]
            rank = 1 + len(kind.tensor_dims)
            moved = f"{tally}.accepted, {rank}, has_positions={has_halting_positions(node, index)}"
            value = ast.unparse(new_states[index])
            chosen = f"torch.where({broadcast}({moved}), {value}, {state})"
            if index == len(states):
                chosen = f"{value} if {state} is None else {chosen}"
            body.body.append(parsed_statement(f"{state} = {chosen}"))
        inner = self._ponder(body)
        ponder = f"{tally}.ponder"
        if inner is not None:
            name = self._lasting_name("inner_ponder", lasting)
            scope.body.append(assignment(name, ast.Constant(0)))
            closed = f"~{self._helper(BROADCAST_MASK).id}({tally}.accepted, 1, has_positions=False)"
            body.body.append(parsed_statement(f"{name} = {name} + ({ast.unparse(inner)}).masked_fill({closed}, 0)"))
            ponder = f"{tally}.ponder + {name}"
        loop.body = [*begin, *body.body, parsed_statement(f"if not {tally}.live.any():\n    break")]
        scope.body += [loop, parsed_statement(f"{states[halted]} = {tally}.mixture")]
        self._add_ponder(scope, node, parsed_expression(ponder))
        if scope.is_outermost:
            scope.depths.append(parsed_expression(f"{self._helper(MEAN_STEPS).id}({tally}, {mask_text})"))
        self._lasting = lasting

    def _experts(self, scope: Scope, node: Node, values: dict[str, ast.expr], sources: list[ast.expr]) -> None:
        operation, region = node.operation, node.regions[0]
        assert isinstance(operation, operations.Experts)
        for_rows = self._helper(FOR_ROWS).id
        mask = self._mask(scope, *node.type.lengths or (None,)) or ast.Constant(None)
        result = self._name(node.name or "mixture")
        names_before = set(self._taken)
        x, rows, row, weights, weight = (self._name(name) for name in ("x", "rows", "row", "weights", "weight"))
        scope.body.append(described(assignment(x, sources[0]), node))
        routed = call_of(self._helper(ROUTED), [ast.Name(x, ast.Load()), sources[1], mask], {})
        targets = ast.Tuple([ast.Name(rows, ast.Store()), ast.Name(weights, ast.Store())], ast.Store())
        scope.body.append(ast.Assign([targets], routed, lineno=0))
        values[region.inputs[0].id] = ast.Name(row, ast.Load())
        for value in region.inputs[1:]:
            if value.type.name == "chunks":
                raise NotPlainError("experts read chunks from outside")
            if value.id in values and value.type != NUMBER:
                values[value.id] = parsed_expression(f"{for_rows}({ast.unparse(values[value.id])}, {weight})")
        masks: dict[Dim, ast.expr] = {
            length: parsed_expression(f"{for_rows}({ast.unparse(sample_mask)}, {weight})")
            for length, sample_mask in scope.masks.items()
        }
        batch, self._batch = self._batch, parsed_expression(f"len({rows})")
        body = self._region(region, values, masks, False, set())
        self._batch = batch
        emitted = self._take_pending(body, region.results[0])
        self._flush(body)
        weighed = call_of(self._helper(WEIGHED), [emitted, ast.Name(weight, ast.Load())], {})
        body.body.append(assignment(result, ast.BinOp(ast.Name(result, ast.Load()), ast.Add(), weighed)))
        scope.body.append(assignment(result, ast.Constant(0)))
        loop = for_loop(f"{step_name(operation.path)}, {weight}", f"zip({attribute_of(operation.path)}, {weights})")
        loop.body = [parsed_statement(f"{row} = {for_rows}({rows}, {weight})"), *body.body]
        scope.body.append(loop)
        scope.body.append(parsed_statement(f"{result} = {result}.unflatten(0, {x}.shape[:-1])"))
        self._taken = names_before
        scope.values[node.id] = ast.Name(result, ast.Load())
        scope.names[node.id] = result

    def _scan(self, scope: Scope, node: Node, states: list[str], values: dict[str, ast.expr], parts: ast.expr) -> None:
        operation = node.operation
        assert isinstance(operation, operations.Scan)
        region, lasting = node.regions[0], set[str]()
        by_position = takes_positions(node)
        emitted = self._lasting_name("outputs", lasting) if operation.emits else ""
        part = self._name(region.inputs[0].name or ("vector" if by_position else "chunk"))
        mask_name = self._name(f"mask_{part}")
        values[region.inputs[0].id] = ast.Name(part, ast.Load())
        masks = dict(scope.masks)
        replaceable = {value.id for value in region.inputs[: loop_layout(node).inner]}
        for length in region.inputs[0].type.lengths:
            masks[length] = ast.Name(mask_name, ast.Load())
        real = self._name(f"real_{part}")
        targets = f"{real}, {part}, {mask_name}"
        if operation.before is not None:
            before = self._name(region.inputs[1].name or "before")
            mask_before = self._name(f"mask_{before}")
            values[region.inputs[1].id] = ast.Name(before, ast.Load())
            masks[region.inputs[1].type.lengths[0]] = ast.Name(mask_before, ast.Load())
            targets = f"{targets}, {before}, {mask_before}"
        growing = growths(node)
        growing_masks = self._growing_masks(scope, node, states, lasting)
        for index, growing_mask in growing_masks.items():
            masks[region.inputs[loop_layout(node).inner + index].type.lengths[0]] = ast.Name(growing_mask, ast.Load())
        # Every mask that a carried state needs must still be the chunk's.
        body = self._region(region, values, masks, scope.is_outermost, replaceable)
        results = [self._take_pending(body, result) for result in region.results]
        self._flush(body)
        carried: list[ast.expr] = []
        new_masks: dict[int, str] = {}
        for index, (state, result) in enumerate(zip(states, results, strict=False)):
            arguments = [ast.Name(real, ast.Load()), result, ast.Name(state, ast.Load())]
            if index not in growing:
                carried.append(call_of(self._helper(WHERE_REAL), arguments, {}))
                continue
            each, per_position = growing[index].each.constant, growing[index].per_position
            arguments += [ast.Name(name, ast.Load()) for name in (growing_masks[index], mask_name)]
            arguments += [ast.Constant(each), ast.Constant(per_position)]
            new_state, new_masks[index] = self._name(f"new_{state}"), self._name(f"new_{growing_masks[index]}")
            pair = ast.Tuple([ast.Name(new_state, ast.Store()), ast.Name(new_masks[index], ast.Store())], ast.Store())
            body.body.append(ast.Assign([pair], call_of(self._helper(GROWN_BY_PART), arguments, {}), lineno=0))
            carried.append(ast.Name(new_state, ast.Load()))
        if operation.emits:
            body.body.append(ast.Expr(call_of(parsed_expression(f"{emitted}.append"), [results[-1]], {})))
        carried += [ast.Name(new_mask, ast.Load()) for new_mask in new_masks.values()]
        body.body += updates([*states, *growing_masks.values()], carried)
        ponder = self._ponder(body)
        extras: list[str] = []
        if ponder is not None:
            costs, reals = self._lasting_name("costs", lasting), self._lasting_name("reals", lasting)
            extras.append(self._lasting_name("ponder", lasting))
            costs_of_chunk = [ponder]
            if body.depths and scope.is_outermost:
                extras.append(self._lasting_name("depth", lasting))
                costs_of_chunk.append(mean_of(body.depths))
            scope.body += [parsed_statement(f"{costs} = []"), parsed_statement(f"{reals} = []")]
            entry = ast.Tuple(costs_of_chunk, ast.Load())
            body.body.append(ast.Expr(call_of(parsed_expression(f"{costs}.append"), [entry], {})))
            body.body.append(parsed_statement(f"{reals}.append({real})"))
        if emitted:
            scope.body.append(parsed_statement(f"{emitted} = []"))
        loop = for_loop(targets, "x")
        if by_position:
            mask = self._mask(scope, scope.types[node.inputs[0]].lengths[0]) or ast.Constant(None)
            parts = call_of(self._helper(POSITIONS), [parts, mask], {})
        if operation.before is not None:
            parts = call_of(self._helper(BEFORE), [parts, ast.Constant(operation.before)], {})
        loop.iter, loop.body = call_of(self._helper(FILLED_PARTS), [parts], {}), body.body
        if operation.truncated is not None and states:
            self._cut_gradients(loop, operation.truncated, states, real)
        scope.body.append(described(loop, node))
        if emitted:
            joined = "torch.stack" if by_position else "torch.cat"
            scope.body.append(parsed_statement(f"{emitted} = {joined}({emitted}, 1)"))
            scope.parts[node.id, len(states)] = ast.Name(emitted, ast.Load())
            if len(node.types) == 1:
                scope.values[node.id] = ast.Name(emitted, ast.Load())
        if extras:
            scope.body.append(
                parsed_statement(
                    f"{', '.join(extras)}{',' * (len(extras) == 1)} = {self._helper(OVER_CHUNKS).id}({costs}, {reals})"
                )
            )
            self._add_ponder(scope, node, ast.Name(extras[0], ast.Load()))
            if len(extras) > 1:
                scope.depths.append(ast.Name(extras[1], ast.Load()))
        self._lasting = lasting

    def _growing_masks(self, scope: Scope, node: Node, states: Sequence[str], lasting: set[str]) -> dict[int, str]:
        """Sets a variable for the mask of each growing state of a scan. Returns their names by the states' indices."""
        layout, names = loop_layout(node), dict[int, str]()
        for index in growths(node):
            before = scope.types[node.inputs[layout.outer + index]].lengths[0]
            names[index] = self._lasting_name(f"mask_{states[index]}", lasting)
            scope.body.append(assignment(names[index], self._mask(scope, before) or ast.Constant(None)))
            after = node.types[index].lengths[0]
            if after.constant is None:
                scope.masks.setdefault(after, ast.Name(names[index], ast.Load()))
        return names

    def _cut_gradients(self, loop: ast.For, parts: int, states: Sequence[str], real: str) -> None:
        """Detaches the carried states of a scan before every part that begins a new group of `parts`, except those of
        samples that have ended."""
        index = self._name("index")
        loop.target = ast.Tuple([ast.Name(index, ast.Store()), loop.target], ast.Store())
        loop.iter = call_of(parsed_expression("enumerate"), [loop.iter], {})
        where_real = self._helper(WHERE_REAL).id
        detached = "".join(f"\n    {state} = {where_real}({real}, {state}.detach(), {state})" for state in states)
        loop.body.insert(0, parsed_statement(f"if {index} and {index} % {parts} == 0:{detached}"))


def _tensors(states: Sequence[str], node: Node) -> list[str]:
    """The states of a loop that are not numbers."""
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
