"""Changes of a program's text: how remedies make them, and how they are applied."""

import re
from collections.abc import Iterable

from archlang.errors.diagnostic import Edit
from archlang.errors.source import Source, Span

_BRACKETS = {"(": 1, "[": 1, "{": 1, ")": -1, "]": -1, "}": -1}
_PIECE = re.compile(r'"[^"\r\n]*"|#[^\r\n]*|[()\[\]{}]')
_COMMENT = re.compile(r'("[^"\r\n]*")|#[^\r\n]*')
_CALLEE = re.compile(r"[A-Za-z_][\w.]*")
# Words before lists.
_LIST_WORD = re.compile(r"\s*\b(?:at|best of|carry|vary|search|test)$")
_USE = re.compile(r"^use\b[^\r\n]*(?:\r?\n|\r|\Z)", re.MULTILINE)
_SIGNATURE = re.compile(r"^(?:block|model)\b[^{]*\{", re.MULTILINE)
# A comment about the whole file: an empty line follows it.
_FILE_COMMENT = re.compile(r"(?:#[^\r\n]*\r?\n)+(?:[ \t]*\r?\n)+")


def apply_edits(text: str, edits: Iterable[Edit]) -> str:
    """Returns a text with edits, whose spans are those of the text. Equal edits count once. Of two that overlap, or
    insert at the same place, the first is applied."""
    pieces: list[str] = []
    end, last = 0, -1
    for start, stop, inserted in sorted({(edit.span.start, edit.span.end, edit.text) for edit in edits}):
        if start < end or start == last:
            continue
        pieces += [text[end:start], inserted]
        end, last = stop, start
    return "".join([*pieces, text[end:]])


def insertion(source: Source, offset: int, text: str) -> Edit:
    """Returns the edit that inserts a text at an offset."""
    return Edit(Span(source, offset, offset), text)


def word_in(span: Span, word: str) -> Span | None:
    """Returns the first place of a whole word in a span; None if it has none."""
    match = re.search(rf"(?<![\w.]){re.escape(word)}(?![\w.])", span.text) or re.search(
        rf"(?<!\w){re.escape(word)}(?!\w)", span.text
    )
    return None if match is None else Span(span.source, span.start + match.start(), span.start + match.end())


def name_of_setting(value: Span, name: str) -> Span | None:
    """Returns the place of the name of a setting, as in `name = value`; None if it is not written so."""
    start, _ = value.source.line_bounds(value.line)
    match = re.search(rf"(?<!\w){re.escape(name)}(?=\s*=\s*$)", value.source.text[start : value.start])
    return None if match is None else Span(value.source, start + match.start(), start + match.end())


def without(span: Span) -> Edit:
    """Returns the edit that deletes a span with the spaces before it."""
    text = span.source.text
    start = len(text[: span.start].rstrip(" \t"))
    return Edit(Span(span.source, start, span.end), "")


def without_item(span: Span) -> Edit:
    """Returns the edit that deletes an item of a list with its comma; of an only item with its brackets, or the word
    before it, as in `at model.d = 8`."""
    source, text = span.source, span.source.text
    before = len(text[: span.start].rstrip())
    after = len(text) - len(text[span.end :].lstrip())
    if text[before - 1 : before] == ",":
        return Edit(Span(source, before - 1, span.end), "")
    if text[after : after + 1] == ",":
        end = len(text) - len(text[after + 1 :].lstrip(" \t"))
        return Edit(Span(source, span.start, end), "")
    if text[before - 1 : before] == "[" and text[after : after + 1] == "]":
        return Edit(Span(source, before - 1, after + 1), "")
    word = _LIST_WORD.search(text, max(before - 20, 0), before)
    return Edit(Span(source, word.start() if word else span.start, span.end), "")


def without_setting(value: Span, name: str) -> Edit | None:
    """Returns the edit that deletes a setting, whose value is at a place; None if it is not written so."""
    written = name_of_setting(value, name)
    return None if written is None else without_item(written.to(value))


def without_lines(span: Span) -> Edit:
    """Returns the edit that deletes a statement or a part of an item, with its lines if nothing else is on them."""
    source, text = span.source, span.source.text
    start, _ = source.line_bounds(span.line)
    _, end = source.line_bounds(source.position(span.end)[0])
    behind = text[span.end : end].strip()
    if not text[start : span.start].strip() and (not behind or behind.startswith("#")):
        return Edit(Span(source, start, end), "")
    return without(span)


def last_line(item: Span, line: str) -> Edit:
    """Returns the edit that adds a line at the end of a recipe or a table."""
    source, place = item.source, item.end - 1
    start, _ = source.line_bounds(source.position(place)[0])
    if source.text[start:place].strip():
        return insertion(source, place, f"{line} ")
    return insertion(source, start, f"    {line}\n")


