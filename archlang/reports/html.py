"""Renders the templates of pages and pictures: each result is one file that loads nothing from the network."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING

from archlang.errors.visible import visible_lines

if TYPE_CHECKING:
    from jinja2 import Environment
    from markupsafe import Markup


def render(template: str, **values: object) -> Markup:
    """Renders a file of `templates/`. All text is escaped, except values of type `Markup`.

    The filter `tojson` writes `<`, `>`, `&` and `'` as escapes, so no string can end the script around it."""
    from markupsafe import Markup

    return Markup(_environment().get_template(template).render(values))


def notebook_frame(page: str, height: int = 640) -> str:
    """Returns a page in a frame, as a notebook shows it: its styles and scripts stay apart from those of the notebook.

    Args:
        height: Pixels."""
    from markupsafe import escape

    return (
        f'<iframe srcdoc="{escape(str(page))}" sandbox="allow-scripts allow-downloads" '
        f'style="width: 100%; height: {height}px; border: 0"></iframe>'
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
