"""The definitions that a plain file copies: the blocks of a model and what they use, in plain torch.

Their code stays as it is written, except for archlang's infrastructure: fast kernels become torch's own operations, and
what only serves several stacked models, caches, joined products or the type checker is removed. What remains is the
form that torch.compile traces."""

import ast
import copy
import textwrap
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from typing import NamedTuple

from archlang.export.plain.sources import (
    Definition,
    Import,
    NotPlainError,
    QualifiedName,
    arguments_of,
    global_names,
    is_available,
    read_module,
    resolve,
)  # fmt: skip
from archlang.export.plain.text import WIDTH, comments_of

_RUNTIME = "archlang.backend.runtime"
_ELEMENTWISE = "archlang.backend.kernels.elementwise"
# The types and the defaults of arguments that are removed.
_REMOVED = (QualifiedName(f"{_RUNTIME}.joined_linear", "Products"), QualifiedName(_ELEMENTWISE, "Reuse"))
_DEFAULTS = (QualifiedName(f"{_RUNTIME}.joined_linear", "NO_PRODUCTS"), QualifiedName(_ELEMENTWISE, "NO_REUSE"))


def target_of(node: ast.AST | None) -> QualifiedName | Import | None:
    """Returns what a global name of a plain definition means; None for a builtin, and for everything else."""
    target: QualifiedName | Import | None = getattr(node, "target", None) if isinstance(node, ast.Name) else None
    return target


def _global(target: QualifiedName | Import, name: str) -> ast.Name:
    node = ast.Name(name, ast.Load())
    node.target = target  # type: ignore[attr-defined]
    return node


def _first_applied(call: ast.Call) -> ast.expr:
    return ast.Call(call.args[0], call.args[1:], call.keywords)


def _mapped(call: ast.Call) -> ast.expr:
    linear, _, x, *mask = call.args  # the products are removed
    if mask:
        x = ast.Call(_global(QualifiedName(f"{_RUNTIME}.block", "real_only"), "real_only"), [x, *mask], [])
    return ast.Call(linear, [x], [])


# What calls and names of the infrastructure become.
_CALLS: Mapping[QualifiedName, Callable[[ast.Call], ast.expr]] = {
    QualifiedName(f"{_RUNTIME}.joined_linear", "mapped"): _mapped,
    QualifiedName(f"{_RUNTIME}.call_cache", "cached_in_call"): lambda call: ast.Call(call.args[1], [], []),
    QualifiedName(f"{_RUNTIME}.stacking", "in_one_batch"): _first_applied,
    QualifiedName(f"{_RUNTIME}.stacking", "model_by_model"): _first_applied,
    QualifiedName(f"{_RUNTIME}.stacking", "in_any_model"): lambda call: call.args[0],
    QualifiedName(f"{_RUNTIME}.stacking", "is_stacked"): lambda _: ast.Constant(False),
    QualifiedName(f"{_RUNTIME}.graph_loops", "is_exporting"): lambda _: ast.Constant(False),
    QualifiedName(f"{_RUNTIME}.stacking", "is_transformed"): lambda _: ast.Constant(False),
    QualifiedName(f"{_RUNTIME}.stacking", "is_plain"): lambda _: ast.Constant(False),
    QualifiedName("archlang.backend.kernels.dropout", "is_drawn_here"): lambda _: ast.Constant(False),
    QualifiedName(_ELEMENTWISE, "linear"): lambda call: ast.Call(call.args[1], [call.args[0], ast.Constant(None)], []),
    QualifiedName(_ELEMENTWISE, "scaled"): lambda call: ast.BinOp(call.args[0], ast.Mult(), call.args[1]),
    QualifiedName(f"{_RUNTIME}.stacking", "is_large_on_cpu"): lambda _: ast.Constant(False),
}
_FUNCTIONAL = Import("torch.nn.functional", "", "F")
_TORCH = Import("torch", "", "torch")
_NAMES: Mapping[QualifiedName, tuple[Import, str]] = {
    QualifiedName("archlang.backend.kernels.dropout", "dropout"): (_FUNCTIONAL, "dropout"),
    QualifiedName("archlang.backend.kernels.softmax_attention", "scaled_dot_product_attention"):
        (_FUNCTIONAL, "scaled_dot_product_attention"),
    QualifiedName(_ELEMENTWISE, "exp"): (_TORCH, "exp"),
    QualifiedName(_ELEMENTWISE, "tanh"): (_TORCH, "tanh"),
    QualifiedName(_ELEMENTWISE, "sigmoid"): (_TORCH, "sigmoid"),
    QualifiedName(_ELEMENTWISE, "softplus"): (_FUNCTIONAL, "softplus"),
    QualifiedName(f"{_RUNTIME}.halting", "HaltingBlock"): (Import("torch", "nn", "nn"), "Module"),
}  # fmt: skip


