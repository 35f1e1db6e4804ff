"""The task, the model and the optimizer that a recipe chooses."""

from collections.abc import Iterator, Mapping

from archlang.names import library
from archlang.names.resolve import ResolvedFile
from archlang.syntax.tree import AtTest, Call, Choice, Definition, Extern, Name, Node, Recipe, Row, Search, Table, Vary

# The lines that a recipe takes from its base if it has none of their kind.
_TAKEN = AtTest | Vary | Search


def chosen(file: ResolvedFile, word: str, name: str) -> Definition | Extern | None:
    """Returns what a file means by a name after `task`, `model` or `train`, an optimizer with the training settings;
    None for an unknown name."""
    if word == "task":
        return file.tasks.get(name) or library.task(name)
    if word == "train":
        own = file.optimizers.get(name)
        return library.with_settings(own) if own is not None else library.optimizer(name)
    declaration = file.find(name)
    return declaration.item if declaration is not None else None


def choices(file: ResolvedFile, name: str) -> Mapping[str, Definition | Extern]:
    """Returns what a recipe chooses, or takes from the recipes that it is based on, by the word of the line."""
    items: dict[str, Definition | Extern] = {}
    for recipe in _bases(file, name):
        for part in recipe.parts:
            if isinstance(part, Choice) and part.word not in items:
                callee = part.value.callee if isinstance(part.value, Call) else part.value
                item = chosen(file, part.word, callee.text)
                if item is not None:
                    items[part.word] = item
    return items


def recipes_with(file: ResolvedFile, recipe: Recipe, line: Node, path: Name) -> list[str]:
    """Returns the names of the recipes that have what a line of a recipe says about a static: the recipe itself, and
    those that take the line from it."""
    names = [recipe.name]
    if isinstance(line, _TAKEN):
        for name in names:
            for other in file.recipes.values():
                has_own = any(isinstance(part, type(line)) for part in other.parts)
                is_set = not isinstance(line, AtTest) and _sets(file, other, path)
                if other.base == name and other.name not in names and not has_own and not is_set:
                    names.append(other.name)
    return names


def _sets(file: ResolvedFile, recipe: Recipe, path: Name) -> bool:
    """Whether a line `task`, `model` or `train` of a recipe sets the static that a path names."""
    for part in recipe.parts:
        if isinstance(part, Choice) and part.word == path.parts[0] and isinstance(part.value, Call):
            item = chosen(file, part.word, part.value.callee.text)
            names = [static.name for static in item.signature.statics] if item is not None else []
            given = [each.name or "".join(names[place : place + 1]) for place, each in enumerate(part.value.statics)]
            if path.parts[-1] in given:
                return True
    return False


def recipes_of_rows(table: Table) -> tuple[str, ...]:
    """Returns the names of the recipes of a table's rows, each once."""
    return tuple(dict.fromkeys(part.recipe for part in table.parts if isinstance(part, Row) and part.recipe))


def _bases(file: ResolvedFile, name: str | None) -> Iterator[Recipe]:
    """Yields a recipe, the recipe that it is based on, and so on."""
    seen: set[str] = set()
    while name is not None and name not in seen and (recipe := file.recipes.get(name)) is not None:
        yield recipe
        seen.add(name)
        name = recipe.base
