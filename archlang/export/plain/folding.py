"""Removes from definitions what their constant arguments make needless: branches, parameters, attributes, dropout of 0.

A parameter or an attribute of `self` that has one value in the whole model, such as `causal=False`, becomes this value;
positive numbers, such as widths, stay parameters."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator, Mapping

from archlang.export.plain.calls import argument_for, bound_arguments, defaults_of
from archlang.export.plain.collection import Collection
from archlang.export.plain.constants import UNKNOWN, constant_of, is_foldable, is_pure, is_same
from archlang.export.plain.evaluation import Evaluate
from archlang.export.plain.infrastructure import constant, remove_parameter, target_of
from archlang.export.plain.sources import Import, Name, arguments_of
from archlang.export.plain.substitution import Substitute, SubstituteAttributes
from archlang.export.plain.variables import clean_variables

_MOST_ROUNDS = 20
Constants = Mapping[str, list[object]]


def fold(collection: Collection, constructed: Mapping[Name, list[Mapping[str, object]]]) -> None:
    """Folds the definitions of a collection. `constructed` has the arguments of each instance of each class.

    Raises:
        NotPlainError: a definition needs another package, or its source is not available."""
    for _ in range(_MOST_ROUNDS):
        before = [ast.dump(definition) for definition in collection.definitions.values()]
        _Round(collection, constructed).run()
        collection.prune()
        if before == [ast.dump(definition) for definition in collection.definitions.values()]:
            return


class _Round:
    def __init__(self, collection: Collection, constructed: Mapping[Name, list[Mapping[str, object]]]) -> None:
        self._definitions = collection.definitions
        self._constructed = constructed
        self._classes = {
            name: definition for name, definition in self._definitions.items() if isinstance(definition, ast.ClassDef)
        }
        self._bases = {
            name: [base for node in definition.bases if isinstance(base := target_of(node), Name)]
            for name, definition in self._classes.items()
        }
        self._families = self._find_families()

    def run(self) -> None:
        self._fold_parameters()
        self._fold_attributes()
        self._fold_methods()
        for definition in self._definitions.values():
            Evaluate(self._definitions).visit(definition)
            for function in _functions(definition):
                clean_variables(function)
        self._remove_parameters()
        self._remove_attributes()

    # Classes

    def _find_families(self) -> dict[Name, Name]:
        """The root of the family of each class: classes that inherit from each other."""
        family = {name: name for name in self._classes}
        for _ in family:
            for name, bases in self._bases.items():
                for base in bases:
                    if base in family:
                        family[name] = family[base]
        return family

    def _members(self, root: Name) -> list[Name]:
        return [name for name, family in self._families.items() if family == root]

    def _ancestors(self, name: Name) -> Iterator[Name]:
        yield name
        for base in self._bases[name]:
            if base in self._classes:
                yield from self._ancestors(base)

    def _init_owner(self, name: Name) -> Name | None:
        """The class whose `__init__` constructs a class; None for a class of torch."""
        return next((owner for owner in self._ancestors(name) if _method(self._classes[owner], "__init__")), None)

    def _all_functions(self) -> Iterator[tuple[Name, ast.FunctionDef]]:
        for name, definition in self._definitions.items():
            yield from ((name, function) for function in _functions(definition))

    # Parameters

    def _calls(self) -> tuple[dict[tuple[Name, str], list[ast.Call]], set[tuple[Name, str]]]:
        """The calls of each function (with the method "") and of each method of a family, and those that are used
        otherwise."""
        calls: dict[tuple[Name, str], list[ast.Call]] = defaultdict(list)
        escaped: set[tuple[Name, str]] = set()
        for name, definition in self._definitions.items():
            called: set[int] = set()
            for node in ast.walk(definition):
                if not isinstance(node, ast.Call):
                    continue
                called.add(id(node.func))
                target = target_of(node.func)
                if isinstance(target, Name):
                    if target in self._classes:
                        owner = self._init_owner(target)
                        if owner is not None:
                            calls[owner, "__init__"].append(node)
                    else:
                        calls[target, ""].append(node)
                elif isinstance(node.func, ast.Attribute):
                    for key in self._receivers(name, node.func):
                        calls[key].append(node)
            for node in ast.walk(definition):
                if id(node) in called:
                    continue
                target = target_of(node)
                if isinstance(target, Name):
                    escaped.add((target, ""))
                elif isinstance(node, ast.Attribute):
                    escaped.update(self._receivers(name, node))
        return calls, escaped

    def _receivers(self, name: Name, attribute: ast.Attribute) -> list[tuple[Name, str]]:
        """The methods that an attribute may be."""
        match attribute.value:
            case ast.Name(id="self") if name in self._classes:
                return [(self._families[name], attribute.attr)]
            case ast.Call(func=ast.Name(id="super")) if name in self._classes:
                if attribute.attr != "__init__":
                    return [(self._families[name], attribute.attr)]
                owners = [self._init_owner(base) for base in self._bases[name] if base in self._classes]
                return [(owner, "__init__") for owner in owners if owner is not None]
        return [(root, attribute.attr) for root in dict.fromkeys(self._families.values())]

    def _signatures(self) -> Iterator[tuple[tuple[Name, str], list[ast.FunctionDef]]]:
        """The functions that each key of `_calls` calls, except those that the model calls."""
        methods: dict[tuple[Name, str], list[ast.FunctionDef]] = defaultdict(list)
        for name, definition in self._definitions.items():
            if isinstance(definition, ast.FunctionDef):
                yield (name, ""), [definition]
            elif isinstance(definition, ast.ClassDef):
                for function in _functions(definition):
                    if function.name == "__init__":
                        yield (name, "__init__"), [function]
                    else:
                        methods[self._families[name], function.name].append(function)
        yield from methods.items()

    def _fold_parameters(self) -> None:
        calls, escaped = self._calls()
        for (name, method), functions in self._signatures():
            if method in ("forward", "start", "advance") or (name, method) in escaped:
                continue
            values: dict[str, list[object]] = defaultdict(list)
            for call in calls[name, method]:
                for function in functions:
                    for parameter, value in bound_arguments(function, call, bool(method)).items():
                        values[parameter].append(value)
            if method == "__init__":
                for constructed, instances in self._constructed.items():
                    if constructed not in self._classes or self._init_owner(constructed) != name:
                        continue
                    defaults = defaults_of(functions[0])
                    for instance in instances:
                        for argument in arguments_of(functions[0].args):
                            default = defaults.get(argument.arg, UNKNOWN)
                            values[argument.arg].append(instance.get(argument.arg, default))
            for function in functions:
                for parameter, seen in values.items():
                    if seen and all(is_same(value, seen[0]) for value in seen) and is_foldable(seen[0]):
                        Substitute({parameter: seen[0]}).function(function)

    def _remove_parameters(self) -> None:
        """Removes parameters that no function of their name reads, with their arguments."""
        calls, escaped = self._calls()
        for (name, method), functions in self._signatures():
            if method in ("start", "advance") or (name, method) in escaped:
                continue
            shared = set.intersection(*({a.arg for a in arguments_of(function.args)} for function in functions))
            for parameter in sorted(shared - {"self"}):
                if any(_reads(function, parameter) for function in functions):
                    continue
                keyword_only = all(parameter in {a.arg for a in f.args.kwonlyargs} for f in functions)
                if method == "forward" and not keyword_only:
                    continue
                if any(f.args.vararg and f.args.vararg.arg == parameter for f in functions):
                    continue
                removed = [
                    (call, argument_for(functions[0], call, parameter, bool(method))) for call in calls[name, method]
                ]
                if not all(value is None or is_pure(value) for _, value in removed):
                    continue
                for call, value in removed:
                    call.args = [argument for argument in call.args if argument is not value]
                    call.keywords = [keyword for keyword in call.keywords if keyword.value is not value]
                for function in functions:
                    remove_parameter(function, parameter)

    # Attributes

    def _fold_attributes(self) -> None:
        for root in dict.fromkeys(self._families.values()):
            members = self._members(root)
            counts: dict[str, int] = defaultdict(int)
            values: dict[str, tuple[Name, object]] = {}
            of_class: dict[str, list[object]] = defaultdict(list)
            for name in members:
                definition = self._classes[name]
                for node in ast.walk(definition):
                    if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
                        counts[node.attr] += 1
                init = _method(definition, "__init__")
                for statement in init.body if init is not None else ():
                    attribute = _stored(statement)
                    if attribute is not None and isinstance(statement, ast.Assign):
                        values[attribute] = name, constant_of(statement.value)
                for statement in definition.body:
                    match statement:
                        case ast.Assign(targets=[ast.Name(id=attribute)], value=value):
                            of_class[attribute].append(constant_of(value))
            constants: dict[str, object] = {}
            instantiated = {name for name in self._constructed if name in members}
            for attribute, (owner, assigned) in values.items():
                # A constructor may override a value of its class.
                overrides = all(owner in self._ancestors(name) for name in instantiated)
                if counts[attribute] == 1 and is_foldable(assigned) and (overrides or not of_class[attribute]):
                    constants[attribute] = assigned
            for attribute, own in of_class.items():
                if not counts[attribute] and len(own) == 1 and is_foldable(own[0]):
                    constants[attribute] = own[0]
            for name in members:
                SubstituteAttributes(constants).visit(self._classes[name])

    def _remove_attributes(self) -> None:
        """Removes attributes that nothing reads, unless they are modules or parameters."""
        read = self._read_attributes()
        for name, function in self._all_functions():
            if name not in self._classes:
                continue
            function.body = [
                statement
                for statement in function.body
                if (attribute := _stored(statement)) is None
                or (self._families[name], attribute) in read
                or not (isinstance(statement, ast.Assign) and is_pure(statement.value))
            ] or [ast.Pass()]
        for definition in self._classes.values():
            init = _method(definition, "__init__")
            if init is not None and len(init.args.args) == 1 and not init.args.kwonlyargs and _is_bare(init):
                definition.body.remove(init)
                definition.body = definition.body or [ast.Pass()]

    def _read_attributes(self) -> set[tuple[Name, str]]:
        """The attributes that are read, by families."""
        read: set[tuple[Name, str]] = set()
        for name, definition in self._definitions.items():
            for node in ast.walk(definition):
                if (
                    isinstance(node, ast.Attribute)
                    and isinstance(node.ctx, ast.Load)
                    and not isinstance(target_of(node.value), Import)
                ):
                    read.update(self._receivers(name, node))
        return read

    def _fold_methods(self) -> None:
        """Replaces the calls of methods that return a constant."""
        constants: dict[tuple[Name, str], object] = {}
        for key, functions in self._signatures():
            if key[1] not in ("__init__", "forward", "start", "advance"):
                values = [_returned_constant(function) for function in functions]
                if all(is_same(value, values[0]) and is_foldable(value) for value in values):
                    constants[key] = values[0]
        for name, definition in self._definitions.items():
            _ReplaceCalls(self, name, constants).visit(definition)


class _ReplaceCalls(ast.NodeTransformer):
    def __init__(self, folding: _Round, name: Name, constants: Mapping[tuple[Name, str], object]) -> None:
        self._folding, self._name, self._constants = folding, name, constants

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        target = target_of(node.func)
        keys = [(target, "")] if isinstance(target, Name) else []
        match node.func:
            case ast.Attribute(value=ast.Name(id="self")) as attribute:
                keys = self._folding._receivers(self._name, attribute)
        if len(keys) == 1 and keys[0] in self._constants and all(is_pure(argument) for argument in node.args):
            return constant(self._constants[keys[0]])
        return node


def _returned_constant(function: ast.FunctionDef) -> object:
    match [statement for statement in function.body if not isinstance(statement, ast.Expr)]:
        case [ast.Return(value=ast.Constant(value=value))]:
            return value
    return UNKNOWN


def _is_bare(init: ast.FunctionDef) -> bool:
    """Whether a constructor only calls that of its base, without arguments."""
    match init.body:
        case [
            ast.Expr(
                value=ast.Call(func=ast.Attribute(value=ast.Call(func=ast.Name(id="super"))), args=[], keywords=[])
            )
        ]:
            return True
    return False


def _functions(definition: ast.AST) -> list[ast.FunctionDef]:
    """The methods of a class; a function itself."""
    if isinstance(definition, ast.FunctionDef):
        return [definition]
    if isinstance(definition, ast.ClassDef):
        return [statement for statement in definition.body if isinstance(statement, ast.FunctionDef)]
    return []


def _method(definition: ast.ClassDef, name: str) -> ast.FunctionDef | None:
    return next((function for function in _functions(definition) if function.name == name), None)


def _stored(statement: ast.stmt) -> str | None:
    """The attribute of `self` that a statement sets."""
    match statement:
        case ast.Assign(targets=[ast.Attribute(value=ast.Name(id="self"), attr=attribute)]):
            return attribute
    return None


def _reads(function: ast.FunctionDef, name: str) -> bool:
    return any(
        isinstance(node, ast.Name) and node.id == name for statement in function.body for node in ast.walk(statement)
    )
