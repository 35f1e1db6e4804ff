"""The modules that a graph's instances stand for, in a tree by their paths."""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping

import networkx as nx
from torch import nn

from archlang.backend import mistakes
from archlang.backend.lower.names import OUTER, module_path
from archlang.backend.runtime.loops import Group, Step
from archlang.graph.graph import Graph, Instance
from archlang.graph.operations import Stack
from archlang.graph.scope import scope_of
from archlang.types.statics import InstanceOf, Symbol, instances_in

_LIBRARY = "archlang.blocks"


def plant(root: nn.Module, graph: Graph, *, plugins: bool) -> None:
    """Puts the module of every instance into `root`, those of a stack once for each step."""
    stacks = _Stacks(root, graph)
    made: dict[str, nn.Module] = {}
    for path in _in_order(graph):
        instance, scope = graph.instances[path], scope_of(path)
        block = _class_of(instance, plugins)
        for steps, home in stacks.modules(scope):
            made[_at(path, steps)] = module = _construct(block, instance, steps, made)
            _place(home, path[len(scope) :].removeprefix("."), module)
    for path in stacks.counts:
        stacks.modules(f"{path}.*")


# Stacks


class _Stacks:
    """The modules that run each scope: the root, and every step of every stack. They are made when first asked for, so
    that a model's weights stand in its order."""

    def __init__(self, root: nn.Module, graph: Graph) -> None:
        stacks = (node.operation for node in graph.region.walk() if isinstance(node.operation, Stack))
        self.counts = {stack.path: stack.count for stack in stacks}
        self._modules: dict[str, list[tuple[tuple[int, ...], nn.Module]]] = {"": [((), root)]}

    def modules(self, scope: str) -> list[tuple[tuple[int, ...], nn.Module]]:
        """Every module that runs a scope, with the step that it is of each stack around it."""
        if scope not in self._modules:
            path = scope.removesuffix(".*")
            outer = scope_of(path)
            self._modules[scope] = [
                ((*steps, index), step)
                for steps, home in self.modules(outer)
                for index, step in enumerate(self._make(home, path[len(outer) :].removeprefix("."), self.counts[path]))
            ]
        return self._modules[scope]

    def _make(self, home: nn.Module, place: str, count: int) -> nn.ModuleList:
        steps = nn.ModuleList(Step() for _ in range(count))
        for step in steps:
            step.__dict__[OUTER] = home  # not registered: a step sees what stands around its stack, but owns none of it
        _place(home, place, steps)
        return steps


def _at(path: str, steps: tuple[int, ...]) -> str:
    """A path with its stars replaced; steps of stacks that it does not lie in are left over."""
    for step in steps:
        path = path.replace("*", str(step), 1)
    return path


def _place(home: nn.Module, path: str, module: nn.Module) -> None:
    *groups, name = module_path(path).split(".")
    for group in groups:
        if group not in home._modules:
            home.add_module(group, Group())
        home = home.get_submodule(group)
    home.add_module(name, module)


# Instances


def _in_order(graph: Graph) -> Iterator[str]:
    """Instances after those that they hold as statics, else in the graph's order."""
    holders: nx.DiGraph[str] = nx.DiGraph()
    holders.add_nodes_from(graph.instances)
    for path, instance in graph.instances.items():
        holders.add_edges_from((other, path) for other in instances_in(instance.statics.values()))
    places = {path: index for index, path in enumerate(graph.instances)}
    return iter(nx.lexicographical_topological_sort(holders, key=places.__getitem__))


def _class_of(instance: Instance, plugins: bool) -> type[nn.Module]:
    """The class that an instance names. What is no part of archlang's blocks is not imported unless it may be."""
    module_name, _, class_name = instance.python.partition(":")
    if not plugins and module_name != _LIBRARY and not module_name.startswith(f"{_LIBRARY}."):
        raise mistakes.foreign_python(instance)
    try:
        module = importlib.import_module(module_name)
    except (ImportError, ValueError) as error:  # ValueError: a module without a name
        raise mistakes.no_such_class(instance, str(error)) from error
    except Exception as error:  # whatever the module does when it is imported
        raise mistakes.not_imported(instance, module_name, error) from error
    found = getattr(module, class_name, None)
    if found is None:
        raise mistakes.no_such_class(instance, f"{module_name} has no {class_name}")
    if not (isinstance(found, type) and issubclass(found, nn.Module)):
        raise mistakes.no_such_class(instance, "that is no torch module")
    return found


def _construct(
    find: type[nn.Module], instance: Instance, steps: tuple[int, ...], made: Mapping[str, nn.Module]
) -> nn.Module:
    arguments = {name: _python(value, steps, made) for name, value in instance.statics.items()}
    arguments.update((name, size.constant) for name, size in instance.features.items())
    try:
        module = find(**arguments)
    except Exception as error:  # whatever the class does
        raise mistakes.not_constructed(instance, arguments, error) from error
    if "_modules" not in vars(module):
        raise mistakes.not_initialised(instance)
    _disown(module, [made[_at(path, steps)] for path in instances_in(instance.statics.values())])
    return module


def _python(value: object, steps: tuple[int, ...], made: Mapping[str, nn.Module]) -> object:
    """A static as a constructor gets it: a symbol is a string, a list a tuple, an instance its module."""
    match value:
        case Symbol(text=text):
            return text
        case InstanceOf(path=path):
            return made[_at(path, steps)]
        case tuple():
            return tuple(_python(one, steps, made) for one in value)
    return value


def _disown(module: nn.Module, shared: list[nn.Module]) -> None:
    """Makes plain attributes of the instances that a module was given: their weights stand at their own place. (An
    attribute they must be: those in a ModuleList of torch are looked up elsewhere.)"""
    for part in list(module.modules()) if shared else ():
        for name, child in list(part._modules.items()):
            if any(child is one for one in shared):
                del part._modules[name]
                part.__dict__[name] = child
