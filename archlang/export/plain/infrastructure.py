"""Replaces archlang's infrastructure in the sources of blocks by plain torch.

Fast kernels become torch's own operations, and what only serves several stacked models, caches, joined products or the
type checker is removed: what remains is the form that torch.compile traces."""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable, Mapping

from archlang.export.plain.sources import (
    Definition,
    Import,
    Name,
    NotPlainError,
    arguments_of,
    global_names,
    is_available,
    read_module,
    resolve,
)  # fmt: skip

_F = Import("torch.nn.functional", "", "F")
_NN = Import("torch", "nn", "nn")
_TENSOR = Import("torch", "Tensor", "Tensor")

_RUNTIME = "archlang.backend.runtime"
_PRODUCTS = Name(f"{_RUNTIME}.joined_linear", "Products")
_NO_PRODUCTS = Name(f"{_RUNTIME}.joined_linear", "NO_PRODUCTS")


def target_of(node: ast.AST) -> Name | Import | None:
    """Returns what a global name of a plain definition means; None for a builtin, and for everything else."""
    target: Name | Import | None = getattr(node, "target", None) if isinstance(node, ast.Name) else None
    return target


def constant(value: object) -> ast.Constant:
    """Returns an expression for a constant."""
    assert value is None or isinstance(value, str | bool | int | float), value
    return ast.Constant(value)


def imported(target: Import, attribute: str = "") -> ast.expr:
    """Returns an expression for an import, or for an attribute of it."""
    name = ast.Name(target.alias, ast.Load())
    name.target = target  # type: ignore[attr-defined]
    return ast.Attribute(name, attribute, ast.Load()) if attribute else name


def _first_applied(call: ast.Call) -> ast.expr:
    return ast.Call(call.args[0], call.args[1:], call.keywords)


def _mapped(call: ast.Call) -> ast.expr:
    linear, _, x, *mask = call.args  # the products are removed
    if mask:
        real_only = ast.Name("real_only", ast.Load())
        real_only.target = Name(f"{_RUNTIME}.padded_division", "real_only")  # type: ignore[attr-defined]
        x = ast.Call(real_only, [x, *mask], [])
    return ast.Call(linear, [x], [])


_CALLS: Mapping[Name, Callable[[ast.Call], ast.expr]] = {
    Name(f"{_RUNTIME}.joined_linear", "mapped"): _mapped,
    Name(f"{_RUNTIME}.call_cache", "cached_in_call"): lambda call: ast.Call(call.args[1], [], []),
    Name(f"{_RUNTIME}.stacking", "in_one_batch"): _first_applied,
    Name(f"{_RUNTIME}.stacking", "model_by_model"): _first_applied,
    Name(f"{_RUNTIME}.stacking", "in_any_model"): lambda call: call.args[0],
    Name(f"{_RUNTIME}.stacking", "is_stacked"): lambda _: ast.Constant(False),
    Name(f"{_RUNTIME}.graph_loops", "is_exporting"): lambda _: ast.Constant(False),
    Name("archlang.kernels.dropout", "is_drawn_here"): lambda _: ast.Constant(False),
    Name("archlang.kernels.processor", "has_kernel"): lambda _: ast.Constant(False),
    Name("archlang.kernels.processor", "is_large_on_cpu"): lambda _: ast.Constant(False),
}
_NAMES: Mapping[Name, Callable[[], ast.expr]] = {
    Name("archlang.kernels.dropout", "dropout"): lambda: imported(_F, "dropout"),
    Name("archlang.kernels.softmax_attention", "scaled_dot_product_attention"): lambda: imported(
        _F, "scaled_dot_product_attention"
    ),
    Name(f"{_RUNTIME}.halting", "HaltingBlock"): lambda: imported(_NN, "Module"),
}


def plain_definition(name: Name) -> Definition:
    """Returns a copy of a definition in plain torch, whose global names have their meaning as the attribute `target`.

    Raises:
        NotPlainError: its source is not available."""
    definition = copy.deepcopy(read_module(name.module).definitions[name.name])
    for node in global_names(definition):
        node.target = resolve(name.module, node.id)  # type: ignore[attr-defined]
    plain = _Plain().visit(definition)
    assert isinstance(plain, Definition)
    return plain


