"""Why a name cannot be changed, or not to some name: Python needs it, unread text may have it, or the new one already
has a meaning."""

import re
from collections.abc import Iterable

from archlang.editor.document import Document
from archlang.editor.names_in_scope import lengths_of
from archlang.editor.symbols import Item, Names, Symbol
from archlang.elaborate.binding import TASK_SIZES
from archlang.names.resolve import Declaration
from archlang.source import Span
from archlang.syntax.tokens import pieces
from archlang.syntax.tree import Call, Extern, Name, Node, StaticArgument
from archlang.syntax.walk import walk

# The kinds of names that only the item knows which binds them.
LOCAL = ("value", "instance", "input", "size")
# The kinds of names that only their own file knows.
OF_FILE = ("recipe", "alias")


def python_use(document: Document, symbol: Symbol) -> str | None:
    """Returns how the class of an `extern` uses a name; None if it does not."""
    declaration = _declaration_around(document, symbol)
    if declaration is None or not isinstance(declaration.item, Extern):
        return None
    item = declaration.item
    user = f"the class `{item.python}`" if item.python else f"the class of `{item.name}`"
    is_of_input = any(contains(parameter.span, symbol.span) for parameter in item.signature.inputs)
    if symbol.kind == "input" and item.word == "task":
        return f"{user} gives a field `{symbol.name}`"
    if symbol.kind == "static" or (symbol.kind == "size" and is_of_input and item.word == "block"):
        is_length = symbol.name in lengths_of(item, declaration.file)
        return f"{user} takes `{'mask_' if is_length else ''}{symbol.name}` as an argument"
    return None


def use_of_name(names: Names, name: str, symbol: Symbol, spans: Iterable[Span]) -> Span | None:
    """Returns a place of a document where the new name of a symbol already has a meaning, or is a word such as `gelu`
    that would get another one; None if there is none."""
    document = names.document
    is_local = symbol.kind in (*LOCAL, "static")
    is_used = bool(tuple(spans)) or (symbol.item is not None and symbol.key[0] in document.used_paths)
    if not is_used:
        return None
    items = [item for item in document.program.items if not is_local or contains(item.span, symbol.span)]
    if name in TASK_SIZES and symbol.kind not in OF_FILE and _is_of_task(symbol, items):
        return symbol.span
    if is_local and not items:
        return None
    is_loss = symbol.kind == "loss"  # losses and other names do not hide each other
    named = [place for place in names.occurrences if place.symbol.name == name]
    places = [place.span for place in named if (place.symbol.kind == "loss") is is_loss]
    if symbol.kind not in OF_FILE and not is_loss:
        nodes = (node for item in items for node in walk(item))
        places += [node.span for node in nodes if isinstance(node, Name) and node.parts[0] == name]
    return next((span for span in places if not is_local or any(contains(item.span, span) for item in items)), None)


def hidden_word(names: Names, symbol: Symbol, name: str) -> tuple[Span, Span] | None:
    """Returns a word of a document that is spelled as a name and has no meaning, and a mistake of syntax that may hide
    its meaning: that it names a symbol, or, of the symbol's new name, something else. None if there is no such word."""
    document = names.document
    start, end = _place_of_item(document, symbol) if symbol.kind in LOCAL else (0, len(document.text))
    mistakes = [span for span in document.syntax_mistakes if _may_hide(document, span, symbol, start, end)]
    if not mistakes:
        return None
    meant = {place.span.start for place in names.occurrences}
    for piece in pieces(document.text):
        for word in re.finditer(rf"\b{re.escape(name)}\b", piece[0] if piece.lastgroup == "WORD" else ""):
            place = piece.start() + word.start()
            # A size of an instance, as in `table.vocab`, and an instance in a recipe are known everywhere.
            is_elsewhere = symbol.kind == "instance" or (symbol.kind == "size" and word.start() > 0)
            if place not in meant and (start <= place < end or is_elsewhere):
                span = Span(document.source, place, place + len(name))
                return span, next((each for each in mistakes if each.line == span.line), mistakes[0])
    return None


