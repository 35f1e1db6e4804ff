"""Errors of pages, pictures and tables, worded for the person who asked for them."""

from collections.abc import Iterable
from pathlib import Path

from archlang.diagnostics import ErrorWithRemedy, MachineError


class PageError(ErrorWithRemedy):
    """A page, picture or table that cannot be drawn or written."""


class PageMachineError(PageError, MachineError):
    """A page, picture or table that this machine cannot draw."""


def unknown_picture_format(path: Path, suffixes: Iterable[str]) -> PageError:
    return PageError(f"`{path}` has no suffix of a picture", f"use one of {', '.join(suffixes)}")


def library_missing(purpose: str, library: str, alternative: str = "") -> PageMachineError:
    remedy = "run `pip install 'archlang[view]'`" + (f", or {alternative}" if alternative else "")
    return PageMachineError(f"{purpose} need {library}, which is not installed", remedy)


def not_written(path: Path, reason: str) -> PageError:
    message = f"{path} cannot be written: {reason}"
    return PageError(message, "free some space or choose another file; no file was changed")


def refused(message: str, remedy: str) -> PageError:
    return PageError(message, f"{remedy}, or choose another file with `--out`")
