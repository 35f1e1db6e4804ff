"""Where a name is defined, where it is used, and its change everywhere."""

import re

from archlang.diagnostics import Edit, ErrorWithRemedy
from archlang.editor.document import Document
from archlang.editor.open_brackets import callee_at
from archlang.editor.rename_conflicts import (
    LOCAL,
    OF_FILE,
    attribute_of_any,
    contains,
    hidden_word,
    other_meaning,
    python_use,
    use_of_name,
)
from archlang.editor.symbols import INSTANCES, Names, Occurrence, Symbol
from archlang.editor.workspace import Workspace
from archlang.elaborate.binding import TASK_SIZES
from archlang.source import Span
from archlang.syntax.tokens import ITEM_WORDS, RESERVED
from archlang.syntax.tree import Definition, Extern

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_PATH = re.compile(r"[\w.]+$")


def definition(document: Document, offset: int) -> Span | None:
    """Returns the place that defines the name at an offset; None if there is no name with a meaning. On a line that
    cannot be read, the blocks that it calls have one."""
    place = Names(document).at(offset)
    if place is None:
        callee = callee_at(document, offset)
        return None if callee is None else callee[1].name_span
    return place.symbol.span


def references(workspace: Workspace, document: Document, offset: int) -> tuple[Span, ...]:
    """Returns the places that mean what the name at an offset means, in the files of its folder and the open ones."""
    place = Names(document).at(offset)
    if place is None:
        return ()
    documents = _documents(workspace, document, place.symbol, place.symbol.name)
    return tuple(span for names in documents for span in names.of(place.symbol))


def renamable(document: Document, offset: int) -> Span:
    """Returns the place of the name at an offset, which can be changed.

    Raises:
        ErrorWithRemedy: there is no name, or it is the library's."""
    return _own_place(document, offset).span


def rename(workspace: Workspace, document: Document, offset: int, name: str) -> tuple[Edit, ...]:
    """Returns the edits that change the name at an offset everywhere.

    Raises:
        ErrorWithRemedy: there is no name, it is the library's, the new one is no name or already has a meaning, or text
            that cannot be read may contain one of them."""
    place = _own_place(document, offset)
    if not _NAME.fullmatch(name) or name in RESERVED or name in ITEM_WORDS:
        remedy = "write letters, digits and `_`, beginning with a letter, and no keyword"
        raise ErrorWithRemedy(f"`{name}` cannot be a name", remedy)
    edits = []
    for names in _documents(workspace, document, place.symbol, name):
        spans = names.of(place.symbol)
        if (taken := use_of_name(names, name, place.symbol, spans)) is not None:
            raise ErrorWithRemedy(f"`{name}` already has a meaning at {_where(taken)}", "choose another name")
        if (other := other_meaning(names, place.symbol, spans)) is not None:
            kind, owner = ("loss", "block") if place.symbol.kind == "loss" else ("static", "model")
            message = f"`{_path_around(other)}` at {_where(other)} also names a {kind} of another {owner}"
            raise ErrorWithRemedy(message, f"rename both {kind}s by hand")
        _refuse_unread(names, place.symbol, name, spans)
        if (attribute := attribute_of_any(names, place.symbol)) is not None:
            message = f"`{_path_around(attribute)}` at {_where(attribute)} may name it, by the block that is passed"
            raise ErrorWithRemedy(message, "rename it by hand")
        edits += [Edit(span, name) for span in spans]
    return tuple(edits)


def _refuse_unread(names: Names, symbol: Symbol, name: str, spans: tuple[Span, ...]) -> None:
    """Refuses a rename of a symbol to a name if text of a document that cannot be read may contain one of them: such
    text has no meaning yet, so its words cannot be changed with certainty.

    Raises:
        ErrorWithRemedy: there is such text."""
    for word in (symbol.name, name) if spans else (symbol.name,):
        if (hidden := hidden_word(names, symbol, word)) is not None:
            span, mistake = hidden
            use = "" if mistake.line == span.line else f" at {_where(span)}"
            raise ErrorWithRemedy(
                f"{_where(mistake)} cannot be read, and may use `{word}`{use}", "correct that line first"
            )


def _where(span: Span) -> str:
    return f"{span.source.path}:{span.line}"


def _path_around(span: Span) -> str:
    """Returns a name with the words and dots before it."""
    text = span.source.text
    written = _PATH.search(text, text.rfind("\n", 0, span.start) + 1, span.end)
    return written[0] if written else span.text


def _documents(workspace: Workspace, document: Document, symbol: Symbol, name: str) -> list[Names]:
    """Returns the files that can name a symbol, or that may use a new name of it: only its own file knows a value, an
    input or an alias; other files may know a size as an attribute, and an instance by a setting."""
    own_path, beside = document.real_path, workspace.documents_beside(document.path)
    if symbol.kind in ("instance", "size"):
        text = INSTANCES if symbol.kind == "instance" else f".{symbol.name}"
        return [Names(each) for each in beside if each.real_path == own_path or text in each.text]
    if symbol.kind in (*LOCAL, *OF_FILE):
        return [Names(document)]
    return [Names(each) for each in beside if symbol.name in each.text or name in each.text]


def _own_place(document: Document, offset: int) -> Occurrence:
    place = Names(document).at(offset)
    if place is None:
        raise ErrorWithRemedy("there is no name here that has a meaning", "place the cursor on a name")
    symbol = place.symbol
    if symbol.kind == "file" or symbol.is_of_library or _is_of_task(document, symbol):
        raise ErrorWithRemedy(f"`{symbol.name}` is not defined by this program", "rename only names of your own")
    if (use := python_use(document, symbol)) is not None:
        raise ErrorWithRemedy(use, "rename it in Python too, by hand")
    return place


def _is_of_task(document: Document, symbol: Symbol) -> bool:
    """Whether a symbol is a size that a task gives by this name, such as `vocab`."""
    if symbol.kind != "size" or symbol.name not in TASK_SIZES:
        return False
    items = (item for item in document.program.items if contains(item.span, symbol.span))
    return any(isinstance(item, Definition | Extern) and item.word in ("model", "task") for item in items)
