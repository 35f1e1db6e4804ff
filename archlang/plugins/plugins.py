"""The Python files that a user trusts: `--plugin FILE.py`, and `plugins=["FILE.py"]` in Python.

A program names classes, as in `python "mine:Shift"`. A class outside of archlang is imported only if the user has named
its file. A file runs as it was when the user named it, and is imported under a name of its own, so it hides no other
module."""

from __future__ import annotations

import hashlib
import inspect
import os
import sys
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

from archlang.disk.os_errors import os_reason
from archlang.errors import ArchlangError
from archlang.errors.machine import is_out_of_memory
from archlang.plugins import mistakes
from archlang.plugins.mistakes import PluginError

# The folder of a run folder with the copies of its plugins.
COPIES = "plugins"
_PREFIX = "archlang_plugin_"


@dataclass(frozen=True)
class Plugin:
    """A Python file that the user has named: its absolute path, and its text at that time."""

    path: str
    text: str = field(repr=False)

    @property
    def name(self) -> str:
        """The file name, as `mine.py`."""
        return os.path.basename(self.path)

    @property
    def stem(self) -> str:
        """The name by which `python "mine:Shift"` names the file."""
        return Path(self.path).stem

    @property
    def sha256(self) -> str:
        """The digest of the text."""
        return hashlib.sha256(self.text.encode()).hexdigest()

    @property
    def module_name(self) -> str:
        """The name of the Python module, which no other module has."""
        digest = hashlib.sha256(f"{self.path}\0{self.text}".encode()).hexdigest()
        return f"{_PREFIX}{self.stem}_{digest[:12]}"


@dataclass(frozen=True)
class Plugins:
    """The Python files that the user has named. `folder` is where the program's Python is expected, for messages."""

    files: tuple[Plugin, ...] = ()
    folder: str = ""

    @staticmethod
    def read(paths: Iterable[str | Path], folder: str | Path = "") -> Plugins:
        """Returns the plugins at these paths, without running them.

        Raises:
            PluginError: a file is missing or cannot be read, or two files have the same name."""
        if isinstance(paths, str | Path) or not isinstance(paths, Iterable):
            raise mistakes.not_a_list(paths)
        files: dict[str, Plugin] = {}
        for path in dict.fromkeys(os.path.abspath(path) for path in paths):
            plugin = Plugin(path, _text(path))
            # Some file systems do not distinguish upper from lower case.
            other = files.setdefault(plugin.name.casefold(), plugin)
            if other is not plugin:
                raise mistakes.share_name(shown_path(other.path), shown_path(path))
        return Plugins(tuple(files.values()), str(folder))

    def digests(self) -> dict[str, str]:
        """Returns the digest of each file by its name."""
        return {plugin.name: plugin.sha256 for plugin in self.files}

    def require_recorded(self, digests: Mapping[str, str], folder: Path, copies: Path | None = None) -> None:
        """Compares the files with the digests that a folder of weights has recorded, by file name. `copies` is the
        folder of the copies, if there is one. Without any digest, as in a run of an older version, every file is
        accepted.

        Raises:
            PluginError: a file is missing, differs from the recorded one, or is not recorded."""
        own = self.digests()
        for name, digest in digests.items():
            if own.get(name) == digest:
                continue
            advice = "" if copies is None else mistakes.copy_to_name(copies / name, digest)
            raise (mistakes.differs if name in own else mistakes.missing)(folder, name, advice)
        for name in own:
            if digests and name not in digests:
                raise mistakes.not_recorded(folder, name)

    def require(self, python: str, user: str) -> Plugin:
        """Returns the file of the class `python` (`module:Class`). `user` is what names the class, as "`shift`".

        Raises:
            PluginError: the user has not named the file."""
        plugin = self._file_of_class(python)
        if plugin is not None:
            return plugin
        module = python.partition(":")[0]
        raise mistakes.not_trusted(user, python, Path(self.folder, f"{module.replace('.', '/')}.py"))

    def load(self, python: str, user: str) -> object:
        """Returns what `python` (`module:Class`) names, from its file, which is imported once. `user` as of `require`.

        Raises:
            PluginError: the user has not named the file, it cannot be imported, or it has no such class."""
        plugin = self.require(python, user)
        module, name = self._import(plugin), python.partition(":")[2]
        if name not in vars(module):
            own = [key for key, value in vars(module).items() if getattr(value, "__module__", "") == module.__name__]
            raise mistakes.without_name(user, shown_path(plugin.path), name, own)
        value: object = vars(module)[name]
        return value

    def qualified(self, python: str) -> str:
        """Returns `module:Class` with the name under which the module is imported, which differs for a plugin."""
        plugin = self._file_of_class(python)
        return python if plugin is None else f"{plugin.module_name}:{python.partition(':')[2]}"

    def _file_of_class(self, python: str) -> Plugin | None:
        package, _, module = python.partition(":")[0].rpartition(".")
        if package.partition(".")[0] == "archlang":
            return None
        return next((plugin for plugin in self.files if plugin.stem == module), None)

    def _import(self, plugin: Plugin) -> ModuleType:
        imported = sys.modules.get(plugin.module_name)
        if imported is not None:
            return imported
        module = ModuleType(plugin.module_name)
        module.__file__ = plugin.path
        # `dataclass` looks up the module of its class.
        sys.modules[plugin.module_name] = module
        try:
            with self._importable(self.files[: self.files.index(plugin)]):
                # The text that the user has trusted, whatever the file holds by now.
                exec(compile(plugin.text, plugin.path, "exec", dont_inherit=True), vars(module))
        except BaseException as error:  # whatever the file does
            del sys.modules[plugin.module_name]
            if is_signal(error) or is_out_of_memory(error):
                raise
            place: tuple[str, int | None] = failing_line(error) or (shown_path(plugin.path), None)
            if isinstance(error, SyntaxError) and error.filename == plugin.path:
                place = shown_path(plugin.path), error.lineno
            raise mistakes.fails(*place, error) from error
        return module

    @contextmanager
    def _importable(self, files: Iterable[Plugin]) -> Iterator[None]:
        """Within the context, `import mine` imports the plugin mine.py: a plugin may use those named before it."""
        modules = {plugin.stem: self._import(plugin) for plugin in files}
        hidden = {name: sys.modules[name] for name in modules if name in sys.modules}
        sys.modules.update(modules)
        try:
            yield
        finally:
            for name in modules:
                del sys.modules[name]
            sys.modules.update(hidden)


