"""Errors of pages, pictures and tables, worded for the person who asked for them."""

from archlang.errors import ErrorWithRemedy, MachineError


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
