"""Selects the blocks to test."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from archlang.contracts import mistakes
from archlang.diagnostics import ProgramError
from archlang.names import library
from archlang.names.resolve import Declaration, Loader, prelude
from archlang.plan.check import check
from archlang.syntax.tree import Extern


def library_blocks(names: Sequence[str] = ()) -> list[Declaration]:
    """Returns the Python blocks of the library with these names, or all of them without names.

    Raises:
        ContractError: the library has no block of a name."""
    blocks = {name: prelude(item) for name, item in library.blocks().items() if isinstance(item, Extern)}
    return _selected(blocks, names, "the library")


def program_blocks(path: str | Path, names: Sequence[str] = (), allow: Iterable[str | Path] = ()) -> list[Declaration]:
    """Returns the `extern block`s of a program with these names, or all of them without names. The program may also use
    files of the folders of `allow`.

    Raises:
        ProgramError: the program has errors.
        ContractError: the program has no block of a name, or no `extern block`."""
    errors = [diagnostic for diagnostic in check(path, allow) if diagnostic.is_error]
    if errors:
        raise ProgramError(errors)
    own = Loader(allow).load(path).own
    blocks = {name: declaration for name, declaration in own.items() if isinstance(declaration.item, Extern)}
    if not blocks:
        raise mistakes.no_blocks(path)
    return _selected(blocks, names, f"`{path}`")


def _selected(blocks: Mapping[str, Declaration], names: Sequence[str], where: str) -> list[Declaration]:
    for name in names:
        if name not in blocks:
            raise mistakes.unknown_block(name, where, blocks)
    return [blocks[name] for name in names or blocks]
