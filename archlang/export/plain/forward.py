"""The method `forward` of a model's class: the lowered code of its graph, with the loops as Python loops."""

from __future__ import annotations

import ast
import copy
import operator
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import fx

from archlang.backend.lower.code import Code, LoweredLoop
from archlang.backend.lower.regions import PythonProgram, lower
from archlang.backend.runtime.loops import DEPTH, PONDER, broadcast_mask, mean_steps
from archlang.backend.runtime.scans import filled_parts, mean_over_chunks
from archlang.export.plain.constructor import HELPERS, RESERVED, attribute_of, class_of, step_name, unused_name
from archlang.export.plain.sources import Name, NotPlainError, parameters
from archlang.graph import operations
from archlang.graph.graph import NUMBER, Graph, Node
from archlang.graph.growth import growths
from archlang.graph.loop_layout import has_halting_positions, loop_layout, takes_positions

_OPERATORS: Mapping[object, ast.operator] = {
    operator.add: ast.Add(), operator.sub: ast.Sub(), operator.mul: ast.Mult(), operator.truediv: ast.Div(),
}  # fmt: skip
_METHODS = (torch.unsqueeze, torch.squeeze)


@dataclass
class _Scope:
    """The code of a region while its values become expressions and statements."""

    code: Code
    values: dict[fx.Node, ast.expr]
    owned: set[fx.Node]
    """the arguments whose variables a loop may overwrite after their last use"""
    uses: Counter[fx.Node]
    statements: list[ast.stmt] = field(default_factory=list)
    waiting: dict[fx.Node, ast.expr] = field(default_factory=dict)
    """values that become part of the expression that uses them"""
    results: dict[fx.Node, Sequence[ast.expr]] = field(default_factory=dict)
    """the results of loops"""

    def may_overwrite(self, node: fx.Node) -> bool:
        """Whether the variable of a value is the region's own."""
        return node.op != "placeholder" or node in self.owned

    def take(self, value: object) -> ast.expr:
        """The expression of an argument."""
        if isinstance(value, tuple):
            return ast.Tuple([self.take(item) for item in value], ast.Load())
        if not isinstance(value, fx.Node):
            assert value is None or isinstance(value, bool | int | float)
            return ast.Constant(value)
        return self.waiting.pop(value) if value in self.waiting else copy.copy(self.values[value])


@dataclass
class _Loop:
    """A loop while it is written: the expressions of its arguments, and what its body takes in their places."""

    lowered: LoweredLoop
    read: Sequence[ast.expr]
    """what a scan runs over, or the vectors and the weights of experts"""
    mask: ast.expr
    states: list[str]
    growing: list[str]
    """the masks of growing states"""
    inner: list[fx.Node]
    """the arguments of the body before its states"""
    values: dict[fx.Node, ast.expr]
    """the other arguments of the body"""
    lasting: set[str] = field(default_factory=set)
    """variables that are read after the loop, or in its next step; they are named before the body is written"""

    @property
    def node(self) -> Node:
        return self.lowered.node


