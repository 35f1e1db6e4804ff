"""Constructs the modules of a graph's instances, in a tree by their paths."""

import importlib
from collections.abc import Iterator, Mapping

import networkx as nx
from torch import nn

from archlang.backend import mistakes
from archlang.backend.lower.names import OUTER, module_path
from archlang.backend.runtime.loops import ModuleGroup, StackStep
from archlang.backend.runtime.result_check import ResultCheck, calls_by_instance
from archlang.errors import ErrorWithRemedy
from archlang.errors.machine import is_out_of_memory
from archlang.graph.graph import Graph, Instance, scope_of
from archlang.graph.operations import OwnWeights
from archlang.plugins import Plugins, is_signal
from archlang.types.statics import InstanceOf, Symbol, instances_in

_LIBRARY = "archlang.blocks"


def classes_of(graph: Graph, plugins: Plugins) -> Mapping[str, type[nn.Module]]:
    """Returns the class of every instance, by its path. Classes outside of archlang's blocks are those of `plugins`.

    Raises:
        BuildError: a class is missing.
        PluginError: a class is in no plugin, or its plugin cannot be imported."""
    return {path: _class_of(graph.instances[path], plugins) for path in _in_order(graph)}


def add_instances(root: nn.Module, graph: Graph, classes: Mapping[str, type[nn.Module]]) -> None:
    """Constructs the module of every instance and adds it to `root`; instances of a stack once for each step.

    Raises:
        BuildError: the constructor of a class raises."""
    stacks = _Stacks(root, graph)
    calls = calls_by_instance(graph.region)
    modules: dict[str, nn.Module] = {}
    for path in _in_order(graph):
        instance, scope = graph.instances[path], scope_of(path)
        for steps, home in stacks.modules(scope):
            modules[_at_steps(path, steps)] = module = _construct(classes[path], instance, steps, modules)
            if not _is_library(instance.python):
                module.register_forward_hook(ResultCheck(instance, calls.get(path, ())))
            _add(home, path[len(scope) :].removeprefix("."), module)
    for path in stacks.counts:
        stacks.modules(f"{path}.*")


# Stacks


class _Stacks:
    """The modules that run each scope: the root, and every step of every stack. Each is constructed at its first use,
    so that weights have the order of the model."""

    def __init__(self, root: nn.Module, graph: Graph) -> None:
        stacks = (node.operation for node in graph.region.walk() if isinstance(node.operation, OwnWeights))
        self.counts = {stack.path: stack.count for stack in stacks}
        self._modules: dict[str, list[tuple[tuple[int, ...], nn.Module]]] = {"": [((), root)]}

    def modules(self, scope: str) -> list[tuple[tuple[int, ...], nn.Module]]:
        """Returns every module that runs a scope, with its step in each stack around it."""
        if scope not in self._modules:
            path = scope.removesuffix(".*")
            outer = scope_of(path)
            self._modules[scope] = [
                ((*steps, index), step)
                for steps, home in self.modules(outer)
                for index, step in enumerate(
                    self._add_steps(home, path[len(outer) :].removeprefix("."), self.counts[path])
                )
            ]
        return self._modules[scope]

    def _add_steps(self, home: nn.Module, path: str, count: int) -> nn.ModuleList:
        steps = nn.ModuleList(StackStep() for _ in range(count))
        for step in steps:
            step.__dict__[OUTER] = home  # not registered: a step does not own the module around its stack
        _add(home, path, steps)
        return steps


def _at_steps(path: str, steps: tuple[int, ...]) -> str:
    """A path with its stars replaced by steps; the steps of stacks further in are ignored."""
    for step in steps:
        path = path.replace("*", str(step), 1)
    return path


def _add(home: nn.Module, path: str, module: nn.Module) -> None:
    *groups, name = module_path(path).split(".")
    for group in groups:
        if group not in home._modules:
            home.add_module(group, ModuleGroup())
        home = home.get_submodule(group)
    home.add_module(name, module)


# Instances


def _in_order(graph: Graph) -> Iterator[str]:
    """The paths of instances in the graph's order, except that an instance follows those that it holds as statics."""
    holders: nx.DiGraph[str] = nx.DiGraph()
    holders.add_nodes_from(graph.instances)
    for path, instance in graph.instances.items():
        holders.add_edges_from((held, path) for held in instances_in(instance.statics.values()))
    order = {path: index for index, path in enumerate(graph.instances)}
    return iter(nx.lexicographical_topological_sort(holders, key=order.__getitem__))


def _class_of(instance: Instance, plugins: Plugins) -> type[nn.Module]:
    try:
        block = find_class(instance.python, plugins, instance.title)
    except (ImportError, AttributeError, ValueError) as error:  # ValueError: a module without a name
        raise mistakes.no_such_class(instance, str(error)) from error
    if not (isinstance(block, type) and issubclass(block, nn.Module)):
        raise mistakes.no_such_class(instance, "it is not a torch module")
    return block


def find_class(python: str, plugins: Plugins, user: str) -> object:
    """Returns the class `python` (`module:Class`) of archlang's blocks or of a plugin. Errors name the block `user`.

    Raises:
        PluginError: the class is in no plugin, or its plugin cannot be imported.
        ImportError, AttributeError, ValueError: archlang has no such block."""
    if not _is_library(python):
        return plugins.load(python, user)
    module_name, _, class_name = python.partition(":")
    return getattr(importlib.import_module(module_name), class_name)


def _is_library(python: str) -> bool:
    module_name = python.partition(":")[0]
    return module_name == _LIBRARY or module_name.startswith(f"{_LIBRARY}.")


def _construct(
    block: type[nn.Module], instance: Instance, steps: tuple[int, ...], modules: Mapping[str, nn.Module]
) -> nn.Module:
    arguments = {name: _python(value, steps, modules) for name, value in instance.statics.items()}
    arguments.update((name, size.constant) for name, size in instance.features.items())
    try:
        module = block(**arguments)
    except BaseException as error:  # whatever the class does
        # A block of the library says itself what is wrong with the files that its statics name.
        if is_signal(error) or is_out_of_memory(error) or isinstance(error, ErrorWithRemedy):
            raise
        raise mistakes.not_constructed(instance, arguments, error) from error
    if "_modules" not in vars(module):
        raise mistakes.not_initialised(instance)
    for name, weight in () if _is_library(instance.python) else module.named_parameters():
        if not weight.is_floating_point():
            raise mistakes.no_real_weight(instance, name, weight.dtype)
    _unregister(module, [modules[_at_steps(path, steps)] for path in instances_in(instance.statics.values())])
    return module


def _python(value: object, steps: tuple[int, ...], modules: Mapping[str, nn.Module]) -> object:
    """A static as a constructor takes it: a symbol is a string, a list a tuple, an instance its module."""
    match value:
        case Symbol(text=text):
            return text
        case InstanceOf(path=path):
            return modules[_at_steps(path, steps)]
        case tuple():
            return tuple(_python(item, steps, modules) for item in value)
    return value


def _unregister(module: nn.Module, shared: list[nn.Module]) -> None:
    """Turns the instances that a module holds as statics into plain attributes, because each is registered at its own
    path. (A block must not hold them in a ModuleList, which finds registered modules only.)"""
    for part in list(module.modules()) if shared else ():
        for name, child in list(part._modules.items()):
            if any(child is instance for instance in shared):
                del part._modules[name]
                part.__dict__[name] = child
