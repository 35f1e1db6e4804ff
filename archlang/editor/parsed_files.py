"""The parsed texts of the files that a program uses, which rarely change while the program is written."""

from dataclasses import dataclass, field

from archlang.diagnostics import Diagnostic
from archlang.source import Source
from archlang.syntax.parser import parse_tolerantly
from archlang.syntax.tree import Program

# More texts than a program can use; then the old ones are forgotten.
_MOST_TEXTS = 200


@dataclass
class ParsedFiles:
    """Parses texts, each once."""

    _parsed: dict[Source, tuple[Program, tuple[Diagnostic, ...]]] = field(default_factory=dict)

    def parse(self, source: Source) -> tuple[Program, tuple[Diagnostic, ...]]:
        """Returns what `parse_tolerantly` does."""
        if source not in self._parsed:
            if len(self._parsed) >= _MOST_TEXTS:
                self._parsed.clear()
            self._parsed[source] = parse_tolerantly(source)
        return self._parsed[source]
