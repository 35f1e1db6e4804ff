"""The texts of the items of a program as the formatter prints them, each printed once."""

from dataclasses import dataclass, field

from archlang.syntax.printer import Item, format_program, item_text
from archlang.syntax.tree import Program


@dataclass
class PrintedItems:
    """The printed items of the program that was formatted last."""

    # Holds the items too, so that no later item reuses an id.
    _known: dict[int, tuple[Item, str]] = field(default_factory=dict)

    def format(self, program: Program) -> str:
        """Returns what `format_program` does."""
        known = self._known
        self._known = {id(item): known.get(id(item)) or (item, item_text(item)) for item in program.items}
        return format_program(program, lambda item: self._known[id(item)][1])