def wrapped(span: Span, before: str) -> tuple[Edit, Edit]:
    """Returns the edits that write a text such as `linear[d](` before the value at a span, and the `)` after it."""
    end = ")" * before.count("(")
    return insertion(span.source, span.start, before), insertion(span.source, span.end, end)


def resized(value: Span, before: object, after: object) -> tuple[Edit, ...]:
    """Returns the edits that bring the value at a span from one number of features to another: the size of the
    `linear` that gives the value changes, or one is put around it."""
    text = value.text
    for layer in _LINEAR.finditer(text):
        is_last = _CALLEE_OF_PIPE.search(text, 0, layer.start()) if layer.end() == len(text) else layer.start() == 0
        if is_last and layer[1] == str(before) and _is_one_call(text, layer.end()):
            size = Span(value.source, value.start + layer.start(1), value.start + layer.end(1))
            return (Edit(size, str(after)),)
    return wrapped(value, f"linear[{after}](")


_LINEAR = re.compile(r"\blinear\[[ \t]*([\w.]+)[ \t]*\]")
_CALLEE_OF_PIPE = re.compile(r"\|>\s*\Z")


def _is_one_call(text: str, end: int) -> bool:
    """Whether nothing stands behind an offset but one pair of brackets with inputs."""
    return end == len(text) or (text[end] == "(" and closing_bracket(text, end) == len(text) - 1)


def static_set(call: Span, name: str, value: str) -> Edit | None:
    """Returns the edit that sets a static in a call, whose place begins with the name of its block; None if it does
    not."""
    callee = _CALLEE.match(call.text)
    if callee is None:
        return None
    source, text, place = call.source, call.source.text, call.start + callee.end()
    if text[place : place + 1] != "[":
        return insertion(source, place, f"[{name} = {value}]")
    end = closing_bracket(text, place)
    if end is None:
        return None
    written = re.search(rf"(?<![\w.]){re.escape(name)}\s*=\s*(\w+)", text[place:end])
    if written is not None:
        return Edit(Span(source, place + written.start(1), place + written.end(1)), value)
    return last_element(source, place, f"{name} = {value}")


def last_element(source: Source, opener: int, element: str) -> Edit | None:
    """Returns the edit that adds an element to the list in the brackets that open at an offset; None if they are not
    closed."""
    end = closing_bracket(source.text, opener)
    if end is None:
        return None
    inside = source.text[opener + 1 : end]
    elements = _COMMENT.sub(lambda piece: piece[1] or "", inside).rstrip()
    if elements and not elements.endswith(","):
        return insertion(source, end, f", {element}")
    if inside.rstrip().endswith(","):
        return insertion(source, opener + 1 + len(inside.rstrip()), f" {element}")
    return insertion(source, end, element)


def is_in_signature(place: Span, name: str) -> bool:
    """Returns whether the signature of the block or model around a place has a static or a size of this name."""
    signatures = _SIGNATURE.findall(place.source.text, 0, place.start)
    return bool(signatures) and re.search(rf"[\[,]\s*{re.escape(name)}\b", signatures[-1]) is not None


def features_declared(place: Span) -> str | None:
    """Returns the name of the features of a value at a place: those of the declared result in a `return`, otherwise
    `d`; None if the block or model around it has no size of this name."""
    signatures = _SIGNATURE.findall(place.source.text, 0, place.start)
    name: str | None = "d"
    if signatures and place.source.line(place.line).lstrip().startswith("return"):
        result = _FEATURES_OF_RESULT.search(signatures[-1])
        name = result and result[1]
    return name if name is not None and (name == "classes" or is_in_signature(place, name)) else None


_FEATURES_OF_RESULT = re.compile(r"->\s*(?:seq|vec|logits)\[[^\[\]]*?([A-Za-z_]\w*)\s*\]")


def closing_bracket(text: str, opener: int) -> int | None:
    """Returns the offset of the bracket that closes the one at an offset; None if none does."""
    depth = 0
    for piece in _PIECE.finditer(text, opener):
        depth += _BRACKETS.get(piece[0], 0)
        if depth == 0:
            return piece.start()
    return None


def used(source: Source, module: str) -> Edit:
    """Returns the edit that adds a `use` line, after those that a program has."""
    lines = list(_USE.finditer(source.text))
    if lines:
        line_end = "" if lines[-1][0].endswith(("\n", "\r")) else "\n"
        return insertion(source, lines[-1].end(), f"{line_end}use {module}\n")
    comment = _FILE_COMMENT.match(source.text)
    return insertion(source, comment.end() if comment else 0, f"use {module}\n\n")
