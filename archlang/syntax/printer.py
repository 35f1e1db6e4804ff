"""From tree to text in the one layout: the formatter, and the words of a node for messages."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from archlang.syntax.tree import (
    Assign,
    AtTest,
    Binary,
    Body,
    Boolean,
    Call,
    Choice,
    Claim,
    Commented,
    Conditional,
    ConditionalType,
    Definition,
    Emit,
    Expression,
    Extern,
    Halting,
    If,
    InputParameter,
    Let,
    ListOf,
    Move,
    Name,
    Node,
    Number,
    Pipe,
    Program,
    Range,
    Reads,
    Recipe,
    Repeat,
    Return,
    Scan,
    Setting,
    Signature,
    Stack,
    Statement,
    StaticArgument,
    StaticParameter,
    String,
    TypeName,
    Unary,
    Use,
    Variation,
    Vary,
)

P = TypeVar("P")
S = TypeVar("S", bound=Commented)

WIDTH = 120
_STEP = 4
# Spaces before a comment at the end of a line.
_GAP = 3
# The words of a recipe's parts are padded, so that what follows them stands in one column.
_WORD = len("train ")

# How tightly each kind of expression binds, as in the grammar. A part that binds more loosely than its place asks for
# is put in parentheses.
_PIPE, _CONDITIONAL, _OR, _AND, _NOT, _COMPARISON, _RANGE, _SUM, _PRODUCT, _NEGATIVE, _ATOM = range(11)
_OPERATORS = {
    "or": _OR,
    "and": _AND,
    **dict.fromkeys(("==", "!=", "<", "<=", ">", ">=", "in"), _COMPARISON),
    **dict.fromkeys("+-", _SUM),
    **dict.fromkeys("*/%", _PRODUCT),
}


def format_program(program: Program) -> str:
    """The program in the one layout. Its comments are kept, and so are single empty lines between statements."""
    blocks: list[str] = []
    for index, item in enumerate(program.items):
        follows_use = isinstance(item, Use) and index > 0 and isinstance(program.items[index - 1], Use)
        if index > 0 and (item.blank or not follows_use):
            blocks.append("")
        blocks += item.leading
        blocks += [f"## {line}".rstrip() for line in item.documentation]
        if item.apart and item.documentation:
            blocks.append("")
        blocks.append(_item(item) + (" " * _GAP + item.trailing if item.trailing else ""))
    if program.closing:
        blocks += [*([""] if program.items else []), *program.closing]
    return "".join(f"{block}\n" for block in blocks)


def unparse(node: Node) -> str:
    """The text of a node. Expressions, types and parameters come out on one line, whatever its length."""
    match node:
        case TypeName() | ConditionalType():
            return _type(node)
        case StaticArgument() | StaticParameter() | InputParameter() | Setting() | Variation() | Reads():
            return _part(node)
        case Signature():
            return _signature_flat(node) + _where(node)
        case Let() | Assign() | Move() | Return() | Emit() | If() | Repeat() | Stack() | Halting() | Scan():
            return _statement(node, 0)
        case Use() | Definition() | Extern() | Recipe():
            return _item(node)
        case Choice() | AtTest() | Vary() | Claim():
            return _recipe_part(node, 0)
        case Body():
            return _body(node, 0)
    return _flat(node)  # type: ignore[arg-type]  # every other node is an expression


# Expressions on one line


def _binding(expression: Expression) -> int:
    match expression:
        case Pipe():
            return _PIPE
        case Conditional():
            return _CONDITIONAL
        case Binary(operator=operator):
            return _OPERATORS[operator]
        case Unary(operator="not"):
            return _NOT
        case Unary():
            return _NEGATIVE
        case Range():
            return _RANGE
    return _ATOM


def _flat(expression: Expression, place: int = _PIPE) -> str:
    binding = _binding(expression)
    if binding < place:
        return f"({_flat(expression)})"
    match expression:
        case Number(text=text) | Name(text=text):
            return text
        case Boolean(value=truth):
            return "true" if truth else "false"
        case String(value=text):
            return f'"{text}"'
        case ListOf(items=items):
            return f"[{', '.join(map(_flat, items))}]"
        case Call():
            return f"{expression.callee.text}{_bracketed(expression.statics)}{_arguments(expression)}"
        case Pipe(value=value, stage=stage):
            return f"{_flat(value)} |> {_flat(stage)}"
        case Range(low=low, high=high):
            return f"{_flat(low, _SUM)}..{_flat(high, _SUM)}"
        case Unary(operator=operator, operand=operand):
            return f"{operator}{' ' if operator == 'not' else ''}{_flat(operand, binding)}"
        case Conditional(then=then, test=test, otherwise=otherwise):
            return f"{_flat(then, _OR)} when {_flat(test, _OR)} else {_flat(otherwise, _CONDITIONAL)}"
        case Binary(operator=operator, left=left, right=right):
            left_place, right_place = _operand_places(binding)
            return f"{_flat(left, left_place)} {operator} {_flat(right, right_place)}"


def _operand_places(binding: int) -> tuple[int, int]:
    # Comparisons do not chain; the other operators group to the left.
    return (_RANGE, _RANGE) if binding == _COMPARISON else (binding, binding + 1)


def _bracketed(parts: Sequence[StaticArgument | StaticParameter]) -> str:
    return f"[{', '.join(map(_part, parts))}]" if parts else ""


def _arguments(call: Call) -> str:
    return "" if call.arguments is None else f"({', '.join(map(_flat, call.arguments))})"


def _type(node: TypeName | ConditionalType) -> str:
    if isinstance(node, ConditionalType):
        return f"{_type(node.then)} when {_flat(node.test, _OR)} else {_type(node.otherwise)}"
    return f"{node.name}[{', '.join(map(_flat, node.dimensions))}]" if node.dimensions else node.name


Part = StaticArgument | StaticParameter | InputParameter | Setting | Variation | Reads


def _part(part: Part) -> str:
    match part:
        case StaticArgument(name=None, value=value):
            return _flat(value)
        case StaticArgument(name=name, value=value):
            return f"{name} = {_flat(value)}"
        case StaticParameter(name=name, kind=kind, default=default):
            return name + (f": {kind}" if kind else "") + (f" = {_flat(default)}" if default else "")
        case InputParameter(name=name, type=type_, default=source):
            dots = "..." if part.variadic else ""
            return f"{name}: {_type(type_)}{dots}" + (f" = {source}" if source else "")
        case Setting(path=path, value=value):
            return f"{path.text} = {_flat(value)}"
        case Variation(path=path, values=values):
            return f"{path.text} in {_flat(values)}"
        case Reads(input=name, mode=mode):
            return f"{name} {_flat(mode)}"


# Expressions on several lines. Each function gets the column that its text starts at, the indent of further lines, and
# the room to leave for what follows on its last line.


def _lay(expression: Expression, column: int, indent: int, room: int = 0, place: int = _PIPE) -> str:
    flat = _flat(expression, place)
    if column + len(flat) + room <= WIDTH:
        return flat
    binding = _binding(expression)
    if binding < place:
        return f"({_lay(expression, column + 1, indent, room + 1)})"
    inner = indent + _STEP
    match expression:
        case ListOf(items=items):
            return "[" + _filled(items, _flat, _lay, inner, room + 1) + "]"
        case Call():
            return _lay_call(expression, column, indent, room)
        case Unary(operator=operator, operand=operand):
            word = f"{operator} " if operator == "not" else operator
            return word + _lay(operand, column + len(word), indent, room, binding)
        case Pipe():
            first, stages = _pipeline(expression)
            lines = [_lay(first, column, indent)]
            lines += [f"|> {_lay(stage, inner + 3, inner, room)}" for stage in stages]
            return _under(lines, inner)
        case Conditional(then=then, test=test, otherwise=otherwise):
            lines = [_lay(then, column, indent, 0, _OR)]
            lines.append(f"when {_lay(test, inner + 5, inner, 0, _OR)}")
            lines.append(f"else {_lay(otherwise, inner + 5, inner, room, _CONDITIONAL)}")
            return _under(lines, inner)
        case Binary():
            left_place, right_place = _operand_places(binding)
            start, steps = _chain(expression, binding)
            lines = [_lay(start, column, indent, 0, left_place)]
            for operator, operand in steps:
                lines.append(f"{operator} {_lay(operand, inner + len(operator) + 1, inner, room, right_place)}")
            return _under(lines, inner)
    return flat


def _lay_call(call: Call, column: int, indent: int, room: int) -> str:
    inner = indent + _STEP
    head = call.callee.text + _bracketed(call.statics)
    if call.arguments and column + len(head) < WIDTH:
        return f"{head}({_filled(call.arguments, _flat, _lay, inner, room + 1)})"
    statics = _filled(call.statics, _part, _lay_part, inner, room + 1)
    head = f"{call.callee.text}[{statics}]" if call.statics else call.callee.text
    if not call.arguments or len(_last_line(head, column)) + len(_arguments(call)) + room <= WIDTH:
        return head + _arguments(call)
    return f"{head}({_filled(call.arguments, _flat, _lay, inner, room + 1)})"


def _lay_part(part: Part, column: int, indent: int, room: int) -> str:
    flat = _part(part)
    if column + len(flat) + room <= WIDTH:
        return flat
    match part:
        case StaticArgument(name=name, value=value) if name:
            head, tail = f"{name} = ", value
        case StaticArgument(value=value):
            head, tail = "", value
        case StaticParameter(name=name, kind=kind, default=default) if default:
            head, tail = name + (f": {kind}" if kind else "") + " = ", default
        case Setting(path=path, value=value):
            head, tail = f"{path.text} = ", value
        case Variation(path=path, values=value):
            head, tail = f"{path.text} in ", value
        case Reads(input=name, mode=mode):
            head, tail = f"{name} ", mode
        case _:
            return flat
    return head + _lay(tail, column + len(head), indent, room)


def _filled(
    parts: Sequence[P],
    flat: Callable[[P], str],
    lay: Callable[[P, int, int, int], str],
    indent: int,
    room: int,
    column: int | None = None,
) -> str:
    """Parts with commas, as many a line as fit, the first one on a new line unless a column is given for it."""
    text = "" if column is not None else "\n" + " " * indent
    column = indent if column is None else column
    for index, part in enumerate(parts):
        left = room if index == len(parts) - 1 else 1
        if index > 0:
            if column + 1 + len(flat(part)) + left <= WIDTH:
                text += " "
                column += 1
            else:
                text += "\n" + " " * indent
                column = indent
        text += lay(part, column, indent, left) + ("," if index < len(parts) - 1 else "")
        column = len(_last_line(text, column)) if "\n" in text else column + len(flat(part)) + 1
    return text


def _last_line(text: str, column: int) -> str:
    """What stands on the last line once the text is written at a column."""
    return text.rpartition("\n")[2] if "\n" in text else " " * column + text


def _under(lines: Iterable[str], indent: int) -> str:
    return ("\n" + " " * indent).join(lines)


def _pipeline(pipe: Expression) -> tuple[Expression, list[Expression]]:
    stages: list[Expression] = []
    while isinstance(pipe, Pipe):
        stages.insert(0, pipe.stage)
        pipe = pipe.value
    return pipe, stages


def _chain(expression: Expression, binding: int) -> tuple[Expression, list[tuple[str, Expression]]]:
    """`a + b - c` as `a` and its steps: operators that bind alike and group to the left."""
    steps: list[tuple[str, Expression]] = []
    while isinstance(expression, Binary) and _OPERATORS[expression.operator] == binding:
        steps.insert(0, (expression.operator, expression.right))
        expression = expression.left
        if binding == _COMPARISON:
            break
    return expression, steps


# Signatures


def _where(signature: Signature) -> str:
    return f" where {', '.join(map(_flat, signature.where))}" if signature.where else ""


def _signature_flat(signature: Signature, has_inputs: bool = True) -> str:
    """Without its `where`, which stands among other clauses."""
    inputs = f"({', '.join(map(_part, signature.inputs))})" if has_inputs else ""
    result = f" -> {_type(signature.result)}" if signature.result else ""
    return _bracketed(signature.statics) + inputs + result


def _lay_signature(head: str, signature: Signature, room: int, has_inputs: bool = True) -> str:
    """`head` is what stands before it. Its inputs go to a line of their own before its statics do, and statics that do
    not fit one line get one each."""
    flat = head + _signature_flat(signature, has_inputs)
    if len(flat) + room <= WIDTH:
        return flat
    result = f" -> {_type(signature.result)}" if signature.result else ""
    inputs = signature.inputs if has_inputs else ()
    statics = _bracketed(signature.statics)
    broken_inputs = "(" + _filled(inputs, _part, _lay_part, _STEP, len(result) + room + 1) + ")" if inputs else ""
    if inputs and len(head + statics) + 1 <= WIDTH:
        return head + statics + broken_inputs + result
    flat_inputs = f"({', '.join(map(_part, inputs))})" if has_inputs else ""
    if signature.statics:
        statics = "[" + _filled(signature.statics, _part, _lay_part, _STEP, 1) + "]"
        if statics.count("\n") > 1 or len(_last_line(statics + flat_inputs + result, 0)) + room > WIDTH:
            lines = [_lay_part(static, _STEP, _STEP, 1) + "," for static in signature.statics]
            statics = "[" + _under(["", *lines], _STEP) + "\n]"
    if not inputs or len(_last_line(statics + flat_inputs + result, len(head))) + room <= WIDTH:
        return head + statics + flat_inputs + result
    return head + statics + broken_inputs + result


# Items


def _item(item: Use | Definition | Extern | Recipe) -> str:
    match item:
        case Use(path=path, is_file=is_file, alias=alias):
            return f'use "{path}"' * is_file + f"use {path}" * (not is_file) + (f" as {alias}" if alias else "")
        case Definition():
            return _definition(item)
        case Extern():
            return _extern(item)
        case Recipe(name=name, parts=parts, closing=closing):
            if not parts and not closing:
                return f"recipe {name} {{}}"
            lines = _commented(parts, closing, _STEP, _recipe_part)
            return "\n".join([f"recipe {name} {{", *lines, "}"])


def _definition(item: Definition) -> str:
    head = f"{item.word} {item.name}"
    signature = item.signature
    flat = head + _signature_flat(signature) + _where(signature)
    if len(flat) + 2 <= WIDTH or not signature.where:
        start = _lay_signature(head, signature, 2)
        return f"{start}{_where(signature)} {_body(item.body, 0)}"
    start = _lay_signature(head, signature, 0)
    return f"{start}\n{_lay_where(signature, 2)} {_body(item.body, 0)}"


def _lay_where(signature: Signature, room: int) -> str:
    start = " " * _STEP + "where "
    return start + _filled(signature.where, _flat, _lay, 2 * _STEP, room, len(start))


def _extern(item: Extern) -> str:
    head = f"extern {item.word} {item.name}"
    signature = item.signature
    has_inputs = item.word != "optimizer"
    clauses = [_where(signature)[1:]] if signature.where else []
    lines = [_lay_where(signature, 0)] if signature.where else []
    groups: list[tuple[str, Sequence[Reads | StaticArgument]]] = [("reads", item.reads), ("gives", item.gives)]
    for word, parts in groups:
        if parts:
            clauses.append(f"{word} {', '.join(map(_part, parts))}")
            start = " " * _STEP + f"{word} "
            lines.append(start + _filled(parts, _part, _lay_part, 2 * _STEP, 0, len(start)))
    rest = ["pure"] * item.pure + ["causal"] * item.causal + [f'python "{item.python}"']
    flat = " ".join([head + _signature_flat(signature, has_inputs), *clauses, *rest])
    if len(flat) <= WIDTH:
        return flat
    lines += [" " * _STEP + clause for clause in rest]
    return "\n".join([_lay_signature(head, signature, 0, has_inputs), *lines])


# Statements


def _body(body: Body, indent: int) -> str:
    """From brace to brace; the first one stands on a line that begins at the indent."""
    if not body.statements and not body.closing:
        return "{}"
    lines = _commented(body.statements, body.closing, indent + _STEP, _statement)
    return "\n".join(["{", *lines, " " * indent + "}"])


def _commented(
    statements: Sequence[S], closing: Sequence[str], indent: int, text: Callable[[S, int], str]
) -> list[str]:
    """The lines of statements with their comments. Comments beside neighbouring lines stand in one column."""
    lines: list[str] = []
    beside: list[tuple[int, str]] = []
    margin = " " * indent

    def settle() -> None:
        column = max((len(lines[place]) for place, _ in beside), default=0) + _GAP
        for place, comment in beside:
            lines[place] = lines[place].ljust(column) + comment
        beside.clear()

    for index, statement in enumerate(statements):
        above = [""] * (statement.blank and index > 0) + list(statement.leading)
        written = text(statement, indent).split("\n")
        if above or len(written) > 1 or not statement.trailing:
            settle()
        lines += [margin + line if line else "" for line in above]
        lines += [margin + written[0], *written[1:]]
        if statement.trailing:
            beside.append((len(lines) - 1, statement.trailing))
    settle()
    return lines + [margin + line if line else "" for line in closing]


def _statement(statement: Statement, indent: int) -> str:
    """Its first line without the indent, the others with it."""
    match statement:
        case Let() | Assign() | Move() | Return() | Emit():
            return _headed(_simple_head(statement), statement.value, indent)
        case Scan():
            return f"{_scan_head(statement, indent)} {_body(statement.body, indent)}"
        case If() | Repeat() | Stack() | Halting():
            line = _on_one_line(statement)
            if line is not None and indent + len(line) <= WIDTH:
                return line
            return _compound(statement, indent)


def _headed(head: str, value: Expression, indent: int, room: int = 0) -> str:
    return head + _lay(value, indent + len(head), indent, room)


def _scan_head(scan: Scan, indent: int) -> str:
    target = f"{scan.target} = " if scan.target else ""
    carry = f" carry {', '.join(name.text for name in scan.carry)}" if scan.carry else ""
    return _headed(f"{target}scan {scan.variable} in ", scan.over, indent, len(carry) + 2) + carry


def _loop_head(loop: Repeat | Stack | Halting, indent: int) -> str:
    if isinstance(loop, Stack):
        return _headed("stack ", loop.count, indent, 2)
    if isinstance(loop, Repeat):
        return _headed("repeat ", loop.count, indent, 2)
    mixture = f" as {loop.mixture}" if loop.mixture else ""
    head = f"repeat {_flat(loop.count)} halting {loop.state}{mixture} by "
    return _headed(head, loop.by, indent, 2)


def _compound(statement: If | Repeat | Stack | Halting, indent: int) -> str:
    if not isinstance(statement, If):
        return f"{_loop_head(statement, indent)} {_body(statement.body, indent)}"
    text = f"{_headed('if ', statement.test, indent, 2)} {_body(statement.then, indent)}"
    otherwise = statement.otherwise
    if otherwise is None:
        return text
    inner = _else_if(otherwise)
    return f"{text} else {_compound(inner, indent) if inner else _body(otherwise, indent)}"


def _else_if(body: Body) -> If | None:
    """The one `if` of the body of an `else`, where it can follow on the line: comments would have no place there."""
    if len(body.statements) == 1 and not body.closing:
        inner = body.statements[0]
        if isinstance(inner, If) and not inner.leading and not inner.trailing:
            return inner
    return None


def _on_one_line(statement: If | Repeat | Stack | Halting) -> str | None:
    """A statement whose bodies are a single simple statement each, without comments."""
    if not isinstance(statement, If):
        body = _body_on_one_line(statement.body)
        return None if body is None else f"{_flat_head(statement)} {body}"
    then = _body_on_one_line(statement.then)
    if then is None or statement.otherwise is None:
        return None if then is None else f"if {_flat(statement.test)} {then}"
    inner = _else_if(statement.otherwise)
    otherwise = _on_one_line(inner) if inner else _body_on_one_line(statement.otherwise)
    return None if otherwise is None else f"if {_flat(statement.test)} {then} else {otherwise}"


def _flat_head(loop: Repeat | Stack | Halting) -> str:
    if not isinstance(loop, Halting):
        return f"{'stack' if isinstance(loop, Stack) else 'repeat'} {_flat(loop.count)}"
    mixture = f" as {loop.mixture}" if loop.mixture else ""
    return f"repeat {_flat(loop.count)} halting {loop.state}{mixture} by {_flat(loop.by)}"


def _body_on_one_line(body: Body) -> str | None:
    if not body.statements and not body.closing:
        return "{}"
    if len(body.statements) != 1 or body.closing:
        return None
    inner = body.statements[0]
    if not isinstance(inner, Let | Assign | Move | Return | Emit) or inner.leading or inner.trailing:
        return None
    return f"{{ {_simple_head(inner)}{_flat(inner.value)} }}"


def _simple_head(statement: Let | Assign | Move | Return | Emit) -> str:
    match statement:
        case Let(name=name):
            return f"let {name} = "
        case Assign(name=name):
            return f"{name} = "
        case Move(name=name):
            return f"{name} <- "
        case Return():
            return "return "
        case Emit():
            return "emit "


# Recipes


def _recipe_part(part: Choice | AtTest | Vary | Claim, indent: int) -> str:
    column = indent + _WORD
    match part:
        case Choice(word=word, value=value):
            return _headed(word.ljust(_WORD), value, indent)
        case AtTest(settings=settings):
            return "test".ljust(_WORD) + _filled(settings, _part, _lay_part, column, 0, column)
        case Vary(variations=variations):
            return "vary".ljust(_WORD) + _filled(variations, _part, _lay_part, column, 0, column)
        case Claim(metric=metric, index=index, value=value, deviation=deviation, at=at, origin=origin):
            text = f"claim {metric.text}" + (f"[{_flat(index)}]" if index else "") + f" = {_flat(value, _NEGATIVE)}"
            text += f" ± {_flat(deviation, _NEGATIVE)}" if deviation else ""
            place = f" at {', '.join(map(_part, at))}" if at else ""
            source = f' from "{origin}"'
            if indent + len(text + place + source) <= WIDTH:
                return text + place + source
            lines = [text]
            if at:
                lines.append("at " + _filled(at, _part, _lay_part, column + 3, 0, column + 3))
            return _under([*lines, source.lstrip()], column)
