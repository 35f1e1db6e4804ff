"""What can be written at a place: names, blocks, statics with their values, and parts of recipes and tables."""

import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import replace

from archlang.editor.completion_options import Completion, static_values
from archlang.editor.definition_completion import definition_completions
from archlang.editor.document import Document
from archlang.editor.open_brackets import callee_before, is_own_bracket, item_start, open_brackets
from archlang.editor.part_completion import item_with_header, part_completions
from archlang.editor.recipe_facts import RecipeFacts, recipes_of
from archlang.editor.signature_help import argument_number
from archlang.editor.symbols import Item
from archlang.elaborate.static_arguments import parameter_kind
from archlang.errors.effort import TooMuchWork, limited
from archlang.plan.check import MOST_STEPS
from archlang.resolve import library
from archlang.syntax.printer import unparse
from archlang.syntax.tree import Choice, Name, Recipe, Table

_WORD = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.]*$")
_STATIC_VALUE = re.compile(r"([A-Za-z_]\w*)\s*=\s*$")
_ARGUMENT_START = re.compile(r"(?:^|,)\s*$")
_USE = re.compile(r"^\s*use\s+$")
_USE_FILE = re.compile(r'^\s*use\s+"([^"]*)$')
# The keywords before the items that are no blocks.
_CHOICES = {"task": "task", "optimizer": "train"}
_RECIPE = re.compile(r"(?:recipe|table)\b")
# A line outside of comments and strings.
_CODE = re.compile(r'(?:[^"#]|"[^"]*")*+')


def completions(document: Document, offset: int, files: Callable[[], Iterable[str]] = tuple) -> tuple[Completion, ...]:
    """Returns what can be written at an offset, the likeliest first, each word once. `files` lists the paths that a
    `use` line of the document can name."""
    text = document.text
    start = word_start(text, offset)
    by_word: dict[str, Completion] = {}
    with suppress(TooMuchWork), limited(MOST_STEPS):
        for completion in _completions(document, start, files):
            by_word.setdefault(completion.word, completion)
    return tuple(by_word.values())


def word_start(text: str, offset: int) -> int:
    """Returns the start of the word that ends at an offset, dots included, or of the path of a file, which a completion
    replaces."""
    line_start = text.rfind("\n", 0, offset) + 1
    if path := _USE_FILE.match(text[line_start:offset]):
        return line_start + path.start(1)
    begun = _WORD.search(text, line_start, offset)
    return begun.start() if begun else offset


def _completions(document: Document, start: int, files: Callable[[], Iterable[str]]) -> Iterator[Completion]:
    text = document.text
    line = text[text.rfind("\n", 0, start) + 1 : start]
    if _USE_FILE.match(line):
        yield from (Completion(file, "file") for file in files())
        return
    if not _CODE.fullmatch(line):
        return
    if _USE.match(line):
        yield from (Completion(file, "file") for file in library.library_files())
        return
    brackets = open_brackets(text, start)
    header = item_start(text, start)
    is_recipe = _RECIPE.match(text, header) is not None and (bool(brackets) or "{" not in text[header:start])
    callee, block = callee_before(document, brackets[-1][1]) if brackets else ("", None)
    kind: str | None = None
    is_call = bool(callee) and not is_own_bracket(text, brackets[-1][1])
    if is_call and brackets[-1][0] == "[" and not (is_recipe and block is None):
        written = text[brackets[-1][1] + 1 : start]
        if block is not None:
            recipes = recipes_of(document.resolved, _with_choice(document, header, block)) if is_recipe else None
            yield from _statics(document, block, written, recipes)
            kind = _kind_of_static(document, block, written)
        if is_recipe:
            return
    elif is_recipe:
        yield from part_completions(document, header, brackets[0][1] if brackets else None, start)
        return
    yield from definition_completions(document, header, start, kind)


def _with_choice(document: Document, header: int, chosen: Item) -> Recipe | Table | None:
    """Returns the recipe or the table whose word is at an offset, with the task or the optimizer of a half-written
    line."""
    item, word = item_with_header(document, header), _CHOICES.get(chosen.word)
    if not isinstance(item, Recipe) or word is None:
        return item
    if any(isinstance(part, Choice) and part.word == word for part in item.parts):
        return item
    name = Name(span=item.name_span, parts=(chosen.name,))
    return replace(item, parts=(*item.parts, Choice(span=item.name_span, word=word, value=name)))


def _statics(document: Document, item: Item, before: str, recipes: RecipeFacts | None) -> Iterator[Completion]:
    """The statics of a block that are not set yet; after `name =`, its values."""
    value = _STATIC_VALUE.search(before)
    if value:
        yield from static_values(document, item, value[1], recipes)
        return
    if not _ARGUMENT_START.search(before):
        return
    written = set(re.findall(r"([A-Za-z_][\w.]*)\s*=(?!=)", before))
    for static in item.signature.statics:
        if static.name not in written:
            yield Completion(f"{static.name} = ", "static", unparse(static))
    if recipes is not None and item.word == "optimizer":
        yield from (Completion(f"{name} = ", "static", "float") for name in recipes.weights if name not in written)


def _kind_of_static(document: Document, item: Item, before: str) -> str | None:
    number = argument_number(item, "[", before)
    statics = item.signature.statics
    return parameter_kind(statics[number], document.resolved) if number < len(statics) else None
