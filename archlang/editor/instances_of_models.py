"""The instances that a model names, also in the blocks of its program that it calls."""

from collections.abc import Iterable, Iterator

from archlang.names.resolve import Declaration, is_shipped
from archlang.syntax.tree import Definition, Let, Name
from archlang.syntax.walk import walk


def lets(name: str, models: Iterable[Declaration]) -> Iterator[Let]:
    """Yields the `let` of each instance of a name in some models and the blocks that they use."""
    declarations = [*models]
    seen = {id(each.item) for each in declarations}
    for declaration in declarations:
        if not isinstance(declaration.item, Definition) or is_shipped(declaration.file):
            continue
        for node in walk(declaration.item.body):
            if isinstance(node, Let) and node.name == name:
                yield node
            used = declaration.file.find(node.text) if isinstance(node, Name) else None
            if used is not None and id(used.item) not in seen:
                seen.add(id(used.item))
                declarations.append(used)
