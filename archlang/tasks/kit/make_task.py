"""A task from its signature's Python, with its statics settled.

Of what a program names, only archlang's own classes are imported. A class of a user's own, in a file beside the recipe,
is imported only if the user has named that file (`--plugin FILE.py`)."""

from __future__ import annotations

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
# Where the modules of plugins stand, apart from all others.
_PLUGINS = "archlang_plugin_"


def make_task(name: str, python: str, statics: Mapping[str, StaticValue], plugin: str = "") -> Task:
    """The task `name`, whose class is `python`: one of archlang's, or one of the file `plugin`.

    Raises:
        TaskError: the class is neither, the file cannot be imported, or the task cannot be made as asked."""
    module, _, attribute = python.partition(":")
    plain = {key: _plain(value) for key, value in statics.items()}
    if is_own(python):
        made = _own(name, python, module, attribute)
        task: Task = made(**plain)
        return task
    if not plugin:
        raise mistakes.foreign_task(name, python)
    place = Path(plugin)
    if place.stem != module:
        raise mistakes.other_plugin(name, python, place)
    found = getattr(import_plugin(place), attribute, None)
    if not isinstance(found, type):
        raise mistakes.plugin_without_class(place, attribute)
    try:
        task = found(**plain)
    except TypeError as error:
        raise mistakes.plugin_fails(place, error) from error
    missing = [part for part in _PARTS if not hasattr(task, part)]
    if missing:
        raise mistakes.plugin_incomplete(place, attribute, missing)
    return task


def is_own(python: str) -> bool:
    """Whether a class is one of archlang's."""
    return python.startswith(_OWN)


def check_vocabulary(task: Task, name: str, gives: Mapping[str, int]) -> None:
    """Holds a class against what its signature `gives`.

    Raises:
        TaskError: they differ."""
    if "vocab" in gives and gives["vocab"] != len(task.vocabulary):
        raise mistakes.vocabulary_differs(name, gives["vocab"], len(task.vocabulary))


def _own(name: str, python: str, module: str, attribute: str) -> Callable[..., Task]:
    """A class of archlang's. Whatever else its modules hold is not to be called by a program."""
    try:
        found = getattr(importlib.import_module(module), attribute, None)
    except ModuleNotFoundError:
        found = None
    if not isinstance(found, type) or found.__module__ != module:
        raise mistakes.foreign_task(name, python)
    return found


# What `Task` promises. A protocol with properties cannot be asked without computing them.
_PARTS = (
    "kind", "breakdown", "in_distribution", "unit", "metrics", "version", "split_names", "generate",
)  # fmt: skip


def import_plugin(place: Path) -> ModuleType:
    """The module of a plugin, imported once.

    Raises:
        TaskError: the file is not there, or does not run."""
    name = f"{_PLUGINS}{place.stem}"
    known = sys.modules.get(name)
    if known is not None and known.__file__ == str(place.absolute()):
        return known
    spec = importlib.util.spec_from_file_location(name, place.absolute())
    if spec is None or spec.loader is None or not place.is_file():
        raise mistakes.no_plugin(place)
    module = importlib.util.module_from_spec(spec)
    # Dataclasses look their own module up.
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        del sys.modules[name]
        raise mistakes.plugin_fails(place, error) from error
    return module


def _plain(value: StaticValue) -> object:
    if isinstance(value, Symbol):
        return value.text
    if isinstance(value, tuple):
        return tuple(_plain(item) for item in value)
    return value