class Forward:
    """Writes `forward` of a graph without auxiliary losses, on which `inline` has run. `helpers` are the functions that
    it then calls besides blocks.

    Raises:
        NotPlainError: the graph has a loop that cannot be written."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        steps = {step_name(node.operation.path) for node in graph.region.walk()
                 if isinstance(node.operation, operations.OwnWeights)}  # fmt: skip
        self._taken = {*RESERVED, *HELPERS, *steps}
        self.helpers: dict[Name, None] = {}
        self.function = self._function(lower(graph, {"batch_chunks", "parallel_scans", "rows", "slices"}))

    # Names

    def _name(self, preferred: str) -> str:
        """Takes an unused name."""
        name = unused_name(preferred, self._taken)
        self._taken.add(name)
        return name

    def _helper(self, helper: str | Callable[..., Any]) -> str:
        """The name of a function that the file then contains."""
        name = HELPERS[helper] if isinstance(helper, str) else Name(helper.__module__, helper.__qualname__)
        self.helpers[name] = None
        return name.name

    def _call(self, helper: str | Callable[..., Any], *arguments: ast.expr) -> ast.expr:
        return ast.Call(_load(self._helper(helper)), list(arguments), [])

    # The model

    def _function(self, program: PythonProgram) -> ast.FunctionDef:
        placeholders = _placeholders(program.code)
        keys, fields = program.fields, list(map(self._name, program.fields))
        with_lengths = [index for index, field in enumerate(program.inputs) if field.type.lengths]
        is_shared = len({program.inputs[index].type.lengths[0] for index in with_lengths}) == 1
        values: dict[fx.Node, ast.expr] = dict(zip(placeholders, map(_load, fields), strict=False))
        body: list[ast.stmt] = []
        if program.masked and len(fields) > 1:
            source = "lengths or {}"
            if is_shared:
                shared = [keys[index] for index in with_lengths]
                source = f"dict.fromkeys({shared!r}, lengths) if isinstance(lengths, Tensor) else {source}"
            body.append(_statement(f"lengths = {source}"))
        for mask, indices in zip(placeholders[len(fields) :], program.masked, strict=True):
            name, source = self._name(mask.name), "lengths"
            if len(fields) > 1:
                source = f"lengths.get({keys[indices[-1]]!r})"
                for index in reversed(indices[:-1]):
                    source = f"lengths.get({keys[index]!r}, {source})"
            body.append(_statement(f"{name} = {self._helper('real_positions')}({fields[indices[0]]}, {source})"))
            fill = self._helper("filled_padding")
            body += [_statement(f"{fields[index]} = {fill}({fields[index]}, {name})") for index in indices]
            values[mask] = _load(name)
        scope, results = self._write(program.code, values, {*placeholders[: len(fields)]})
        body += scope.statements
        extras = dict(zip(program.code.extras, results[1:], strict=True))
        if PONDER in extras:
            body.append(_statement(f"self.ponder = ({ast.unparse(extras[PONDER])}).mean()"))
        if DEPTH in extras:
            body.append(_statement(f"self.sample_depth = ({ast.unparse(extras[DEPTH])}).detach()"))
        last = next((node for node in self._graph.region.nodes if node.id == self._graph.region.results[0]), None)
        body.append(_beside(ast.Return(results[0]), last))
        arguments = ", ".join(f"{name}: Tensor" for name in fields)
        if with_lengths:  # the module takes them even if nothing reads them
            kind = "Tensor" if len(fields) == 1 else "Tensor | dict[str, Tensor]" if is_shared else "dict[str, Tensor]"
            arguments += f", lengths: {kind} | None = None"
        function = _statement(f"def forward(self, {arguments}) -> Tensor:\n    pass")
        assert isinstance(function, ast.FunctionDef)
        function.body = body
        return function

    # Regions

    def _write(self, code: Code, values: dict[fx.Node, ast.expr], owned: set[fx.Node]) -> tuple[_Scope, list[ast.expr]]:
        """Writes the code of a region, whose arguments are `values`. Returns it and its results."""
        scope, loops = _Scope(code, values, owned, self._uses(code)), {loop.name: loop for loop in code.loops}
        *nodes, output = (node for node in code.graph.nodes if node.op != "placeholder")
        for node in nodes:
            if node.op == "call_module" and node.target in loops:
                self._loop(scope, node, loops[node.target])
            elif scope.uses[node] and not _is_product(node, code):
                self._value(scope, node)
        (returned,) = output.args
        results = [scope.take(value) for value in (returned if isinstance(returned, tuple) else (returned,))]
        self._flush(scope)
        return scope, results

    def _uses(self, code: Code) -> Counter[fx.Node]:
        """How often each value is an argument. Nothing uses a product: blocks apply their own linear maps here."""
        uses: Counter[fx.Node] = Counter()
        for node in code.graph.nodes:
            if not _is_product(node, code):
                fx.node.map_arg((node.args, self._keywords(node, code)), lambda value: uses.update([value]))
        return uses

    def _keywords(self, node: fx.Node, code: Code) -> dict[str, Any]:  # Any: masks
        """The mask of a loop, or those that a block reads."""
        origin = code.nodes.get(node.name)
        if origin is None or not isinstance(origin.operation, operations.Call):
            return {name: value for name, value in node.kwargs.items() if name == "mask"}
        block = class_of(self._graph.instances[origin.operation.instance].python)
        read = {name for name in parameters(block, "forward") if name != "products"}
        return {name: value for name, value in node.kwargs.items() if name in read}

    def _value(self, scope: _Scope, node: fx.Node) -> None:
        origin = scope.code.nodes.get(node.name)
        match node.args:
            case (fx.Node() as results, int(index)) if results in scope.results:
                scope.values[node] = scope.results[results][index]
                return
        arguments = [scope.take(argument) for argument in node.args]
        if node.op == "call_module":
            assert origin is not None
            assert origin.instance is not None
            masks = self._keywords(node, scope.code)
            keywords = {name: scope.take(mask) for name, mask in masks.items() if mask is not None}
            block = attribute_of(self._graph.instances[origin.instance].path)
            expression: ast.expr = ast.Call(block, arguments, [ast.keyword(*pair) for pair in keywords.items()])
        elif node.op == "call_method" or node.target in _METHODS:
            method = node.target if isinstance(node.target, str) else node.target.__name__
            expression = ast.Call(ast.Attribute(arguments[0], method, ast.Load()), arguments[1:], [])
        elif node.target in _OPERATORS:
            expression = ast.BinOp(arguments[0], _OPERATORS[node.target], arguments[1])
        elif node.target is operator.neg:
            expression = ast.UnaryOp(ast.USub(), arguments[0])
        elif node.target is operator.getitem:
            expression = ast.Subscript(arguments[0], arguments[1], ast.Load())
        else:
            assert callable(node.target)
            expression = self._call(node.target, *arguments)
        is_named = origin is not None and origin.name and all(user.op != "output" for user in node.users)
        if scope.uses[node] == 1 and not is_named:
            scope.waiting[node] = expression
        else:
            self._set(scope, node, expression)

    def _set(self, scope: _Scope, node: fx.Node, expression: ast.expr) -> None:
        origin = scope.code.nodes.get(node.name)
        stem, _, number = node.name.rpartition("_")
        is_numbered = origin is not None and origin.name == stem and number.isdigit()
        name = self._name(stem if is_numbered else node.name)
        scope.statements.append(_beside(_assignment(name, expression), origin))
        scope.values[node] = _load(name)

    def _flush(self, scope: _Scope) -> None:
        """Sets variables for the values that wait."""
        for node in list(scope.waiting):
            self._set(scope, node, scope.waiting.pop(node))

    # Loops

    def _loop(self, scope: _Scope, node: fx.Node, lowered: LoweredLoop) -> None:
        layout, inner = loop_layout(lowered.node), _placeholders(lowered.body)
        arguments = list(node.args)
        states_end = layout.outer + layout.states
        captured_begin = states_end + len(growths(lowered.node))
        taken = [scope.take(argument) for argument in arguments[:states_end]]
        self._flush(scope)
        captured = arguments[captured_begin:]
        states_begin = len(inner) - len(captured) - (captured_begin - layout.outer) - _takes_mixture(lowered.node)
        values = {
            placeholder: scope.take(argument)
            for placeholder, argument in zip(inner[len(inner) - len(captured) :], captured, strict=True)
            if not isinstance(argument, fx.Node) or argument in scope.values  # else it is a product
        }
        outer = arguments[layout.outer : states_end], taken[layout.outer :], inner[states_begin:]
        states = [
            self._state(scope, argument, value, placeholder.name)
            for argument, value, placeholder in zip(*outer, strict=False)
        ]
        values.update(zip(inner[states_begin:], map(_load, states), strict=False))
        mask = scope.take(node.kwargs.get("mask"))
        loop = _Loop(lowered, taken[: layout.outer], mask, states, [], inner[:states_begin], values)
        for argument, placeholder in zip(
            arguments[states_end:captured_begin], inner[states_begin + layout.states :], strict=False
        ):
            loop.growing.append(self._lasting(loop, placeholder.name))
            scope.statements.append(_assignment(loop.growing[-1], scope.take(argument)))
            values[placeholder] = _load(loop.growing[-1])
        taken_before = {*self._taken}
        match lowered.node.operation:
            case operations.Halting() as halting:
                results = self._halting(scope, loop, halting, inner[states_begin : states_begin + layout.states + 1])
            case operations.Experts() as experts:
                results = self._experts(scope, loop, experts)
            case operations.Scan() as scan:
                results = self._scan(scope, loop, scan)
            case operations.Repeat() | operations.Stack() as counted:
                results = self._counted(scope, loop, counted, {*inner[states_begin : states_begin + layout.states]})
        self._taken = taken_before | loop.lasting
        if len(results) == 1:
            scope.values[node] = results[0]
        else:
            scope.results[node] = results

    def _lasting(self, loop: _Loop, preferred: str) -> str:
        name = self._name(preferred)
        loop.lasting.add(name)
        return name

    def _state(self, scope: _Scope, argument: fx.node.Argument, value: ast.expr, preferred: str) -> str:
        """The variable of a state, with its initial value."""
        match argument, value:
            case fx.Node(), ast.Name(id=own) if scope.uses[argument] == 1 and scope.may_overwrite(argument):
                return own
        name = self._name(preferred)
        scope.statements.append(_assignment(name, value))
        return name

    def _body(self, loop: _Loop, owned: set[fx.Node]) -> tuple[list[ast.stmt], list[ast.expr], dict[str, ast.expr]]:
        """The statements of a body, its results, and its extra results."""
        code = loop.lowered.body
        scope, results = self._write(code, loop.values, owned)
        count = len(results) - len(code.extras)
        return scope.statements, results[:count], dict(zip(code.extras, results[count:], strict=True))

    def _counted(
        self, scope: _Scope, loop: _Loop, operation: operations.Repeat | operations.Stack, owned: set[fx.Node]
    ) -> list[ast.expr]:
        truncated = operation.truncated if isinstance(operation, operations.Repeat) else None
        detached = 0 if truncated is None else max(0, operation.count - truncated)
        if isinstance(operation, operations.Repeat):
            step = self._name("step") if detached else "_"
            written = _for(step, ast.parse(f"range({operation.count})", mode="eval").body)
        else:
            written = _for(step_name(operation.path), attribute_of(operation.path))
        emitted = self._lasting(loop, loop.node.name or "result") if operation.emits else ""
        totals = [self._lasting(loop, name) for name in loop.lowered.body.extras]
        statements, results, extras = self._body(loop, owned)
        outputs: list[ast.expr] = list(map(_load, loop.states))
        if emitted:
            statements.append(_assignment(emitted, results.pop()))
            outputs.append(_load(emitted))
        for total, (name, value) in zip(totals, extras.items(), strict=True):
            scope.statements.append(_assignment(total, ast.Constant(0)))
            statements.append(_assignment(total, ast.BinOp(_load(total), ast.Add(), value)))
            mean = f"{total} / {operation.count}" if name == DEPTH else total
            outputs.append(ast.parse(mean, mode="eval").body)
        statements += _updates(loop.states, results)
        if detached:
            states = [state for state, kind in zip(loop.states, loop.node.types, strict=False) if kind.name != "number"]
            block = _statement(
                f"with torch.set_grad_enabled(torch.is_grad_enabled() and {step} >= {detached}):\n    pass"
            )
            assert isinstance(block, ast.With)
            block.body, statements = statements or [ast.Pass()], [block]
            if states:
                cuts = "".join(f"\n    {state} = {state}.detach()" for state in states)
                statements.append(_statement(f"if {step} < {detached}:{cuts}"))
        written.body = statements or [ast.Pass()]
        scope.statements.append(_above(written, loop.node))
        return outputs

    def _halting(
        self, scope: _Scope, loop: _Loop, operation: operations.Halting, states: Sequence[fx.Node]
    ) -> list[ast.expr]:
        block, mask = ast.unparse(attribute_of(self._graph.instances[operation.instance].path)), ast.unparse(loop.mask)
        tally, halted = self._lasting(loop, "tally"), loop.states[operation.state]
        start = _statement(f"{tally} = {block}.start({halted}, {mask})")
        scope.statements.append(_above(start, loop.node))
        begin = [_statement(f"{halted} = {tally}.state")]
        if operation.mixture:
            mixture = self._name(states[-1].name)
            begin.append(_statement(f"{mixture} = {tally}.mixture"))
            loop.values[states[-1]] = _load(mixture)
        variables, inner = list(loop.states), self._lasting(loop, "inner_ponder")
        if operation.emits:
            variables.append(self._lasting(loop, loop.node.name or "result"))
            scope.statements.append(_assignment(variables[-1], ast.Constant(None)))
        # The state before the step is in the tally; the other states are read again after the step.
        statements, results, extras = self._body(loop, {states[operation.state]})
        for index, result in enumerate(results):
            is_bound = isinstance(result, ast.Name) and result.id not in {*variables} - {variables[index]}
            if index != operation.state and not is_bound:
                name = self._name(f"new_{variables[index]}")
                statements.append(_assignment(name, result))
                results[index] = _load(name)
        new = ast.unparse(results[operation.state])
        statements.append(_statement(f"{tally} = {block}.advance({tally}, {new}, {mask})"))
        broadcast = self._helper(broadcast_mask)
        for index, (variable, result) in enumerate(zip(variables, results, strict=True)):
            if index == operation.state:
                continue
            rank, has_positions = 1 + len(loop.node.types[index].tensor_dims), has_halting_positions(loop.node, index)
            moved = f"{broadcast}({tally}.accepted, {rank}, has_positions={has_positions})"
            value = ast.unparse(result)
            chosen = f"torch.where({moved}, {value}, {variable})"
            if index == len(loop.states):
                chosen = f"{value} if {variable} is None else {chosen}"
            statements.append(_statement(f"{variable} = {chosen}"))
        ponder = f"{tally}.ponder"
        if PONDER in extras:
            scope.statements.append(_assignment(inner, ast.Constant(0)))
            closed = f"~{broadcast}({tally}.accepted, 1, has_positions=False)"
            cost = f"({ast.unparse(extras[PONDER])}).masked_fill({closed}, 0)"
            statements.append(_statement(f"{inner} = {inner} + {cost}"))
            ponder = f"{ponder} + {inner}"
        written = _for("_", ast.parse(f"range({operation.limit})", mode="eval").body)
        written.body = [*begin, *statements, _statement(f"if not {tally}.live.any():\n    break")]
        scope.statements += [written, _statement(f"{halted} = {tally}.mixture")]
        outputs = [*map(_load, variables), ast.parse(ponder, mode="eval").body]
        if loop.lowered.has_depth:
            outputs.append(self._call(mean_steps, _load(tally), loop.mask))
        return outputs

    def _experts(self, scope: _Scope, loop: _Loop, operation: operations.Experts) -> list[ast.expr]:
        result = self._lasting(loop, loop.node.name or "mixture")
        x, rows, row, weights, weight = (self._name(name) for name in ("x", "rows", "row", "weights", "weight"))
        scope.statements.append(_above(_assignment(x, loop.read[0]), loop.node))
        routed = ast.unparse(self._call("routed", _load(x), loop.read[1], loop.mask))
        scope.statements += [_statement(f"{rows}, {weights} = {routed}"), _assignment(result, ast.Constant(0))]
        captured = loop.node.regions[0].inputs[1:]
        if any(value.type.name == "chunks" for value in captured):
            raise NotPlainError("experts read chunks from outside")
        numbers = {index for index, value in enumerate(captured) if value.type == NUMBER}
        for index, placeholder in enumerate(_placeholders(loop.lowered.body)[1:]):
            if placeholder in loop.values and index not in numbers:
                loop.values[placeholder] = self._call("for_rows", loop.values[placeholder], _load(weight))
        loop.values[loop.inner[0]] = _load(row)
        statements, results, _ = self._body(loop, set())
        weighed = self._call("weighed", results[0], _load(weight))
        written = _for(
            f"{step_name(operation.path)}, {weight}",
            ast.Call(_load("zip"), [attribute_of(operation.path), _load(weights)], []),
        )
        written.body = [
            _assignment(row, self._call("for_rows", _load(rows), _load(weight))),
            *statements,
            _assignment(result, ast.BinOp(_load(result), ast.Add(), weighed)),
        ]
        scope.statements += [written, _statement(f"{result} = {result}.unflatten(0, {x}.shape[:-1])")]
        return [_load(result)]

    def _scan(self, scope: _Scope, loop: _Loop, operation: operations.Scan) -> list[ast.expr]:
        by_position = takes_positions(loop.node)
        parts, inner = loop.read[0], [placeholder.name for placeholder in loop.inner]
        if by_position:
            parts = self._call("positions", parts, loop.mask)
            inner.insert(1, f"mask_{inner[0]}")
        if operation.before is not None:
            parts = self._call("with_before", parts, ast.Constant(operation.before))
        parts = self._call(filled_parts, parts)
        real = self._name(f"real_{inner[0]}")
        targets = [self._name(name) for name in inner]
        places = [target for index, target in enumerate(targets) if not (by_position and index == 1)]
        loop.values.update(zip(loop.inner, map(_load, places), strict=True))
        mask = targets[1]
        emitted = self._lasting(loop, "outputs") if operation.emits else ""
        costs, reals = self._lasting(loop, "costs"), self._lasting(loop, "reals")
        statements, results, extras = self._body(loop, {loop.inner[0]})
        if emitted:
            scope.statements.append(_statement(f"{emitted} = []"))
            statements.append(_statement(f"{emitted}.append({ast.unparse(results.pop())})"))
        next_states: list[ast.expr] = []
        next_masks: list[ast.expr] = []
        growing = growths(loop.node)
        for index, (state, result) in enumerate(zip(loop.states, results, strict=True)):
            if index not in growing:
                next_states.append(self._call("where_real", _load(real), result, _load(state)))
                continue
            old_mask = loop.growing[len(next_masks)]
            counts = ast.Constant(growing[index].each.constant), ast.Constant(growing[index].per_position)
            states = _load(state), _load(old_mask), _load(mask)
            call = self._call("grown_by_part", _load(real), result, *states, *counts)
            new, new_mask = self._name(f"new_{state}"), self._name(f"new_{old_mask}")
            statements.append(_statement(f"{new}, {new_mask} = {ast.unparse(call)}"))
            next_states.append(_load(new))
            next_masks.append(_load(new_mask))
        totals: list[str] = []
        if extras:
            totals = [self._lasting(loop, name) for name in extras]
            scope.statements += [_statement(f"{costs} = []"), _statement(f"{reals} = []")]
            values = ast.unparse(ast.Tuple([*extras.values()], ast.Load()))
            statements.append(_statement(f"{costs}.append({values})"))
            statements.append(_statement(f"{reals}.append({real})"))
        statements += _updates([*loop.states, *loop.growing], [*next_states, *next_masks])
        target = ", ".join([real, *targets])
        if operation.truncated is not None and loop.states:
            index_name, where = self._name("index"), self._helper("where_real")
            # A sample that has ended keeps the gradient of its last states.
            cuts = "".join(f"\n    {own} = {where}({real}, {own}.detach(), {own})" for own in loop.states)
            cut = _statement(f"if {index_name} and {index_name} % {operation.truncated} == 0:{cuts}")
            statements.insert(0, cut)
            target, parts = f"{index_name}, ({target})", ast.Call(_load("enumerate"), [parts], [])
        written = _for(target, parts)
        written.body = statements or [ast.Pass()]
        scope.statements.append(_above(written, loop.node))
        outputs: list[ast.expr] = list(map(_load, loop.states))
        if emitted:
            joined = "torch.stack" if by_position else "torch.cat"
            scope.statements.append(_statement(f"{emitted} = {joined}({emitted}, 1)"))
            outputs.append(_load(emitted))
        if totals:
            means = f"{self._helper(mean_over_chunks)}({costs}, {reals})"
            scope.statements.append(_statement(f"{', '.join(totals)}{',' * (len(totals) == 1)} = {means}"))
        return [*outputs, *map(_load, totals)]


# torch.fx


def _placeholders(code: Code) -> list[fx.Node]:
    return [node for node in code.graph.nodes if node.op == "placeholder"]


def _is_product(node: fx.Node, code: Code) -> bool:
    """Whether a value is the product of a linear map of a block, computed before a loop."""
    return node.name in code.nodes and isinstance(code.nodes[node.name].operation, operations.Product)


def _takes_mixture(loop: Node) -> bool:
    return isinstance(loop.operation, operations.Halting) and loop.operation.mixture


# Python


def _load(name: str) -> ast.Name:
    return ast.Name(name, ast.Load())


def _statement(text: str) -> ast.stmt:
    return ast.parse(text).body[0]


def _assignment(name: str, value: ast.expr) -> ast.Assign:
    return ast.Assign([ast.Name(name, ast.Store())], value, lineno=0)


def _for(target: str, iterable: ast.expr) -> ast.For:
    loop = _statement(f"for {target} in x:\n    pass")
    assert isinstance(loop, ast.For)
    loop.iter = iterable
    return loop


def _updates(states: Sequence[str], results: Sequence[ast.expr]) -> Iterator[ast.stmt]:
    """Sets the states to their next values, at once if one needs the old value of another."""
    pairs = [
        (state, result)
        for state, result in zip(states, results, strict=True)
        if not (isinstance(result, ast.Name) and result.id == state)
    ]
    for index, (state, _) in enumerate(pairs):
        later = (node for _, result in pairs[index + 1 :] for node in ast.walk(result))
        if any(isinstance(node, ast.Name) and node.id == state for node in later):
            targets = ast.Tuple([ast.Name(name, ast.Store()) for name, _ in pairs], ast.Store())
            yield ast.Assign([targets], ast.Tuple([result for _, result in pairs], ast.Load()), lineno=0)
            return
    yield from (_assignment(state, result) for state, result in pairs)


def _place(node: Node | None) -> str:
    """The line of the program that a node comes from, as a comment; "" if it is unknown."""
    if node is None or node.span is None or not node.span.source.path.endswith(".arch"):
        return ""
    path = node.span.source.path.replace("\\", "/").rpartition("/")[2]
    return f"# {path}:{node.span.line}"


def _beside(statement: ast.stmt, node: Node | None) -> ast.stmt:
    """Notes the line of the program beside a statement."""
    statement.beside = _place(node)  # type: ignore[attr-defined]
    return statement


def _above(statement: ast.stmt, node: Node) -> ast.stmt:
    """Notes the line of the program above a loop."""
    if (place := _place(node)) and node.span is not None:
        first = node.span.text.split("\n", 1)[0].strip().removesuffix("{").strip()
        statement.comments = [f"{place}: {first}"]  # type: ignore[attr-defined]
    return statement
