"""The class of a model: its constructor, `forward`, and the bodies of its loops as functions, from the lowered code of
its graph."""

import ast
import builtins
import keyword
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from itertools import count
from typing import Any

from archlang.backend.lower.code import Code, LoweredLoop
from archlang.backend.lower.names import OUTER, module_path, relative_path
from archlang.backend.lower.regions import PythonProgram, lower
from archlang.backend.runtime.gradients import differentiated
from archlang.backend.runtime.loops import DEPTH, PONDER
from archlang.export.plain import helpers
from archlang.export.plain.sources import QualifiedName
from archlang.graph import operations
from archlang.graph.graph import Graph, Node, has_halting_positions, loop_layout, scope_of, takes_positions
from archlang.graph.growth import growths
from archlang.types.statics import InstanceOf, Symbol, instances_in

HELPERS = {
    name: QualifiedName(value.__module__, name)
    for name, value in vars(helpers).items()
    if getattr(value, "__module__", "") == helpers.__name__
}
"""the functions of `helpers`, by their names"""
RESERVED = {*keyword.kwlist, *dir(builtins), "_", "self", "torch", "nn", "F", "Tensor", "lengths"}


# Names


def unused_name(preferred: str, taken: Collection[str]) -> str:
    """Returns a Python name that is not taken: the preferred one, with an underscore if Python or the file reserves it,
    and a number from 2 if it is taken."""
    name = allowed_name(re.sub(r"\W", "_", preferred))
    candidates = (f"{name}_{number}" for number in count(2))
    return name if name not in taken else next(candidate for candidate in candidates if candidate not in taken)


def allowed_name(word: str) -> str:
    """Returns a word of a program as a name in Python; a class would rename a parameter with two underscores before."""
    if word not in RESERVED and not word.startswith("__"):
        return word
    stem = word.lstrip("_")
    return f"{stem}_" if stem.isidentifier() else f"value_{stem}"


def step_name(path: str) -> str:
    """Returns the variable that holds a step of a stack."""
    words = [module_path(part).split(".")[-1] for part in path.split(".*")]
    word, around = words[-1], words[:-1].count(words[-1])
    name = word[:-1] if word.endswith("s") and len(word) > 2 else f"{word}_step"
    return f"{allowed_name(name)}_{around + 1}" if around else allowed_name(name)


def attribute_of(path: str) -> ast.expr:
    """Returns the expression of an instance: `self.encoder.norm`, or `layer.norm` in a step of a stack."""
    scope = scope_of(path)
    owner = step_name(scope.removesuffix(".*")) if scope else "self"
    return attribute(owner, module_path(path[len(scope) :].removeprefix(".")))


def attribute(owner: str | ast.expr, path: str) -> ast.expr:
    """Returns the expression of a module in another one; in a class, `self.__norm` would mean another attribute, and a
    number, of a step that has been written out, is none."""
    expression = ast.Name(owner, ast.Load()) if isinstance(owner, str) else owner
    for word in path.split("."):
        if word.startswith("__") or word.isdigit():
            modules = ast.Attribute(expression, "_modules", ast.Load())
            expression = ast.Subscript(modules, ast.Constant(word), ast.Load())
        else:
            expression = ast.Attribute(expression, word, ast.Load())
    return expression


# The constructor


def class_of(python: str) -> QualifiedName:
    """Returns the definition that `module:Class` names."""
    module, _, name = python.partition(":")
    return QualifiedName(module, name)


def constructor(graph: Graph, names: Mapping[QualifiedName, str], has_outer: bool) -> ast.FunctionDef:
    """Returns the constructor of a graph's class; `names` are those of the classes of its blocks in the file. If it
    `has_outer`, each step of a stack has the module around the stack."""
    function = ast.parse("def __init__(self) -> None:\n    super().__init__()").body[0]
    assert isinstance(function, ast.FunctionDef)
    function.body += _Constructor(graph, names, has_outer).scope("", "self")
    return function


