"""The texts of the items of a program as the formatter prints them, each printed once."""

from dataclasses import dataclass, field

from archlang.syntax.printer import Item, format_program, item_text
from archlang.syntax.tree import Program


@dataclass
class PrintedItems:
    """The printed items of the program that was formatted last."""

    # Holds the items too, so that no later item reuses an id.
    _printed: dict[int, tuple[Item, str]] = field(default_factory=dict)

    def format(self, program: Program) -> str:
        """Returns what `format_program` does."""
        previous = self._printed
        self._printed = {id(item): previous.get(id(item)) or (item, item_text(item)) for item in program.items}
        return format_program(program, lambda item: self._printed[id(item)][1])
