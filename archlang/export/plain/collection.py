"""The definitions that a plain file needs: what its roots reach, with methods that nothing calls removed."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from archlang.export.plain.infrastructure import plain_definition, require_plain, target_of
from archlang.export.plain.sources import Definition, Import, Name, global_names

_ALWAYS = {"__init__", "forward"}


class Collection:
    """Definitions by their names, from which the folding removes what the model does not need."""

    def __init__(self, roots: Iterable[Name], methods: Iterable[str]) -> None:
        self.roots = list(dict.fromkeys(roots))
        self.definitions: dict[Name, Definition] = {}
        self._methods = {*_ALWAYS, *methods}
        self.prune()

    def prune(self) -> None:
        """Adds the definitions that the roots reach, and removes all others, and methods that nothing calls.

        Raises:
            NotPlainError: a definition needs another package, or its source is not available."""
        attributes = set(self._methods)
        live: set[Name] = set()
        members: dict[Name, list[_Member]] = {}
        while True:
            before = len(attributes), len(live)
            waiting = [*self.roots]
            seen: set[Name] = set()
            while waiting:
                name = waiting.pop()
                if name in seen:
                    continue
                seen.add(name)
                if name not in self.definitions:
                    self.definitions[name] = plain_definition(name)
                if name not in members:
                    members[name] = list(_members(self.definitions[name]))
                for member in members[name]:
                    if member.is_live(attributes):
                        attributes |= member.attributes
                        waiting.extend(member.targets)
            live |= seen
            if before == (len(attributes), len(live)):
                break
        self.definitions = {name: self.definitions[name] for name in self.definitions if name in live}
        for definition in self.definitions.values():
            if isinstance(definition, ast.ClassDef):
                definition.body = [
                    statement for statement in definition.body if _is_live_member(definition, statement, attributes)
                ] or [ast.Pass()]

    def check(self) -> None:
        """Checks that no definition needs another package than torch.

        Raises:
            NotPlainError: one does."""
        for definition in self.definitions.values():
            require_plain(definition)

    def in_order(self) -> list[Name]:
        """Returns the names, each after those that its definition uses."""
        order: dict[Name, None] = {}
        started: set[Name] = set()

        def add(name: Name) -> None:
            if name in started:
                return
            started.add(name)
            for node in global_names(self.definitions[name]):
                target = target_of(node)
                if isinstance(target, Name):
                    add(target)
            order[name] = None

        for root in self.roots:
            add(root)
        return list(order)

    def imports(self) -> list[Import]:
        """Returns the imports of all definitions."""
        targets = (target_of(node) for definition in self.definitions.values() for node in global_names(definition))
        return list(dict.fromkeys(target for target in targets if isinstance(target, Import)))


def is_dataclass(definition: ast.ClassDef) -> bool:
    """Returns whether a class is decorated as a dataclass."""
    return any("dataclass" in ast.unparse(decorator) for decorator in definition.decorator_list)


@dataclass(frozen=True, eq=False)
class _Member:
    """A statement of a class, or what is around them, or another definition: the attributes and the definitions that it
    reads."""

    owner: ast.ClassDef | None
    statement: ast.stmt | None
    attributes: set[str]
    targets: list[Name]

    def is_live(self, attributes: set[str]) -> bool:
        if self.owner is None or self.statement is None:
            return True
        return _is_live_member(self.owner, self.statement, attributes)


def _members(definition: Definition) -> Iterator[_Member]:
    if not isinstance(definition, ast.ClassDef):
        yield _member(None, None, definition)
        return
    shell = ast.ClassDef(definition.name, definition.bases, definition.keywords, [], definition.decorator_list)
    yield _member(definition, None, shell)
    for statement in definition.body:
        part = statement if isinstance(statement, ast.FunctionDef) else ast.ClassDef("", [], [], [statement], [])
        yield _member(definition, statement, part)


def _member(owner: ast.ClassDef | None, statement: ast.stmt | None, part: ast.AST) -> _Member:
    attributes = {node.attr for node in ast.walk(part) if isinstance(node, ast.Attribute)}
    targets = [target for node in global_names(part) if isinstance(target := target_of(node), Name)]
    return _Member(owner, statement, attributes, targets)


def _is_live_member(definition: ast.ClassDef, statement: ast.stmt, attributes: set[str]) -> bool:
    match statement:
        case ast.FunctionDef(name=name):
            return name in attributes or (name.startswith("__") and name.endswith("__"))
        case ast.AnnAssign(target=ast.Name(id=name), value=value):
            # An annotation without a value is for the type checker.
            return is_dataclass(definition) or (value is not None and name in attributes)
        case ast.Assign(targets=[ast.Name(id=name)]):
            return name in attributes
    return not isinstance(statement, ast.Pass)