class _Constructor:
    def __init__(self, graph: Graph, names: Mapping[QualifiedName, str], has_outer: bool) -> None:
        self._graph, self._names, self._has_outer = graph, names, has_outer
        stacks = (node.operation for node in graph.region.walk() if isinstance(node.operation, operations.OwnWeights))
        self._counts = {stack.path: stack.count for stack in stacks}
        self._groups: set[tuple[str, str]] = set()

    def scope(self, scope: str, owner: str) -> Iterator[ast.stmt]:
        """Yields the statements that make the blocks of a scope, which `owner` holds."""
        for path in self._in_order(scope):
            words = module_path(path[len(scope) :].removeprefix(".")).split(".")
            for group in (".".join(words[:end]) for end in range(1, len(words))):
                if (scope, group) not in self._groups:
                    self._groups.add((scope, group))
                    yield _assignment(attribute(owner, group), ast.parse("nn.Module()", mode="eval").body)
            target = attribute(owner, ".".join(words))
            if path not in self._counts:
                yield _assignment(target, self._construct(path))
                continue
            steps = f"nn.ModuleList(nn.Module() for _ in range({self._counts[path]}))"
            yield _assignment(target, ast.parse(steps, mode="eval").body)
            step = step_name(path)
            body = list(self.scope(f"{path}.*", step))
            if self._has_outer:
                body[:0] = ast.parse(f"{step}.__dict__[{OUTER!r}] = {owner}").body
            if body:
                yield ast.For(ast.Name(step, ast.Store()), target, body, [], lineno=0)

    def _in_order(self, scope: str) -> list[str]:
        """The paths of the instances and stacks of a scope; an instance follows those that it holds."""
        paths = [
            scope + path[len(scope) :].partition(".*.")[0] for path in self._graph.instances if path.startswith(scope)
        ]
        paths += [path for path in self._counts if scope_of(path) == scope]
        order: dict[str, None] = {}

        def add(path: str) -> None:
            instance = self._graph.instances.get(path)
            for held in instances_in(instance.statics.values()) if instance is not None else ():
                if held in paths:
                    add(held)
            order[path] = None

        for path in paths:
            add(path)
        return list(order)

    def _construct(self, path: str) -> ast.expr:
        instance = self._graph.instances[path]
        arguments: dict[str, object] = dict(instance.statics)
        arguments.update((name, size.constant) for name, size in instance.features.items())
        keywords = [ast.keyword(name, _value(value)) for name, value in arguments.items()]
        return ast.Call(ast.Name(self._names[class_of(instance.python)], ast.Load()), [], keywords)


def _assignment(target: ast.expr, value: ast.expr) -> ast.stmt:
    return ast.Assign([target], value, lineno=0)


def _value(value: object) -> ast.expr:
    match value:
        case Symbol(text=text):
            return ast.Constant(text)
        case InstanceOf(path=path):
            return attribute_of(path)
        case tuple():
            return ast.Tuple([_value(item) for item in value], ast.Load())
    assert value is None or isinstance(value, str | bool | int | float), value
    return ast.Constant(value)


# The method `forward`


