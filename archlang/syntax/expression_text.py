"""Formats expressions, types and parameters on one line."""

from collections.abc import Sequence

from archlang.syntax import tree

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


def binding(expression: tree.Expression) -> int:
    match expression:
        case tree.Pipe():
            return PIPE
        case tree.Conditional():
            return CONDITIONAL
        case tree.Binary(operator=operator):
            return OPERATORS[operator]
        case tree.Unary(operator="not"):
            return NOT
        case tree.Unary():
            return NEGATIVE
        case tree.Range():
            return RANGE
    return ATOM


def sign_text(expression: tree.Unary) -> str:
    """Returns the sign or the word before an operand, with a space where they would run together."""
    is_negative = isinstance(expression.operand, tree.Unary) and expression.operand.operator == "-"
    return f"{expression.operator} " if expression.operator == "not" or is_negative else expression.operator


def expression_text(expression: tree.Expression, place: int = PIPE) -> str:
    level = binding(expression)
    if level < place:
        return f"({expression_text(expression)})"
    match expression:
        case tree.Number(text=text) | tree.Name(text=text):
            return text
        case tree.Boolean(value=truth):
            return "true" if truth else "false"
        case tree.String(value=text):
            return f'"{text}"'
        case tree.ListOf(items=items):
            return f"[{', '.join(map(expression_text, items))}]"
        case tree.Missing(span=span):
            return span.text
        case tree.Call():
            return f"{expression.callee.text}{bracketed(expression.statics)}{arguments(expression)}"
        case tree.Pipe(value=value, stage=stage):
            return f"{expression_text(value)} |> {expression_text(stage)}"
        case tree.Range(low=low, high=high):
            return f"{expression_text(low, SUM)}..{expression_text(high, SUM)}"
        case tree.Unary(operand=operand):
            return sign_text(expression) + expression_text(operand, level)
        case tree.Conditional(then=then, test=test, otherwise=otherwise):
            condition = f"when {expression_text(test, OR)}"
            return f"{expression_text(then, OR)} {condition} else {expression_text(otherwise, CONDITIONAL)}"
        case tree.Binary(operator=operator, left=left, right=right):
            left_place, right_place = operand_places(level)
            return f"{expression_text(left, left_place)} {operator} {expression_text(right, right_place)}"


def operand_places(level: int) -> tuple[int, int]:
    # Comparisons do not chain; the other operators group to the left.
    return (RANGE, RANGE) if level == COMPARISON else (level, level + 1)


def bracketed(parts: Sequence[tree.StaticArgument | tree.StaticParameter]) -> str:
    return f"[{', '.join(map(part_text, parts))}]" if parts else ""


def arguments(call: tree.Call) -> str:
    return "" if call.arguments is None else f"({', '.join(map(expression_text, call.arguments))})"


def type_text(node: tree.TypeName | tree.ConditionalType) -> str:
    if isinstance(node, tree.ConditionalType):
        return f"{type_text(node.then)} when {expression_text(node.test, OR)} else {type_text(node.otherwise)}"
    return f"{node.name}[{', '.join(map(expression_text, node.dimensions))}]" if node.dimensions else node.name


Part = (
    tree.StaticArgument
    | tree.StaticParameter
    | tree.InputParameter
    | tree.Setting
    | tree.CellNumber
    | tree.Variation
    | tree.Sought
    | tree.Reads
    | tree.Caveat
    | tree.Cost
    | tree.Maps
    | tree.Record
    | tree.Cut
)


def part_text(part: Part) -> str:
    match part:
        case tree.StaticArgument(name=None, value=value):
            return expression_text(value)
        case tree.StaticArgument(name=name, value=value):
            return f"{name} = {expression_text(value)}"
        case tree.StaticParameter(name=name, kind=kind, default=default):
            return name + (f": {kind}" if kind else "") + (f" = {expression_text(default)}" if default else "")
        case tree.InputParameter(name=name, type=type_, default=source):
            dots = "..." if part.variadic else ""
            return f"{name}: {type_text(type_)}{dots}" + (f" = {source}" if source else "")
        case tree.Setting(path=path, value=value):
            return f"{path.text} = {expression_text(value)}"
        case tree.CellNumber(value=value, deviation=deviation):
            if value is None:
                return "-"
            text = expression_text(value, NEGATIVE)
            return f"{text} ± {expression_text(deviation, NEGATIVE)}" if deviation else text
        case tree.Variation(path=path, values=values):
            return f"{path.text} in {expression_text(values)}"
        case tree.Sought(path=path, values=values, log=log):
            return f"{path.text} in {expression_text(values)}" + (" log" if log else "")
        case tree.Reads(input=name, manner=manner):
            return f"{name} {expression_text(manner)}"
        case tree.Caveat(kind=kind, test=test):
            return caveat_words(kind) + _condition(test)
        case tree.Cost(quantity=quantity, value=value, test=test):
            return f"{quantity} = {expression_text(value, OR if test else CONDITIONAL)}{_condition(test)}"
        case tree.Maps(width=width, test=test):
            return f"{map_names(part)} = {expression_text(width, OR if test else CONDITIONAL)}{_condition(test)}"
        case tree.Record(kind=kind, input=source, test=test):
            return kind + (f" = {source}" if source else "") + _condition(test)
        case tree.Cut(parts=parts, test=test):
            return "cuts evenly" + (f" into {expression_text(parts, OR)}" if parts else "") + _condition(test)


def map_names(maps: tree.Maps) -> str:
    """The names of linear maps, each with the input that it reads."""
    return ", ".join(f"{name.name}({name.input})" for name in maps.names)


def _condition(test: tree.Expression | None) -> str:
    return f" when {expression_text(test, OR)}" if test else ""
