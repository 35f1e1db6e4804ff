"""The task, the model and the optimizer that a recipe chooses."""

from collections.abc import Iterator, Mapping

from archlang.resolve import library
from archlang.resolve.resolve import ResolvedFile
from archlang.syntax.tree import CallExpression, Choice, Column, Columns, Definition, Extern, Recipe, Row, Table


def chosen(file: ResolvedFile, word: str, name: str) -> Definition | Extern | None:
    """Returns what a file means by a name after `task`, `model` or `train`, an optimizer with the training settings;
    None for an unknown name."""
    if word == "task":
        return file.tasks.get(name) or library.task(name)
    if word == "train":
        own = file.optimizers.get(name)
        return library.with_settings(own) if own is not None else library.optimizer(name)
    declaration = file.declared(name)
    return declaration.item if declaration is not None else None


def choices(file: ResolvedFile, name: str) -> Mapping[str, Definition | Extern]:
    """Returns what a recipe chooses, or takes from the recipes that it is based on, by the word of the line."""
    items: dict[str, Definition | Extern] = {}
    for recipe in _bases(file, name):
        for part in recipe.parts:
            if isinstance(part, Choice) and part.word not in items:
                callee = part.value.callee if isinstance(part.value, CallExpression) else part.value
                item = chosen(file, part.word, callee.text)
                if item is not None:
                    items[part.word] = item
    return items


def recipes_of_rows(table: Table) -> tuple[str, ...]:
    """Returns the names of the recipes of a table's rows and columns, each once."""
    rows = (part.recipe for part in table.parts if isinstance(part, Row) and part.recipe)
    metrics = (part.metric.parts for part in table.parts if isinstance(part, Column | Columns))
    return tuple(dict.fromkeys((*rows, *(parts[0] for parts in metrics if len(parts) == 3))))


def _bases(file: ResolvedFile, name: str | None) -> Iterator[Recipe]:
    """Yields a recipe, the recipe that it is based on, and so on."""
    seen: set[str] = set()
    while name is not None and name not in seen and (recipe := file.recipes.get(name)) is not None:
        yield recipe
        seen.add(name)
        name = recipe.base
