"""The constructor of a model's class, which makes its blocks and the steps of its stacks."""

from __future__ import annotations

import ast
import builtins
import keyword
import re
from collections.abc import Collection, Iterator, Mapping
from itertools import count

from archlang.backend.lower.names import module_path
from archlang.export.plain import helpers
from archlang.export.plain.sources import Name
from archlang.graph import operations
from archlang.graph.graph import Graph
from archlang.graph.scope import scope_of
from archlang.types.statics import InstanceOf, Symbol, instances_in

HELPERS = {
    name: Name(value.__module__, name)
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
    return f"{word.lstrip('_') or 'value'}_" if word in RESERVED or word.startswith("__") else word


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
    return _attribute(owner, module_path(path[len(scope) :].removeprefix(".")))


def _attribute(owner: str, path: str) -> ast.expr:
    """The expression of a module in another one; in a class, `self.__norm` would mean another attribute."""
    expression: ast.expr = ast.Name(owner, ast.Load())
    for word in path.split("."):
        if word.startswith("__"):
            modules = ast.Attribute(expression, "_modules", ast.Load())
            expression = ast.Subscript(modules, ast.Constant(word), ast.Load())
        else:
            expression = ast.Attribute(expression, word, ast.Load())
    return expression


# Blocks


def class_of(python: str) -> Name:
    """Returns the definition that `module:Class` names."""
    module, _, name = python.partition(":")
    return Name(module, name)


def constructor(graph: Graph, names: Mapping[Name, str]) -> ast.FunctionDef:
    """Returns the constructor of a graph's class; `names` are those of the classes of its blocks in the file."""
    function = ast.parse("def __init__(self) -> None:\n    super().__init__()").body[0]
    assert isinstance(function, ast.FunctionDef)
    function.body += _Constructor(graph, names).scope("", "self")
    return function


class _Constructor:
    def __init__(self, graph: Graph, names: Mapping[Name, str]) -> None:
        self._graph, self._names = graph, names
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
                    yield _assignment(_attribute(owner, group), ast.parse("nn.Module()", mode="eval").body)
            target = _attribute(owner, ".".join(words))
            if path not in self._counts:
                yield _assignment(target, self._construct(path))
                continue
            steps = f"nn.ModuleList(nn.Module() for _ in range({self._counts[path]}))"
            yield _assignment(target, ast.parse(steps, mode="eval").body)
            step = step_name(path)
            body = list(self.scope(f"{path}.*", step))
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
