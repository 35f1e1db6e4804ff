"""The wording of errors about Python files of a user's own."""

import shlex
from collections.abc import Sequence
from pathlib import Path

from archlang.errors import ErrorWithRemedy
from archlang.errors.names import listed


class PluginError(ErrorWithRemedy):
    """A class of a user's own cannot be imported, or its file is not among the plugins."""


def option(path: object) -> str:
    """Returns how a user names a plugin on the command line.

    >>> option("my blocks/shift.py")
    "`--plugin 'my blocks/shift.py'`"
    """
    return f"`--plugin {shlex.quote(str(path))}`"


def not_trusted(user: str, python: str, path: object) -> PluginError:
    message = f"{user} is Python of its own, `{python}`, which runs only if you name its file"
    remedy = f"read {path}, and if you trust it, add {option(path)}; in Python, pass `plugins=[{str(path)!r}]`"
    return PluginError(message, remedy)


not_a_list = PluginError.wording("`plugins` is {paths!r}", 'pass a list of Python files, as in `plugins=["mine.py"]`')
not_a_file = PluginError.wording(
    "{path} is not a Python file", "write the path relative to the current folder after `--plugin`"
)
not_read = PluginError.wording("{path} cannot be read: {reason}", "check its owner, its permissions and its encoding")
share_name = PluginError.wording(
    "the plugins {first} and {second} have the same name", "rename one: `python` names a plugin by its file name"
)
not_callable = PluginError.wording(
    "{user} names `{name}` of {path}, which is not a function or a class", "define a function"
)


def without_name(user: str, path: str, name: str, possible: Sequence[str]) -> PluginError:
    remedy = f"it has {listed(possible)}" if possible else "define it, or correct `python` of the signature"
    return PluginError(f"{user} names `{name}`, but {path} does not define it", remedy)


def fails(path: str, line: int | None, reason: BaseException) -> PluginError:
    place = path if line is None else f"{path}:{line}"
    text = str(reason).strip().partition("\n")[0]
    calls = [str(note) for note in getattr(reason, "__notes__", ())]
    remedy = f"correct the file; it was called at {calls[0]}" if calls else "correct the file"
    return PluginError(f"{place} fails: {type(reason).__name__}{': ' if text else ''}{text}", remedy)


def wrong_result(path: str, line: int | None, user: str, problem: str, remedy: str) -> PluginError:
    place = path if line is None else f"{path}:{line}"
    return PluginError(f"{place}: {user} {problem}", remedy)


# Files that a folder of weights was made with. `advice` is `copy_to_name` if the folder has copies.


def missing(folder: Path, name: str, advice: str) -> PluginError:
    message = f"{folder} was made with Python of your own, {name}, which runs only if you name the file"
    return PluginError(message, f"add {option(name)}{advice}")


def differs(folder: Path, name: str, advice: str) -> PluginError:
    message = f"{name} is not the file that {folder} was made with: the digest differs from the recorded one"
    return PluginError(message, f"restore the file, or train in a new folder{advice}")


def not_recorded(folder: Path, name: str) -> PluginError:
    return PluginError(f"{folder} was made without {name}", f"leave out {option(name)}")


def copy_to_name(copy: Path, digest: str) -> str:
    """Returns the end of a remedy. A copy that has changed is refused for its digest when the user names it."""
    return f"; or read the copy, and if you trust it, name it: {option(copy)}, with the SHA-256 digest {digest}"
