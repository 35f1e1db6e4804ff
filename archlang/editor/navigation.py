"""Where a name is defined, where it is used, and its change everywhere."""

import os
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence

from archlang.editor.document import Document
from archlang.editor.names_in_scope import lengths_of
from archlang.editor.symbols import DocumentNames, Meaning, Occurrence
from archlang.editor.workspace import Workspace
from archlang.elaborate.binding import TASK_SIZES
from archlang.errors import Edit, ErrorWithRemedy, Span
from archlang.errors.edits import apply_edits
from archlang.resolve.resolve import Declaration
from archlang.syntax.tokens import ITEM_WORDS, RESERVED, pieces
from archlang.syntax.tree import Definition, Extern

# The training settings that name instances of a model.
_INSTANCES = ("sign_sgd", "no_decay", "frozen")
# The kinds of names that only the item knows which binds them, or only their own file.
_LOCAL = ("value", "instance", "input", "size", "recipe", "alias")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def definition(document: Document, offset: int) -> Span | None:
    """Returns the place that defines the name at an offset; None if there is no name with a meaning."""
    place = DocumentNames(document).at(offset)
    return None if place is None else place.symbol.span


def references(workspace: Workspace, document: Document, offset: int) -> tuple[Span, ...]:
    """Returns the places that mean what the name at an offset means, in the files of its folder and the open ones."""
    place = DocumentNames(document).at(offset)
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
        ErrorWithRemedy: there is no name, it is the library's, the new one is no name, text that cannot be read may
            contain one of them, or the changed programs would have another mistake or another meaning."""
    symbol = _own_place(document, offset).symbol
    if not _NAME.fullmatch(name) or name in RESERVED or name in ITEM_WORDS:
        remedy = "write letters, digits and `_`, beginning with a letter, and no keyword"
        raise ErrorWithRemedy(f"`{name}` cannot be a name", remedy)
    if name in TASK_SIZES:
        raise ErrorWithRemedy(f"`{name}` is a size that tasks set", "choose another name")
    documents = _documents(workspace, document, symbol, name)
    edits = []
    for names in documents:
        spans = names.of(symbol)
        for word in (symbol.name, name) if spans else (symbol.name,):
            _refuse_unread(names, word)
        same = (each.span for each in names.occurrences if (each.symbol.kind, each.symbol.name) == ("loss", name))
        if symbol.kind == "loss" and (other := next(same, None)) is not None:  # the two would be added up
            raise ErrorWithRemedy(f"`{name}` already has a meaning at {_where(other)}", "choose another name")
        edits += [Edit(span, name) for span in spans]
    users = [
        each.document for each in documents if symbol.key[0] in (each.document.real_path, *each.document.used_paths)
    ]
    _refuse_changes(users, edits, name)
    return tuple(edits)


def _refuse_changes(documents: Sequence[Document], edits: Iterable[Edit], name: str) -> None:
    """Reads the documents again with a new name.

    Raises:
        ErrorWithRemedy: one of them has another mistake, or a word of it means something else."""
    by_path: dict[str, dict[int, Edit]] = defaultdict(dict)
    for edit in edits:
        by_path[os.path.realpath(edit.span.source.path)][edit.span.start] = edit
    texts = {each.real_path: apply_edits(each.text, by_path[each.real_path].values()) for each in documents}

    def moved(path: str, offset: int) -> int:
        before = (edit for start, edit in by_path[path].items() if start < offset)
        return offset + sum(len(edit.text) - len(edit.span.text) for edit in before)

    for old in documents:
        new = Document(old.path, texts[old.real_path], {**old.unsaved, **texts})
        before, after = _meanings(old, moved), _meanings(new, lambda path, offset: offset)
        for place in sorted(before.keys() | after.keys()):
            where = _where(Span(new.source, place, place))
            if before[place] != after[place] and len(before[place]) > 1:
                raise ErrorWithRemedy(f"the name at {where} also names something else", "rename both by hand")
            if before[place] != after[place]:
                raise ErrorWithRemedy(f"`{name}` already has a meaning at {where}", "choose another name")
        known = Counter(each.code for each in old.diagnostics)
        for each in new.diagnostics:
            known[each.code] -= 1
            if known[each.code] < 0:
                message = f"with the new name, {_where(each.span)} would have a mistake: {each.message}"
                raise ErrorWithRemedy(message, "rename it by hand")


def _meanings(document: Document, moved: Callable[[str, int], int]) -> defaultdict[int, set[tuple[str, int]]]:
    """Returns what each word of a document means: the places of definitions by that of the word."""
    meanings: defaultdict[int, set[tuple[str, int]]] = defaultdict(set)
    for place in DocumentNames(document).occurrences:
        path, start = place.symbol.key
        meanings[moved(document.real_path, place.span.start)].add((path, moved(path, start)))
    return meanings


def _refuse_unread(names: DocumentNames, word: str) -> None:
    """Refuses a rename from or to a word that stands, without a meaning, in a document with a mistake of syntax: the
    word may get a meaning when the mistake is corrected.

    Raises:
        ErrorWithRemedy: there is such a word."""
    document = names.document
    mistakes = [span for span in document.syntax_mistakes if span.source.path == document.path]
    if not mistakes:
        return
    meant = {place.span.start for place in names.occurrences}
    for piece in pieces(document.text):
        for match in re.finditer(rf"\b{word}\b", piece[0] if piece.lastgroup == "WORD" else ""):
            start = piece.start() + match.start()
            if start in meant:
                continue
            span = Span(document.source, start, start)
            mistake = next((each for each in mistakes if each.line == span.line), mistakes[0])
            use = "" if mistake.line == span.line else f" at {_where(span)}"
            message = f"{_where(mistake)} cannot be read, and may use `{word}`{use}"
            raise ErrorWithRemedy(message, "correct that line first")


def _where(span: Span) -> str:
    return f"{span.source.path}:{span.line}"


def _documents(workspace: Workspace, document: Document, symbol: Meaning, name: str) -> list[DocumentNames]:
    """Returns the files that can name a symbol, or that may use a new name of it: only its own file knows a value, an
    input or an alias; other files may know a size as an attribute, and an instance by a setting."""
    own_path, beside = document.real_path, workspace.documents_beside(document.path)
    if symbol.kind in ("instance", "size"):
        texts = _INSTANCES if symbol.kind == "instance" else (f".{symbol.name}",)
        return [
            DocumentNames(each)
            for each in beside
            if each.real_path == own_path or any(text in each.text for text in texts)
        ]
    if symbol.kind in _LOCAL:
        return [DocumentNames(document)]
    return [DocumentNames(each) for each in beside if symbol.name in each.text or name in each.text]


def _own_place(document: Document, offset: int) -> Occurrence:
    place = DocumentNames(document).at(offset)
    if place is None:
        raise ErrorWithRemedy("there is no name here that has a meaning", "place the cursor on a name")
    symbol = place.symbol
    if symbol.kind == "file" or symbol.is_of_library or _is_of_task(document, symbol):
        raise ErrorWithRemedy(f"`{symbol.name}` is not defined by this program", "rename only names of your own")
    if (use := _python_use(document, symbol)) is not None:
        raise ErrorWithRemedy(use, "rename it in Python too, by hand")
    return place


def _is_of_task(document: Document, symbol: Meaning) -> bool:
    """Whether a symbol is a size that a task gives by this name, such as `vocab`."""
    if symbol.kind != "size" or symbol.name not in TASK_SIZES:
        return False
    items = (item for item in document.program.items if item.span.contains(symbol.span))
    return any(isinstance(item, Definition | Extern) and item.word in ("model", "task") for item in items)


def _python_use(document: Document, symbol: Meaning) -> str | None:
    declaration = next((each for each in _declarations(document) if each.item.span.contains(symbol.span)), None)
    if declaration is None or not isinstance(declaration.item, Extern):
        return None
    item = declaration.item
    user = f"the class `{item.python}`" if item.python else f"the class of `{item.name}`"
    is_of_input = any(parameter.span.contains(symbol.span) for parameter in item.signature.inputs)
    if symbol.kind == "input" and item.word == "task":
        return f"{user} gives a field `{symbol.name}`"
    if symbol.kind == "static" or (symbol.kind == "size" and is_of_input and item.word == "block"):
        is_length = symbol.name in lengths_of(item, declaration.file)
        return f"{user} takes `{'mask_' if is_length else ''}{symbol.name}` as an argument"
    return None


def _declarations(document: Document) -> Iterator[Declaration]:
    file = document.resolved
    yield from (*file.own.values(), *file.used.values())
    yield from (Declaration(item, file) for item in (*file.tasks.values(), *file.optimizers.values()))
