"""Parses `--set path=value` options."""

from collections.abc import Iterable

from archlang.cli import console


def parse_sets(sets: Iterable[str] | None) -> dict[str, str]:
    """Returns the settings by dotted path, with values as text."""
    settings: dict[str, str] = {}
    for text in sets or ():
        name, equals, value = text.partition("=")
        if not equals or not name.strip() or not value.strip():
            console.fail(f"`--set {text}` is not of the form path=value", "write `--set model.d=128`", code=2)
        settings[name.strip()] = value.strip()
    return settings
