"""Descriptions of the instances that `let` binds: their block with its statics, and the types of their calls."""

from collections.abc import Iterable, Iterator, Sequence

from archlang.editor.document import Document
from archlang.editor.symbols import Names, Symbol
from archlang.syntax.printer import unparse
from archlang.syntax.tree import Call, Expression, Let, Name, Node, Pipe
from archlang.syntax.walk import walk


def let_text(document: Document, symbol: Symbol) -> str:
    """Returns the `let` of an instance and the types of its calls, one on each line."""
    let = _let(document, symbol)
    if let is None:
        return f"let {symbol.name}"
    lines = [f"let {let.name} = {unparse(let.value)}", *_types_of_calls(document, symbol)]
    return "\n".join(dict.fromkeys(lines))


def block_of(document: Document, symbol: Symbol) -> Symbol | None:
    """Returns the block, or the static, whose instance a symbol names; None if it has no meaning."""
    let = _let(document, symbol)
    if let is None:
        return None
    callee = _callee(let.value)
    place = Names(document).at(callee.span.end)
    return None if place is None or place.symbol == symbol else place.symbol


def _let(document: Document, symbol: Symbol) -> Let | None:
    nodes = _nodes_around(document, symbol)
    return next((node for node in nodes if isinstance(node, Let) and node.name_span == symbol.span), None)


def _types_of_calls(document: Document, symbol: Symbol) -> Iterator[str]:
    """Yields the types of each call's arguments and result, if all are known."""
    for arguments, call in _calls(_nodes_around(document, symbol), symbol.name):
        types = [document.types.get((node.span.start, node.span.end)) for node in (*arguments, call)]
        if all(kind is not None for kind in types):
            yield f"{symbol.name}({', '.join(map(str, types[:-1]))}) -> {types[-1]}"


def _calls(nodes: Iterable[Node], name: str) -> Iterator[tuple[Sequence[Expression], Node]]:
    """Yields the arguments of each call of a name, and its place: in a pipe, the first argument is before the stage."""
    stages: set[int] = set()
    for node in nodes:
        match node:
            case Pipe(value=value, stage=stage):
                stages.add(id(stage))
                if _callee(stage).text == name:
                    rest = stage.arguments if isinstance(stage, Call) else None
                    yield (value, *(rest or ())), stage
            case Call(callee=callee, arguments=tuple(arguments)) if callee.text == name and id(node) not in stages:
                yield arguments, node


def _nodes_around(document: Document, symbol: Symbol) -> Iterator[Node]:
    """Yields the nodes of the item that contains the definition of a symbol."""
    for item in document.program.items:
        if item.span.start <= symbol.span.start < item.span.end:
            yield from walk(item)


def _callee(value: Name | Call) -> Name:
    return value.callee if isinstance(value, Call) else value
