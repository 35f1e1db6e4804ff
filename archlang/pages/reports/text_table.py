"""A table of text for pages and terminals."""

from collections.abc import Sequence
from dataclasses import dataclass

from rich.table import Table
from rich.text import Text


@dataclass(frozen=True)
class TextTable:
    """Rows of text below headers. A table without rows is not shown."""

    title: str
    headers: Sequence[str]
    rows: Sequence[Sequence[str]]

    def terminal(self) -> Table:
        table = Table(*self.headers, title=self.title, title_justify="left", header_style="bold")
        for row in self.rows:
            table.add_row(*map(Text, row))
        return table
