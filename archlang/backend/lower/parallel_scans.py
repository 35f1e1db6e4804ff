"""The pass `parallel_scans`: computes all positions of a scan at once, where its states are affine in themselves.

    def scan(self, v, s):                          def scan_parallel(self, positions, v, s):
        gate = self.gate(v)                            gate = self.gate(v)
        s_2 = gate * s + v                             last, before, after = elementwise(positions, s, gate, v)
        return (s_2, self.norm(s_2))                   return (last, self.norm(after))

A state is affine if arithmetic alone leads from it to its next value, with factors and terms that depend on no state:

    s_i = a_i s_{i-1} + c_i                                                    a vector, or a matrix as a whole
    s_i = max(a_i + s_{i-1}, c_i)                                              the same, written with relu; or the less
    S_i = diag(decay_i) S_{i-1} + b_i (S_{i-1}ᵀ a_i)ᵀ + key_i value_iᵀ         a matrix, read by products with vectors

or several updates of the last form one after the other, as in DeltaProduct.
The second form never holds the matrices of all positions. Which factors are columns of a matrix follows from the blocks
that made them: the class of a block has `acts_as`, "elementwise" if it computes each number by itself, "positive",
"columns", "repeated" or "sum" if it does what `relu`, `head_columns`, `repeat_features` or `sum` does."""

import operator
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import fx

from archlang.backend.lower.affine_forms import ONE, ZERO, Algebra, Coefficient, Matrix, NotParallel, Read, Vector
from archlang.backend.lower.chunk_batching import is_per_sample
from archlang.backend.lower.code import Code, LoweredLoop, PassContext, compile_graph
from archlang.backend.runtime import parallel_scans as runtime
from archlang.graph.graph import Instance, Node, loop_layout, takes_positions
from archlang.graph.operations import Call, Scan
from archlang.types import Type

# The groups of columns whose width does not matter.
_MOST_NARROW = 8
_ARITHMETIC = (operator.add, operator.sub, operator.mul, operator.truediv, operator.neg)


def parallel_scan(scan: LoweredLoop, context: PassContext) -> None:
    """Gives a scan a body for all positions, if it has one, or the reason why it has none."""
    try:
        require_plain(scan)
        try:
            graph, origins = _ScanBody(scan, context, True).write()
        except NotParallel as reason:
            graph, origins = _body_with_all_matrices(scan, context, reason)
    except NotParallel as reason:
        scan.obstacle = str(reason)
        return
    code, name = scan.body, f"{scan.name}_parallel"
    scan.parallel = compile_graph(name, f"{code.title}_parallel", graph, origins, code.types, (), (), context)


def _body_with_all_matrices(
    scan: LoweredLoop, context: PassContext, reason: NotParallel
) -> tuple[fx.Graph, Mapping[str, Node]]:
    try:
        return _ScanBody(scan, context, False).write()
    # The reason to report is that of the first try; this was its fallback.
    except NotParallel:
        raise reason from None


def require_plain(scan: LoweredLoop) -> None:
    """Raises `NotParallel` for a scan that does more than to carry states from position to position."""
    operation = scan.node.operation
    assert isinstance(operation, Scan)
    kinds = [value.type.name for value in scan.node.regions[0].inputs]
    reasons = {
        "it takes chunks": not takes_positions(scan.node),
        "it takes the positions before each": operation.before is not None,
        "its gradient is truncated": operation.truncated is not None,
        "it has losses or loops that halt": bool(scan.body.extras),
        "it reads what is no tensor": not {*kinds} <= {"vec", "seq", "number"},
        "the rows of a state are not of a fixed number": any(
            not all(d.constant is not None for d in kind.lengths) for kind in _states(scan)
        ),
    }
    for reason, holds in reasons.items():
        if holds:
            raise NotParallel(reason)


def _states(scan: LoweredLoop) -> Sequence[Type]:
    layout = loop_layout(scan.node)
    return [value.type for value in scan.node.regions[0].inputs[layout.inner : layout.inner + layout.states]]


