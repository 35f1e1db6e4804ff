"""What a text that could not be read may contain: a statement such as `return`, and names that it binds."""

import re
from collections.abc import Callable, Iterator

from archlang.syntax.tree import (
    Body,
    Call,
    Emit,
    Halting,
    Let,
    Missing,
    Name,
    Pipe,
    Repeat,
    Return,
    Statement,
    StaticArgument,
    Unclear,
    Update,
)
from archlang.syntax.walk import walk
from archlang.syntax.words import RESERVED

# The first word, the word after `let`, and the words before `=` and `<-`.
_BOUND = re.compile(r"\A[A-Za-z_]\w*|(?<=\blet )[A-Za-z_]\w*|[A-Za-z_]\w*(?=\s*(?:=(?!=)|<-))")
_WORD = re.compile(r"[A-Za-z_]\w*")
_HALF_NAME = re.compile(r"(?:let\s+)?([A-Za-z_]\w*)")
# The part of the header of a loop after which it binds no more names for its body.
_WHOLE_BINDERS = re.compile(r"\b(?:stack|in|by|drawn|truncated|as\s+\w+)\b")


def has_unread_statement(body: Body) -> bool:
    """Returns whether a statement of a body, or of one within it, could not be read, so that it may be any."""
    bodies = (node for node in walk(body) if isinstance(node, Body))
    return any(_is_unread(statement) for each in bodies for statement in each.statements)


def breaks_off(body: Body) -> bool:
    """Returns whether a text in a body could not be read."""
    return any(isinstance(node, Missing) for node in walk(body))


def _is_unread(statement: Statement) -> bool:
    match statement:
        case Missing() | Unclear() | Return(value=Missing()) | Emit(value=Missing()):
            return True
    return False


def is_end(statement: Statement) -> bool:
    """Returns whether a statement is the end of a body that is not closed."""
    return isinstance(statement, Missing) and not statement.span.text


def names_used(body: Body) -> tuple[set[str], set[str]]:
    """Returns the names that a body uses as values or statics, and those that it uses as blocks."""
    names = [node for node in walk(body) if isinstance(node, Name)]
    updated = {node.name for node in walk(body) if isinstance(node, Update)}
    blocks = list(_blocks(body))
    places = {id(block) for block in blocks}
    values = {name.parts[0] for name in names if id(name) not in places}
    return values | updated, {block.parts[0] for block in blocks}


def _blocks(body: Body) -> Iterator[Name]:
    """Yields the names that a body uses as blocks, in their order."""
    for node in walk(body):
        match node:
            case Call(callee=block) | Pipe(stage=Name() as block) | Let(value=Name() as block):
                yield block
            case Halting(by=Name() as block) | Repeat(drawn=Name() as block):
                yield block


def names_bound_by(missing: Missing) -> Iterator[str]:
    """Yields the names that a statement may bind that could not be read."""
    return (word for word in _BOUND.findall(missing.span.text) if word not in RESERVED)


def names_begun_by(missing: Missing, body: Body, is_block: Callable[[str], bool]) -> Iterator[str]:
    """Yields the names in a body that a statement may bind whose text ends within the name, or before it. A name of a
    block is one of them if it is a value in the body, or an instance that the statement names in part."""
    text = missing.span.text
    values, blocks = names_used(body)
    if text.startswith(("=", "<-")):
        yield from (name for name in values - blocks if not is_block(name))
    elif half := _HALF_NAME.fullmatch(text):
        settings = (node for node in walk(body) if isinstance(node, StaticArgument))
        in_statics = {name.parts[0] for setting in settings for name in walk(setting) if isinstance(name, Name)}
        begun = {name for name in values | blocks if name.startswith(half[1])}
        begun |= blocks if "let".startswith(text) else set()
        likely = values - blocks - in_statics
        if text != half[1]:  # no block of the library is hidden after its first use
            before = {block.parts[0] for block in _blocks(body) if block.span.start < missing.span.start}
            likely |= blocks - before
        yield from (name for name in begun if not is_block(name) or name in likely)


def names_in_loop(header: Missing, body: Body) -> Iterator[str]:
    """Yields the names that may be bound in a loop whose header could not be read."""
    yield from (word for word in _WORD.findall(header.span.text) if word not in RESERVED)
    if not _WHOLE_BINDERS.search(header.span.text):
        yield from names_used(body)[0]
