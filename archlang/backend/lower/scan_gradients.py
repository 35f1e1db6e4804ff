"""The pass `scan_gradients`: a scan that runs step by step has a backward pass that is written from its body.

    g = self.gates(concat(v, s))      shared                      weight_v, weight = split(self.gates.weight, ...)
    s_2 = self.tanh(g)                head, for all positions     g_of_inputs = linear(v, weight_v, self.gates.bias)
                                      step                        g = addmm(g_of_inputs, s, weight); s_2 = self.tanh(g)
                                      factors, for all            factor = self.tanh.derivative(s_2)
                                      adjoint, step by step       g_gradient = s_2_gradient * factor
                                                                  s_gradient = g_gradient @ weight.t()
                                      gradients, for all          weight_gradient = s.t() @ g_gradient

A step of `adjoint` is linear in the gradients that it takes. What it multiplies them by is computed for all positions
at once, and so are the gradients of weights and of what depends on no state. A chain of factors is one.

What depends on a state must be arithmetic of vectors, or blocks whose classes have `acts_as` "elementwise" or
"positive", "affine" (a map by `weight` and `bias`), "joined" (a concatenation) or "part"; other scans have the gradient
of torch. The class of an elementwise block may have `derivative`, which takes the result."""

import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import fx, nn
from torch.nn.functional import linear, pad

from archlang.backend.lower.affine_forms import NotParallel
from archlang.backend.lower.chunk_batching import is_per_sample
from archlang.backend.lower.code import Code, LoweredLoop, PassContext, compile_graph
from archlang.backend.lower.lstm import LstmBody
from archlang.backend.lower.parallel_scans import quoted, require_plain, role
from archlang.backend.runtime import scan_gradients as runtime
from archlang.graph.graph import loop_layout

# A value of `factors`, or a number.
_Factor = fx.Node | float
# A gradient as a sum of products, each of a value of `adjoint` with a factor.
_Terms = dict[fx.Node, _Factor]


def differentiate_scan(scan: LoweredLoop, context: PassContext) -> None:
    """Gives a scan that runs step by step a backward pass of its own, or the reason why it has none."""
    if scan.parallel is not None:
        return
    try:
        require_plain(scan)
        scan.gradient, scan.gradient_codes = _ScanDerivation(scan, context).write()
    except NotParallel as reason:
        scan.gradient_obstacle = str(reason)


class _WrittenFunction:
    """A function while it is written. `taken` has the source of each argument that is added when it is first read."""

    def __init__(self) -> None:
        self.graph = fx.Graph()
        self.taken: dict[Any, fx.Node] = {}  # Any: what the caller names a source by
        self.results: dict[fx.Node, int] = {}

    def argument(self, name: str) -> fx.Node:
        argument = self.graph.create_node("placeholder", name, (), {}, name)
        argument.target = argument.name  # which is another one if a value has the name
        return argument

    def take(self, source: Any, name: str) -> fx.Node:  # Any: as above
        if source not in self.taken:
            self.taken[source] = self.argument(name)
        return self.taken[source]

    def call(self, function: Any, *arguments: Any, name: str | None = None) -> fx.Node:  # Any: of torch.fx
        return self.graph.create_node("call_function", function, arguments, {}, name)

    def attribute(self, *words: Any) -> fx.Node:  # Any: as above
        return self.graph.create_node("get_attr", ".".join(map(str, words)), (), {})

    def result(self, node: fx.Node) -> int:
        """Returns the index of a value among the results."""
        return self.results.setdefault(node, len(self.results))


@dataclass(frozen=True, eq=False)
class _StateMap:
    """A linear map of values that depend on a state, with its weight, transposed, and what is added to the product: its
    bias, or its map of the values that depend on no state, or None."""

    inputs: Sequence[fx.Node]
    weight: fx.Node
    term: fx.Node | None


def _arguments(node: fx.Node) -> list[Any]:  # Any: as torch.fx has them
    return [*node.args]