NO_PLUGINS = Plugins()


@dataclass(frozen=True, eq=False)
class PluginFunction:
    """A function or a class of a plugin. `user` is how messages name it, and `path` its file."""

    user: str
    path: str
    function: Callable[..., Any]  # Any: only its use says what it takes and returns

    @staticmethod
    def load(plugins: Plugins, python: str, user: str) -> PluginFunction:
        """Returns what `python` (`module:name`) names.

        Raises:
            PluginError: the user has not named the file, it cannot be imported, or the name is not that of a function
                or a class."""
        path = plugins.require(python, user).path
        function = plugins.load(python, user)
        if not callable(function):
            raise mistakes.not_callable(user, python.partition(":")[2], shown_path(path))
        return PluginFunction(user, path, function)

    def __call__(self, *arguments: object, **named: object) -> Any:  # Any: see above
        """Calls the function.

        Raises:
            PluginError: it raises an error."""
        try:
            return self.function(*arguments, **named)
        except BaseException as error:  # whatever the function does
            if isinstance(error, ArchlangError) or is_signal(error) or is_out_of_memory(error):
                raise
            raise failure_of(error) or mistakes.fails(shown_path(self.path), None, error) from error

    def wrong(self, problem: str, remedy: str) -> PluginError:
        """Returns the error that the function does something else than it must, at its first line."""
        try:
            line: int | None = inspect.getsourcelines(self.function)[1]
        except (OSError, TypeError):
            line = None
        return mistakes.wrong_result(shown_path(self.path), line, self.user, problem, remedy)


def is_signal(error: BaseException) -> bool:
    """Returns whether a signal has raised an exception. `sys.exit` has not: it raises SystemExit itself, whose subclass
    `Terminated` is that of signals."""
    return not isinstance(error, Exception) and type(error) is not SystemExit


def failure_of(error: BaseException) -> PluginError | None:
    """Returns the error of a plugin whose Python has raised an exception, at its line; None for other exceptions and
    for those of signals."""
    if is_signal(error):
        return None
    place = failing_line(error)
    return None if place is None else mistakes.fails(*place, error)


def failing_line(error: BaseException) -> tuple[str, int] | None:
    """Returns the path and the line of the innermost call in a plugin that has raised an exception; None if there is
    none."""
    lines = [
        (shown_path(frame.f_code.co_filename), line)
        for frame, line in traceback.walk_tb(error.__traceback__)
        if str(frame.f_globals.get("__name__", "")).startswith(_PREFIX)
    ]
    return lines[-1] if lines else None


def _text(path: str) -> str:
    if not os.path.isfile(path):
        raise mistakes.not_a_file(shown_path(path))
    try:
        return Path(path).read_bytes().decode()
    except OSError as error:
        raise mistakes.not_read(shown_path(path), os_reason(error)) from error
    except UnicodeDecodeError as error:
        raise mistakes.not_read(shown_path(path), "it is not UTF-8") from error


def shown_path(path: str) -> str:
    """Returns a path relative to the current folder if the file is below it."""
    relative = os.path.relpath(path)
    return path if relative.startswith(os.pardir) else relative
