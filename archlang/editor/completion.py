"""What can be written at a place: names in scope, blocks, statics with their values, tasks and settings."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from archlang.editor.document import Document
from archlang.editor.open_brackets import callee_before, item_named, open_brackets
from archlang.editor.symbols import Item, Names
from archlang.names import library
from archlang.syntax.outline import ITEM_WORDS, PART_WORDS, STATEMENT_WORDS
from archlang.syntax.printer import unparse
from archlang.syntax.tree import Binary, Definition, Expression, ListOf, Name, Node, Recipe, StaticParameter
from archlang.syntax.walk import walk

_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_.]*$")
_STATIC_VALUE = re.compile(r"([A-Za-z_]\w*)\s*=\s*$")
_USE = re.compile(r"^\s*use\s+$")
_PART = re.compile(r"^\s*(task|model|train)\s+$")
_SETTINGS = re.compile(r"^\s*(vary|search|test|claim)\b.*$")


@dataclass(frozen=True)
class Completion:
    """A word that can be written. `kind` is that of a symbol, or `keyword`, `word` or `file`; `detail` is a line about
    it."""

    word: str
    kind: str
    detail: str = ""


def completions(document: Document, offset: int) -> tuple[Completion, ...]:
    """Returns what can be written at an offset, the likeliest first, each word once."""
    text = document.text
    begun = _WORD.search(text, text.rfind("\n", 0, offset) + 1, offset)
    start = begun.start() if begun else offset
    by_word: dict[str, Completion] = {}
    for completion in _completions(document, start, begun[0] if begun else ""):
        by_word.setdefault(completion.word, completion)
    return tuple(by_word.values())


def _completions(document: Document, start: int, begun: str) -> Iterator[Completion]:
    text = document.text
    line = text[text.rfind("\n", 0, start) + 1 : start]
    if "#" in line:
        return
    if _USE.match(line):
        yield from (Completion(file, "file") for file in library.library_files())
        return
    part = _PART.match(line)
    item = _item_at(document, start)
    if part and not isinstance(item, Definition):
        yield from _choices(document, part[1])
        return
    brackets = open_brackets(text, start)
    callee, block = callee_before(document, brackets[-1][1]) if brackets else ("", None)
    if callee and brackets[-1][0] == "[":
        if block is not None:
            yield from _statics(block, text[brackets[-1][1] + 1 : start])
        if not block or not isinstance(item, Definition):
            return
    elif isinstance(item, Recipe) or _in_recipe(text, brackets):
        if "." in begun or _SETTINGS.match(line):
            yield from _settings(document, text, start)
        elif not line.strip():
            yield from (Completion(word, "keyword") for word in PART_WORDS if not word.startswith(("row", "column")))
        return
    elif not brackets:
        if not line.strip():
            yield from (Completion(word, "keyword") for word in ITEM_WORDS)
        return
    yield from _names_in_scope(document, start)
    if brackets[-1][0] == "{" and not line.strip():
        yield from (Completion(word, "keyword") for word in STATEMENT_WORDS)
    yield from (_of_item(name, item) for name, item in _blocks(document))


def _item_at(document: Document, offset: int) -> Node | None:
    return next((item for item in document.program.items if item.span.start <= offset <= item.span.end), None)


def _in_recipe(text: str, brackets: Sequence[tuple[str, int]]) -> bool:
    if not brackets:
        return False
    head = text[text.rfind("\n", 0, brackets[0][1]) + 1 : brackets[0][1]]
    return head.lstrip().startswith("recipe")


def _blocks(document: Document) -> Iterator[tuple[str, Item]]:
    resolved = document.resolved
    for name, declaration in (*resolved.own.items(), *resolved.used.items()):
        yield name, declaration.item
    for name in sorted(library.block_names()):
        item = library.block(name)
        if item is not None:
            yield name, item


def _choices(document: Document, word: str) -> Iterator[Completion]:
    resolved = document.resolved
    if word == "task":
        yield from (_of_item(name, item) for name, item in (*resolved.tasks.items(), *library.tasks().items()))
    elif word == "train":
        yield from (
            _of_item(name, item) for name, item in (*resolved.optimizers.items(), *library.optimizers().items())
        )
    else:
        yield from (_of_item(name, item) for name, item in _blocks(document) if item.word == "model")


def _of_item(name: str, item: Item) -> Completion:
    detail = item.documentation[0] if item.documentation else ""
    return Completion(name, item.word, detail)


def _statics(item: Item, before: str) -> Iterator[Completion]:
    """The statics of a block that are not set yet; after `name =`, the values that are allowed."""
    value = _STATIC_VALUE.search(before)
    if value:
        yield from (Completion(word, "word") for word in allowed_values(item, value[1]))
        return
    written = set(re.findall(r"([A-Za-z_]\w*)\s*=(?!=)", before))
    for static in item.signature.statics:
        if static.name not in written:
            yield Completion(f"{static.name} = ", "static", unparse(static))


def allowed_values(item: Item, name: str) -> tuple[str, ...]:
    """Returns the words that a static can be: `true` and `false`, or the symbols that the signature lists."""
    static = next((static for static in item.signature.statics if static.name == name), None)
    if static is None:
        return ()
    if static.kind == "bool" or unparse(static).endswith((" = true", " = false")):
        return ("true", "false")
    words: dict[str, None] = {}
    for condition in item.signature.where:
        for node in walk(condition):
            if isinstance(node, Binary) and _is_name(node.left, name):
                if node.operator == "in" and isinstance(node.right, ListOf):
                    words |= {each.text: None for each in node.right.items if isinstance(each, Name)}
                elif node.operator == "==" and isinstance(node.right, Name):
                    words[node.right.text] = None
    if static.kind == "symbol" and isinstance(static.default, Name):
        words.setdefault(static.default.text)
    return tuple(words)


def _is_name(expression: Expression, name: str) -> bool:
    return isinstance(expression, Name) and expression.text == name


def _settings(document: Document, text: str, offset: int) -> Iterator[Completion]:
    """The paths of a recipe's settings."""
    head = text.rfind("recipe ", 0, offset)
    yield Completion("seed", "word")
    for word, name in re.findall(r"^\s*(task|model|train)\s+([A-Za-z_][\w.]*)", text[head:], re.MULTILINE)[:3]:
        item = item_named(document, name, f"{word} ", offset)
        statics: Iterable[StaticParameter] = item.signature.statics if item is not None else ()
        yield from (Completion(f"{word}.{static.name}", "static", unparse(static)) for static in statics)


def _names_in_scope(document: Document, offset: int) -> Iterator[Completion]:
    """The names of the block around an offset that are bound before it, the nearest first."""
    item = _item_at(document, offset)
    if item is None:
        return
    places = [
        place
        for place in Names(document).occurrences
        if item.span.start <= place.symbol.span.start < offset
        and place.symbol.span == place.span
        and place.symbol.kind in ("value", "instance", "input", "static", "size")
    ]
    for place in reversed(places):
        kind = document.types.get((place.span.start, place.span.end))
        detail = str(kind) if kind is not None else place.symbol.kind
        yield Completion(place.symbol.name, place.symbol.kind, detail)