class _ScanDerivation:
    def __init__(self, scan: LoweredLoop, context: PassContext) -> None:
        self._name, self._code, self._context = scan.name, scan.body, context
        if not loop_layout(scan.node).states:
            raise NotParallel("it carries no state")
        if self._code.groups or self._code.loops:
            raise NotParallel("it has loops or maps in it")
        layout = loop_layout(scan.node)
        *nodes, output = self._code.fused.nodes
        arguments = [node for node in nodes if node.op == "placeholder"]
        self._body = [node for node in nodes if node.op != "placeholder"]
        self._states, self._captured = arguments[1 : 1 + layout.states], arguments[1 + layout.states :]
        self._results: Sequence[fx.Node] = output.args[0]
        self._inner = {*self._states}  # what depends on a state
        for node in self._body:
            if any(source in self._inner for source in node.all_input_nodes):
                self._inner.add(node)
        for node in (arguments[0], *self._states):
            self._width(node)
        self._shared, self._head, self._step = _WrittenFunction(), _WrittenFunction(), _WrittenFunction()
        self._factors, self._adjoint, self._gradients = _WrittenFunction(), _WrittenFunction(), _WrittenFunction()
        self._part = arguments[0]
        # What steps take: results of `head` for each position, and of `shared`, which are the same at all.
        self._free: list[fx.Node] = []
        self._fixed: list[fx.Node] = []
        self._in_head = {self._part: self._head.argument(self._part.name)}
        self._is_random = False  # whether `head` draws random numbers in training
        self._in_step: dict[fx.Node, fx.Node] = {}  # the values of steps, by those of the body or of `head`
        self._leaves: dict[fx.Node, fx.Node] = {}  # these results, by the values of the body
        self._maps: dict[fx.Node, _StateMap] = {}
        self._modules: dict[str, type[nn.Module]] = {}
        self._starts: dict[fx.Node, Any] = {}  # Any: a static, which is a number, of a block that takes a part
        self._terms: dict[fx.Node, _Terms] = {}  # the gradients of values of the body, and of results of `head`
        self._products: dict[fx.Node, tuple[fx.Node, fx.Node]] = {}  # the factors of the gradients of weights
        self._returned: list[fx.Node] = []  # the gradients of the states before a step
        self._fixed_factors: set[fx.Node] = set()  # those that are the same at all positions

    def write(self) -> tuple[runtime.ScanGradient, tuple[Code, ...]]:
        inner = [node for node in self._body if node in self._inner]
        roles = {node: self._role(node) for node in inner}
        for node in inner:
            if roles[node] == "affine":
                self._maps[node] = self._linear(node, roles)
        # A concatenation that maps alone read is not computed.
        inner = [node for node in inner if roles[node] != "joined" or not self._maps.keys() >= node.users.keys()]
        read = [source for node in inner if node not in self._maps for source in node.all_input_nodes]
        for node in (*read, *self._results):
            if node not in self._inner:
                self._leaves[node] = self._leaf(node)
        self._write_step(inner)
        self._write_adjoint(inner, roles)
        return self._compiled()

    # The body

    def _width(self, node: fx.Node) -> int:
        """Returns the number of features of a vector."""
        kind = self._code.types.get(node.name)
        size = None if kind is None or kind.name != "vec" or kind.feature is None else kind.feature.constant
        if size is None:
            raise NotParallel(f"{quoted(node, self._code)} is no vector")
        return size

    def _role(self, node: fx.Node) -> str:
        """Returns what a value that depends on a state is."""
        if "split_with_sizes" in (node.target, getattr(node.args[0], "target", None)):
            return "cut"
        self._width(node)
        kind, instance = role(node, self._code, self._context)
        sources = node.all_input_nodes
        if kind == "arithmetic":
            is_known = all(self._width(source) == self._width(node) for source in sources)
        elif kind in ("elementwise", "positive", "affine", "joined", "part"):
            is_known = is_per_sample(node, None, self._code, self._context.instances)
            is_known &= kind not in ("elementwise", "positive") or len({self._width(source) for source in sources}) == 1
        else:
            is_known = False
        if not is_known:
            raise NotParallel(f"{quoted(node, self._code)} depends on a state")
        if instance is not None and kind == "part":
            self._starts[node] = instance.statics["start"]
        elif instance is not None and kind != "joined":
            self._modules[str(node.target)] = self._context.classes[instance.path]
        return kind

    # What depends on no state

    def _leaf(self, node: fx.Node) -> fx.Node:
        """Returns a value that depends on no state, as a result of `head` or of `shared`."""
        self._width(node)
        is_fixed = node in self._captured
        leaf = self._shared.take(node, node.name) if is_fixed else self._for_positions(node)
        leaves = self._fixed if is_fixed else self._free
        if leaf not in leaves:
            leaves.append(leaf)
        return leaf

    def _for_positions(self, node: fx.Node) -> fx.Node:
        """Returns a value that depends on no state, in `head`."""
        if node not in self._in_head:
            head = self._head
            if node in self._captured:
                self._width(node)
                value = head.take(self._shared.take(node, node.name), node.name)
                self._in_head[node] = head.call(runtime.repeated, value, self._in_head[self._part])
                return self._in_head[node]
            if node.op == "call_module" and not is_per_sample(node, None, self._code, self._context.instances):
                raise NotParallel(f"the position of {quoted(node, self._code)} cannot be any other")
            _, instance = role(node, self._code, self._context)
            self._is_random |= instance is not None and "training" in instance.caveats
            for source in node.all_input_nodes:
                self._for_positions(source)
            self._in_head[node] = head.graph.node_copy(node, self._in_head.__getitem__)
        return self._in_head[node]

    def _linear(self, node: fx.Node, roles: Mapping[fx.Node, str]) -> _StateMap:
        (source,), head, shared = _arguments(node), self._head, self._shared
        parts = _arguments(source) if roles.get(source) == "joined" else [source]
        columns = [shared.attribute(node.target, "weight")]
        if len(parts) > 1:
            cut = shared.call(torch.split, *columns, [self._width(part) for part in parts], 1)
            columns = [shared.call(operator.getitem, cut, index) for index in range(len(parts))]
        inner = [index for index, part in enumerate(parts) if part in self._inner]
        free = [index for index, part in enumerate(parts) if part not in self._inner]
        _, instance = role(node, self._code, self._context)
        has_bias = instance is not None and instance.statics.get("bias") is not False
        term = shared.attribute(node.target, "bias") if has_bias else None
        if free:
            inputs = self._joined(head, [self._for_positions(parts[index]) for index in free])
            weights = [head.take(self._joined(shared, [columns[index] for index in free]), f"{node.name}_weight")]
            weights += [] if term is None else [head.take(term, f"{node.name}_bias")]
            term = head.call(linear, inputs, *weights, name=f"{node.name}_of_inputs")
            self._free.append(term)
        elif term is not None:
            self._fixed.append(term)
        columns = [columns[index] for index in inner]
        weight = shared.call(runtime.transposed, self._joined(shared, columns), name=f"{node.name}_weight")
        self._fixed.append(weight)
        return _StateMap([parts[index] for index in inner], weight, term)

    def _joined(self, function: _WrittenFunction, values: Sequence[fx.Node]) -> fx.Node:
        return values[0] if len(values) == 1 else function.call(torch.cat, [*values], -1)

    # The step

    def _write_step(self, inner: Sequence[fx.Node]) -> None:
        step, own = self._step, self._in_step
        own.update((leaf, step.argument(leaf.name)) for leaf in (*self._free, *self._fixed))
        own.update((node, own[leaf]) for node, leaf in self._leaves.items())
        own.update((state, step.argument(state.name)) for state in self._states)
        for node in inner:
            if node not in self._maps:
                own[node] = step.graph.node_copy(node, own.__getitem__)
                continue
            linear_map = self._maps[node]
            inputs = self._joined(step, [own[source] for source in linear_map.inputs])
            factors = inputs, own[linear_map.weight]
            if linear_map.term is None:
                own[node] = step.call(torch.mm, *factors, name=node.name)
            else:
                own[node] = step.call(torch.addmm, own[linear_map.term], *factors, name=node.name)

    # The backward pass

    def _write_adjoint(self, inner: Sequence[fx.Node], roles: Mapping[fx.Node, str]) -> None:
        count = len(self._states)
        names = [*(state.name for state in self._states), *("emitted" for _ in self._results[count:])]
        taken = [self._adjoint.argument(f"{name}_gradient") for name in names]
        for node, gradient in zip(self._results, taken, strict=True):
            self._add(node, gradient, 1.0)
        for node in reversed(inner):
            if roles[node] == "cut":
                self._add_cut(node)
            elif node in self._terms:
                self._add_sources(node, roles[node])
        for state, gradient in zip(self._states, taken, strict=False):
            own = self._sum(state) if state in self._terms else self._adjoint.call(torch.zeros_like, gradient)
            self._returned.append(own)

    def _add(self, node: Any, base: fx.Node, factor: _Factor) -> None:  # Any: an argument in torch.fx
        """Adds a product to the gradient of a value of the body or of `head`; a number has none."""
        if isinstance(node, fx.Node):
            terms = self._terms.setdefault(self._leaves.get(node, node), {})
            terms[base] = self._combined(operator.add, terms[base], factor) if base in terms else factor

    def _add_sources(self, node: fx.Node, kind: str) -> None:
        """Adds the gradient of a value to those of what it is computed from."""
        if node.target in (operator.add, operator.sub, operator.neg):
            if len(node.all_input_nodes) > 1:
                self._single(node)
            for index, source in enumerate(node.args):
                sign = -1.0 if node.target is operator.neg or (index and node.target is operator.sub) else 1.0
                for base, factor in self._terms[node].items():
                    self._add(source, base, self._product(factor, sign))
            return
        if kind in ("affine", "joined", "part"):
            self._add_moved(node, kind)
            return
        base, factor = self._single(node)
        for source, slope in zip(node.args, self._slopes(node), strict=True):
            self._add(source, base, self._product(factor, slope))

    def _slopes(self, node: fx.Node) -> list[_Factor]:
        """Returns the derivatives of a value, number by number, by its arguments."""
        value, call = self._value, self._factors.call
        if node.target is operator.mul:
            first, second = node.args
            return [value(second), value(first)]
        if node.target is operator.truediv:
            if not node.args[1]:
                raise NotParallel("it divides by 0")
            of_first = self._combined(operator.truediv, 1.0, value(node.args[1]))
            return [of_first, self._product(self._product(value(node), of_first), -1.0)]
        module = self._factors.attribute(node.target)
        if len(node.args) == 1 and hasattr(self._modules[str(node.target)], "derivative"):
            return [self._factors.graph.create_node("call_method", "derivative", (module, value(node)), {})]
        slopes = call(runtime.derivatives, module, *map(value, node.args))
        return [call(operator.getitem, slopes, index) for index in range(len(node.args))]

    def _add_moved(self, node: fx.Node, kind: str) -> None:
        gradient, call = self._sum(node), self._adjoint.call
        if kind == "affine":
            own = self._maps[node]
            values = self._joined(self._factors, [self._factor_of(source) for source in own.inputs])
            self._products[own.weight] = values, gradient
            self._add(own.term, gradient, 1.0)
            weight = self._factors.call(runtime.transposed, self._factor_of(own.weight))
            self._fixed_factors.add(weight)
            self._add_parts(call(torch.mm, gradient, self._in_loop(weight)), own.inputs)
        elif kind == "joined":
            self._add_parts(gradient, _arguments(node))
        else:
            (source,) = _arguments(node)
            start = self._starts[node]
            self._add(source, call(pad, gradient, (start, self._width(source) - start - self._width(node))), 1.0)

    def _add_parts(self, gradient: fx.Node, sources: Sequence[fx.Node]) -> None:
        """Adds the gradient of a concatenation to those of its parts."""
        if len(sources) == 1:
            self._add(sources[0], gradient, 1.0)
            return
        widths = [self._width(source) for source in sources]
        parts = self._adjoint.graph.create_node("call_method", "split_with_sizes", (gradient, widths, -1), {})
        for index, source in enumerate(sources):
            self._add(source, self._adjoint.call(operator.getitem, parts, index), 1.0)

    def _add_cut(self, node: fx.Node) -> None:
        """Adds the gradients of the parts of a value to its own."""
        if node.target is operator.getitem:
            return
        parts = {user.args[1]: self._sum(user) for user in node.users if user in self._terms}
        if parts:
            source, widths, _ = _arguments(node)
            like = next(iter(parts.values()))
            all_parts = [
                parts[index] if index in parts else self._adjoint.call(runtime.zeros, like, width)
                for index, width in enumerate(widths)
            ]
            self._add(source, self._joined(self._adjoint, all_parts), 1.0)

    def _single(self, node: fx.Node) -> tuple[fx.Node, _Factor]:
        """Returns the gradient of a value as one product."""
        terms = self._terms[node]
        return next(iter(terms.items())) if len(terms) == 1 else (self._sum(node), 1.0)

    def _sum(self, node: fx.Node) -> fx.Node:
        """Returns the gradient of a value in `adjoint`."""
        call, total = self._adjoint.call, None
        # Terms without a factor come first, as sums with a product are one operation.
        for base, factor in sorted(self._terms[node].items(), key=lambda term: term[1] != 1.0):
            of_loop = factor if isinstance(factor, float) else self._in_loop(factor)
            if total is None:
                total = base if factor == 1.0 else call(operator.mul, base, of_loop)
            elif isinstance(factor, float):
                total = call(operator.add, total, base if factor == 1.0 else call(operator.mul, base, factor))
            else:
                total = call(torch.addcmul, total, base, of_loop)
        assert total is not None
        self._terms[node] = {total: 1.0}
        return total

    # Factors

    def _value(self, source: Any) -> _Factor:  # Any: an argument in torch.fx
        return self._factor_of(source) if isinstance(source, fx.Node) else float(source)

    def _factor_of(self, node: fx.Node) -> fx.Node:
        """Returns a value of the body or of `head` in `factors`."""
        leaf = self._leaves.get(node, node)
        taken = self._factors.take(leaf if leaf in (*self._free, *self._fixed) else self._in_step[leaf], node.name)
        if leaf in self._fixed:
            self._fixed_factors.add(taken)
        return taken

    def _product(self, first: _Factor, second: _Factor) -> _Factor:
        for one, other in ((first, second), (second, first)):
            if one == 1.0:
                return other
        return self._combined(operator.mul, first, second)

    def _combined(self, function: Callable[[Any, Any], Any], first: _Factor, second: _Factor) -> _Factor:
        if isinstance(first, float) and isinstance(second, float):
            return float(function(first, second))
        combined = self._factors.call(function, first, second)
        if all(isinstance(each, float) or each in self._fixed_factors for each in (first, second)):
            self._fixed_factors.add(combined)
        return combined

    def _in_loop(self, factor: fx.Node) -> fx.Node:
        self._factors.result(factor)
        return self._adjoint.take(factor, factor.name)

    def _after_loop(self, value: fx.Node) -> fx.Node:
        """Returns a value of `adjoint` or of `factors`, of all positions, in `gradients`."""
        if value.graph is self._factors.graph:
            self._factors.result(value)
        return self._gradients.take(value, value.name)

    # The gradients of what steps take

    def _gradient(self, leaf: fx.Node) -> fx.Node | None:
        after = self._gradients
        if leaf in self._products:
            inputs, gradient = map(self._after_loop, self._products[leaf])
            return after.call(runtime.product, inputs, gradient, name=f"{leaf.name}_gradient")
        total: fx.Node | None = None
        for base, factor in self._terms.get(leaf, {}).items():
            term = self._after_loop(base)
            if factor != 1.0:
                of_all = factor if isinstance(factor, float) else self._after_loop(factor)
                term = after.call(operator.mul, term, of_all)
            total = term if total is None else after.call(operator.add, total, term)
        if total is not None and leaf in self._fixed:
            total = after.call(runtime.summed, total, self._after_loop(self._factor_of(leaf)))
        return total

    def _compiled(self) -> tuple[runtime.ScanGradient, tuple[Code, ...]]:
        leaves = (*self._free, *self._fixed)
        self._gradients.graph.output(tuple(map(self._gradient, leaves)))
        bases = [value for value in self._gradients.taken if value.graph is self._adjoint.graph]
        self._adjoint.graph.output((*self._returned, *bases))
        factors = [*self._factors.results]
        self._factors.graph.output(tuple(factors))
        saved = [value for value in self._factors.taken if value not in leaves]
        self._step.graph.output((*(self._in_step[node] for node in self._results), *saved))
        self._head.graph.output(tuple(self._free))
        others = [value for value in self._head.taken if value not in self._fixed]
        shared = [*self._fixed, *others]
        self._shared.graph.output(tuple(shared))

        functions = {
            "shared": self._shared,
            "head": self._head,
            "step": self._step,
            "factors": self._factors,
            "adjoint": self._adjoint,
            "gradients": self._gradients,
        }
        codes = {
            name: compile_graph(
                f"{self._name}_{name}", f"{self._code.title}_{name}", function.graph, self._code.nodes, {}, (), (), None
            )
            for name, function in functions.items()
        }
        lstm = LstmBody(self._code, self._context, self._part, self._states, self._results, self._width).form(
            self._name
        )
        if lstm is not None:
            codes["weights"] = lstm[1]
        places = {value: index for index, value in enumerate((*self._free, *self._fixed, *saved))}
        of_loop = [*factors, *bases]
        gradient = runtime.ScanGradient(
            {name: code.function for name, code in codes.items()},
            captured=tuple(self._captured.index(value) for value in self._shared.taken),
            of_shared=tuple(shared.index(value) for value in self._head.taken),
            fixed=len(self._fixed),
            sources=tuple(places[value] for value in self._factors.taken),
            looped=tuple((factors.index(value), value in self._fixed_factors) for value in self._adjoint.taken),
            summed=tuple(of_loop.index(value) for value in self._gradients.taken),
            modules=self._modules,
            head_modules=tuple(str(node.target) for node in self._head.graph.nodes if node.op == "call_module"),
            random=self._is_random,
            states=len(self._states),
            emits=len(self._results) > len(self._states),
            lstm=None if lstm is None else lstm[0],
        )
        return gradient, tuple(codes.values())