class Forward:
    """Writes `forward` of a graph without auxiliary losses and products, on which `inline` has run. `bodies` are the
    functions of its loops, and `helpers` those that both call besides blocks."""

    def __init__(self, graph: Graph) -> None:
        self._taken = {*RESERVED, *HELPERS, differentiated.__name__}
        self.helpers: dict[QualifiedName, None] = {}
        self.bodies: list[ast.FunctionDef] = []
        program = lower(graph, {"batch_chunks", "parallel_scans", "rows", "scan_gradients", "slices"})
        self._body_names = {id(loop): _unused_name(loop.name, self._taken) for loop in _loops(program.code)}
        self.function = self._function(program)

    def helper(self, helper: str | Callable[..., Any]) -> ast.Name:
        """The name of a function that the file then contains."""
        name = HELPERS[helper] if isinstance(helper, str) else QualifiedName(helper.__module__, helper.__qualname__)
        self.helpers[name] = None
        return ast.Name(name.name, ast.Load())

    def _function(self, program: PythonProgram) -> ast.FunctionDef:
        taken = {*self._taken}
        keys, fields = program.fields, [_unused_name(field, taken) for field in program.fields]
        with_lengths = [index for index, field in enumerate(program.inputs) if field.type.lengths]
        is_shared = len({program.inputs[index].type.lengths[0] for index in with_lengths}) == 1
        arguments, lines = [*fields], []
        if program.masked and len(fields) > 1:
            source = "lengths or {}"
            if is_shared:
                shared = [keys[index] for index in with_lengths]
                source = f"dict.fromkeys({shared!r}, lengths) if isinstance(lengths, Tensor) else {source}"
            lines.append(f"lengths = {source}")
        for name, indices in zip(_arguments(program.code)[len(fields) :], program.masked, strict=True):
            mask, source = _unused_name(name, taken), "lengths"
            if len(fields) > 1:
                source = f"lengths.get({keys[indices[-1]]!r})"
                for index in reversed(indices[:-1]):
                    source = f"lengths.get({keys[index]!r}, {source})"
            lines.append(f"{mask} = {self.helper('real_positions').id}({fields[indices[0]]}, {source})")
            fill = self.helper("filled_padding").id
            lines += [f"{fields[index]} = {fill}({fields[index]}, {mask})" for index in indices]
            arguments.append(mask)
        typed = ", ".join(f"{name}: Tensor" for name in fields)
        if with_lengths:  # the module takes them even if nothing reads them
            kind = "Tensor" if len(fields) == 1 else "Tensor | dict[str, Tensor]" if is_shared else "dict[str, Tensor]"
            typed += f", lengths: {kind} | None = None"
        (function,) = ast.parse(f"def forward(self, {typed}) -> Tensor:\n    pass").body
        assert isinstance(function, ast.FunctionDef)
        *statements, returned = self._statements(
            program.code, dict(zip(_arguments(program.code), arguments, strict=True)), taken
        )
        assert isinstance(returned, ast.Return)
        if program.code.extras:
            assert isinstance(returned.value, ast.Tuple)
            returned.value, *extras = returned.value.elts
            values = dict(zip(program.code.extras, map(ast.unparse, extras), strict=True))
            statements += ast.parse(f"self.ponder = {values[PONDER]}.mean()").body
            statements += ast.parse(f"self.sample_depth = {values[DEPTH]}.detach()").body
        function.body = [*ast.parse("\n".join(lines)).body, *statements, returned]
        return function

    def _statements(self, code: Code, names: dict[str, str], taken: set[str]) -> list[ast.stmt]:
        """The statements of a region that its results need. `names` are those of its arguments in the file."""
        (function,) = ast.parse(code.source).body
        assert isinstance(function, ast.FunctionDef)
        needed: set[str] = set()
        statements: list[ast.stmt] = []
        for statement in reversed(function.body):
            match statement:
                case ast.Assign(targets=[ast.Name(id=name), *_]) if name not in needed:
                    continue  # also where torch.fx deletes values
            statements.append(statement)
            needed.update(node.id for node in ast.walk(statement) if isinstance(node, ast.Name))
        rewritten = _Rewriting(self, code, names)
        for statement in reversed(statements):
            match statement:
                case ast.Assign(targets=[ast.Name(id=name)]):
                    names[name] = _unused_name(name, taken)
                    statement.beside = _place(code.nodes.get(name))  # type: ignore[attr-defined]
        return [rewritten.visit(statement) for statement in reversed(statements)]

    def loop(self, loop: LoweredLoop, arguments: list[ast.expr], mask: ast.expr) -> ast.expr:
        """The call of a helper that runs a loop. Its results are a tuple, except for those of experts and a scan or a
        counted loop of one result."""
        node, layout, body, extras = loop.node, loop_layout(loop.node), self._body(loop), loop.body.extras
        growing = growths(node)
        ends = layout.outer, layout.outer + layout.states, layout.outer + layout.states + len(growing)
        read, states = arguments[: ends[0]], _list(arguments[ends[0] : ends[1]])
        masks, captured = _list(arguments[ends[1] : ends[2]]), _list(arguments[ends[2] :])
        own, emits = ast.Name("self", ast.Load()), operations.emits(node.operation)
        match node.operation:
            case operations.Repeat(count=count, truncated=truncated, settled=settled):
                owners: ast.expr = ast.BinOp(_list([own]), ast.Mult(), ast.Constant(count))
                detached = 0 if truncated is None else max(0, count - truncated)
                terms = (truncated or count) if settled else 0
                detached = count - 1 if settled else detached
                depth = extras.index(DEPTH) if DEPTH in extras else None
                call = self._call("repeated", body, owners, states, captured, emits, detached, terms, depth)
            case operations.Stack(path=path):
                depth = extras.index(DEPTH) if DEPTH in extras else None
                owners = attribute("self", relative_path(path, loop.scope))
                call = self._call("repeated", body, owners, states, captured, emits, 0, 0, depth)
            case operations.Experts(path=path):
                owners = attribute("self", relative_path(path, loop.scope))
                return self._call("mixed", body, owners, *read, captured, mask)
            case operations.Gradient():
                return self._call(differentiated, body, own, *read, captured, mask)
            case operations.Halting(instance=path, limit=limit, state=state, mixture=mixture):
                block = attribute("self", relative_path(path, loop.scope))
                shapes = [
                    (1 + len(kind.tensor_dims), has_halting_positions(node, index))
                    for index, kind in enumerate(node.types)
                ]
                values = states, captured, mask
                return self._call("halted", body, own, block, *values, limit, state, mixture, shapes, loop.has_depth)
            case operations.Scan(before=before, truncated=truncated):
                by_position, parts = takes_positions(node), read[0]
                if by_position:
                    parts = self._call("positions", parts, mask)
                if before is not None:
                    parts = self._call("with_before", parts, before)
                counts = {index: (growth.each.constant, growth.per_position) for index, growth in growing.items()}
                first = body, own, parts, states, masks, captured
                call = self._call("scanned", *first, emits, by_position, truncated, counts)
        return call if extras or len(node.types) > 1 else ast.Subscript(call, ast.Constant(0), ast.Load())

    def _body(self, loop: LoweredLoop) -> ast.Name:
        """Writes the function of a loop's body, and returns its name."""
        name, taken = self._body_names[id(loop)], {*self._taken}
        names = {argument: _unused_name(argument, taken) for argument in _arguments(loop.body)}
        (function,) = ast.parse(f"def {name}({', '.join(['self', *names.values()])}):\n    pass").body
        assert isinstance(function, ast.FunctionDef)
        function.body = self._statements(loop.body, names, taken)
        if (place := _place(loop.node)) and loop.node.span is not None:
            first = loop.node.span.text.split("\n", 1)[0].strip().removesuffix("{").strip()
            function.body[0].comments = [f"{place}: {first}"]  # type: ignore[attr-defined]
        self.bodies.append(function)
        return ast.Name(name, ast.Load())

    def _call(self, helper: str | Callable[..., Any], *arguments: Any) -> ast.expr:  # Any: expressions and constants
        values = [value if isinstance(value, ast.expr) else _constant(value) for value in arguments]
        return ast.Call(self.helper(helper), values, [])


