"""Finds comparisons of a static with a symbol that its signature does not allow."""

from collections.abc import Iterator, Mapping

from archlang.errors import Diagnostic
from archlang.resolve import mistakes
from archlang.syntax.tree import Binary, Definition, ListOf, Name, Signature
from archlang.syntax.walk import walk


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
