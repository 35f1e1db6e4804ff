"""Formats expressions, types and parameters on one line."""

from collections.abc import Sequence

from archlang.syntax.tree import (
    Binary,
    Boolean,
    Call,
    Caveat,
    Conditional,
    ConditionalType,
    Cost,
    Cut,
    Expression,
    InputParameter,
    ListOf,
    Maps,
    Name,
    Number,
    Pipe,
    Range,
    Reads,
    Record,
    Setting,
    Sought,
    StaticArgument,
    StaticParameter,
    String,
    TypeName,
    Unary,
    Variation,
)

# Precedence levels, as in the grammar. An operand of lower precedence than its place requires gets parentheses.
PIPE, CONDITIONAL, OR, AND, NOT, COMPARISON, RANGE, SUM, PRODUCT, NEGATIVE, ATOM = range(11)
OPERATORS = {
    "or": OR,
    "and": AND,
    **dict.fromkeys(("==", "!=", "<", "<=", ">", ">=", "in"), COMPARISON),
    **dict.fromkeys("+-", SUM),
    **dict.fromkeys("*/%", PRODUCT),
}


_CAVEATS = {"random": "random", "training": "random in training", "gradients": "stops gradients"}


def caveat_words(kind: str) -> str:
    """Returns the clause for a kind of caveat, without its condition."""
    return _CAVEATS.get(kind, f"depends on {kind}")


def binding(expression: Expression) -> int:
    match expression:
        case Pipe():
            return PIPE
        case Conditional():
            return CONDITIONAL
        case Binary(operator=operator):
            return OPERATORS[operator]
        case Unary(operator="not"):
            return NOT
        case Unary():
            return NEGATIVE
        case Range():
            return RANGE
    return ATOM


def expression_text(expression: Expression, place: int = PIPE) -> str:
    level = binding(expression)
    if level < place:
        return f"({expression_text(expression)})"
    match expression:
        case Number(text=text) | Name(text=text):
            return text
        case Boolean(value=truth):
            return "true" if truth else "false"
        case String(value=text):
            return f'"{text}"'
        case ListOf(items=items):
            return f"[{', '.join(map(expression_text, items))}]"
        case Call():
            return f"{expression.callee.text}{bracketed(expression.statics)}{arguments(expression)}"
        case Pipe(value=value, stage=stage):
            return f"{expression_text(value)} |> {expression_text(stage)}"
        case Range(low=low, high=high):
            return f"{expression_text(low, SUM)}..{expression_text(high, SUM)}"
        case Unary(operator=operator, operand=operand):
            return f"{operator}{' ' if operator == 'not' else ''}{expression_text(operand, level)}"
        case Conditional(then=then, test=test, otherwise=otherwise):
            condition = f"when {expression_text(test, OR)}"
            return f"{expression_text(then, OR)} {condition} else {expression_text(otherwise, CONDITIONAL)}"
        case Binary(operator=operator, left=left, right=right):
            left_place, right_place = operand_places(level)
            return f"{expression_text(left, left_place)} {operator} {expression_text(right, right_place)}"


def operand_places(level: int) -> tuple[int, int]:
    # Comparisons do not chain; the other operators group to the left.
    return (RANGE, RANGE) if level == COMPARISON else (level, level + 1)


def bracketed(parts: Sequence[StaticArgument | StaticParameter]) -> str:
    return f"[{', '.join(map(part_text, parts))}]" if parts else ""


def arguments(call: Call) -> str:
    return "" if call.arguments is None else f"({', '.join(map(expression_text, call.arguments))})"


def type_text(node: TypeName | ConditionalType) -> str:
    if isinstance(node, ConditionalType):
        return f"{type_text(node.then)} when {expression_text(node.test, OR)} else {type_text(node.otherwise)}"
    return f"{node.name}[{', '.join(map(expression_text, node.dimensions))}]" if node.dimensions else node.name


Part = (
    StaticArgument
    | StaticParameter
    | InputParameter
    | Setting
    | Variation
    | Sought
    | Reads
    | Caveat
    | Cost
    | Maps
    | Record
    | Cut
)


def part_text(part: Part) -> str:
    match part:
        case StaticArgument(name=None, value=value):
            return expression_text(value)
        case StaticArgument(name=name, value=value):
            return f"{name} = {expression_text(value)}"
        case StaticParameter(name=name, kind=kind, default=default):
            return name + (f": {kind}" if kind else "") + (f" = {expression_text(default)}" if default else "")
        case InputParameter(name=name, type=type_, default=source):
            dots = "..." if part.variadic else ""
            return f"{name}: {type_text(type_)}{dots}" + (f" = {source}" if source else "")
        case Setting(path=path, value=value):
            return f"{path.text} = {expression_text(value)}"
        case Variation(path=path, values=values):
            return f"{path.text} in {expression_text(values)}"
        case Sought(path=path, values=values, log=log):
            return f"{path.text} in {expression_text(values)}" + (" log" if log else "")
        case Reads(input=name, manner=manner):
            return f"{name} {expression_text(manner)}"
        case Caveat(kind=kind, test=test):
            return caveat_words(kind) + _condition(test)
        case Cost(quantity=quantity, value=value, test=test):
            return f"{quantity} = {expression_text(value, OR if test else CONDITIONAL)}{_condition(test)}"
        case Maps(width=width, test=test):
            return f"{map_names(part)} = {expression_text(width, OR if test else CONDITIONAL)}{_condition(test)}"
        case Record(kind=kind, input=source, test=test):
            return kind + (f" = {source}" if source else "") + _condition(test)
        case Cut(parts=parts, test=test):
            return "cuts evenly" + (f" into {expression_text(parts, OR)}" if parts else "") + _condition(test)


def map_names(maps: Maps) -> str:
    """The names of linear maps, each with the input that it reads."""
    return ", ".join(f"{name.name}({name.input})" for name in maps.names)


def _condition(test: Expression | None) -> str:
    return f" when {expression_text(test, OR)}" if test else ""
