"""Python files of a user's own, which are run because the user has named them (`--plugin FILE.py`)."""

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
    """Within it, `python "mine:Shift"` names the class of the plugin mine.py, whether or not Python would find it.

    Raises:
        TaskError: a plugin is not there, or does not run."""
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
    """Refuses blocks whose Python is neither archlang's nor a plugin's.

    Raises:
        ContractError: there is such a block, a plugin is no file, or two plugins have one name."""
    names: dict[str, Path] = {}
    for plugin in plugins:
        if not plugin.is_file():
            raise mistakes.no_plugin(plugin)
        if names.setdefault(plugin.stem, plugin) != plugin:
            raise mistakes.plugins_of_one_name(names[plugin.stem], plugin)
    trusted = {plugin.stem for plugin in plugins}
    for declaration in declarations:
        item = declaration.item
        assert isinstance(item, Extern)
        if not item.python.startswith(_LIBRARY) and item.python.partition(":")[0] not in trusted:
            raise mistakes.foreign_block(item.name, item.python)
