"""What a text that could not be read may contain: a statement such as `return`, and names that it binds."""

import re
from collections.abc import Iterator

from archlang.syntax.outline import RESERVED
from archlang.syntax.tree import Body, Emit, Missing, Return, Statement, Unclear
from archlang.syntax.walk import walk

# The first word, the word after `let`, and the words before `=` and `<-`.
_BOUND = re.compile(r"\A[A-Za-z_]\w*|(?<=\blet )[A-Za-z_]\w*|[A-Za-z_]\w*(?=\s*(?:=(?!=)|<-))")
_WORD = re.compile(r"[A-Za-z_]\w*")


def has_unread_statement(body: Body) -> bool:
    """Returns whether a statement of a body, or of one within it, could not be read, so that it may be any."""
    bodies = (node for node in walk(body) if isinstance(node, Body))
    return any(_is_unread(statement) for each in bodies for statement in each.statements)


def _is_unread(statement: Statement) -> bool:
    match statement:
        case Missing() | Unclear() | Return(value=Missing()) | Emit(value=Missing()):
            return True
    return False


def names_bound_by(missing: Missing) -> Iterator[str]:
    """Yields the names that a statement may bind that could not be read."""
    return (word for word in _BOUND.findall(missing.span.text) if word not in RESERVED)


def words_of(missing: Missing) -> Iterator[str]:
    """Yields the names in a text that could not be read."""
    return (word for word in _WORD.findall(missing.span.text) if word not in RESERVED)
