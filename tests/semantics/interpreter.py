"""A reference interpreter of typed graphs by docs/semantics.md: one sample, without batch, padding, masks or passes.

It does not define extern blocks: a call runs the module at the path of its instance in a compiled model."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import torch
from torch import Tensor, nn
from torch.nn.attention import SDPBackend, sdpa_kernel

from archlang.backend.lower.names import module_path
from archlang.backend.runtime.halting import HaltingBlock, HaltingState
from archlang.graph.graph import Graph, Node, Region, is_idle, loop_layout
from archlang.graph.operations import (
    Arithmetic,
    Call,
    Experts,
    Gradient,
    Halting,
    Literal,
    Loss,
    Part,
    Repeat,
    Scan,
    Stack,
)
from tests.semantics.batches import drawn_count
from tests.semantics.needs import Needs, needs_of

# Of one sample: a tensor without a batch axis, a number, or the list of a sequence's chunks.
Value = Tensor | float | list[Tensor]


@dataclass(frozen=True)
class Answer:
    """The outputs of a model for one sample. Depth is None if no halting loop is needed."""

    result: Tensor
    ponder: Tensor
    depth: Tensor | None
    losses: Mapping[str, Tensor]


@dataclass(frozen=True)
class _Cost:
    """The costs of a loop: the instances that it halts by, its ponder, and the steps of its outermost halting loops. A
    loop without halting loops has no instances and no depth. Auxiliary losses are costs by themselves."""

    instances: frozenset[str]
    ponder: Tensor
    depth: Tensor
    losses: Mapping[str, Tensor] = field(default_factory=dict)


def interpret(graph: Graph, module: nn.Module, fields: Sequence[Tensor]) -> Answer:
    """Returns the outputs of a model for one sample. The graph is the elaborated one; `module` holds the weights.
    Fields are Int[n] or Float[n d]."""
    interpreter = _Interpreter(graph, module, needs_of(graph))
    (result,), costs = interpreter.region(graph.region, list(fields), ())
    assert isinstance(result, Tensor)
    total = interpreter.total(costs)
    return Answer(result, total.ponder, total.depth if total.instances else None, total.losses)


class _Interpreter:
    """Evaluates the regions of a graph. `steps` is the step of each stack around a region, the outermost first."""

    def __init__(self, graph: Graph, module: nn.Module, needs: Needs) -> None:
        self._instances = graph.instances
        self._module = module
        self.needs = needs

    def region(
        self, region: Region, inputs: Sequence[Value], steps: tuple[int, ...]
    ) -> tuple[list[Value], list[_Cost]]:
        """Returns the results of a region, 0 for those that are not needed, and the costs of its loops."""
        values: dict[str, Value] = dict(zip((value.id for value in region.inputs), inputs, strict=True))
        results: dict[str, list[Value]] = {}
        costs: list[_Cost] = []
        for node in region.nodes:
            if isinstance(node.operation, Part):
                if node.id in self.needs.values:
                    values[node.id] = results[node.inputs[0]][node.operation.index]
                continue
            if isinstance(node.operation, Loss):
                loss = values[node.inputs[0]]
                assert isinstance(loss, Tensor)
                costs.append(replace(self._no_cost(), losses={node.operation.name: loss[0]}))
                continue
            if node.regions:
                if node.id in self.needs.results:
                    results[node.id], added = self._compound(node, [values.get(i, 0.0) for i in node.inputs], steps)
                    costs += added
            elif node.id in self.needs.values:
                results[node.id] = [self._simple(node, [values[source] for source in node.inputs], steps)]
            if len(node.types) == 1 and node.id in results:
                values[node.id] = results[node.id][0]
        return [values.get(result, 0.0) for result in region.results], costs

    # Arithmetic and calls

    def _simple(self, node: Node, inputs: Sequence[Value], steps: tuple[int, ...]) -> Value:
        match node.operation:
            case Literal(value=value):
                return float(value)
            case Arithmetic() as operation:
                return _arithmetic(operation, inputs)
            case Call() as call:
                return self._call(node, call, inputs, steps)
        raise AssertionError(node.operation)

    def _call(self, node: Node, call: Call, inputs: Sequence[Value], steps: tuple[int, ...]) -> Value:
        instance = self._instances[call.instance]
        module = self._weights(instance.path, steps)
        if not inputs:
            return _only(module(1))
        result = module(*(_batch(value) for value in inputs))
        if node.type.name == "chunks":
            return [part[0] for part, _ in result if part.shape[1]]
        return _only(result[0] if isinstance(result, tuple) else result)

    def _weights(self, path: str, steps: tuple[int, ...]) -> nn.Module:
        for step in steps:
            path = path.replace("*", str(step), 1)
        return self._module.get_submodule(module_path(path))

    # Loops and applied blocks

    def _compound(self, node: Node, inputs: Sequence[Value], steps: tuple[int, ...]) -> tuple[list[Value], list[_Cost]]:
        if is_idle(node):
            return list(inputs[: len(node.types)]), []
        match node.operation:
            case Repeat() | Stack() as loop:
                results, cost = self._repeat(node, loop, inputs, steps)
            case Halting() as halting:
                results, cost = self._halting(node, halting, inputs, steps)
            case Experts(count=count):
                return [self._experts(node, count, inputs, steps)], []
            case Gradient():
                return [self._gradient(node, inputs, steps)], []
            case Scan() as scan:
                results, cost = self._scan(node, scan, inputs, steps)
            case _:  # an applied block
                return self.region(node.regions[0], inputs, steps)
        return results, [replace(cost, instances=self._halting_instances(node))]

    def _repeat(
        self, node: Node, loop: Repeat | Stack, inputs: Sequence[Value], steps: tuple[int, ...]
    ) -> tuple[list[Value], _Cost]:
        """s⁰ = the states before the loop, (sᵗ, eᵗ) = body(sᵗ⁻¹)."""
        count, last = len(node.types) - loop.emits, loop.count
        if isinstance(loop, Repeat) and loop.drawn and self._module.training:
            last = drawn_count(self._weights(loop.drawn, steps))
        results, captured = list(inputs[:count]), inputs[count:]
        totals = []
        for t in range(last):
            inner = (*steps, t) if isinstance(loop, Stack) else steps
            kept = loop.truncated if isinstance(loop, Repeat) else None
            terms, settles = kept or last, isinstance(loop, Repeat) and loop.settled
            fixed = [_detached(value) for value in results[:count]] if settles else results[:count]
            results, costs = self.region(node.regions[0], [*fixed, *captured], inner)
            for _ in range(1, terms) if settles and t == last - 1 else ():
                # One more term: the same states, with the gradient of what the step returns.
                again = [_with_gradient(old, new) for old, new in zip(fixed, results, strict=False)]
                results, costs = self.region(node.regions[0], [*again, *captured], inner)
            total = self.total(costs)
            kept = 1 if settles else kept
            if kept is not None and t < last - kept:
                results = [_detached(value) for value in results]
                losses = {name: loss.detach() for name, loss in total.losses.items()}
                total = replace(total, ponder=total.ponder.detach(), losses=losses)
            totals.append(total)
        depth = _mean([total.depth for total in totals])
        return results, _Cost(frozenset(), _sum([total.ponder for total in totals]), depth, _sums(totals))

    def _halting(
        self, node: Node, loop: Halting, inputs: Sequence[Value], steps: tuple[int, ...]
    ) -> tuple[list[Value], _Cost]:
        """halting⁰ = b.start(h⁰), haltingᵗ⁺¹ = b.advance(haltingᵗ, new.h), y is what the last accepted step emits."""
        count = loop_layout(node).states
        states, captured = list(inputs[:count]), inputs[count:]
        halted, others = loop.state, self.needs.results[node.id] - {loop.state, count}
        emits, emitted = count in self.needs.results[node.id], list[Value]()
        block = self._weights(loop.instance, steps)
        assert isinstance(block, HaltingBlock)
        halting = block.start(_batch(states[halted]), None)
        inner: list[_Cost] = []
        for t in range(loop.limit):
            # What is emitted needs a first step.
            if not halting.live.any() and not (emits and t == 0):
                break
            states[halted] = halting.state[0]
            mixture = [halting.mixture[0]] if loop.mixture else []
            new, costs = self.region(node.regions[0], [*states, *mixture, *captured], steps)
            halting = block.advance(halting, _batch(new[halted]), None)
            for index in others:
                states[index] = _moved(node, index, halted, halting, states[index], new[index])
            if emits:
                last = new[count]
                emitted = [last if t == 0 else _moved(node, count, halted, halting, emitted[0], last)]
            if halting.accepted.any():
                inner.append(self.total(costs))
        states[halted] = halting.mixture[0]
        taken = halting.steps.double()
        ponder = sum((cost.ponder for cost in inner), halting.ponder[0])
        # Nothing is accepted, but the names are those of the body.
        losses = _sums(inner) if inner else {name: self._zero() for name in self.needs.losses(node.regions[0])}
        return [*states, *emitted], _Cost(frozenset(), ponder, taken.sum() / max(1, taken.numel()), losses)

    def _scan(
        self, node: Node, scan: Scan, inputs: Sequence[Value], steps: tuple[int, ...]
    ) -> tuple[list[Value], _Cost]:
        """(mᵗ, eᵗ) = body(uᵗ, bᵗ, mᵗ⁻¹) for each chunk, or the vector of each position, uᵗ; bᵗ is what is before it."""
        count = scan.carried
        parts, states, captured = inputs[0], list(inputs[1 : 1 + count]), inputs[1 + count :]
        takes_chunks = isinstance(parts, list)
        assert isinstance(parts, list | Tensor)
        emitted: list[Tensor] = []
        totals = []
        for t, part in enumerate(parts):
            if scan.truncated is not None and t > 0 and t % scan.truncated == 0:
                states = [_detached(state) for state in states]
            before: list[Value] = []
            if scan.before is not None:
                whole = torch.cat(parts) if isinstance(parts, list) else parts
                start = sum(len(earlier) for earlier in parts[:t]) if isinstance(parts, list) else t
                before = [whole[max(0, start - (scan.before or start)) : start]]
            results, costs = self.region(node.regions[0], [part, *before, *states, *captured], steps)
            states, emission = results[:count], results[count:]
            emitted += [value for value in emission if isinstance(value, Tensor)]
            totals.append(self.total(costs))
        ponder = _mean([total.ponder for total in totals]) if totals else self._zero()
        depth = _mean([total.depth for total in totals]) if totals else self._zero()
        losses = {name: loss / len(totals) for name, loss in _sums(totals).items()}
        losses = losses if totals else {name: self._zero() for name in self.needs.losses(node.regions[0])}
        cost = _Cost(frozenset(), ponder, depth, losses)
        if not scan.emits:
            return states, cost
        width = node.types[-1].feature
        assert width is not None
        assert width.constant is not None
        joined = torch.cat if takes_chunks else torch.stack
        return [*states, joined(emitted) if emitted else self._zero().new_zeros(0, width.constant)], cost

    def _experts(self, node: Node, count: int, inputs: Sequence[Value], steps: tuple[int, ...]) -> Value:
        """yᵢ = Σₑ wᵢₑ bodyₑ(xᵢ) over the experts with wᵢₑ ≠ 0."""
        values, weights, *captured = inputs
        assert isinstance(values, Tensor)
        assert isinstance(weights, Tensor)
        width = node.type.feature
        assert width is not None
        assert width.constant is not None
        rows = []
        for value, own in zip(values.reshape(-1, values.shape[-1]), weights.reshape(-1, count), strict=True):
            total = value.new_zeros(width.constant)
            for expert, weight in enumerate(own):
                if weight != 0:
                    (result,), _ = self.region(node.regions[0], [value, *captured], (*steps, expert))
                    assert isinstance(result, Tensor)
                    total = total + weight * result
            rows.append(total)
        joined = torch.stack(rows) if rows else values.new_zeros(0, width.constant)
        return joined.reshape(*values.shape[:-1], width.constant)

    def _gradient(self, node: Node, inputs: Sequence[Value], steps: tuple[int, ...]) -> Value:
        """d/dv of the sum of the losses that body(v) returns."""
        value, *captured = inputs
        assert isinstance(value, Tensor)
        again = torch.is_grad_enabled()
        with torch.enable_grad(), sdpa_kernel(SDPBackend.MATH):
            own = value.clone() if value.requires_grad else value.detach().requires_grad_()
            (losses,), _ = self.region(node.regions[0], [own, *captured], steps)
            assert isinstance(losses, Tensor)
            if not losses.requires_grad:
                return torch.zeros_like(value)
            (gradient,) = torch.autograd.grad(losses.sum(), own, create_graph=True, materialize_grads=True)
        return gradient if again else gradient.detach()

    # Ponder, depth and auxiliary losses

    def total(self, costs: Sequence[_Cost]) -> _Cost:
        """Returns the costs of the loops of a region together. Loops that halt by the same weights count once, with the
        mean of their ponders; depth is the mean over loops, and auxiliary losses add up."""
        shared: dict[frozenset[str], list[Tensor]] = {}
        halting = [cost for cost in costs if cost.instances]
        for cost in halting:
            shared.setdefault(cost.instances, []).append(cost.ponder)
        if not halting:
            return replace(self._no_cost(), losses=_sums(costs))
        ponder, depth = _sum([_mean(ponders) for ponders in shared.values()]), _mean([cost.depth for cost in halting])
        return _Cost(frozenset().union(*shared), ponder, depth, _sums(costs))

    def _no_cost(self) -> _Cost:
        return _Cost(frozenset(), self._zero(), self._zero())

    def _halting_instances(self, node: Node) -> frozenset[str]:
        loops = [node.operation, *(loop for region in node.regions for loop in self.needs.halting(region))]
        return frozenset(loop.instance for loop in loops if isinstance(loop, Halting))

    def _zero(self) -> Tensor:
        weight = next(self._module.parameters(), None)
        return torch.zeros((), dtype=torch.float64 if weight is None else weight.dtype)


def _with_gradient(old: Value, new: Value) -> Value:
    return old + (new - new.detach()) if isinstance(old, Tensor) and isinstance(new, Tensor) else old


def _detached(value: Value) -> Value:
    return value.detach() if isinstance(value, Tensor) else value


def _arithmetic(operation: Arithmetic, inputs: Sequence[Value]) -> Value:
    if operation is Arithmetic.NEGATE:
        (value,) = inputs
        assert not isinstance(value, list)
        return -value
    left, right = inputs
    assert not isinstance(left, list)
    assert not isinstance(right, list)
    match operation:
        case Arithmetic.ADD:
            return left + right
        case Arithmetic.SUBTRACT:
            return left - right
        case Arithmetic.MULTIPLY:
            return left * right
    if isinstance(left, float) and isinstance(right, float):
        return _divide(left, right)
    return left / right


def _divide(left: float, right: float) -> float:
    """Divides by IEEE 754; Python raises for 0."""
    if right != 0:
        return left / right
    if left == 0 or math.isnan(left):
        return math.nan
    return math.copysign(math.inf, left) * math.copysign(1.0, right)


def _moved(loop: Node, index: int, halted: int, halting: HaltingState, before: Value, after: Value) -> Value:
    """Returns a state after a step: new where the step was accepted. A state without the positions of the halting state
    is updated while any position accepts the step."""
    assert isinstance(before, Tensor)
    assert isinstance(after, Tensor)
    accepted = halting.accepted[0]
    length = loop.types[halted].lengths[:1]
    if accepted.dim() and loop.types[index].lengths[:1] != length:
        accepted = accepted.any()
    return torch.where(accepted.reshape(accepted.shape + (1,) * (after.dim() - accepted.dim())), after, before)


def _batch(value: Value) -> Tensor:
    """Returns a value as a batch of one."""
    assert isinstance(value, Tensor)
    return value[None]


def _only(result: Tensor) -> Tensor:
    """Returns the only sample of a batch."""
    assert len(result) == 1
    return result[0]


def _sums(costs: Sequence[_Cost]) -> dict[str, Tensor]:
    """The sums of auxiliary losses of the same name."""
    names = dict.fromkeys(name for cost in costs for name in cost.losses)
    return {name: _sum([cost.losses[name] for cost in costs if name in cost.losses]) for name in names}


def _sum(values: Sequence[Tensor]) -> Tensor:
    return torch.stack(list(values)).sum(0)


def _mean(values: Sequence[Tensor]) -> Tensor:
    return _sum(values) / len(values)
