"""Wraps expressions and lists that do not fit on one line.

Each function takes the column at which its text starts, the indent of further lines, and the room to leave on the last
line for the text that follows."""

from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from archlang.syntax import tree
from archlang.syntax.expression_text import (
    COMPARISON,
    CONDITIONAL,
    OPERATORS,
    OR,
    PIPE,
    Part,
    arguments,
    binding,
    bracketed,
    caveat_words,
    expression_text,
    map_names,
    operand_places,
    part_text,
    sign_text,
)

P = TypeVar("P")

WIDTH = 120
STEP = 4


def wrapped(expression: tree.Expression, column: int, indent: int, room: int = 0, place: int = PIPE) -> str:
    line = expression_text(expression, place)
    if column + len(line) + room <= WIDTH:
        return line
    level = binding(expression)
    if level < place:
        return f"({wrapped(expression, column + 1, indent, room + 1)})"
    inner = indent + STEP
    match expression:
        case tree.ListOf(items=items):
            return "[" + filled(items, expression_text, wrapped, inner, room + 1) + "]"
        case tree.Call():
            return _call(expression, column, indent, room)
        case tree.Unary(operand=operand):
            word = sign_text(expression)
            return word + wrapped(operand, column + len(word), indent, room, level)
        case tree.Pipe():
            first, stages = _pipeline(expression)
            lines = [wrapped(first, column, indent)]
            lines += [f"|> {wrapped(stage, inner + 3, inner, room)}" for stage in stages]
            return under(lines, inner)
        case tree.Conditional(then=then, test=test, otherwise=otherwise):
            lines = [wrapped(then, column, indent, 0, OR)]
            lines.append(f"when {wrapped(test, inner + 5, inner, 0, OR)}")
            lines.append(f"else {wrapped(otherwise, inner + 5, inner, room, CONDITIONAL)}")
            return under(lines, inner)
        case tree.Binary():
            left_place, right_place = operand_places(level)
            start, steps = _chain(expression, level)
            lines = [wrapped(start, column, indent, 0, left_place)]
            for operator, operand in steps:
                lines.append(f"{operator} {wrapped(operand, inner + len(operator) + 1, inner, room, right_place)}")
            return under(lines, inner)
    return line


def _call(call: tree.Call, column: int, indent: int, room: int) -> str:
    inner = indent + STEP
    head = call.callee.text + bracketed(call.statics)
    if call.arguments and column + len(head) < WIDTH:
        return f"{head}({filled(call.arguments, expression_text, wrapped, inner, room + 1)})"
    statics = filled(call.statics, part_text, wrapped_part, inner, room + 1)
    head = f"{call.callee.text}[{statics}]" if call.statics else call.callee.text
    if not call.arguments or len(last_line(head, column)) + len(arguments(call)) + room <= WIDTH:
        return head + arguments(call)
    return f"{head}({filled(call.arguments, expression_text, wrapped, inner, room + 1)})"


def wrapped_part(part: Part, column: int, indent: int, room: int) -> str:
    line = part_text(part)
    if column + len(line) + room <= WIDTH:
        return line
    match part:
        case tree.StaticArgument(name=name, value=value) if name:
            head, tail = f"{name} = ", value
        case tree.StaticArgument(value=value):
            head, tail = "", value
        case tree.StaticParameter(name=name, kind=kind, default=default) if default:
            head, tail = name + (f": {kind}" if kind else "") + " = ", default
        case tree.Setting(path=path, value=value):
            head, tail = f"{path.text} = ", value
        case tree.Variation(path=path, values=value):
            head, tail = f"{path.text} in ", value
        case tree.Reads(input=name, manner=manner):
            head, tail = f"{name} ", manner
        case tree.Caveat(kind=kind, test=test) if test:
            head = f"{caveat_words(kind)} when "
            return head + wrapped(test, column + len(head), indent, room, OR)
        case tree.Cost(quantity=quantity, value=value, test=test):
            return _conditioned(f"{quantity} = ", value, test, column, indent, room)
        case tree.Maps(width=width, test=test):
            return _conditioned(f"{map_names(part)} = ", width, test, column, indent, room)
        case _:
            return line
    return head + wrapped(tail, column + len(head), indent, room)


def _conditioned(
    head: str, value: tree.Expression, test: tree.Expression | None, column: int, indent: int, room: int
) -> str:
    """Wraps a value and its condition, which goes on a separate line."""
    column += len(head)
    if test is None:
        return head + wrapped(value, column, indent, room, CONDITIONAL)
    inner = indent + STEP
    lines = [head + wrapped(value, column, indent, 0, OR), f"when {wrapped(test, inner + 5, inner, room, OR)}"]
    return under(lines, inner)


def filled(
    parts: Sequence[P],
    on_one_line: Callable[[P], str],
    on_several: Callable[[P, int, int, int], str],
    indent: int,
    room: int,
    column: int | None = None,
) -> str:
    """Joins parts with commas and fills lines. The first part starts at `column`, or on a new line if it is None."""
    pieces = [] if column is not None else ["\n" + " " * indent]
    column = indent if column is None else column
    for index, part in enumerate(parts):
        is_last = index == len(parts) - 1
        left = room if is_last else 1
        if index > 0 and column + 1 + len(on_one_line(part)) + left <= WIDTH:
            pieces.append(" ")
            column += 1
        elif index > 0:
            pieces.append("\n" + " " * indent)
            column = indent
        text = on_several(part, column, indent, left) + ("" if is_last else ",")
        pieces.append(text)
        column = len(last_line(text, column))
    return "".join(pieces)


def last_line(text: str, column: int) -> str:
    """Returns the last line of a text that starts at a column."""
    return text.rpartition("\n")[2] if "\n" in text else " " * column + text


def under(lines: Iterable[str], indent: int) -> str:
    return ("\n" + " " * indent).join(lines)


def _pipeline(pipe: tree.Expression) -> tuple[tree.Expression, list[tree.Expression]]:
    stages: list[tree.Expression] = []
    while isinstance(pipe, tree.Pipe):
        stages.insert(0, pipe.stage)
        pipe = pipe.value
    return pipe, stages


def _chain(expression: tree.Expression, level: int) -> tuple[tree.Expression, list[tuple[str, tree.Expression]]]:
    """Splits `a + b - c` into `a` and its steps: operators of one precedence, which group to the left."""
    steps: list[tuple[str, tree.Expression]] = []
    while isinstance(expression, tree.Binary) and OPERATORS[expression.operator] == level:
        steps.insert(0, (expression.operator, expression.right))
        expression = expression.left
        if level == COMPARISON:
            break
    return expression, steps
