"""The builders of all sections of the grammar as one."""

from collections.abc import Callable, Mapping

from archlang.diagnostics import Diagnostic
from archlang.source import Source
from archlang.syntax.builders.context import Context, Section
from archlang.syntax.builders.expressions import Expressions
from archlang.syntax.builders.items import Items
from archlang.syntax.builders.parts import Parts
from archlang.syntax.builders.recipes import Recipes
from archlang.syntax.builders.signatures import Signatures
from archlang.syntax.builders.statements import Statements
from archlang.syntax.comments import Comments

_SECTIONS: tuple[type[Section], ...] = (Items, Signatures, Statements, Recipes, Expressions)


class TreeBuilder:
    """Builds the tree of one text. When a rule is complete, the parser calls its function in `rules` with its parts."""

    def __init__(self, source: Source, comments: Comments) -> None:
        self._context = Context(source, comments)
        self.rules: Mapping[str, Callable[[Parts], object]] = {
            rule: getattr(section(self._context), rule)
            for section in _SECTIONS
            for rule in vars(section)
            if not rule.startswith("_")
        }

    @property
    def mistakes(self) -> list[Diagnostic]:
        """The mistakes found while building, in the order of the text."""
        return self._context.mistakes

    def closing(self) -> tuple[str, ...]:
        """Returns the comments that belong to no node."""
        return self._context.comments.within(0, len(self._context.source.text))
