"""The constructor of a model's class, which makes its blocks and the steps of its stacks."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from archlang.backend.lower.names import module_path
from archlang.export.plain.expressions import call_of, function_of, parsed_expression, parsed_statement
from archlang.export.plain.infrastructure import constant
from archlang.export.plain.places import allowed_name
from archlang.export.plain.sources import Name
from archlang.graph import operations
from archlang.graph.graph import Graph
from archlang.graph.scope import scope_of
from archlang.types.statics import InstanceOf, Symbol


@dataclass(frozen=True)
class Blocks:
    """The folded classes of the blocks: their names in the file, the parameters of their constructors, and the keyword
    parameters of their `forward`."""

    names: Mapping[Name, str]
    parameters: Mapping[Name, Sequence[str]]
    keywords: Mapping[Name, Sequence[str]]


def class_of(python: str) -> Name:
    """Returns the definition that `module:Class` names."""
    module, _, name = python.partition(":")
    return Name(module, name)


class Constructor:
    """Makes the blocks, and the steps of stacks."""

    def __init__(self, graph: Graph, blocks: Blocks) -> None:
        self._graph = graph
        self._blocks = blocks
        stacks = (node.operation for node in graph.region.walk() if isinstance(node.operation, operations.OwnWeights))
        self._counts = {f"{stack.path}.*": stack.count for stack in stacks}
        self._groups: set[tuple[str, str]] = set()

    def function(self) -> ast.FunctionDef:
        body = [parsed_statement("super().__init__()"), *self._scope("", "self")]
        return function_of("def __init__(self) -> None:", body)

    def _scope(self, scope: str, owner: str) -> Iterator[ast.stmt]:
        """The statements that make the blocks of a scope, which `owner` holds."""
        later = []
        for path in self._in_order(scope):
            words = module_path(path[len(scope) :].removeprefix(".")).split(".")
            for count in range(1, len(words)):
                group = ".".join(words[:count])
                if (scope, group) not in self._groups:
                    self._groups.add((scope, group))
                    yield parsed_statement(f"{_attribute(owner, group)} = nn.Module()")
            target = _attribute(owner, ".".join(words))
            if f"{path}.*" in self._counts:
                step = step_name(path)
                yield parsed_statement(
                    f"{target} = nn.ModuleList(nn.Module() for _ in range({self._counts[f'{path}.*']}))"
                )
                body = list(self._scope(f"{path}.*", step))
                if body:
                    later.append(ast.For(ast.Name(step, ast.Store()), parsed_expression(target), body, [], lineno=0))
                    yield later.pop()
            else:
                yield parsed_statement(f"{target} = {ast.unparse(self._construct(path))}")

    def _in_order(self, scope: str) -> list[str]:
        """The paths of the instances and stacks of a scope; an instance follows those that it holds."""
        paths: dict[str, None] = {}
        for path in self._graph.instances:
            if path.startswith(scope) or not scope:
                rest = path[len(scope) :]
                head = rest.partition(".*.")[0] if ".*." in rest else rest
                paths[scope + head] = None
        for stack in self._counts:
            if scope_of(stack.removesuffix(".*")) == scope:
                paths.setdefault(stack.removesuffix(".*"))
        order: dict[str, None] = {}

        def add(path: str) -> None:
            instance = self._graph.instances.get(path)
            for value in instance.statics.values() if instance is not None else ():
                for held in _instances(value):
                    if held in paths:
                        add(held)
            order[path] = None

        for path in paths:
            add(path)
        return list(order)

    def _construct(self, path: str) -> ast.expr:
        instance = self._graph.instances[path]
        definition = class_of(instance.python)
        arguments = construction(self._graph, path)
        names = self._blocks.parameters[definition]
        keywords = {name: _value(arguments[name]) for name in names if name in arguments}
        return call_of(ast.Name(self._blocks.names[definition], ast.Load()), [], keywords)


def construction(graph: Graph, path: str) -> dict[str, object]:
    """Returns the arguments of the constructor of an instance."""
    instance = graph.instances[path]
    arguments: dict[str, object] = dict(instance.statics)
    arguments.update((name, size.constant) for name, size in instance.features.items())
    return {name: value.text if isinstance(value, Symbol) else value for name, value in arguments.items()}


def step_name(path: str) -> str:
    """Returns the variable that holds a step of a stack."""
    words = [module_path(part).split(".")[-1] for part in path.split(".*")]
    word, around = words[-1], words[:-1].count(words[-1])
    name = word[:-1] if word.endswith("s") and len(word) > 2 else f"{word}_step"
    return f"{allowed_name(name)}_{around + 1}" if around else allowed_name(name)


def attribute_of(path: str) -> str:
    """The expression of an instance: `self.encoder.norm`, or `layer.norm` in a step of a stack."""
    scope = scope_of(path)
    owner = step_name(scope.removesuffix(".*")) if scope else "self"
    return _attribute(owner, module_path(path[len(scope) :].removeprefix(".")))


def _attribute(owner: str, path: str) -> str:
    """The expression of a module in another one; in a class, `self.__norm` would mean another attribute."""
    return owner + "".join(f'._modules["{word}"]' if word.startswith("__") else f".{word}" for word in path.split("."))


def _instances(value: object) -> Iterator[str]:
    if isinstance(value, InstanceOf):
        yield value.path
    elif isinstance(value, tuple):
        for item in value:
            yield from _instances(item)


def _value(value: object) -> ast.expr:
    match value:
        case Symbol(text=text):
            return ast.Constant(text)
        case InstanceOf(path=path):
            return parsed_expression(attribute_of(path))
        case tuple():
            return ast.Tuple([_value(item) for item in value], ast.Load())
    return constant(value)
