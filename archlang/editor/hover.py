"""What is under the cursor, in Markdown: types, signatures and documentation, costs and dependences."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import groupby

from archlang.editor.details import call_details, item_details, static_details, value_details
from archlang.editor.document import Document
from archlang.editor.open_brackets import callee_before, open_brackets
from archlang.editor.symbols import DocumentNames, Item, Meaning
from archlang.errors import Span
from archlang.errors.effort import memoized
from archlang.resolve import library
from archlang.syntax.printer import signature_text, unparse
from archlang.syntax.tree import CallExpression, Definition, Extern, Let, Use, sentences, walk
from archlang.types import Type


@dataclass(frozen=True)
class Hover:
    """A text in Markdown about a place."""

    span: Span
    text: str


@dataclass(frozen=True)
class Hint:
    """A text that an editor shows at an offset, as if it were written there."""

    offset: int
    text: str


def hover(document: Document, offset: int) -> Hover | None:
    """Returns what is known about the name at an offset; None if there is no name, or none that has a meaning."""
    place = DocumentNames(document).at(offset)
    if place is None:
        return None
    symbol, kind = place.symbol, _type_at(document, place.span)
    if symbol.item is not None:
        is_call = kind is not None
        details = _markdown_list(call_details(document, place.span) if is_call else item_details(document, symbol.item))
        text = f"{describe(symbol.item)}{details}"
        if is_call:
            text = f"```arch\n{place.span.text}(…): {kind}\n```{details}\n\n{describe(symbol.item)}"
    elif symbol.kind == "instance":
        text = _instance_and_block(document, symbol)
        if kind is not None:
            text = (
                f"```arch\n{symbol.name}(…): {kind}\n```{_markdown_list(call_details(document, place.span))}\n\n{text}"
            )
    elif symbol.kind == "value" or kind is not None:
        shown = f"{symbol.name}: {kind}" if kind is not None else f"value {symbol.name}"
        text = f"```arch\n{shown}\n```{_markdown_list(value_details(document, symbol))}"
    elif symbol.kind == "file":
        text = f"`{symbol.span.source.path}`"
    elif symbol.kind == "alias":
        text = _use_line_of_alias(document, symbol)
    else:
        text = f"```arch\n{_declaration(symbol)}\n```\n\n{symbol.kind}"
        if symbol.static is not None:
            item = _item_around(document, offset)
            text += _about_static(item, symbol) + _markdown_list(static_details(symbol, item))
    return Hover(place.span, text)


def _item_around(document: Document, offset: int) -> Item | None:
    """Returns what the statics at an offset belong to: the callee before the bracket around them."""
    opener = next((place for bracket, place in reversed(open_brackets(document.text, offset)) if bracket == "["), None)
    return None if opener is None else callee_before(document, opener)[1]


def _about_static(item: Item | None, symbol: Meaning) -> str:
    settings = library.training_settings()
    for documented in (item, settings) if isinstance(item, Extern) and item.word == "optimizer" else (item,):
        lines = () if documented is None else documented.documentation
        prose = " ".join(line for line in lines if line and not line.startswith("    "))
        for sentence in sentences(prose):
            if f"`{symbol.name}`" in sentence or f"`{symbol.name} =" in sentence:
                return "\n\n" + next(iter(paragraphs([sentence])))
    return ""


def _use_line_of_alias(document: Document, symbol: Meaning) -> str:
    uses = (item for item in document.program.items if isinstance(item, Use) and item.alias_span == symbol.span)
    use = next(uses, None)
    if use is None:
        return f"alias `{symbol.name}`"
    files = (place.symbol for place in DocumentNames(document).occurrences if place.span == use.path_span)
    file = next((f"\n\nFile: `{file.span.source.path}`" for file in files), "")
    return f"```arch\nuse {use.path_span.text} as {symbol.name}\n```\n\nalias{file}"


def _markdown_list(details: Iterable[str]) -> str:
    lines = [f"- {detail}." for detail in details]
    return "\n\n" + "\n".join(lines) if lines else ""


def describe(item: Item) -> str:
    """Returns the signature, the documentation and the source of a block, a model, a task or an optimizer."""
    lines = [f"```arch\n{signature_text(item)}\n```", *paragraphs(item.documentation)]
    if isinstance(item, Extern) and item.python and item.body is None:
        lines.append(f"Python: `{item.python}`")
    lines.append(f"File: `{item.span.source.path}:{item.span.line}`")
    return "\n\n".join(lines)


def _instance_and_block(document: Document, symbol: Meaning) -> str:
    let = _let(document, symbol)
    if let is None:
        return f"```arch\nlet {symbol.name}\n```\n\ninstance"
    text = f"```arch\nlet {let.name} = {unparse(let.value)}\n```"
    callee = let.value.callee if isinstance(let.value, CallExpression) else let.value
    place = DocumentNames(document).at(callee.span.end)
    if place is None or place.symbol == symbol:
        return f"{text}\n\ninstance"
    block = place.symbol
    described = f"```arch\n{_declaration(block)}\n```" if block.item is None else describe(block.item)
    return f"{text}\n\ninstance of `{block.name}`\n\n{described}"


def hints(document: Document, start: int = 0, end: int | None = None) -> tuple[Hint, ...]:
    """Returns the type of each value that a statement binds, to show after its name, in the blocks between two
    offsets."""
    end = len(document.text) if end is None else end
    names, hints = DocumentNames(document), list[Hint]()
    for item in document.program.items:
        if isinstance(item, Definition) and item.span.start <= end and start <= item.span.end:
            content = document.resolved.content_of(item) if document.has_types else None
            of_item = memoized(content and ("hints", content), partial(_hints_within, names, item))
            hints += [Hint(item.span.start + offset, text) for offset, text in of_item]
    return tuple(sorted(hints, key=lambda hint: hint.offset))


def _hints_within(names: DocumentNames, item: Definition) -> list[tuple[int, str]]:
    types = names.document.types_of(item)
    by_place = {
        place.span.end - item.span.start: f": {kind}"
        for place in names.within(item)
        if (kind := types.get((place.span.start, place.span.end))) is not None
        and (place.symbol.kind, place.symbol.span) == ("value", place.span)
    }
    return list(by_place.items())


def _type_at(document: Document, span: Span) -> Type | None:
    item = next((item for item in document.program.items if item.span.contains(span)), None)
    types = document.types_of(item)
    exact = types.get((span.start, span.end))
    if exact is not None:
        return exact
    calls = [(end, kind) for (start, end), kind in types.items() if start == span.start and end > span.end]
    # A pipe begins with its first value; its last stage is a shorter place.
    following = document.text[span.end : span.end + 1]
    return min(calls, key=lambda call: call[0])[1] if calls and following in ("[", "(") else None


def _declaration(symbol: Meaning) -> str:
    return unparse(symbol.static) if symbol.static is not None else f"{symbol.kind} {symbol.name}"


# The last words before the lines of a program; other indented lines are equations and tables.
_EXAMPLE = "Example:"
_CODE = re.compile(r"(`[^`]+`)")
# What Markdown would read as a link, as emphasis, or, at the beginning of a line, as a heading or a quotation.
_SIGN = re.compile(r"[\\`*\[\]]|(?<!\w)_|_(?!\w)|^[ \t]*[#>]", re.MULTILINE)
_FENCE = re.compile(r"`{3,}")


def paragraphs(documentation: Iterable[str]) -> Iterator[str]:
    """Yields the parts of a documentation in Markdown, with the indented lines as code."""
    language = "text"
    for is_code, group in groupby(documentation, lambda line: not line or line.startswith("    ")):
        text = "\n".join(line.removeprefix("    ") for line in group).strip("\n")
        if is_code and text:
            fence = "`" * max(2, *map(len, ["", *_FENCE.findall(text)])) + "`"
            yield f"{fence}{language}\n{text}\n{fence}"
        elif text:
            yield "".join(part if place % 2 else _without_markup(part) for place, part in enumerate(_CODE.split(text)))
            language = "arch" if text.endswith(_EXAMPLE) else "text"


def _without_markup(text: str) -> str:
    escaped = _SIGN.sub(lambda sign: f"{sign[0][:-1]}\\{sign[0][-1]}", text)
    return escaped.replace("&", "&amp;").replace("<", "&lt;")


def _let(document: Document, symbol: Meaning) -> Let | None:
    items = (item for item in document.program.items if item.span.contains(symbol.span))
    nodes = (node for item in items for node in walk(item))
    return next((node for node in nodes if isinstance(node, Let) and node.name_span == symbol.span), None)
