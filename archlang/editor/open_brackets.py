"""The brackets that are open at a place, and the block that each belongs to."""

import re

from archlang.editor.document import Document
from archlang.editor.recipe_choices import chosen
from archlang.editor.symbols import Item
from archlang.resolve import library

# A line that begins a part of a recipe, or a statement, ends the brackets before it, which are half written.
_PIECE = re.compile(
    r"""
    "[^"\r\n]*" | \#[^\r\n]* | [()\[\]{}]
    | ^[ \t]* (?P<line> task|model|train|test|vary|search|claim|return|let|emit|loss|repeat|stack) [ \t]+
      (?=[\w("\[-]|$)
    """,
    re.MULTILINE | re.VERBOSE,
)
_ITEM = re.compile(r"(?:use|block|extern|recipe|table)\b|model\s+\w+\s*[\[(]")
_CALLEE = re.compile(r"([A-Za-z_][A-Za-z0-9_.]*)\s*$")
# An item before the brackets of its signature.
_HEADER = re.compile(r"(?:extern\s+)?\w+\s+\w+\s*")
_LOOP = re.compile(r"\b(?:repeat|stack|scan|experts)\b[^{}\n]*$")
_LET = r"\blet\s+{}\s*=\s*([A-Za-z_][\w.]*)"


def open_brackets(text: str, end: int) -> list[tuple[str, int]]:
    """Returns the brackets of an item that are open at an offset, outer before inner, with their offsets."""
    brackets: list[tuple[str, int]] = []
    for piece in _PIECE.finditer(text, item_start(text, end), end):
        if piece["line"]:
            while brackets and brackets[-1][0] != "{":
                brackets.pop()
        elif piece[0] in ("(", "[", "{"):
            brackets.append((piece[0], piece.start()))
        elif piece[0] in (")", "]", "}") and brackets:
            brackets.pop()
    return brackets


def item_start(text: str, offset: int) -> int:
    """Returns the start of the item that contains an offset."""
    start = offset
    while (line_end := text.rfind("\n", 0, start)) != -1:
        if _ITEM.match(text, line_end + 1):
            return line_end + 1
        start = line_end
    return 0


def is_own_bracket(text: str, bracket: int) -> bool:
    """Whether a bracket is one of the signature of the item around it."""
    header = item_start(text, bracket)
    return _ITEM.match(text, header) is not None and _HEADER.fullmatch(text, header, bracket) is not None


def loop_start(text: str, offset: int) -> int | None:
    """Returns the start of the line that opens the innermost loop around an offset, also of a loop that nothing closes;
    None if there is none."""
    for bracket, place in reversed(open_brackets(text, offset)):
        line = text.rfind("\n", 0, place) + 1
        if bracket == "{" and _LOOP.search(text[line:place]):
            return line
    return None


def callee_before(document: Document, offset: int) -> tuple[str, Item | None]:
    """Returns the name before a bracket, and the block, task or optimizer that it names, if there is any."""
    text = document.text
    named = _CALLEE.search(text, text.rfind("\n", 0, offset) + 1, offset)
    if named is None:
        return "", None
    line = text[text.rfind("\n", 0, named.start()) + 1 : named.start()]
    return named[1], item_named(document, named[1], line, offset)


def item_named(document: Document, name: str, line: str, offset: int) -> Item | None:
    """Returns what a name before an offset stands for; `line` is the line before the name."""
    word = line.split()[0] if line.split() else ""
    if word in ("task", "train"):
        return chosen(document.resolved, word, name)
    instance = re.search(_LET.format(re.escape(name)), document.text[item_start(document.text, offset) : offset])
    declaration = document.resolved.declared(instance[1] if instance else name)
    if declaration is not None:
        return declaration.item
    return library.task(name) or library.optimizer(name)
