"""The Python sources of blocks: definitions by module and name, and the definitions that a definition uses."""

import ast
import builtins
import importlib
import inspect
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from typing import NamedTuple

from archlang.export.plain.text import attach_comments

Definition = ast.FunctionDef | ast.ClassDef | ast.Assign | ast.AnnAssign


class QualifiedName(NamedTuple):
    """A definition, by its module and its name there."""

    module: str
    name: str


class Import(NamedTuple):
    """An import of another package: `import module as alias`, or with a name `from module import name as alias`."""

    module: str
    name: str
    alias: str

    @property
    def text(self) -> str:
        own = self.name or self.module
        renamed = "" if own == self.alias else f" as {self.alias}"
        if self.name:
            return f"from {self.module} import {self.name}{renamed}"
        package, _, last = self.module.rpartition(".")
        # As ruff sorts and writes it.
        if package and renamed and last == self.alias:
            return f"from {package} import {last}"
        return f"import {self.module}{renamed}"


class NotPlainError(Exception):
    """Code that cannot be part of a plain file; the message is the reason."""


@dataclass(frozen=True, eq=False)
class ModuleSource:
    """The definitions and the imports at the top of a module, by their names."""

    definitions: dict[str, Definition] = field(default_factory=dict)
    imports: dict[str, Import] = field(default_factory=dict)


@cache
def read_module(name: str) -> ModuleSource:
    """Reads the source of a module. The syntax trees are shared: copy them before changing them.

    Raises:
        NotPlainError: its source is not available."""
    try:
        source = inspect.getsource(importlib.import_module(name))
    except (OSError, TypeError) as error:
        raise NotPlainError(f"the source of {name} is not available") from error
    tree = ast.parse(source)
    attach_comments(tree, source)
    module = ModuleSource()
    for statement in tree.body:
        match statement:
            case ast.FunctionDef(name=own) | ast.ClassDef(name=own):
                module.definitions[own] = statement
            case ast.Assign(targets=[ast.Name(id=own)]) | ast.AnnAssign(target=ast.Name(id=own)):
                module.definitions[own] = statement
            case ast.Import(names=aliases):
                for alias in aliases:
                    module.imports[alias.asname or alias.name] = Import(alias.name, "", alias.asname or alias.name)
            case ast.ImportFrom(module=str(origin), names=aliases, level=0):
                for alias in aliases:
                    own = alias.asname or alias.name
                    module.imports[own] = Import(origin, alias.name, own)
    return module


def resolve(module: str, name: str) -> QualifiedName | Import | None:
    """Returns what a name at the top of a module means; None for a builtin.

    Raises:
        NotPlainError: the module does not define it."""
    source = read_module(module)
    if name in source.definitions:
        return QualifiedName(module, name)
    imported = source.imports.get(name)
    if imported is None:
        if hasattr(builtins, name):
            return None
        raise NotPlainError(f"{module} defines `{name}` in a way that cannot be copied")
    if not imported.name or not is_copied(imported.module):
        return imported
    if imported.name in read_module(imported.module).definitions:
        return QualifiedName(imported.module, imported.name)
    if imported.name in read_module(imported.module).imports:
        return resolve(imported.module, imported.name)
    return imported  # a module of a package


_AVAILABLE = {"torch", *sys.stdlib_module_names}


def is_available(module: str) -> bool:
    """Returns whether a module can be imported where only torch is installed."""
    return module.partition(".")[0] in _AVAILABLE


def is_copied(module: str) -> bool:
    """Returns whether the definitions of a module are copied, and not imported."""
    return not is_available(module) and module.partition(".")[0] != "jaxtyping"


# Names of a definition


def global_names(definition: ast.AST) -> list[ast.Name]:
    """Returns the names in a definition that are not variables of its functions."""
    finder = _GlobalNames()
    finder.visit(definition)
    return finder.names


class _GlobalNames(ast.NodeVisitor):
    def __init__(self) -> None:
        self.names: list[ast.Name] = []
        self._scopes: list[set[str]] = []

    def visit_Name(self, node: ast.Name) -> None:
        if not any(node.id in scope for scope in self._scopes):
            self.names.append(node)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        for outer in (*node.decorator_list, *_defaults(node.args), *_annotations(node)):
            self.visit(outer)
        self._scopes.append(local_names(node))
        for statement in node.body:
            self.visit(statement)
        self._scopes.pop()

    def visit_Lambda(self, node: ast.Lambda) -> None:
        for default in _defaults(node.args):
            self.visit(default)
        self._scopes.append({argument.arg for argument in arguments_of(node.args)})
        self.visit(node.body)
        self._scopes.pop()

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        own = {statement.name for statement in node.body if isinstance(statement, ast.FunctionDef)}
        for outer in (*node.bases, *node.keywords, *node.decorator_list):
            self.visit(outer)
        for statement in node.body:
            if isinstance(statement, ast.Assign | ast.AnnAssign):
                # Its targets are attributes.
                for part in (statement.value, getattr(statement, "annotation", None)):
                    if part is not None and not (isinstance(part, ast.Name) and part.id in own):
                        self.visit(part)
            else:
                self.visit(statement)

    def _visit_comprehension(self, node: ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp) -> None:
        self._scopes.append(
            {name.id for generator in node.generators for name in ast.walk(generator.target)
             if isinstance(name, ast.Name)}
        )  # fmt: skip
        self.generic_visit(node)
        self._scopes.pop()

    visit_ListComp = _visit_comprehension
    visit_SetComp = _visit_comprehension
    visit_GeneratorExp = _visit_comprehension
    visit_DictComp = _visit_comprehension


def arguments_of(arguments: ast.arguments) -> list[ast.arg]:
    """Returns the parameters of a function, with `*args` and `**kwargs`."""
    more = [argument for argument in (arguments.vararg, arguments.kwarg) if argument is not None]
    return [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, *more]


def local_names(function: ast.FunctionDef) -> set[str]:
    """Returns the parameters and the variables of a function."""
    names = {argument.arg for argument in arguments_of(function.args)}
    for node in _own_nodes(function.body):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
        elif isinstance(node, ast.FunctionDef):
            names.add(node.name)
        elif isinstance(node, ast.alias):
            names.add(node.asname or node.name)
    return names


def _own_nodes(statements: list[ast.stmt]) -> Iterator[ast.AST]:
    """Yields the nodes of statements, except those in inner functions."""
    waiting: list[ast.AST] = list(statements)
    while waiting:
        node = waiting.pop()
        yield node
        if not isinstance(node, ast.FunctionDef | ast.Lambda | ast.ListComp | ast.GeneratorExp | ast.DictComp):
            waiting.extend(ast.iter_child_nodes(node))


def _defaults(arguments: ast.arguments) -> list[ast.expr]:
    return [*arguments.defaults, *(default for default in arguments.kw_defaults if default is not None)]


def _annotations(function: ast.FunctionDef) -> Iterator[ast.expr]:
    for argument in arguments_of(function.args):
        if argument.annotation is not None:
            yield argument.annotation
    if function.returns is not None:
        yield function.returns
