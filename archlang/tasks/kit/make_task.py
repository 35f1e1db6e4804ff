"""The instance of a task from the Python class that its signature names.

A program can only cause the import of archlang's own classes. A user's own class, in a file beside the recipe, is
imported only if the user names that file (`--plugin FILE.py`)."""

import importlib
import importlib.util
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from types import ModuleType

from archlang.tasks.kit import mistakes
from archlang.tasks.kit.task import Task
from archlang.types.statics import StaticValue, Symbol

_OWN = "archlang.tasks."
# A prefix that keeps the modules of plugins apart from all others in `sys.modules`.
_PLUGINS = "archlang_plugin_"


def make_task(name: str, python: str, statics: Mapping[str, StaticValue], plugin: str = "") -> Task:
    """Returns the task `name` with these statics. Its class `python` (`module:Class`) is one of archlang's, or is in
    the file `plugin`.

    Raises:
        TaskError: there is no such class, the file cannot be imported, or the class rejects the statics."""
    module_name, _, attribute = python.partition(":")
    plain = {key: _plain(value) for key, value in statics.items()}
    if is_own(python):
        task_class = _own_class(name, python, module_name, attribute)
        try:
            return task_class(**plain)
        except TypeError as error:
            raise mistakes.rejects_statics(name, error) from error
    if not plugin:
        raise mistakes.foreign_task(name, python)
    path = Path(plugin)
    if path.stem != module_name:
        raise mistakes.other_plugin(name, python, path)
    plugin_class = getattr(import_plugin(path), attribute, None)
    if not isinstance(plugin_class, type):
        raise mistakes.plugin_without_class(path, attribute)
    try:
        task: Task = plugin_class(**plain)
    except TypeError as error:
        raise mistakes.plugin_fails(path, error) from error
    missing = [part for part in _PARTS if not hasattr(task, part)]
    if missing:
        raise mistakes.plugin_incomplete(path, attribute, missing)
    return task


def is_own(python: str) -> bool:
    """Returns whether a class is one of archlang's."""
    return python.startswith(_OWN)


def check_vocabulary(task: Task, name: str, gives: Mapping[str, int]) -> None:
    """Compares the vocabulary of a task with `vocab` of its signature.

    Raises:
        TaskError: the sizes differ."""
    if "vocab" in gives and gives["vocab"] != len(task.vocabulary):
        raise mistakes.vocabulary_differs(name, gives["vocab"], len(task.vocabulary))


def _own_class(name: str, python: str, module_name: str, attribute: str) -> Callable[..., Task]:
    """Returns one of archlang's classes. A program can name nothing else in its modules."""
    try:
        task_class = getattr(importlib.import_module(module_name), attribute, None)
    except ModuleNotFoundError:
        task_class = None
    if not isinstance(task_class, type) or task_class.__module__ != module_name:
        raise mistakes.foreign_task(name, python)
    return task_class


# The attributes of `Task`. An `isinstance` check of a runtime protocol would compute its properties.
_PARTS = (
    "kind", "breakdown", "in_distribution", "unit", "metrics", "version", "split_names", "generate",
)  # fmt: skip


def import_plugin(path: Path) -> ModuleType:
    """Returns the Python module of a plugin, imported once.

    Raises:
        TaskError: the file is missing, or importing it fails."""
    name = f"{_PLUGINS}{path.stem}"
    imported = sys.modules.get(name)
    if imported is not None and imported.__file__ == str(path.absolute()):
        return imported
    spec = importlib.util.spec_from_file_location(name, path.absolute())
    if spec is None or spec.loader is None or not path.is_file():
        raise mistakes.no_plugin(path)
    module = importlib.util.module_from_spec(spec)
    # `dataclass` looks up the module of its class.
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        del sys.modules[name]
        raise mistakes.plugin_fails(path, error) from error
    return module


def _plain(value: StaticValue) -> object:
    if isinstance(value, Symbol):
        return value.text
    if isinstance(value, tuple):
        return tuple(_plain(item) for item in value)
    return value
