"""The recipe files that ship with archlang, by name: `gutlb`, `papers/ndr/table1`."""

import re
from collections.abc import Mapping
from pathlib import Path

from archlang.disk import package

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


def items(text: str) -> str:
    """Returns the names of the models, recipes and tables that a program declares, such as `model a; recipes b, c`."""
    names = {kind: re.findall(rf"^{kind}\s+(\w+)", text, re.MULTILINE) for kind in ("model", "recipe", "table")}
    return "; ".join(f"{kind}{'s' * (len(each) > 1)} {', '.join(each)}" for kind, each in names.items() if each)
