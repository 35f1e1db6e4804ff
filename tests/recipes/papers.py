"""The programs of the papers' recipes, parsed."""

from functools import cache
from pathlib import Path

import archlang
from archlang.resolve.resolve import ResolvedFile, load_file
from archlang.syntax import parse
from archlang.syntax.parser import read
from archlang.syntax.tree import Program

PAPERS = Path(archlang.__file__).parent / "recipes" / "papers"
PROGRAMS: dict[Path, Program] = {page: parse(read(page)) for page in sorted(PAPERS.glob("*/*.arch"))}


@cache
def loaded(page: Path) -> ResolvedFile:
    return load_file(page)
