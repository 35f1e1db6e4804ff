"""The programs of the papers' recipes, parsed."""

from pathlib import Path

import archlang
from archlang.syntax import parse
from archlang.syntax.parser import read
from archlang.syntax.tree import Program

PAPERS = Path(archlang.__file__).parent / "recipes" / "papers"
PROGRAMS: dict[Path, Program] = {page: parse(read(page)) for page in sorted(PAPERS.glob("*/*.arch"))}
