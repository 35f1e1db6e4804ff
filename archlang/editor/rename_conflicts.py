"""Why a name cannot be changed, or not to some name: Python needs it, or the new one already has a meaning."""

from collections.abc import Iterable, Iterator

from archlang.editor.document import Document
from archlang.editor.names_in_scope import lengths_of
from archlang.editor.symbols import Item, Names, Symbol
from archlang.editor.unread_names import LOCAL, OF_FILE
from archlang.elaborate.binding import TASK_SIZES
from archlang.graph.operations import LOSSES
from archlang.names.resolve import Declaration
from archlang.source import Span
from archlang.syntax.tree import Call, Definition, Extern, Let, Name, Node, Recipe, StaticArgument, Table
from archlang.syntax.walk import walk


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
    is_loss = symbol.kind == "loss"  # auxiliary losses and other names do not hide each other
    named = [place for place in names.occurrences if place.symbol.name == name]
    places = [place.span for place in named if (place.symbol.kind == "loss") is is_loss]
    if symbol.kind not in OF_FILE and not is_loss:
        nodes = (node for item in items for node in walk(item))
        places += [node.span for node in nodes if isinstance(node, Name) and node.parts[0] == name]
    return next((span for span in places if not is_local or any(contains(item.span, span) for item in items)), None)


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
    """Returns a place that may name a static, a size or an auxiliary loss of a block by a static that is a block, such
    as `table.width`, `mix[width = 4]` or `losses.balance`; None if there is none."""
    document = names.document
    if symbol.kind == "loss":
        return next(_unresolved_losses(names, symbol.name), None)
    if symbol.kind not in ("static", "size") or symbol.name not in document.text:
        return None
    places = _attributes(document, symbol.name)
    item = getattr(_declaration_around(document, symbol), "item", None)
    is_block = isinstance(item, Definition) and item.word == "block"
    return next(places, None) if is_block else None


def _unresolved_losses(names: Names, name: str) -> Iterator[Span]:
    """Yields the places of recipes and tables that name an auxiliary loss which no block of their models has."""
    named = {place.span.start for place in names.occurrences}
    for item in names.document.program.items:
        for node in walk(item) if isinstance(item, Recipe | Table) else ():
            path = node.name if isinstance(node, StaticArgument) else node.text if isinstance(node, Name) else None
            if path is not None and path.removeprefix("train.") == f"{LOSSES}{name}":
                start = node.span.start + len(path) - len(name)
                if start not in named:
                    yield Span(node.span.source, start, start + len(name))


def _attributes(document: Document, name: str) -> Iterator[Span]:
    """Yields the attributes of a name that the blocks of a document, and those that it calls with an instance, take of
    their statics."""
    for item in document.program.items:
        if not isinstance(item, Definition):
            continue
        yield from _attributes_of_statics(item, name)
        instances = {node.name for node in walk(item) if isinstance(node, Let)}
        for node in walk(item) if instances else ():
            if isinstance(node, Call) and any(each.value.span.text in instances for each in node.statics):
                block = document.resolved.find(node.callee.text)
                if block is not None and any(_attributes_of_statics(block.item, name)):
                    yield node.callee.span


def _attributes_of_statics(item: Item, name: str) -> Iterator[Span]:
    statics = {static.name for static in item.signature.statics}
    for node in walk(item):
        if isinstance(node, Name) and len(node.parts) == 2 and node.parts[1] == name and node.parts[0] in statics:
            yield node.span
        elif isinstance(node, Call) and node.callee.text in statics:
            yield from (each.span for each in node.statics if each.name == name)


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
