"""Prints expressions, types and the parts of lists, on one line or as documents that can be laid out."""

from collections.abc import Iterable

from archlang.syntax import tree
from archlang.syntax.layout import Doc, Group, Indent, Line, flat, in_brackets

# Precedence levels, as in the grammar. An operand of lower precedence than its place requires gets parentheses.
PIPE, CONDITIONAL, OR, AND, NOT, COMPARISON, RANGE, SUM, PRODUCT, NEGATIVE, ATOM = range(11)
_OPERATORS = {
    "or": OR,
    "and": AND,
    **dict.fromkeys(("==", "!=", "<", "<=", ">", ">=", "in"), COMPARISON),
    **dict.fromkeys("+-", SUM),
    **dict.fromkeys("*/%", PRODUCT),
}
_CAVEATS = {"random": "random", "training": "random in training", "gradients": "stops gradients"}

Part = (
    tree.StaticArgument | tree.StaticParameter | tree.InputParameter | tree.Setting | tree.CellNumber | tree.Variation
    | tree.Sought | tree.Reads | tree.Caveat | tree.Cost | tree.MapName | tree.Maps | tree.Record | tree.Cut
)  # fmt: skip


def expression_text(node: tree.Expression, place: int = PIPE) -> str:
    """Returns an expression on one line. `place` is the lowest precedence that needs no parentheses."""
    return flat(expression(node, place))


def expression(node: tree.Expression, place: int = PIPE) -> Doc:
    level = _level(node)
    if level < place:
        return ("(", expression(node), ")")
    match node:
        case tree.Number(text=text) | tree.Name(text=text):
            return text
        case tree.Boolean(value=truth):
            return "true" if truth else "false"
        case tree.String(value=text):
            return f'"{text}"'
        case tree.Missing(span=span):
            return span.text
        case tree.ListOf(items=items):
            return in_brackets("[]", map(expression, items))
        case tree.Call(callee=callee, statics=statics, arguments=arguments):
            inputs = "" if arguments is None else in_brackets("()", map(expression, arguments))
            return (callee.text, in_brackets("[]", map(part, statics)) if statics else "", inputs)
        case tree.Pipe():
            return _on_lines(_pipeline(node))
        case tree.Range(low=low, high=high):
            return (expression(low, SUM), "..", expression(high, SUM))
        case tree.Unary(operator=operator, operand=operand):
            # Two signs would run together.
            has_space = operator == "not" or (isinstance(operand, tree.Unary) and operand.operator == "-")
            return (operator, " " if has_space else "", expression(operand, level))
        case tree.Conditional(then=then, test=test, otherwise=otherwise):
            branches = [("when ", expression(test, OR)), ("else ", expression(otherwise, CONDITIONAL))]
            return _on_lines([expression(then, OR), *branches])
        case tree.Binary():
            return _on_lines(_chain(node, level))


def _level(node: tree.Expression) -> int:
    match node:
        case tree.Pipe():
            return PIPE
        case tree.Conditional():
            return CONDITIONAL
        case tree.Binary(operator=operator):
            return _OPERATORS[operator]
        case tree.Unary(operator=operator):
            return NOT if operator == "not" else NEGATIVE
        case tree.Range():
            return RANGE
    return ATOM


def _on_lines(parts: Iterable[Doc]) -> Doc:
    """Returns parts on one line, or one on each line."""
    first, *others = parts
    return Group((first, Indent(tuple((Line(), other) for other in others)))) if others else first


def _pipeline(pipe: tree.Expression) -> list[Doc]:
    stages: list[Doc] = []
    while isinstance(pipe, tree.Pipe):
        stages.insert(0, ("|> ", expression(pipe.stage)))
        pipe = pipe.value
    return [expression(pipe), *stages]


def _chain(node: tree.Expression, level: int) -> list[Doc]:
    """Splits `a + b - c` into `a` and its steps: operators of one precedence group to the left, but comparisons."""
    left, right = (RANGE, RANGE) if level == COMPARISON else (level, level + 1)
    steps: list[Doc] = []
    while isinstance(node, tree.Binary) and _level(node) == level and (left == level or not steps):
        steps.insert(0, (f"{node.operator} ", expression(node.right, right)))
        node = node.left
    return [expression(node, left), *steps]


def type_text(node: tree.TypeExpression) -> str:
    if isinstance(node, tree.ConditionalType):
        return f"{type_text(node.then)} when {expression_text(node.test, OR)} else {type_text(node.otherwise)}"
    return f"{node.name}[{', '.join(map(expression_text, node.dimensions))}]" if node.dimensions else node.name


def part_text(node: Part) -> str:
    return flat(part(node))


def part(node: Part) -> Doc:
    match node:
        case tree.StaticArgument(name=name, value=value):
            return (f"{name} = " if name else "", expression(value))
        case tree.StaticParameter(name=name, kind=kind, default=default):
            return (name, f": {kind}" if kind else "", (" = ", expression(default)) if default else "")
        case tree.InputParameter(name=name, type=type_, default=source):
            dots = "..." if node.variadic else ""
            return f"{name}: {type_text(type_)}{dots}" + (f" = {source}" if source else "")
        case tree.Setting(path=path, value=value):
            return (f"{path.text} = ", expression(value))
        case tree.CellNumber(value=value, deviation=deviation):
            return number_text(value, deviation) if value else "-"
        case tree.Variation(path=path, values=values):
            return (f"{path.text} in ", expression(values))
        case tree.Sought(path=path, values=values, log=log):
            return (f"{path.text} in ", expression(values), " log" if log else "")
        case tree.Reads(input=name, manner=manner):
            return (f"{name} ", expression(manner))
        case tree.Caveat(kind=kind, test=test):
            return _tested(_CAVEATS.get(kind, f"depends on {kind}"), test)
        case tree.Cost(quantity=quantity, value=value, test=test):
            return _tested((f"{quantity} = ", expression(value, OR if test else CONDITIONAL)), test)
        case tree.MapName(name=name, input=source):
            return f"{name}({source})"
        case tree.Maps(names=names, width=width, test=test):
            joined = ", ".join(map(part_text, names))
            return _tested((f"{joined} = ", expression(width, OR if test else CONDITIONAL)), test)
        case tree.Record(kind=kind, input=source, test=test):
            return _tested(kind + (f" = {source}" if source else ""), test)
        case tree.Cut(parts=parts, test=test):
            return _tested(("cuts evenly", (" into ", expression(parts, OR)) if parts else ""), test)


def number_text(value: tree.Expression, deviation: tree.Expression | None) -> str:
    """Returns a published number, as in `0.84 ± 0.01`."""
    text = expression_text(value, NEGATIVE)
    return f"{text} ± {expression_text(deviation, NEGATIVE)}" if deviation else text


def _tested(doc: Doc, test: tree.Expression | None) -> Doc:
    return _on_lines([doc, ("when ", expression(test, OR))]) if test else doc
