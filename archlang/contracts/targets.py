"""The blocks that a command line names."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from archlang.contracts import mistakes
from archlang.diagnostics import ProgramError
from archlang.names import library
from archlang.names.resolve import Declaration, Loader, prelude
from archlang.plan.check import check
from archlang.syntax.tree import Extern


def library_blocks(names: Sequence[str] = ()) -> list[Declaration]:
    """The blocks of the library that are Python, or those of them that are named.

    Raises:
        ContractError: there is no such block."""
    found = {name: prelude(item) for name, item in library.blocks().items() if isinstance(item, Extern)}
    return _chosen(found, names, "the library")


def program_blocks(path: str | Path, names: Sequence[str] = ()) -> list[Declaration]:
    """The `extern block`s of a program, or those of them that are named.

    Raises:
        ProgramError: the program has mistakes.
        ContractError: it has no such block, or none at all."""
    errors = [found for found in check(path) if found.is_error]
    if errors:
        raise ProgramError(errors)
    own = Loader().load(path).own
    found = {name: one for name, one in own.items() if isinstance(one.item, Extern)}
    if not found:
        raise mistakes.no_blocks(path)
    return _chosen(found, names, f"`{path}`")


def _chosen(found: Mapping[str, Declaration], names: Sequence[str], where: str) -> list[Declaration]:
    for name in names:
        if name not in found:
            raise mistakes.unknown_block(name, where, found)
    return [found[name] for name in names or found]
