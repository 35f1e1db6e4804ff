"""Removes from definitions what their constant arguments make needless: branches, parameters, attributes, dropout of 0.

A parameter or an attribute of `self` that has one value in the whole model, such as `causal=False`, becomes this value;
positive numbers, such as widths, stay parameters."""

from __future__ import annotations

import ast
import operator
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from archlang.export.plain.collection import Collection
from archlang.export.plain.infrastructure import constant, remove_parameter, target_of
from archlang.export.plain.sources import Import, Name, arguments_of, local_names

_MOST_ROUNDS = 20

Constants = Mapping[str, list[object]]
"""The values of each argument in the instances of a class."""


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


def is_foldable(value: object) -> bool:
    """Returns whether a value replaces its parameter."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return value <= 0
    return value is None or isinstance(value, str | bool)


class _Unknown:
    pass


_UNKNOWN = _Unknown()


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
            _Fold(self._definitions).visit(definition)
            for function in _functions(definition):
                _clean(function)
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
                    for parameter, value in _bound(function, call, bool(method)).items():
                        values[parameter].append(value)
            if method == "__init__":
                for constructed, instances in self._constructed.items():
                    if constructed not in self._classes or self._init_owner(constructed) != name:
                        continue
                    defaults = _defaults(functions[0])
                    for instance in instances:
                        for argument in arguments_of(functions[0].args):
                            default = defaults.get(argument.arg, _UNKNOWN)
                            values[argument.arg].append(instance.get(argument.arg, default))
            for function in functions:
                for parameter, seen in values.items():
                    if seen and all(_same(value, seen[0]) for value in seen) and is_foldable(seen[0]):
                        _Substitute({parameter: seen[0]}).function(function)

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
                    (call, _argument(functions[0], call, parameter, bool(method))) for call in calls[name, method]
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
                        values[attribute] = name, _constant(statement.value)
                for statement in definition.body:
                    match statement:
                        case ast.Assign(targets=[ast.Name(id=attribute)], value=value):
                            of_class[attribute].append(_constant(value))
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
                _SubstituteAttributes(constants).visit(self._classes[name])

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
                if all(_same(value, values[0]) and is_foldable(value) for value in values):
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
    return _UNKNOWN


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


def _same(left: object, right: object) -> bool:
    return type(left) is type(right) and left == right


# Arguments


def _positional(function: ast.FunctionDef, is_method: bool) -> list[str]:
    names = [argument.arg for argument in (*function.args.posonlyargs, *function.args.args)]
    return names[1:] if is_method else names


def _defaults(function: ast.FunctionDef) -> dict[str, object]:
    """The default of each parameter that has one."""
    arguments = function.args
    names = [argument.arg for argument in (*arguments.posonlyargs, *arguments.args)]
    pairs = [*zip(reversed(names), reversed(arguments.defaults), strict=False)]
    pairs += [
        (argument.arg, default)
        for argument, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
        if default is not None
    ]
    return {name: _constant(default) for name, default in pairs}


def _constant(node: ast.expr) -> object:
    match node:
        case ast.Constant(value=value):
            return value
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() | float() as value)):
            return -value
    return _UNKNOWN


def _bound(function: ast.FunctionDef, call: ast.Call, is_method: bool) -> dict[str, object]:
    """The value of each parameter in a call."""
    parameters = [argument.arg for argument in arguments_of(function.args)]
    if any(isinstance(argument, ast.Starred) for argument in call.args) or any(k.arg is None for k in call.keywords):
        return dict.fromkeys(parameters, _UNKNOWN)
    values: dict[str, object] = dict(_defaults(function))
    values.update(
        (name, _constant(value)) for name, value in zip(_positional(function, is_method), call.args, strict=False)
    )
    values.update((keyword.arg, _constant(keyword.value)) for keyword in call.keywords if keyword.arg is not None)
    return values


def _argument(function: ast.FunctionDef, call: ast.Call, parameter: str, is_method: bool) -> ast.expr | None:
    """The argument of a call for a parameter."""
    for keyword in call.keywords:
        if keyword.arg == parameter:
            return keyword.value
    names = _positional(function, is_method)
    if parameter in names and names.index(parameter) < len(call.args):
        return call.args[names.index(parameter)]
    return None


def _reads(function: ast.FunctionDef, name: str) -> bool:
    return any(
        isinstance(node, ast.Name) and node.id == name for statement in function.body for node in ast.walk(statement)
    )


# Substitution


class _Substitute(ast.NodeTransformer):
    """Replaces variables of a function by constants, unless the function sets them."""

    def __init__(self, constants: Mapping[str, object]) -> None:
        self._constants = constants

    def function(self, function: ast.FunctionDef) -> None:
        stored = {
            node.id
            for statement in function.body
            for node in ast.walk(statement)
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
        }
        inner = {
            argument.arg
            for statement in function.body
            for node in ast.walk(statement)
            if isinstance(node, ast.FunctionDef | ast.Lambda)
            for argument in arguments_of(node.args)
        }
        self._constants = {name: value for name, value in self._constants.items() if name not in stored | inner}
        if self._constants:
            function.body = [self.visit(statement) for statement in function.body]

    def visit_Name(self, node: ast.Name) -> ast.AST:
        if isinstance(node.ctx, ast.Load) and node.id in self._constants and target_of(node) is None:
            return constant(self._constants[node.id])
        return node


class _SubstituteAttributes(ast.NodeTransformer):
    def __init__(self, constants: Mapping[str, object]) -> None:
        self._constants = constants

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        self.generic_visit(node)
        match node:
            case ast.Attribute(value=ast.Name(id="self"), attr=name, ctx=ast.Load()) if name in self._constants:
                return constant(self._constants[name])
        return node


# Expressions

_PURE = (
    ast.Name, ast.Attribute, ast.Constant, ast.Compare, ast.BoolOp, ast.UnaryOp, ast.BinOp, ast.Subscript, ast.Tuple,
    ast.List, ast.IfExp, ast.Slice, ast.expr_context, ast.operator, ast.boolop, ast.unaryop, ast.cmpop, ast.Dict,
)  # fmt: skip
_COMPARISONS: Mapping[type[ast.cmpop], Callable[[Any, Any], bool]] = {  # Any: constants
    ast.Eq: operator.eq, ast.NotEq: operator.ne, ast.Lt: operator.lt, ast.LtE: operator.le, ast.Gt: operator.gt,
    ast.GtE: operator.ge, ast.Is: operator.is_, ast.IsNot: operator.is_not, ast.In: lambda left, right: left in right,
    ast.NotIn: lambda left, right: left not in right,
}  # fmt: skip
_OPERATIONS: Mapping[type[ast.operator], Callable[[Any, Any], Any]] = {  # Any: numbers
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul,
}  # fmt: skip


def is_pure(node: ast.expr) -> bool:
    """Returns whether evaluating an expression has no effect."""
    return all(isinstance(part, _PURE) for part in ast.walk(node))


def _is_zero(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and type(node.value) is int and node.value == 0


class _Fold(ast.NodeTransformer):
    """Evaluates what is constant, and keeps the branches that are taken."""

    def __init__(self, definitions: Mapping[Name, ast.AST]) -> None:
        self._definitions = definitions

    def visit_Compare(self, node: ast.Compare) -> ast.AST:
        self.generic_visit(node)
        operands = [node.left, *node.comparators]
        if all(isinstance(operand, ast.Constant | ast.Tuple | ast.List) for operand in operands):
            try:
                values = [ast.literal_eval(operand) for operand in operands]
            except ValueError:
                return node
            pairs = zip(node.ops, values, values[1:], strict=False)
            return ast.Constant(all(_COMPARISONS[type(op)](left, right) for op, left, right in pairs))
        return node

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.AST:
        self.generic_visit(node)
        stops = isinstance(node.op, ast.Or)
        values: list[ast.expr] = []
        for value in node.values:
            if isinstance(value, ast.Constant):
                if bool(value.value) != stops:
                    continue  # never the result, unless it is the last value
                values.append(value)
                break
            values.append(value)
        if not values:
            return node.values[-1]
        last = values[-1]
        decides = isinstance(last, ast.Constant) and (isinstance(last.value, bool) or (not stops and not last.value))
        if decides and all(is_pure(value) for value in values):
            return last
        return values[0] if len(values) == 1 else ast.BoolOp(node.op, values)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.AST:
        self.generic_visit(node)
        if isinstance(node.op, ast.Not) and isinstance(node.operand, ast.Constant):
            return ast.Constant(not node.operand.value)
        return node

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        self.generic_visit(node)
        left, right = node.left, node.right
        if isinstance(node.op, ast.Add) and _is_zero(left):
            return right
        if isinstance(node.op, ast.Add | ast.Sub) and _is_zero(right):
            return left
        if isinstance(node.op, ast.Sub) and _is_zero(left):
            return ast.UnaryOp(ast.USub(), right)
        operands = _constant(left), _constant(right)
        if type(node.op) in _OPERATIONS and all(isinstance(value, int | float) for value in operands):
            return ast.Constant(_OPERATIONS[type(node.op)](*operands))
        return node

    def visit_IfExp(self, node: ast.IfExp) -> ast.AST:
        self.generic_visit(node)
        if isinstance(node.test, ast.Constant):
            return node.body if node.test.value else node.orelse
        return node

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        match node.func:
            case ast.Attribute(value=ast.Name() as package, attr="dropout") if isinstance(target_of(package), Import):
                rate = node.args[1] if len(node.args) > 1 else None
                if isinstance(rate, ast.Constant) and rate.value == 0:
                    return node.args[0]
        return node

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        """The item of a dictionary at the top of a module."""
        self.generic_visit(node)
        target = target_of(node.value)
        if isinstance(target, Name) and isinstance(node.slice, ast.Constant):
            definition = self._definitions.get(target)
            value = definition.value if isinstance(definition, ast.Assign | ast.AnnAssign) else None
            if isinstance(value, ast.Dict):
                for key, item in zip(value.keys, value.values, strict=True):
                    if isinstance(key, ast.Constant) and key.value == node.slice.value:
                        return item
        return node

    # Statements

    def visit_If(self, node: ast.If) -> ast.AST | list[ast.stmt]:
        self.generic_visit(node)
        if isinstance(node.test, ast.Constant):
            branch = node.body if node.test.value else node.orelse
            if branch and node.test.value:
                branch[0].comments = [*getattr(node, "comments", []), *getattr(branch[0], "comments", [])]  # type: ignore[attr-defined]
            return branch
        if not node.body:
            node.body = [ast.Pass()]
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        self.generic_visit(node)
        node.body = _until_return(node.body) or [ast.Pass()]
        return node


def _until_return(body: list[ast.stmt]) -> list[ast.stmt]:
    for index, statement in enumerate(body):
        if isinstance(statement, ast.Return | ast.Raise):
            return body[: index + 1]
    return body


# Variables


def _clean(function: ast.FunctionDef) -> None:
    """Replaces variables that are constants, and removes those that nothing reads."""
    stores: dict[str, int] = defaultdict(int)
    loads: dict[str, int] = defaultdict(int)
    for node in ast.walk(function):
        if isinstance(node, ast.Name):
            counts = stores if isinstance(node.ctx, ast.Store) else loads
            counts[node.id] += 1
    parameters = {argument.arg for argument in arguments_of(function.args)}
    constants: dict[str, object] = {}
    for node in ast.walk(function):
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Constant(value=value)):
                if stores[name] == 1 and name not in parameters and is_foldable(value):
                    constants[name] = value
    if constants:
        _LocalConstants(constants).visit(function)
    local = local_names(function)
    for is_needed, body in _bodies(function):
        body[:] = [statement for statement in body if not _is_needless(statement, loads, constants, local)]
        if is_needed and not body:
            body.append(ast.Pass())
        _drop_unused_targets(body, loads, local)
        _return_directly(body, loads)


class _LocalConstants(ast.NodeTransformer):
    def __init__(self, constants: Mapping[str, object]) -> None:
        self._constants = constants

    def visit_Name(self, node: ast.Name) -> ast.AST:
        if isinstance(node.ctx, ast.Load) and node.id in self._constants and target_of(node) is None:
            return constant(self._constants[node.id])
        return node


def _bodies(function: ast.FunctionDef) -> Iterator[tuple[bool, list[ast.stmt]]]:
    """The lists of statements in a function, and whether they may not be empty."""
    for node in list(ast.walk(function)):
        for name in ("body", "orelse"):
            body = getattr(node, name, None)
            if isinstance(body, list) and body:
                yield name == "body", body


def _is_needless(
    statement: ast.stmt, loads: Mapping[str, int], constants: Mapping[str, object], local: Iterable[str]
) -> bool:
    match statement:
        case ast.Assign(targets=[ast.Name(id=name)], value=ast.Name(id=same)) if name == same:
            return True
        case ast.Assign(targets=[ast.Name(id=name)], value=value):
            return name in constants or (not loads.get(name) and name in local and is_pure(value))
        case ast.FunctionDef(name=name):
            return not loads.get(name)
        case ast.If(test=test, body=[ast.Pass()], orelse=[]):
            return is_pure(test)
        case ast.For(body=[ast.Pass()], iter=iterable):
            return is_pure(iterable)
        case ast.Pass():
            return True
    return False


def _drop_unused_targets(body: list[ast.stmt], loads: Mapping[str, int], local: Iterable[str]) -> None:
    """Removes unused variables from `a, b = …, …`."""
    for index, statement in enumerate(body):
        match statement:
            case ast.Assign(targets=[ast.Tuple(elts=targets)], value=ast.Tuple(elts=values)) if len(targets) == len(
                values
            ):
                pairs = [
                    (target, value)
                    for target, value in zip(targets, values, strict=True)
                    if not (isinstance(target, ast.Name) and not loads.get(target.id) and is_pure(value))
                ]
                if len(pairs) == 1:
                    body[index] = ast.copy_location(ast.Assign([pairs[0][0]], pairs[0][1]), statement)
                elif len(pairs) < len(targets):
                    body[index] = ast.Pass()


def _return_directly(body: list[ast.stmt], loads: Mapping[str, int]) -> None:
    """Replaces `y = …; return y` by `return …`."""
    match body[-2:]:
        case [ast.Assign(targets=[ast.Name(id=name)], value=value) as first, ast.Return(value=ast.Name(id=returned))]:
            if name == returned and loads.get(name) == 1:
                result = ast.Return(value)
                result.comments = getattr(first, "comments", [])  # type: ignore[attr-defined]
                body[-2:] = [result]