class _Rewriting(ast.NodeTransformer):
    """Gives values their names in the file, replaces what torch.fx calls, and runs loops by helpers."""

    def __init__(self, forward: Forward, code: Code, names: Mapping[str, str]) -> None:
        self._forward = forward
        self._names = names
        self._globals = code.function.__globals__
        self._loops = {loop.name: loop for loop in code.loops}

    def visit_Name(self, node: ast.Name) -> ast.Name:
        if node.id in self._names:
            return ast.Name(self._names[node.id], node.ctx)
        function: Any = self._globals.get(node.id)  # Any: a function that torch.fx has named
        return self._forward.helper(function) if getattr(function, "__module__", "").startswith("archlang") else node

    def visit_Attribute(self, node: ast.Attribute) -> ast.expr:
        value = self.visit(node.value)
        return attribute(value, node.attr)

    def visit_Call(self, node: ast.Call) -> ast.expr:
        keywords = {keyword.arg: self.visit(keyword.value) for keyword in node.keywords}
        arguments = [self.visit(argument) for argument in node.args]
        match node.func:
            case ast.Attribute(value=ast.Name(id="self"), attr=name) if name in self._loops:
                return self._forward.loop(self._loops[name], arguments, keywords.get("mask", ast.Constant(None)))
        masks = [
            ast.keyword(name, value)
            for name, value in keywords.items()
            if not (isinstance(value, ast.Constant) and value.value is None)
        ]
        return ast.Call(self.visit(node.func), arguments, masks)


def _unused_name(preferred: str, taken: set[str]) -> str:
    name = unused_name(preferred, taken)
    taken.add(name)
    return name


def _loops(code: Code) -> Iterator[LoweredLoop]:
    for loop in code.loops:
        yield loop
        yield from _loops(loop.body)


def _arguments(code: Code) -> list[str]:
    return [node.name for node in code.graph.nodes if node.op == "placeholder"]


def _list(values: Iterable[ast.expr]) -> ast.expr:
    return ast.List(list(values), ast.Load())


def _constant(value: object) -> ast.expr:
    return ast.parse(repr(value), mode="eval").body


def _place(node: Node | None) -> str:
    """The line of the program that a node comes from, as a comment; "" if it is unknown."""
    if node is None or node.span is None or not node.span.source.path.endswith(".arch"):
        return ""
    path = node.span.source.path.replace("\\", "/").rpartition("/")[2]
    return f"# {path}:{node.span.line}"
