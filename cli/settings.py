"""`--set path=value` on the command line."""

from __future__ import annotations

from collections.abc import Iterable

from archlang.cli import console


def parse_sets(sets: Iterable[str] | None) -> dict[str, str]:
    """The settings of a command line by their dotted paths, values as text."""
    found: dict[str, str] = {}
    for text in sets or ():
        name, equals, value = text.partition("=")
        if not equals or not name.strip() or not value.strip():
            console.fail(f"`--set {text}` is not of the form path=value", "write `--set model.d=128`", code=2)
        found[name.strip()] = value.strip()
    return found
