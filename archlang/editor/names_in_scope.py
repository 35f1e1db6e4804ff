"""The names that a place of a block, a model or an `extern` can use."""

from collections.abc import Collection, Iterator

from archlang.editor.document import Document
from archlang.editor.open_brackets import item_start, open_brackets
from archlang.editor.symbols import DocumentNames, Meaning
from archlang.elaborate.binding import Binding
from archlang.errors import Span
from archlang.resolve.resolve import Declaration, ResolvedFile
from archlang.syntax.tree import Assign, Definition, Extern, Item, Let, Loop, walk
from archlang.types import Axis


def item_around(document: Document, offset: int) -> Item | None:
    """Returns the item around an offset, or before it if nothing closes its brackets; None outside of items."""
    item = _item_at(document, offset)
    if item is None and open_brackets(document.text, offset):
        return _item_at(document, item_start(document.text, offset))
    return item


def _item_at(document: Document, offset: int) -> Item | None:
    return next((item for item in document.program.items if item.span.start <= offset <= _end(item, offset)), None)


def _end(item: Item, offset: int) -> int:
    """Returns the end of an item, which may go on to an offset on its last line."""
    rest = item.span.source.text[item.span.end : offset]
    return item.span.end if rest.strip(" \t") else offset


def names_in_scope(document: Document, offset: int) -> Iterator[Meaning]:
    """Yields the names of the item around an offset that are bound before it and can be used there, the nearest
    first."""
    item = item_around(document, offset)
    if not isinstance(item, Definition | Extern):
        return
    hidden = list(_hidden(item, offset))
    for place in reversed(DocumentNames(document).within(item)):
        symbol = place.symbol
        is_before = item.span.start <= symbol.span.start < offset and symbol.span == place.span
        is_name = symbol.kind in ("value", "instance", "input", "static", "size")
        if is_before and is_name and not any(span.contains(place.span) for span in hidden):
            yield symbol


def lengths(document: Document, offset: int) -> Collection[str]:
    """Returns the names of lengths in the signature of the item around an offset."""
    item = item_around(document, offset)
    return lengths_of(item, document.resolved) if isinstance(item, Definition | Extern) else ()


def lengths_of(item: Definition | Extern, file: ResolvedFile) -> Collection[str]:
    """Returns the names of lengths in the signature of an item of a file."""
    declaration = Declaration(item, file)
    binding = Binding(declaration, item.name_span, {}, lambda mistake: None, generic=True)
    return binding.named_sizes(Axis.LENGTH)


def _hidden(item: Item, offset: int) -> Iterator[Span]:
    """Yields the places of names that an offset cannot use: those that the statements around it bind, and those that
    only the bodies of other loops know."""
    for node in walk(item):
        is_around = node.span.start <= offset and not node.span.source.text[node.span.end : offset].strip(" \t")
        if isinstance(node, Assign | Let) and is_around:
            yield node.name_span
        if not isinstance(node, Loop):
            continue
        if node.target_span is not None and is_around:
            yield node.target_span
        if not _is_in_body(node, offset):
            start = node.span.start if node.target_span is None else node.target_span.end
            yield Span(node.span.source, start, node.span.end)


def _is_in_body(loop: Loop, offset: int) -> bool:
    span = loop.body.span
    return span.start < offset and (offset < span.end or not span.text.endswith("}"))
