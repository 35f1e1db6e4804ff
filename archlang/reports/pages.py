"""Renders the templates of pages and pictures, each of which loads nothing from the network, and writes them and tables
to disk."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING

from archlang.disk.folder import Folder, write_atomically
from archlang.disk.mistakes import RefusedFile
from archlang.disk.os_errors import os_errors_as
from archlang.errors import ErrorWithRemedy, MachineError
from archlang.errors.visible import visible_lines

if TYPE_CHECKING:
    from jinja2 import Environment
    from markupsafe import Markup


def render(template: str, **values: object) -> Markup:
    """Renders a file of `templates/`. All text is escaped, except values of type `Markup`.

    The filter `tojson` writes `<`, `>`, `&` and `'` as escapes, so no string can end the script around it."""
    from markupsafe import Markup

    return Markup(_environment().get_template(template).render(values))


def notebook_frame(page: str) -> str:
    """Returns a page in a frame, as a notebook shows it: its styles and scripts stay apart from the notebook's."""
    from markupsafe import escape

    return (
        f'<iframe srcdoc="{escape(str(page))}" sandbox="allow-scripts allow-downloads" '
        'style="width: 100%; height: 640px; border: 0"></iframe>'
    )


def asset(name: str) -> Markup:
    """Returns a stylesheet or a script of `assets/`."""
    from markupsafe import Markup

    return Markup(files("archlang.reports").joinpath("assets", name).read_text(encoding="utf-8"))


@cache
def _environment() -> Environment:
    # Imported here because most commands write no page: Jinja would slow down their start.
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("archlang.reports"),
        autoescape=True,
        # A control character is no text of an XML document.
        finalize=lambda value: visible_lines(value) if type(value) is str else value,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.globals["asset"] = asset
    environment.policies["json.dumps_kwargs"] = {"allow_nan": False}
    return environment


# Files


class PageError(ErrorWithRemedy):
    """A page, picture or table that cannot be drawn or written."""


class PageMachineError(PageError, MachineError):
    """A page, picture or table that this machine cannot draw."""


not_written = PageError.wording(
    "{path} cannot be written: {reason}", "free some space or choose another file; no file was changed"
)
refused = PageError.wording("{message}", "{remedy}, or choose another file with `--out`")


def library_missing(purpose: str, library: str, alternative: str = "") -> PageMachineError:
    remedy = "run `pip install 'archlang[view]'`" + (f", or {alternative}" if alternative else "")
    return PageMachineError(f"{purpose} need {library}, which is not installed", remedy)


def write_file(path: Path, content: str | bytes) -> None:
    """Writes a file that the user has named atomically, with the folders that it needs. Text is encoded as UTF-8.

    Raises:
        PageError: The file cannot be written."""
    with os_errors_as(not_written, path):
        Folder.create(path.parent).close()
        write_atomically(path, content)


def write_inside(folder: Path, name: str, content: str | bytes) -> Path:
    """Writes a file of a folder of runs atomically, and returns its path. The folder may come from a stranger: a link
    in place of the file is refused.

    Raises:
        PageError: The file is refused or cannot be written."""
    path = folder / name
    with os_errors_as(not_written, path):
        try:
            with Folder.create(folder) as opened:
                opened.write(name, content)
        except RefusedFile as error:
            raise refused(error.message, error.remedy) from error
    return path
