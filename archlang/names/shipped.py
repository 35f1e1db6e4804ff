"""The recipe files that ship with archlang, by name: `gutlb`, `papers/ndr/table1`."""

from collections.abc import Mapping
from pathlib import Path

from archlang.source import package

_RECIPES = package.FOLDER / "recipes"


def recipe_files() -> Mapping[str, Path]:
    """Returns the shipped files by name: those that train in minutes first, then the papers' own settings."""
    files = sorted(_RECIPES.rglob("*.arch"), key=lambda file: (len(file.relative_to(_RECIPES).parts), file))
    return {file.relative_to(_RECIPES).with_suffix("").as_posix(): file for file in files}


def program_text(file: Path) -> str:
    """Returns the text of a file that ships with archlang."""
    return file.read_text(encoding="utf-8")


def summary(text: str) -> str:
    """Returns the first sentence of the comment that begins a program."""
    lines = []
    for line in text.splitlines():
        if not line.startswith("#"):
            break
        lines.append(line.lstrip("# "))
    return " ".join(lines).partition(". ")[0].rstrip(".") + "."
