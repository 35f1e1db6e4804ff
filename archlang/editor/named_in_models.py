"""The instances and the auxiliary losses that a model names, also in the blocks of its program that it calls."""

from collections.abc import Iterable, Iterator
from itertools import islice

from archlang.names.resolve import Declaration, is_shipped
from archlang.syntax.tree import Definition, Let, Loss, Name
from archlang.syntax.walk import walk


def lets(name: str, models: Iterable[Declaration]) -> Iterator[Let]:
    """Yields the `let` of each instance of a name in some models and the blocks that they use, without shipped ones."""
    for declaration in _definitions(models):
        if not is_shipped(declaration.file):
            yield from (node for node in walk(declaration.item) if isinstance(node, Let) and node.name == name)


def losses(name: str, models: Iterable[Declaration]) -> Iterator[Loss]:
    """Yields the first auxiliary loss of a name in each of some models and the blocks that they use."""
    for declaration in _definitions(models):
        named = (node for node in walk(declaration.item) if isinstance(node, Loss) and node.name == name)
        yield from islice(named, 1)


def _definitions(models: Iterable[Declaration]) -> Iterator[Declaration]:
    """Yields some models and the blocks that they use, each once."""
    declarations = [*models]
    seen = {id(each.item) for each in declarations}
    for declaration in declarations:
        if not isinstance(declaration.item, Definition):
            continue
        yield declaration
        for node in walk(declaration.item):
            used = declaration.file.find(node.text) if isinstance(node, Name) else None
            if used is not None and id(used.item) not in seen:
                seen.add(id(used.item))
                declarations.append(used)