class _LivePart(NamedTuple):
    """A definition without the members that nothing reads, the attributes that its code reads, and what its names
    mean."""

    definition: Definition
    attributes: frozenset[str]
    targets: tuple[QualifiedName | Import, ...]


class Collection:
    """The definitions that the roots reach, by their names, without the methods that nothing calls."""

    def __init__(self, roots: Iterable[QualifiedName]) -> None:
        """Raises:
        NotPlainError: a definition needs another package, or its source is not available."""
        self.roots = list(dict.fromkeys(roots))
        names, attributes = {*self.roots}, {"forward", "start", "advance"}
        size = 0
        while size != len(names) + len(attributes):
            size = len(names) + len(attributes)
            self._parts = {name: _part(name, _members(name) & attributes) for name in sorted(names)}
            for part in self._parts.values():
                attributes |= part.attributes
                names.update(target for target in part.targets if isinstance(target, QualifiedName))
        # Copies, whose names a file may change.
        self.definitions = {name: copy.deepcopy(part.definition) for name, part in self._parts.items()}

    def in_order(self) -> list[QualifiedName]:
        """Returns the names, each after those that its definition uses."""
        order: dict[QualifiedName, None] = {}
        started: set[QualifiedName] = set()

        def add(name: QualifiedName) -> None:
            if name not in started:
                started.add(name)
                for used in self._parts[name].targets:
                    if isinstance(used, QualifiedName):
                        add(used)
                order[name] = None

        for root in self.roots:
            add(root)
        return list(order)

    def imports(self) -> set[Import]:
        """Returns the imports of all definitions."""
        return {target for part in self._parts.values() for target in part.targets if isinstance(target, Import)}


# The plain definitions and their parts are kept for the next model: most models have the same blocks.


@cache
def _members(name: QualifiedName) -> frozenset[str]:
    """The members of a class that may be left out."""
    definition = _plain_definition(name)
    return frozenset(map(_member, definition.body)) - {""} if isinstance(definition, ast.ClassDef) else frozenset()


def _member(statement: ast.stmt) -> str:
    match statement:
        case ast.FunctionDef(name=own) if not own.startswith("__"):
            return own
        case ast.Assign(targets=[ast.Name(id=own)]) | ast.AnnAssign(target=ast.Name(id=own)):
            return own
    return ""


@cache
def _part(name: QualifiedName, live: frozenset[str]) -> _LivePart:
    """A definition with these of its members."""
    definition = _plain_definition(name)
    if isinstance(definition, ast.ClassDef):
        definition = copy.copy(definition)
        is_dataclass = any("dataclass" in ast.unparse(decorator) for decorator in definition.decorator_list)
        definition.body = [
            statement
            for statement in definition.body
            if _member(statement) in {"", *live} or (is_dataclass and not isinstance(statement, ast.FunctionDef))
        ] or [ast.Pass()]
    _require_plain(definition)
    attributes = frozenset(node.attr for node in ast.walk(definition) if isinstance(node, ast.Attribute))
    targets = (target_of(node) for node in global_names(definition))
    return _LivePart(definition, attributes, tuple(dict.fromkeys(target for target in targets if target is not None)))


@cache
def _plain_definition(name: QualifiedName) -> Definition:
    """A definition in plain torch, whose global names have their meaning as the attribute `target`. It is shared: copy
    it before changing it."""
    definition = copy.deepcopy(read_module(name.module).definitions[name.name])
    for node in global_names(definition):
        node.target = resolve(name.module, node.id)  # type: ignore[attr-defined]
    plain = _Plain().visit(definition)
    assert isinstance(plain, Definition)
    return plain


def _require_plain(definition: ast.AST) -> None:
    for node in ast.walk(definition):
        target = target_of(node)
        if isinstance(target, Import) and not is_available(target.module):
            raise NotPlainError(f"it needs {target.module}, and a plain file needs only torch")
        if isinstance(node, ast.Import | ast.ImportFrom):
            raise NotPlainError("it has an import in a function")