def _may_hide(document: Document, mistake: Span, symbol: Symbol, start: int, end: int) -> bool:
    """Whether a mistake of syntax may hide the meaning of words of a document that name a symbol."""
    is_own = mistake.source.path == document.path
    if symbol.kind in (*LOCAL, *OF_FILE):
        return is_own and (start <= mistake.start <= end or symbol.kind in ("size", "instance"))
    is_of_item = any(contains(item.span, mistake) for item in document.program.items)
    is_known = symbol.key[0] in (document.real_path, *document.used_paths)
    return is_known or (is_own and not is_of_item)  # half a `use` line may name the file


def _place_of_item(document: Document, symbol: Symbol) -> tuple[int, int]:
    """Returns the start and the end of the item of a document that contains a definition, with the text after it."""
    starts = [item.span.start for item in document.program.all_items]
    places = zip(starts, [*starts[1:], len(document.text)], strict=True)
    return next((place for place in places if place[0] <= symbol.span.start < place[1]), (0, 0))


def _is_of_task(symbol: Symbol, items: Iterable[Node]) -> bool:
    """Whether the sizes that a task gives have a meaning where a symbol is known."""
    return symbol.item is not None or any(getattr(item, "word", "") in ("model", "task") for item in items)


def other_meaning(names: Names, symbol: Symbol, spans: Iterable[Span]) -> Span | None:
    """Returns a place of a symbol that also names another one, as a path of a table whose rows differ in their models;
    None if there is none."""
    starts = {span.start for span in spans}
    others = (
        place.span for place in names.occurrences if place.span.start in starts and place.symbol.key != symbol.key
    )
    return next(others, None)


def attribute_of_any(names: Names, symbol: Symbol) -> Span | None:
    """Returns a place that may name a static, a size or a loss of a block which only a caller knows, such as
    `table.width`, `mix[width = 4]` or `losses.balance`, or that calls a block which does; None if there is none."""
    declaration = _declaration_around(names.document, symbol) if symbol.kind in ("static", "size") else None
    if symbol.kind != "loss" and (declaration is None or declaration.item.word != "block"):
        return None
    meant = {place.span.start for place in names.occurrences}
    for item in names.document.program.items:
        for node in walk(item):
            path = node.name if isinstance(node, StaticArgument) else node.text if isinstance(node, Name) else None
            is_attribute = isinstance(node, StaticArgument) or "." in (path or "")
            if path is not None and is_attribute and path.rpartition(".")[2] == symbol.name:
                end = node.span.start + len(path)
                if end - len(symbol.name) not in meant:
                    return Span(node.span.source, end - len(symbol.name), end)
            block = names.document.resolved.find(node.callee.text) if isinstance(node, Call) and node.statics else None
            if block is not None and block.item is not item and _has_attribute(block.item, symbol.name):
                return node.span
    return None


def _has_attribute(item: Item, name: str) -> bool:
    """Whether a block names a static, or a size, of a block that is one of its own statics."""
    statics = {static.name for static in item.signature.statics}
    names = (node.parts for node in walk(item) if isinstance(node, Name) and len(node.parts) == 2)
    return any(first in statics and last == name for first, last in names)


def _declaration_around(document: Document, symbol: Symbol) -> Declaration | None:
    """Returns the item whose signature or body contains the definition of a symbol."""
    file = document.resolved
    named = (*file.own.values(), *file.used.values())
    items = (*file.tasks.values(), *file.optimizers.values())
    declarations = (*named, *(Declaration(item, file) for item in items))
    return next((each for each in declarations if contains(each.item.span, symbol.span)), None)


def contains(outer: Span, inner: Span) -> bool:
    """Whether a place is within another one, of the same file."""
    return outer.source.path == inner.source.path and outer.start <= inner.start and inner.end <= outer.end