def role(node: fx.Node, code: Code, context: PassContext) -> tuple[str, Instance | None]:
    """Returns what a call is: `acts_as` of its block, "arithmetic", or ""."""
    if node.op == "call_function" and node.target in _ARITHMETIC:
        return "arithmetic", None
    origin = code.nodes.get(node.name)
    if node.op != "call_module" or origin is None or not isinstance(origin.operation, Call):
        return "", None
    instance = context.instances[origin.operation.instance]
    masks = [value for value in node.kwargs.values() if value is not None]
    return ("" if masks else getattr(context.classes.get(instance.path), "acts_as", "")), instance


def quoted(node: Any, code: Code) -> str:  # Any: an argument in torch.fx
    """Returns the text of the program that computes a value."""
    origin = code.nodes.get(node.name) if isinstance(node, fx.Node) else None
    if origin is None or origin.span is None:
        return f"`{node}`"
    return f"`{origin.span.text.split(chr(10), 1)[0]}`"


class _ScanBody:
    """The body of a scan for all positions, while it is written. With `by_products`, matrices are not held for each."""

    def __init__(self, scan: LoweredLoop, context: PassContext, by_products: bool) -> None:
        self._code: Code = scan.body
        self._context, self._instances = context, context.instances
        self._by_products = by_products
        self._loops = {loop.name: loop for loop in scan.body.loops}
        layout, self._kinds = loop_layout(scan.node), _states(scan)
        placeholders = [node for node in self._code.graph.nodes if node.op == "placeholder"]
        self._states = placeholders[layout.inner : layout.inner + layout.states]
        output = next(node for node in self._code.graph.nodes if node.op == "output")
        results: tuple[fx.Node, ...] = output.args[0]
        self._next, self._emitted = results[: layout.states], results[layout.states :]
        self._graph = fx.Graph()
        self._origins: dict[str, Node] = {}
        taken = max((len(node.name) for node in placeholders if node.name.startswith("positions")), default=0)
        self._positions = self._graph.placeholder("positions".ljust(taken + 1, "_") if taken else "positions")
        arguments = {node: self._graph.node_copy(node) for node in placeholders}
        self._part = arguments[placeholders[0]]
        self._initial = [arguments[state] for state in self._states]
        self._copies = {placeholders[0]: self._part}
        self._captured = {node: arguments[node] for node in placeholders[layout.inner + layout.states :]}
        self._open = {*self._states}  # the states that are no values of each position
        self._known: dict[fx.Node, bool] = {}
        self._matrices: dict[int, Sequence[Matrix]] = {}  # the updates of each
        self._reads: dict[tuple[int, bool, Coefficient], fx.Node | None] = {}
        self._last: dict[int, fx.Node] = {}
        self._algebra = Algebra(self._graph)
        self._coefficients: dict[fx.Node, Coefficient] = {}
        self._forms: dict[fx.Node, Matrix | Vector] = {}

    def write(self) -> tuple[fx.Graph, Mapping[str, Node]]:
        """Returns the graph of the body for all positions, and the nodes that its values compute.

        Raises:
            NotParallel: a state is not affine, or something reads a matrix otherwise than by products."""
        # A state may read another one of the same position, which must be solved before: retry until none advances.
        waiting = list(range(len(self._states)))
        while waiting:
            for index in waiting:
                try:
                    self._solve(index)
                except NotParallel as reason:
                    failure = reason
                else:
                    waiting.remove(index)
                    break
            else:
                raise failure
        for node in self._emitted:
            self._collect(node)
        for index in self._matrices:
            self._write_matrix(index)
        emitted = [self._copy(node) for node in self._emitted]
        self._graph.output((*(self._last[index] for index in range(len(self._states))), *emitted))
        return self._graph, self._origins

    # The graph

    def _is_known(self, node: fx.Node) -> bool:
        """Whether a value depends on no state, besides those of which the values at each position are known."""
        if node not in self._known:
            self._known[node] = node not in self._open and all(map(self._is_known, node.all_input_nodes))
        return self._known[node]

    def _copy(self, node: fx.Node) -> fx.Node:
        if node in self._captured and node not in self._copies:
            self._copies[node] = self._algebra.call(
                runtime.repeated, self._positions, self._captured[node], name=node.name
            )
        if node in self._copies:
            return self._copies[node]
        form = None if self._is_known(node) else self._form_or_none(node)
        if isinstance(form, Vector):
            return self._sum(node, form)
        origin = self._code.nodes.get(node.name)
        if node.op not in ("call_module", "call_function", "call_method"):
            raise NotParallel(f"{self._quoted(node)} is read as a whole")
        if node.op == "call_module" and not is_per_sample(
            node, self._loops.get(str(node.target)), self._code, self._instances
        ):
            raise NotParallel(f"the position of {self._quoted(node)} cannot be any other")
        for source in node.all_input_nodes:
            self._copy(source)
        self._copies[node] = copy = self._graph.node_copy(node, self._copies.__getitem__)
        if origin is not None:
            self._origins[copy.name] = origin
        return copy

    def _sum(self, node: fx.Node, form: Vector) -> fx.Node:
        """Adds what a vector consists of."""
        width = self._width(node)
        total: fx.Node | None = None
        for read in form.reads:
            value = self._reads[read.state, read.is_before, read.query]
            assert value is not None, "reads are noted before they are copied"
            if read.factor != ONE:
                value = self._algebra.call(operator.mul, self._features(read.factor, width), value)
            total = value if total is None else self._algebra.call(operator.add, total, value)
        if form.term != ZERO:
            term = self._features(form.term, width)
            total = term if total is None else self._algebra.call(operator.add, total, term)
        assert total is not None
        self._copies[node] = total
        return total

    def _features(self, coefficient: Coefficient, width: int) -> fx.Node:
        return self._algebra.call(runtime.to_features, coefficient.value, self._part, width)

    def _quoted(self, node: Any) -> str:  # Any: an argument in torch.fx
        return quoted(_as_vector(node) if isinstance(node, fx.Node) else node, self._code)

    # Types

    def _kind(self, node: fx.Node) -> Type | None:
        return self._code.types.get(node.name)

    def _width(self, node: fx.Node) -> int:
        node = _as_vector(node)
        kind = self._kind(node)
        size = None if kind is None or kind.feature is None else kind.feature.constant
        if size is None:
            raise NotParallel(f"the size of {self._quoted(node)} is unknown")
        return size

    def _row_count(self, node: fx.Node) -> int:
        kind = self._kind(_as_vector(node))
        lengths = () if kind is None else kind.lengths
        if any(length.constant is None for length in lengths):
            raise NotParallel(f"the length of {self._quoted(node)} is unknown")
        return lengths[0].constant or 0 if lengths else 1

    def _role(self, node: fx.Node) -> tuple[str, Instance | None]:
        return role(node, self._code, self._context)

    # States

    def _solve(self, index: int) -> None:
        """Finds the form of a state's next value."""
        state, result = self._states[index], self._next[index]
        if self._by_products and self._kinds[index].name == "seq":
            updates = self._updates(index)
            if updates is not None:
                self._matrices[index] = updates
                return
        function, *terms = self._extremum(result, state) or (runtime.elementwise, *self._factor_and_term(result, state))
        solved = self._algebra.call(function, self._positions, self._initial[index], *terms, name="states")
        self._last[index] = self._algebra.call(operator.getitem, solved, 0, name=f"{state.name}_last")
        self._copies[state] = self._algebra.call(operator.getitem, solved, 1, name=f"{state.name}_before")
        self._copies.setdefault(result, self._algebra.call(operator.getitem, solved, 2, name=f"{state.name}_after"))
        self._open.remove(state)
        self._known.clear()
        self._forms.clear()

    def _updates(self, index: int) -> Sequence[Matrix] | None:
        """Returns the updates of a matrix in one position, one after the other; None if one has more than one key."""
        state, result = self._states[index], self._next[index]
        updates: list[Matrix] = []
        nodes = [node for node in self._code.graph.nodes if self._kind(node) == self._kind(state) or node is result]
        nodes = nodes[: nodes.index(result) + 1]
        try:
            while (before := self._states[index]) is not result:
                # As far as one update leads.
                for node in reversed(nodes[nodes.index(before) + 1 :] if before in nodes else nodes):
                    if _leads_by(node, before, result) and (update := self._as_update(node, index)) is not None:
                        break
                else:
                    return None
                updates.append(update)
                self._states[index] = node
                self._open.add(node)
                self._forms.clear()
            return updates or [Matrix(index, ONE)]
        finally:
            self._open -= {*nodes} - {*self._states[:index], state, *self._states[index + 1 :]}
            self._states[index] = state
            self._forms.clear()

    def _as_update(self, node: fx.Node, index: int) -> Matrix | None:
        form = None if self._is_known(node) else self._form_or_none(node)
        # The kernel takes a b with one number as a multiple of the key.
        most = 0 if self._row_count(self._states[index]) == 1 else 1
        fits = isinstance(form, Matrix) and len(form.lows) <= most and form.is_of(index)
        return form if fits and isinstance(form, Matrix) else None

    def _factor_and_term(self, node: Any, state: fx.Node) -> tuple[Any, Any]:  # Any: a value in torch.fx or a number
        if not isinstance(node, fx.Node):
            return 0.0, node
        if node is state:
            return 1.0, 0.0
        if self._is_known(node):
            return 0.0, self._copy(node)
        if (
            node.op != "call_function"
            or node.target not in _ARITHMETIC
            or self._row_count(node) != self._row_count(state)
        ):
            raise NotParallel(f"{self._quoted(node)} has no parallel form in {self._quoted(state)}")
        parts = [self._factor_and_term(argument, state) for argument in node.args]
        if node.target in (operator.mul, operator.truediv):
            return self._scaled(node, state, *parts)
        if node.target is operator.neg:
            return self._combined(node.target, *[(part,) for part in parts[0]])
        return self._combined(node.target, *zip(*parts, strict=True))

    def _extremum(self, node: Any, state: fx.Node) -> tuple[Any, ...] | None:  # Any: a value in torch.fx or a number
        """Returns the function and the arguments that compute a value x + relu(y - x) or x - relu(x - y) or the like,
        where one of x and y is the state and a term, and the other depends on no state."""
        branches = self._branches(node, state)
        if branches is None:
            return None
        (without_relu, with_relu), is_least = branches
        match without_relu[0], with_relu[0]:
            case 1.0, 0.0:
                return runtime.extremum, without_relu[1], with_relu[1], False, is_least
            case 0.0, 1.0:
                return runtime.extremum, with_relu[1], without_relu[1], True, is_least
        return None

    def _branches(self, node: Any, state: fx.Node) -> tuple[list[tuple[Any, Any]], bool] | None:  # Any: as above
        """Returns the affine values of which a value is the greater, or the less if it says so, the one without a relu
        first; None for any other value."""
        if not isinstance(node, fx.Node) or self._is_known(node):
            return None
        if self._role(node)[0] == "positive":
            return [(0.0, 0.0), self._factor_and_term(node.args[0], state)], False
        if node.op != "call_function" or node.target not in (operator.add, operator.sub, operator.neg):
            return None
        arguments: list[Any] = [*node.args]
        for index, argument in enumerate(arguments):
            inner = self._branches(argument, state)
            if inner is None:
                continue
            branches, is_least = inner
            parts = [branches if place == index else [self._factor_and_term(part, state)] * 2
                     for place, part in enumerate(arguments)]  # fmt: skip
            joined = [self._combined(node.target, *zip(*pair, strict=True)) for pair in zip(*parts, strict=True)]
            return joined, is_least != (node.target is operator.neg or (node.target is operator.sub and index == 1))
        return None

    def _combined(self, function: Any, factors: Sequence[Any], terms: Sequence[Any]) -> tuple[Any, Any]:
        return self._algebra.computed(function, *factors), self._algebra.computed(function, *terms)

    def _scaled(self, node: fx.Node, state: fx.Node, left: tuple[Any, Any], right: tuple[Any, Any]) -> tuple[Any, Any]:
        """Returns a product or a quotient, of which one side depends on no state."""
        if left[0] == 0.0 and node.target is operator.mul:
            left, right = right, left
        if right == (0.0, 0) and node.target is operator.mul:
            raise NotParallel("it multiplies by 0")  # as in `Algebra.combination`
        if right[0] != 0.0:
            raise NotParallel(f"{self._quoted(node)} has no parallel form in {self._quoted(state)}")
        return self._combined(node.target, (left[0], right[1]), (left[1], right[1]))

    # Coefficients

    def _coefficient(self, node: Any) -> Coefficient:  # Any: as above
        """Returns a known value as a coefficient, with as few groups of columns as its blocks tell."""
        if not isinstance(node, fx.Node):
            return Coefficient(float(node))
        if node not in self._coefficients:
            self._coefficients[node] = self._new_coefficient(node)
        return self._coefficients[node]

    def _new_coefficient(self, node: fx.Node) -> Coefficient:
        node = _as_vector(node)
        kind = self._kind(node)
        if kind is not None and kind.name == "number":
            return Coefficient(self._copy(node))
        role, instance = self._role(node)
        if role == "columns":
            assert instance is not None
            heads = instance.statics["heads"]
            assert isinstance(heads, int)
            value = self._algebra.call(runtime.in_columns, self._copy(node.all_input_nodes[0]), heads)
            return Coefficient(value, heads, self._row_count(node))
        width, rows = self._width(node), self._row_count(node)
        if role == "repeated":
            return self._coefficient(node.args[0])
        if role in ("arithmetic", "elementwise", "positive"):
            parts = [self._coefficient(argument) for argument in node.args]
            if role == "arithmetic" and max(part.heads for part in parts) < width:
                return self._algebra.combination(node.target, *parts)
            part = parts[0]
            if role != "arithmetic" and part.heads < width and isinstance(part.value, fx.Node):
                value = self._graph.create_node("call_module", node.target, (part.value,), {}, node.name)
                return Coefficient(value, part.heads, part.rows)
        if rows == 1 and (kind is None or kind.name == "vec"):
            return Coefficient(self._algebra.call(torch.unsqueeze, self._copy(node), -1), width)
        return Coefficient(self._algebra.call(torch.transpose, self._copy(node), 1, 2), width, rows)

    # Matrices and vectors

    def _affine_form(self, node: Any) -> Matrix | Vector:  # Any: as above
        """Returns a value as a matrix or a vector, in which known ones are terms."""
        if not isinstance(node, fx.Node):
            return Vector(term=self._coefficient(node))
        if node not in self._forms:
            self._forms[node] = self._new_form(node)
        return self._forms[node]

    def _place(self, state: fx.Node) -> int:
        if state not in self._states:
            raise NotParallel(f"an update of {self._quoted(state)} reads it before another update")
        return self._states.index(state)

    def _form_or_none(self, node: fx.Node) -> Matrix | Vector | None:
        try:
            return self._affine_form(node)
        except NotParallel:
            return None

    def _new_form(self, node: fx.Node) -> Matrix | Vector:
        node = _as_vector(node)
        if node in self._open:
            return Matrix(self._place(node), ONE)
        kind = self._kind(node)
        if self._is_known(node):
            return (
                self._known_matrix(node)
                if kind is not None and kind.name == "seq"
                else Vector(term=self._coefficient(node))
            )
        role, _ = self._role(node)
        if role == "sum":
            return self._sum_of_rows(node)
        if role != "arithmetic":
            raise NotParallel(f"{self._quoted(node)} has no parallel form")
        if node.target is operator.neg:
            return self._algebra.product(self._affine_form(node.args[0]), Coefficient(-1.0))
        left, right = node.args
        if node.target in (operator.add, operator.sub):
            added = self._affine_form(right)
            if node.target is operator.sub:
                added = self._algebra.product(added, Coefficient(-1.0))
            return self._algebra.added(self._affine_form(left), added)
        if node.target is operator.truediv:
            self._require_known(node, right)
            factor = self._algebra.combination(operator.truediv, ONE, self._coefficient(right))
            return self._algebra.product(self._affine_form(left), factor)
        # Multiplication commutes: put the known factor on the left.
        if isinstance(left, fx.Node) and not self._is_known(left):
            left, right = right, left
        self._require_known(node, left)
        form = self._affine_form(right)
        if isinstance(form, Vector) and self._is_matrix(left):
            return self._algebra.outer(self._coefficient(left), form)
        return self._algebra.product(form, self._coefficient(left))

    def _require_known(self, node: fx.Node, part: Any) -> None:  # Any: as above
        if isinstance(part, fx.Node) and not self._is_known(part):
            raise NotParallel(f"{self._quoted(node)} has no parallel form")

    def _is_matrix(self, node: Any) -> bool:  # Any: as above
        kind = self._kind(_as_vector(node)) if isinstance(node, fx.Node) else None
        return kind is not None and kind.name == "seq"

    def _known_matrix(self, node: fx.Node) -> Matrix:
        """Returns a known matrix: a product of a column and a vector stays one."""
        role, _ = self._role(node)
        if role == "arithmetic" and node.target is operator.mul:
            rows, columns = sorted(node.args, key=self._is_matrix)
            if isinstance(columns, fx.Node) and not self._is_matrix(rows):
                return self._algebra.scaled_matrix(self._known_matrix(columns), self._coefficient(rows))
        return Matrix(outers=((self._coefficient(node), ONE),))

    def _sum_of_rows(self, node: fx.Node) -> Vector:
        (source,) = node.args
        return Vector((self._sum_of_product_rows(source),))

    def _sum_of_product_rows(self, node: Any) -> Read:  # Any: as above
        if isinstance(node, fx.Node) and node in self._open:
            return Read(self._place(node), True, ONE)
        if node in self._next and self._next.index(node) in self._matrices:
            return Read(self._next.index(node), False, ONE)
        if isinstance(node, fx.Node) and node.target is operator.mul:
            left, right = node.args
            if isinstance(left, fx.Node) and not self._is_known(left):
                left, right = right, left
            self._require_known(node, left)
            read, factor = self._sum_of_product_rows(right), self._coefficient(left)
            if factor.rows == 1:
                return replace(read, factor=self._algebra.times(factor, read.factor))
            return replace(read, query=self._algebra.times(factor, read.query))
        raise NotParallel(f"{self._quoted(node)} is no product of a state and what depends on none")

    def _collect(self, node: fx.Node) -> None:
        """Notes what a value needs of the matrices."""
        if self._is_known(node):
            return
        form = self._form_or_none(node)
        if isinstance(form, Vector):
            for read in form.reads:
                self._reads.setdefault((read.state, read.is_before, read.query), None)
            return
        if isinstance(form, Matrix):
            raise NotParallel(f"{self._quoted(node)} is read as a whole")
        for source in node.all_input_nodes:
            self._collect(source)

    def _write_matrix(self, index: int) -> None:
        updates, width = self._matrices[index], self._kinds[index].dims[-1].constant
        queries = [key for key in self._reads if key[0] == index]
        # It takes less time if each column is a multiple of the key.
        is_multiple = all(low.column in [key for key, _ in form.outers] for form in updates for low in form.lows)
        terms = [self._terms(form, is_multiple) for form in updates]
        parts = [part for (*parts, _) in terms for part in parts if part is not None]
        heads = max(1, *(part.heads for part in (*parts, *(query for _, _, query in queries))))
        if width is None or width % heads:
            raise NotParallel(f"its columns have {heads} groups")
        if heads > _MOST_NARROW and width < 4 * heads:  # one position after the other takes less time
            raise NotParallel("nearly every column has a factor of its own")

        def of_heads(part: Coefficient | None) -> fx.Node | float | None:
            return None if part is None else self._algebra.of_heads(part, heads)

        solved = self._algebra.call(
            runtime.matrix,
            self._positions,
            self._initial[index],
            heads,
            tuple(
                (*map(of_heads, parts), None if value is None else self._features(value, width))
                for (*parts, value) in terms
            ),
            is_multiple,
            tuple((is_before, of_heads(query)) for _, is_before, query in queries),
            name="states",
        )
        self._last[index] = self._algebra.call(operator.getitem, solved, 0, name=f"{self._states[index].name}_last")
        for place, query in enumerate(queries, start=1):
            self._reads[query] = self._algebra.call(operator.getitem, solved, place, name="read")

    def _terms(self, form: Matrix, is_multiple: bool) -> tuple[Coefficient | None, ...]:
        """Returns the decay, a, b, the key and the value of an update."""
        key, value = form.outers[0] if form.outers else (None, None)
        if not form.lows:
            return form.scale, None, None, key, value
        (low,) = form.lows
        b = low.factor if is_multiple else self._algebra.times(low.column, low.factor)
        return form.scale, low.a, b, key, value


def _leads_by(node: fx.Node, state: fx.Node, result: fx.Node) -> bool:
    """Whether all that a result has of a state, it has by a value."""
    waiting, seen = [result], {node}
    while waiting:
        if (current := waiting.pop()) is state:
            return False
        if current not in seen:
            seen.add(current)
            waiting += current.all_input_nodes
    return True


def _as_vector(node: fx.Node) -> fx.Node:
    while node.op == "call_function" and node.target is torch.unsqueeze:
        (node,) = node.all_input_nodes
    return node
