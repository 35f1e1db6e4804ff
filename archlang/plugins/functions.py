"""Functions and classes of a user's own that a run calls, with the place of their errors."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from archlang.errors import ArchlangError
from archlang.errors.machine import is_out_of_memory
from archlang.plugins import mistakes
from archlang.plugins.mistakes import PluginError
from archlang.plugins.plugins import Plugins, failure_of, is_signal, shown_path


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
