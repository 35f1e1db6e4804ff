"""Finds names that a definition binds and never uses, or uses and nothing binds, symbols that its signature does not
allow, and files that a file uses in vain."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping

from archlang.errors import Diagnostic
from archlang.resolve import mistakes
from archlang.resolve.resolve import GRADIENT, ResolvedFile
from archlang.syntax import tree
from archlang.syntax.tree import Binary, Definition, ListOf, Name, Signature, walk


def unused_names(definition: tree.Definition) -> Iterator[Diagnostic]:
    """Yields a warning for each static that a definition declares, and each value or instance that it binds, and does
    not mention elsewhere."""
    mentioned, in_own_updates = Counter[str](), Counter[str]()
    updates: dict[str, tree.Update] = {}
    binders: list[tree.Assign | tree.Let | tree.Loop | tree.Scanned] = []
    for node in walk(definition):
        match node:
            case tree.Name(parts=parts):
                mentioned[parts[0]] += 1
            case tree.ScanStatement(carry=carry):
                mentioned.subtract(name.text for name in carry)
                binders.append(node)
            case tree.HaltingStatement(state=state):
                mentioned[state] += 1
                binders.append(node)
            case tree.Update(name=name, value=value):
                updates.setdefault(name, node)
                own = sum(isinstance(each, tree.Name) and each.parts[0] == name for each in walk(value))
                in_own_updates[name] += own
            case _ if isinstance(node, tree.Assign | tree.Let | tree.Loop | tree.Scanned):
                binders.append(node)
    for name, update in updates.items():
        if mentioned[name] == in_own_updates[name] and not name.startswith("_"):
            yield mistakes.unused_update(update.name_span, name)
    mentioned.update(updates.keys())
    for static in definition.signature.statics:
        if static.name not in mentioned and not static.name.startswith("_"):
            yield mistakes.unused_static(static.span, static.name)
    for binder in binders:
        if isinstance(binder, tree.Assign | tree.Let):
            if binder.name not in mentioned and not binder.name.startswith("_"):
                yield mistakes.unused_name(binder.name_span, binder.name, binder.span)
        elif isinstance(binder, tree.Scanned):
            if binder.variable not in mentioned and not binder.variable.startswith("_"):
                yield mistakes.unused_name(binder.variable_span, binder.variable, None)
        elif binder.target is None and not isinstance(binder, tree.ExpertsStatement) and _emits(binder.body):
            yield mistakes.unused_result(binder.span)
        elif binder.target is not None and binder.target not in mentioned:
            yield mistakes.unused_name(binder.target_span or binder.span, binder.target, None)


def unbound_names(definition: tree.Definition, file: ResolvedFile) -> Iterator[Diagnostic]:
    """Yields the mistakes of values and blocks in a body that nothing binds, also in branches that are never taken: a
    name counts as bound wherever the definition binds it."""
    bound = {"vocab", "words", "classes"} | tree.bound_names(definition)
    bound |= {node.parts[0] for node in walk(definition.signature) if isinstance(node, tree.Name)}
    for node in walk(definition.body):
        if isinstance(node, tree.Assign | tree.Update | tree.Let | tree.Return | tree.Emit | tree.LossStatement):
            used = _flowing(node.value, isinstance(node, tree.Let))
        else:
            used = _flowing(node.over) if isinstance(node, _WITH_SEQUENCES) else iter(())
        for name, is_block in used:
            is_known_block = name.text == GRADIENT or file.find(name.text) is not None
            if name.parts[0] in bound or (is_block and is_known_block):
                continue
            if is_block:
                yield mistakes.unknown_block(name.span, name.text, file.names())
            else:
                yield mistakes.unknown_value(name.span, name.text, bound, is_known_block)


_WITH_SEQUENCES = tree.ScanStatement | tree.Scanned | tree.ExpertsStatement


def _flowing(node: tree.Syntax, is_block: bool = False) -> Iterator[tuple[tree.Name, bool]]:
    """Yields the names of the values in an expression, and of the blocks that it applies, which are True."""
    match node:
        case tree.Name():
            yield node, is_block
        case tree.CallExpression(callee=callee, arguments=arguments):
            yield callee, True
            for argument in arguments or ():
                yield from _flowing(argument)
        case tree.Pipe(value=value, stage=stage):
            yield from _flowing(value)
            yield from _flowing(stage, is_block=True)
        case tree.Unary(operand=operand):
            yield from _flowing(operand)
        case tree.Binary(left=left, right=right) | tree.Conditional(then=left, otherwise=right):
            yield from _flowing(left)
            yield from _flowing(right)


def unused_uses(resolved: ResolvedFile) -> Iterator[Diagnostic]:
    """Yields a warning for each `use` line of a file that brings in nothing that the file names."""
    if not resolved.uses:
        return
    words = set(_WORD.findall(resolved.program.source.text))
    for use, names in resolved.uses:
        # A comment that names it counts, too.
        if words.isdisjoint(names):
            yield mistakes.unused_use(use.path_span, use.path, use.span)


def hidden_names(resolved: ResolvedFile) -> Iterator[Diagnostic]:
    """Yields a warning for each name that the file calls, and that a `use` line and it, or two such lines, define."""
    called: dict[str, Name] = {}
    for item in resolved.program.all_items if resolved.uses else ():
        for node in walk(item):
            if isinstance(node, Name):
                called.setdefault(node.text, node)
    first: dict[str, tree.Use] = {}
    for use, names in resolved.uses:
        for name in sorted(names & called.keys()):
            earlier = first.setdefault(name, use)
            if name in resolved.own:
                yield mistakes.hidden_by_own(resolved.own[name].item.name_span, name, use.path_span)
            elif earlier.path != use.path:
                yield mistakes.hidden_by_use(use.path_span, name, earlier.path_span)


_WORD = re.compile(r"[A-Za-z_][\w.]*")


def _emits(body: tree.Body | None) -> bool:
    for statement in () if body is None else body.statements:
        if isinstance(statement, tree.Emit) or (
            isinstance(statement, tree.If) and (_emits(statement.then) or _emits(statement.otherwise))
        ):
            return True
    return False


def unlisted_symbols(definition: Definition) -> Iterator[Diagnostic]:
    """Yields a mistake for each symbol with which the body compares a static, and which a condition such as
    `where kind in [relu, gelu]` does not list."""
    listed = listed_symbols(definition.signature)
    statics = _symbols(definition.signature)
    for node in walk(definition.body) if listed else ():
        if not isinstance(node, Binary) or node.operator not in ("==", "!=", "in"):
            continue
        for static, operand in ((node.left, node.right), (node.right, node.left)):
            if not isinstance(static, Name) or static.text not in listed:
                continue
            allowed = listed[static.text]
            for symbol in operand.items if isinstance(operand, ListOf) else (operand,):
                if isinstance(symbol, Name) and symbol.text not in statics and symbol.text not in allowed:
                    yield mistakes.unlisted_symbol(symbol.span, symbol.text, static.text, allowed)


def listed_symbols(signature: Signature) -> Mapping[str, tuple[str, ...]]:
    """Returns the symbols of each static that a condition restricts to symbols."""
    statics = _symbols(signature)
    listed: dict[str, tuple[str, ...]] = {}
    for condition in signature.where:
        if not isinstance(condition, Binary) or condition.operator != "in" or not isinstance(condition.left, Name):
            continue
        items = condition.right.items if isinstance(condition.right, ListOf) else ()
        symbols = tuple(item.text for item in items if isinstance(item, Name) and item.text not in statics)
        if symbols and len(symbols) == len(items):
            listed[condition.left.text] = symbols
    return listed


def _symbols(signature: Signature) -> frozenset[str]:
    """Returns the names of the statics that may be symbols: where a symbol is compared, any other name is a symbol."""
    return frozenset(
        static.name
        for static in signature.statics
        if static.kind == "symbol" or (static.kind is None and isinstance(static.default, Name))
    )
