"""Imports the Python files that a user names with `--plugin FILE.py`."""

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from archlang.contracts import mistakes
from archlang.names.resolve import Declaration
from archlang.syntax.tree import Extern
from archlang.tasks.kit.make_task import import_plugin

_LIBRARY = "archlang.blocks."


@contextmanager
def importable(plugins: Sequence[Path]) -> Iterator[None]:
    """Makes plugins importable by their stems: within the context, `python "mine:Shift"` names a class of mine.py.

    Raises:
        TaskError: a plugin is missing, or its import raises an error."""
    modules = {plugin.stem: import_plugin(plugin) for plugin in plugins}
    hidden = {name: sys.modules[name] for name in modules if name in sys.modules}
    sys.modules.update(modules)
    try:
        yield
    finally:
        for name in modules:
            del sys.modules[name]
        sys.modules.update(hidden)


def require_trust(declarations: Sequence[Declaration], plugins: Sequence[Path]) -> None:
    """Checks that the class of each block is archlang's or in a plugin, so that no other Python of a program runs.

    Raises:
        ContractError: a class is elsewhere, a plugin is not a file, or two plugins have the same name."""
    names: dict[str, Path] = {}
    for plugin in plugins:
        if not plugin.is_file():
            raise mistakes.no_plugin(plugin)
        if names.setdefault(plugin.stem, plugin) != plugin:
            raise mistakes.plugins_share_name(names[plugin.stem], plugin)
    trusted = {plugin.stem for plugin in plugins}
    for declaration in declarations:
        item = declaration.item
        assert isinstance(item, Extern)
        if not item.python.startswith(_LIBRARY) and item.python.partition(":")[0] not in trusted:
            raise mistakes.foreign_block(item.name, item.python)
