"""Words that an editor offers: the items that a file can name, and the values of a static."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from archlang.editor.document import Document
from archlang.editor.recipe_facts import RecipeFacts
from archlang.editor.symbols import Item
from archlang.plan.recipe import SEED
from archlang.resolve import library
from archlang.resolve.unused import listed_symbols
from archlang.syntax.printer import unparse
from archlang.syntax.tree import Binary, ListOf, Name, Recipe, StaticParameter, first_sentence, walk


@dataclass(frozen=True)
class Completion:
    """A word that can be written. `kind` is that of a symbol, or `keyword`, `word`, `metric`, `group`, `type` or
    `file`; `detail` is a line about it."""

    word: str
    kind: str
    detail: str = ""


def named_items(document: Document) -> Iterator[tuple[str, Item]]:
    """Yields the blocks and models that a file can name, its own first."""
    resolved = document.resolved
    for name, declaration in (*resolved.own.items(), *resolved.used.items()):
        yield name, declaration.item
    for name in sorted(library.block_names()):
        item = library.block(name)
        if item is not None:
            yield name, item


def blocks(document: Document) -> Iterator[Completion]:
    """Yields the blocks that a file can name, its own first."""
    yield from (of_item(name, item) for name, item in named_items(document) if item.word == "block")


def choices(document: Document, word: str) -> Iterator[Completion]:
    """Yields what can follow `task`, `model` or `train`."""
    resolved = document.resolved
    if word == "model":
        yield from (of_item(name, item) for name, item in named_items(document) if item.word == "model")
        return
    own, shipped = (resolved.tasks, library.tasks()) if word == "task" else (resolved.optimizers, library.optimizers())
    items: Mapping[str, Item] = {**shipped, **own}
    yield from (of_item(name, items[name]) for name in (*own, *shipped))


def of_item(name: str, item: Item | Recipe) -> Completion:
    detail = first_sentence(item.documentation)
    return Completion(name, "recipe" if isinstance(item, Recipe) else item.word, detail)


def of_static(path: str, static: StaticParameter) -> Completion:
    return Completion(path, "static", "" if static is SEED else unparse(static))


def static_values(document: Document, item: Item, name: str, recipes: RecipeFacts | None) -> Iterator[Completion]:
    """Yields what a static can be: words, blocks, or metrics of the recipes in which it stands."""
    static = next((static for static in item.signature.statics if static.name == name), None)
    if static is None:
        return
    yield from (Completion(value, "word") for value in allowed_values(item, static))
    if static.kind == "block":
        yield from blocks(document)
    is_metric = isinstance(static.default, Name) and len(static.default.parts) > 1  # not the word of a function
    if static.kind == "path" and recipes is not None and is_metric:
        yield from (Completion(metric, "metric") for metric in recipes.selecting_metrics)


def allowed_values(item: Item, static: StaticParameter) -> tuple[str, ...]:
    """Returns the words that a static of an item can be: `true` and `false`, or the symbols that its signature
    lists, else those with which its body compares it."""
    if static.kind == "bool" or unparse(static).endswith((" = true", " = false")):
        return ("true", "false")
    if listed := listed_symbols(item.signature).get(static.name):
        return listed
    is_symbol = static.kind == "symbol"
    words = {static.default.text: None} if is_symbol and isinstance(static.default, Name) else {}
    for node in walk(item if is_symbol else item.signature):
        if isinstance(node, Binary) and isinstance(node.left, Name) and node.left.text == static.name:
            compared = node.right.items if isinstance(node.right, ListOf) else (node.right,)
            words |= {each.text: None for each in compared if isinstance(each, Name)}
    return tuple(words)
