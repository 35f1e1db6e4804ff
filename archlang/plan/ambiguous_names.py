"""Mistakes that may follow from a name with two definitions: which of them is meant is unknown."""

import re
from collections.abc import Iterable, Sequence

from archlang.diagnostics import Diagnostic
from archlang.diagnostics.effort import spend
from archlang.names.resolve import ResolvedFile
from archlang.source import Span
from archlang.syntax.tree import Definition, Extern, Item, Recipe, Table

_DEFINED_TWICE = "E0204"
_BOUND_TWICE = "E0205"
# Names, statics, lines and titles that are there twice do not follow from anything else.
_TWICE = frozenset({_DEFINED_TWICE, _BOUND_TWICE, "E0306", "E0602", "E0611"})
# Neither do unknown values and blocks.
_INDEPENDENT = _TWICE | {"E0201", "E0202"}


def items_in_doubt(resolved: ResolvedFile, diagnostics: Iterable[Diagnostic]) -> Sequence[Item]:
    """Returns the items that name something with two definitions, directly or by an item that does, and those with
    two statics of one name. A second definition is not in doubt itself."""
    spans = [mistake.span for mistake in diagnostics if mistake.code in (_DEFINED_TWICE, _BOUND_TWICE)]
    if not spans:
        return ()
    used = [declaration.item for declaration in resolved.used.values()]
    named = (
        item for item in (*resolved.program.items, *used) if isinstance(item, Definition | Extern | Recipe | Table)
    )
    words = [(item, _words(item)) for item in named]
    # The names of items that are defined twice, and of items with two statics or inputs of one name.
    names = {item.name for item, _ in words if any(_is_of_signature(span, item) for span in spans)}
    names |= {mistake.span.text for mistake in diagnostics if mistake.code == _DEFINED_TWICE}
    doubtful = [item for item, _ in words if any(_is_static(span, item) for span in spans)]
    while users := [item for item, item_words in words if item not in doubtful and names & item_words]:
        doubtful += users
        names |= {item.name for item in users}
    return doubtful


def follows(diagnostic: Diagnostic, doubtful: Sequence[Item]) -> bool:
    """Whether a diagnostic may follow from a name with two definitions."""
    return diagnostic.code not in _INDEPENDENT and any(_contains(item.span, diagnostic.span) for item in doubtful)


def is_of_second_recipe(diagnostic: Diagnostic, mistakes: Iterable[Diagnostic]) -> bool:
    """Whether a recipe lacks a part that may be meant to come from the first recipe of its name."""
    return diagnostic.code == "E0601" and any(
        mistake.code == _DEFINED_TWICE and mistake.span == diagnostic.span for mistake in mistakes
    )


def _words(item: Definition | Extern | Recipe | Table) -> set[str]:
    """Returns the words of an item without the name that it defines."""
    text, name = item.span.text, item.name_span
    words = re.findall(r"\w+", text[: name.start - item.span.start] + text[name.end - item.span.start :])
    spend(len(words) // 20)
    return set(words)


def _is_of_signature(span: Span, item: Item) -> bool:
    if not isinstance(item, Definition | Extern):
        return False
    return any(part.span is span for part in (*item.signature.statics, *item.signature.inputs))


def _is_static(span: Span, item: Item) -> bool:
    return isinstance(item, Definition | Extern) and any(part.span is span for part in item.signature.statics)


def _contains(outer: Span, inner: Span) -> bool:
    return outer.source is inner.source and outer.start <= inner.start and inner.end <= outer.end