class _Plain(ast.NodeTransformer):
    """Replaces the infrastructure, and keeps of each branch that it decides the one that is taken."""

    def __init__(self) -> None:
        self._removed: set[str] = set()

    # Statements

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        self.generic_visit(node)
        body: list[ast.stmt] = []
        for statement in node.body:
            if body and isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant):
                # Text below an attribute: `ast.unparse` prints it in one line.
                text = str(statement.value.value)
                lines = textwrap.wrap(text, WIDTH - 8, initial_indent="# ", subsequent_indent="# ")
                body[-1].comments = [*comments_of(body[-1]), *lines]  # type: ignore[attr-defined]
            else:
                body.append(statement)
        node.body = body
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        arguments = node.args
        outer, self._removed = self._removed, set(self._removed)
        for group, defaults in ((arguments.args, arguments.defaults), (arguments.kwonlyargs, arguments.kw_defaults)):
            for index, argument in reversed([*enumerate(group)]):
                if target_of(argument.annotation) in _REMOVED:
                    self._removed.add(argument.arg)
                    place = index - (len(group) - len(defaults))
                    del group[index], defaults[max(0, place) : place + 1]
        shapes = [f"{own.arg} {_shapes(own.annotation)}" for own in arguments_of(arguments) if _shapes(own.annotation)]
        returned = f" -> {_shapes(node.returns)}" if _shapes(node.returns) else ""
        self.generic_visit(node)
        self._removed = outer
        ends = (index for index, statement in enumerate(node.body, 1) if isinstance(statement, ast.Return | ast.Raise))
        del node.body[next(ends, len(node.body)) :]
        statements = node.body if ast.get_docstring(node) is None else node.body[1:]
        if (shapes or returned) and statements:
            first = statements[0]
            first.comments = [f"# {', '.join(shapes)}{returned}".replace("#  ", "# "), *comments_of(first)]  # type: ignore[attr-defined]
        return node

    def visit_If(self, node: ast.If) -> ast.AST | list[ast.stmt]:
        node.test = self.visit(node.test)
        if not isinstance(node.test, ast.Constant):
            return self.generic_visit(node)
        branch = [self.visit(statement) for statement in (node.body if node.test.value else node.orelse)]
        statements = [part for item in branch for part in (item if isinstance(item, list) else [item])]
        if statements and node.test.value:
            statements[0].comments = [*comments_of(node), *comments_of(statements[0])]
        return statements

    # Expressions

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.AST:
        self.generic_visit(node)
        decisive = isinstance(node.op, ast.Or)
        values: list[ast.expr] = []
        for value in node.values:
            if not (isinstance(value, ast.Constant) and isinstance(value.value, bool)):
                values.append(value)
            elif value.value is decisive and not any(isinstance(n, ast.Call) for v in values for n in ast.walk(v)):
                return value
        if not values:
            return ast.Constant(not decisive)
        return values[0] if len(values) == 1 else ast.BoolOp(node.op, values)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.AST:
        self.generic_visit(node)
        if isinstance(node.op, ast.Not) and isinstance(node.operand, ast.Constant):
            return ast.Constant(not node.operand.value)
        return node

    def visit_IfExp(self, node: ast.IfExp) -> ast.AST:
        test = self.visit(node.test)
        if isinstance(test, ast.Constant):
            return self.visit(node.body if test.value else node.orelse)  # type: ignore[no-any-return]  # torch's code
        return self.generic_visit(node)

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        target = target_of(node.value)
        if isinstance(target, Import) and target.module == "jaxtyping":
            return _global(Import("torch", "Tensor", "Tensor"), "Tensor")
        return self.generic_visit(node)

    def visit_Name(self, node: ast.Name) -> ast.AST:
        target = target_of(node)
        if not isinstance(target, QualifiedName) or target not in _NAMES:
            return node
        package, attribute = _NAMES[target]
        return ast.Attribute(_global(package, package.alias), attribute, ast.Load())

    def visit_Call(self, node: ast.Call) -> ast.AST:
        node.args = [argument for argument in node.args if not self._is_removed(argument)]
        node.keywords = [
            keyword for keyword in node.keywords if keyword.arg != "reuse" and not self._is_removed(keyword.value)
        ]
        target = target_of(node.func)
        if isinstance(target, QualifiedName) and target in _CALLS:
            return self.visit(_CALLS[target](node))  # type: ignore[no-any-return]  # torch's operations
        if ast.unparse(node.func) == "torch.compiler.is_compiling":
            return ast.Constant(True)
        return self.generic_visit(node)

    def _is_removed(self, node: ast.expr) -> bool:
        return target_of(node) in _DEFAULTS or (isinstance(node, ast.Name) and node.id in self._removed)


def _shapes(annotation: ast.expr | None) -> str:
    """The shapes in an annotation, as in `[b n d]`."""
    shapes = [
        f"[{shape.value.strip()}]"
        for node in (ast.walk(annotation) if annotation is not None else ())
        for shape in [
            node.slice.elts[1] if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Tuple) else None
        ]
        if isinstance(shape, ast.Constant) and isinstance(shape.value, str)
    ]
    return ", ".join(dict.fromkeys(shapes))