def require_plain(definition: ast.AST) -> None:
    """Checks that a definition needs no other package than torch.

    Raises:
        NotPlainError: it does."""
    for node in ast.walk(definition):
        target = target_of(node)
        if isinstance(target, Import) and not is_available(target.module):
            raise NotPlainError(f"it needs {target.module}, and a plain file needs only torch")
        if isinstance(node, ast.Import | ast.ImportFrom):
            raise NotPlainError("it has an import in a function")


class _Plain(ast.NodeTransformer):
    def __init__(self) -> None:
        self._products: set[str] = set()
        self._depth = 0

    # Definitions

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        removed = [
            argument for argument in arguments_of(node.args) if target_of_annotation(argument.annotation) == _PRODUCTS
        ]
        for argument in removed:
            remove_parameter(node, argument.arg)
        if node.args.kwarg is not None and node.args.kwarg.arg == "_":  # masks that the block does not read
            node.args.kwarg = None
        outer, self._products = self._products, self._products | {argument.arg for argument in removed}
        for argument in arguments_of(node.args):
            if argument.annotation is not None:
                argument.shape = _shapes(argument.annotation)  # type: ignore[attr-defined]
        if node.returns is not None:
            node.returned_shape = _shapes(node.returns)  # type: ignore[attr-defined]
        self._depth += 1
        self.generic_visit(node)
        self._depth -= 1
        self._products = outer
        return node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST | None:
        self.generic_visit(node)
        if not self._depth:
            return node
        if node.value is None:
            return None
        return ast.copy_location(ast.Assign([node.target], node.value), node)

    def visit_Assert(self, node: ast.Assert) -> ast.AST | None:
        match node.test:
            case ast.Call(func=ast.Name(id="isinstance")):
                return None
            case ast.Compare(ops=[ast.IsNot()], comparators=[ast.Constant(value=None)]):
                return None
        return self.generic_visit(node)

    # Expressions

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        target = target_of(node.value)
        if isinstance(target, Import) and target.module == "jaxtyping":
            return imported(_TENSOR)
        return self.generic_visit(node)

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        self.generic_visit(node)
        if isinstance(node.op, ast.BitOr) and ast.dump(node.left) == ast.dump(node.right):
            return node.left  # a union of shapes
        target = target_of(node.right)
        if (
            isinstance(node.op, ast.BitOr)
            and isinstance(target, Name)
            and target.module.startswith(f"{_RUNTIME}.scans")
        ):
            return node.left  # the form of an exported graph
        return node

    def visit_Name(self, node: ast.Name) -> ast.AST:
        target = target_of(node)
        return _NAMES[target]() if isinstance(target, Name) and target in _NAMES else node

    def visit_Call(self, node: ast.Call) -> ast.AST:
        node.args = [argument for argument in node.args if not self._is_products(argument)]
        node.keywords = [keyword for keyword in node.keywords if not self._is_products(keyword.value)]
        target = target_of(node.func)
        if isinstance(target, Name) and target in _CALLS:
            return self.visit(_CALLS[target](node))  # type: ignore[no-any-return]  # torch's operations
        if ast.unparse(node.func) == "torch.compiler.is_compiling":
            return ast.Constant(True)
        return self.generic_visit(node)

    def _is_products(self, node: ast.expr) -> bool:
        if target_of(node) == _NO_PRODUCTS:
            return True
        return isinstance(node, ast.Name) and node.id in self._products


def target_of_annotation(annotation: ast.expr | None) -> Name | Import | None:
    return None if annotation is None else target_of(annotation)


def remove_parameter(function: ast.FunctionDef, name: str) -> None:
    """Removes a parameter, with its default."""
    arguments = function.args
    for index, argument in enumerate(arguments.kwonlyargs):
        if argument.arg == name:
            del arguments.kwonlyargs[index], arguments.kw_defaults[index]
            return
    for index, argument in enumerate(arguments.args):
        if argument.arg == name:
            default = index - (len(arguments.args) - len(arguments.defaults))
            if default >= 0:
                del arguments.defaults[default]
            del arguments.args[index]
            return


def _shapes(annotation: ast.expr) -> str:
    """The shapes in an annotation, as in `[b n d]`."""
    shapes = [
        node.slice.elts[1].value.strip()
        for node in ast.walk(annotation)
        if isinstance(node, ast.Subscript)
        and isinstance(node.slice, ast.Tuple)
        and len(node.slice.elts) == 2
        and isinstance(node.slice.elts[1], ast.Constant)
        and isinstance(node.slice.elts[1].value, str)
    ]
    return ", ".join(f"[{shape}]" for shape in dict.fromkeys(shapes))
