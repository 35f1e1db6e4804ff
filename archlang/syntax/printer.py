"""Prints trees as text: the formatter, and the text of single nodes for messages."""

from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

from archlang.syntax import tree
from archlang.syntax.expression_text import NEGATIVE, Part, bracketed, expression_text, part_text, type_text
from archlang.syntax.wrap import STEP, WIDTH, filled, last_line, under, wrapped, wrapped_part

S = TypeVar("S", bound=tree.Commented)

# Spaces before a comment at the end of a line.
_GAP = 3
# The keywords of recipe parts are padded, so that the text after them is aligned.
_WORD = len("train ")


Item = tree.Use | tree.Definition | tree.Extern | tree.Recipe | tree.Table


def format_program(program: tree.Program, text_of: Callable[[Item], str] | None = None) -> str:
    """Formats a program. Comments and single empty lines between statements stay. `text_of` returns what `item_text`
    does, `item_text` itself by default."""
    text_of = item_text if text_of is None else text_of
    blocks: list[str] = []
    for index, item in enumerate(program.items):
        if index > 0 and (item.blank or not _may_follow_closely(program.items[index - 1], item, text_of)):
            blocks.append("")
        blocks += item.leading
        blocks += [f"## {line}".rstrip() for line in item.documentation]
        if item.apart and item.documentation:
            blocks.append("")
        blocks.append(text_of(item) + (" " * _GAP + item.trailing if item.trailing else ""))
    if program.closing:
        blocks += [*([""] if program.items else []), *program.closing]
    return "".join(f"{block}\n" for block in blocks)


def _may_follow_closely(before: Item, item: Item, text_of: Callable[[Item], str]) -> bool:
    """Whether no empty line is needed between two items: two `use` lines, or two recipes of one line each."""
    if isinstance(before, tree.Recipe) and isinstance(item, tree.Recipe):
        return "\n" not in text_of(before) + text_of(item)
    return isinstance(before, tree.Use) and isinstance(item, tree.Use)


def unparse(node: tree.Node) -> str:
    """Prints a node. Expressions, types and parameters are printed on one line of any length."""
    match node:
        case tree.TypeName() | tree.ConditionalType():
            return type_text(node)
        case (
            tree.StaticArgument()
            | tree.StaticParameter()
            | tree.InputParameter()
            | tree.Setting()
            | tree.CellNumber()
            | tree.Variation()
            | tree.Sought()
            | tree.Reads()
            | tree.Caveat()
            | tree.Cost()
            | tree.Maps()
            | tree.Record()
            | tree.Cut()
        ):
            return part_text(node)
        case tree.MapName(name=name, input=source):
            return f"{name}({source})"
        case tree.Signature():
            return _signature_flat(node) + _where(node)
        case (
            tree.Let()
            | tree.Assign()
            | tree.Update()
            | tree.Loss()
            | tree.Return()
            | tree.Emit()
            | tree.If()
            | tree.Repeat()
            | tree.Stack()
            | tree.Halting()
            | tree.Scan()
            | tree.Experts()
        ):
            return _statement(node, 0)
        case tree.Use() | tree.Definition() | tree.Extern() | tree.Recipe() | tree.Table():
            return item_text(node)
        case tree.Choice() | tree.AtTest() | tree.Vary() | tree.Search() | tree.Claim():
            return _recipe_part(node, 0)
        case tree.Row() | tree.Column() | tree.Columns():
            return _table_part(node, 0)
        case tree.Published():
            return _published(node)
        case tree.Body():
            return _body(node, 0)
    return expression_text(node)  # type: ignore[arg-type]  # every other node is an expression


# Signatures


def _where(signature: tree.Signature) -> str:
    return f" where {', '.join(map(expression_text, signature.where))}" if signature.where else ""


def _signature_flat(signature: tree.Signature, has_inputs: bool = True) -> str:
    """Prints a signature on one line, without its clauses."""
    inputs = f"({', '.join(map(part_text, signature.inputs))})" if has_inputs else ""
    result = f" -> {type_text(signature.result)}" if signature.result else ""
    return bracketed(signature.statics) + inputs + result


def _lay_signature(head: str, signature: tree.Signature, room: int, has_inputs: bool = True) -> str:
    """Prints `head` and a signature on as many lines as needed: inputs wrap before statics, and statics that do not fit
    on one line get one line each."""
    line = head + _signature_flat(signature, has_inputs)
    statics = _commented_statics(signature.statics, signature.closing, 0)
    if len(line) + room <= WIDTH and not statics:
        return line
    result = f" -> {type_text(signature.result)}" if signature.result else ""
    inputs = signature.inputs if has_inputs else ()
    statics = statics or bracketed(signature.statics)
    broken_inputs = "(" + filled(inputs, part_text, wrapped_part, STEP, len(result) + room + 1) + ")" if inputs else ""
    if inputs and len(head + statics) + 1 <= WIDTH and "\n" not in statics:
        return head + statics + broken_inputs + result
    flat_inputs = f"({', '.join(map(part_text, inputs))})" if has_inputs else ""
    if signature.statics and "\n" not in statics:
        statics = "[" + filled(signature.statics, part_text, wrapped_part, STEP, 1) + "]"
        if statics.count("\n") > 1 or len(last_line(statics + flat_inputs + result, 0)) + room > WIDTH:
            lines = [wrapped_part(static, STEP, STEP, 1) + "," for static in signature.statics]
            statics = "[" + under(["", *lines], STEP) + "\n]"
    if not inputs or len(last_line(statics + flat_inputs + result, len(head))) + room <= WIDTH:
        return head + statics + flat_inputs + result
    return head + statics + broken_inputs + result


def _has_comments(nodes: Sequence[tree.Commented]) -> bool:
    return any(node.leading or node.trailing for node in nodes)


def _commented_statics(
    statics: Sequence[tree.StaticParameter | tree.StaticArgument], closing: Sequence[str], indent: int
) -> str:
    """Prints statics with comments in brackets, each on a line of its own; empty if they have none. `indent` is that of
    the line with the first bracket."""
    if not _has_comments(statics) and not closing:
        return ""
    lines = _commented(statics, closing, indent + STEP, lambda static, at: wrapped_part(static, at, at, 1) + ",")
    return "\n".join(["[", *lines, " " * indent + "]"])


# Items


def item_text(item: Item) -> str:
    """Prints an item without its comments above and beside it."""
    match item:
        case tree.Use(path=path, is_file=is_file, alias=alias):
            source = f'"{path}"' if is_file else path
            return f"use {source} as {alias}" if alias else f"use {source}"
        case tree.Definition():
            return _definition(item)
        case tree.Extern():
            return _extern(item)
        case tree.Recipe(name=name, base=base, parts=parts, closing=closing):
            head = f"recipe {name} from {base}" if base else f"recipe {name}"
            if not parts and not closing:
                return f"{head} {{}}"
            short = f"{head} {{ {' '.join(_recipe_part(parts[0], 0).split())} }}" if base and len(parts) == 1 else ""
            has_comments = closing or _has_comments(parts) or (parts and _choice_statics(parts[0], 0))
            if short and not has_comments and len(short) <= WIDTH:
                return short
            return "\n".join([f"{head} {{", *_commented(parts, closing, STEP, _recipe_part), "}"])
        case tree.Table(name=name, origin=origin, parts=parts, closing=closing):
            head = f'table {name} from "{origin}"' if origin else f"table {name}"
            if not parts and not closing:
                return f"{head} {{}}"
            return "\n".join([f"{head} {{", *_commented(parts, closing, STEP, _table_part), "}"])


def _definition(item: tree.Definition) -> str:
    head = f"{item.word} {item.name}"
    signature = item.signature
    line = head + _signature_flat(signature) + _where(signature)
    if len(line) + 2 <= WIDTH or not signature.where:
        start = _lay_signature(head, signature, 2)
        return f"{start}{_where(signature)} {_body(item.body, 0)}"
    start = _lay_signature(head, signature, 0)
    return f"{start}\n{_lay_where(signature, 2)} {_body(item.body, 0)}"


def _lay_where(signature: tree.Signature, room: int) -> str:
    start = " " * STEP + "where "
    return start + filled(signature.where, expression_text, wrapped, 2 * STEP, room, len(start))


def _extern(item: tree.Extern) -> str:
    head = f"extern {item.word} {item.name}"
    signature = item.signature
    has_inputs = item.word in ("block", "task")
    clauses = [_where(signature)[1:]] if signature.where else []
    lines = [_lay_where(signature, 0)] if signature.where else []
    clauses += [clause for clause, _ in clauses_of(item)]
    lines += [" " * STEP + laid for _, laid in clauses_of(item)]
    line = " ".join([head + _signature_flat(signature, has_inputs), *clauses])
    if len(line) <= WIDTH and not _commented_statics(signature.statics, signature.closing, 0):
        return line
    return "\n".join([_lay_signature(head, signature, 0, has_inputs), *lines])


def clauses_of(item: tree.Extern) -> Iterator[tuple[str, str]]:
    """Yields the clauses after `where` in order, each on one line and wrapped."""
    yield from _clause("reads", item.reads)
    yield from _clause("gives", item.gives)
    yield from _alone(item.caveats)
    for word in ["pure"] * item.pure + ["causal"] * item.causal:
        yield word, word
    yield from _clause("sizes", item.sizes)
    yield from _clause("costs", item.costs)
    yield from _clause("maps", item.maps)
    yield from _clause("records", item.records)
    yield from _alone(item.cuts)
    for settings in item.includes:
        yield (f"with {settings.text}",) * 2
    if item.word != "settings":
        yield (f'python "{item.python}"',) * 2


def _alone(clauses: Sequence[Part]) -> Iterator[tuple[str, str]]:
    for clause in clauses:
        yield part_text(clause), wrapped_part(clause, STEP, 2 * STEP, 0)


def _clause(word: str, parts: Sequence[Part]) -> Iterator[tuple[str, str]]:
    if parts:
        yield (
            f"{word} {', '.join(map(part_text, parts))}",
            f"{word} " + filled(parts, part_text, wrapped_part, 2 * STEP, 0, STEP + len(word) + 1),
        )


def signature_text(item: tree.Definition | tree.Extern) -> str:
    """Returns the signature as source text, without documentation."""
    statics = ",\n    ".join(unparse(parameter) for parameter in item.signature.statics)
    inputs = ", ".join(unparse(parameter) for parameter in item.signature.inputs)
    result = f" -> {unparse(item.signature.result)}" if item.signature.result is not None else ""
    text = f"{item.word} {item.name}"
    if statics:
        text += f"[\n    {statics}\n]"
    if inputs or result:
        text += f"({inputs}){result}"
    if item.signature.where:
        text += "\n    where " + ",\n        ".join(unparse(condition) for condition in item.signature.where)
    if isinstance(item, tree.Extern):
        *clauses, _ = clauses_of(item)  # the class is an implementation
        text += "".join(f"\n    {clause}" for _, clause in clauses)
    return text


# Statements


def _body(body: tree.Body, indent: int) -> str:
    """Prints a body with its braces; `indent` is the indent of the line with the first brace."""
    if not body.statements and not body.closing:
        return "{}"
    lines = _commented(body.statements, body.closing, indent + STEP, _statement)
    return "\n".join(["{", *lines, " " * indent + "}"])


def _commented(
    statements: Sequence[S], closing: Sequence[str], indent: int, text: Callable[[S, int], str]
) -> list[str]:
    """Returns the lines of statements with their comments. Trailing comments of adjacent lines are aligned."""
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


def _statement(statement: tree.Statement, indent: int) -> str:
    """Prints a statement, its first line without the indent."""
    match statement:
        case tree.Let() | tree.Assign() | tree.Update() | tree.Loss() | tree.Return() | tree.Emit():
            return _headed(_simple_head(statement), statement.value, indent)
        case tree.Scan():
            return f"{_scan_head(statement, indent)} {_body(statement.body, indent)}"
        case tree.Experts():
            return f"{_experts_head(statement, indent)} {_body(statement.body, indent)}"
        case tree.If() | tree.Repeat() | tree.Stack() | tree.Halting():
            line = _on_one_line(statement)
            if line is not None and indent + len(line) <= WIDTH:
                return line
            return _compound(statement, indent)
        case tree.Unclear():
            return f"{_unread(statement.header)} {_body(statement.body, indent)}"
        case tree.Missing():
            return _unread(statement)


def _unread(missing: tree.Missing) -> str:
    return " ".join(missing.span.text.split())


def _headed(head: str, value: tree.Expression, indent: int, room: int = 0) -> str:
    return head + wrapped(value, indent + len(head), indent, room)


def _scan_head(scan: tree.Scan, indent: int) -> str:
    states = (name.text + " growing" * (name.text in scan.growing) for name in scan.carry)
    carry = f" carry {', '.join(states)}" if scan.carry else ""
    carry += _truncation(scan)
    after = f" after {scan.before}" if scan.before else ""
    after += f"[{expression_text(scan.reach)}]" if scan.reach else ""
    return _headed(f"{_target(scan)}scan {scan.variable}{after} in ", scan.over, indent, len(carry) + 2) + carry


def _target(loop: tree.Repeat | tree.Stack | tree.Halting | tree.Scan) -> str:
    return f"{loop.target} = " if loop.target else ""


def _truncation(loop: tree.Repeat | tree.Halting | tree.Scan) -> str:
    return "" if loop.truncated is None else f" truncated {expression_text(loop.truncated)}"


def _experts_head(experts: tree.Experts, indent: int) -> str:
    by = f" by {expression_text(experts.by)}"
    return _headed(f"{experts.target} = experts {experts.variable} in ", experts.over, indent, len(by) + 2) + by


def _loop_head(loop: tree.Repeat | tree.Stack | tree.Halting, indent: int) -> str:
    if isinstance(loop, tree.Stack):
        return _headed(f"{_target(loop)}stack ", loop.count, indent, 2)
    truncation = _truncation(loop)
    if isinstance(loop, tree.Repeat) and loop.drawn is not None:
        return _headed(_drawn_head(loop), loop.drawn, indent, len(truncation) + 2) + truncation
    if isinstance(loop, tree.Repeat):
        return _headed(f"{_target(loop)}repeat ", loop.count, indent, len(truncation) + 2) + truncation
    return _headed(_halting_head(loop), loop.by, indent, len(truncation) + 2) + truncation


def _drawn_head(loop: tree.Repeat) -> str:
    return f"{_target(loop)}repeat {expression_text(loop.count)} drawn by "


def _halting_head(loop: tree.Halting) -> str:
    mixture = f" as {loop.mixture}" if loop.mixture else ""
    return f"{_target(loop)}repeat {expression_text(loop.count)} halting {loop.state}{mixture} by "


def _compound(statement: tree.If | tree.Repeat | tree.Stack | tree.Halting, indent: int) -> str:
    if not isinstance(statement, tree.If):
        return f"{_loop_head(statement, indent)} {_body(statement.body, indent)}"
    text = f"{_headed('if ', statement.test, indent, 2)} {_body(statement.then, indent)}"
    otherwise = statement.otherwise
    if otherwise is None:
        return text
    inner = _else_if(otherwise)
    return f"{text} else {_compound(inner, indent) if inner else _body(otherwise, indent)}"


def _else_if(body: tree.Body) -> tree.If | None:
    """Returns the `if` that can follow `else` on its line: the only statement of the body, without comments."""
    if len(body.statements) == 1 and not body.closing:
        inner = body.statements[0]
        if isinstance(inner, tree.If) and not inner.leading and not inner.trailing:
            return inner
    return None


def _on_one_line(statement: tree.If | tree.Repeat | tree.Stack | tree.Halting) -> str | None:
    """Prints a statement on one line if each of its bodies is a single simple statement without comments."""
    if not isinstance(statement, tree.If):
        body = _body_on_one_line(statement.body)
        return None if body is None else f"{_flat_head(statement)} {body}"
    then = _body_on_one_line(statement.then)
    if then is None or statement.otherwise is None:
        return None if then is None else f"if {expression_text(statement.test)} {then}"
    inner = _else_if(statement.otherwise)
    otherwise = _on_one_line(inner) if inner else _body_on_one_line(statement.otherwise)
    return None if otherwise is None else f"if {expression_text(statement.test)} {then} else {otherwise}"


def _flat_head(loop: tree.Repeat | tree.Stack | tree.Halting) -> str:
    if isinstance(loop, tree.Stack):
        return f"{_target(loop)}stack {expression_text(loop.count)}"
    if isinstance(loop, tree.Repeat) and loop.drawn is not None:
        return f"{_drawn_head(loop)}{expression_text(loop.drawn)}{_truncation(loop)}"
    if isinstance(loop, tree.Repeat):
        return f"{_target(loop)}repeat {expression_text(loop.count)}{_truncation(loop)}"
    return f"{_halting_head(loop)}{expression_text(loop.by)}{_truncation(loop)}"


def _body_on_one_line(body: tree.Body) -> str | None:
    if not body.statements and not body.closing:
        return "{}"
    if len(body.statements) != 1 or body.closing:
        return None
    inner = body.statements[0]
    if (
        not isinstance(inner, tree.Let | tree.Assign | tree.Update | tree.Loss | tree.Return | tree.Emit)
        or inner.leading
        or inner.trailing
    ):
        return None
    return f"{{ {_simple_head(inner)}{expression_text(inner.value)} }}"


def _simple_head(statement: tree.Let | tree.Assign | tree.Update | tree.Loss | tree.Return | tree.Emit) -> str:
    match statement:
        case tree.Let(name=name):
            return f"let {name} = "
        case tree.Assign(name=name):
            return f"{name} = "
        case tree.Update(name=name):
            return f"{name} <- "
        case tree.Loss(name=name):
            return f"loss {name} = "
        case tree.Return():
            return "return "
        case tree.Emit():
            return "emit "


# Recipes


def _recipe_part(
    part: tree.Choice | tree.AtTest | tree.Vary | tree.Search | tree.Claim | tree.Missing, indent: int
) -> str:
    column = indent + _WORD
    match part:
        case tree.Missing():
            return _unread(part)
        case tree.Choice(word=word, value=value):
            if isinstance(value, tree.Call) and (statics := _choice_statics(part, indent)):
                return word.ljust(_WORD) + value.callee.text + statics
            return _headed(word.ljust(_WORD), value, indent)
        case tree.AtTest(settings=settings):
            return "test".ljust(_WORD) + filled(settings, part_text, wrapped_part, column, 0, column)
        case tree.Vary(variations=variations):
            return "vary".ljust(_WORD) + filled(variations, part_text, wrapped_part, column, 0, column)
        case tree.Search(sought=sought):
            return "search " + filled(sought, part_text, wrapped_part, column + 1, 0, column + 1)
        case tree.Claim(metric=metric, index=index, value=value, deviation=deviation, at=at, origin=origin):
            text = (
                ("claim median " if part.median else "claim ")
                + metric.text
                + (f"[{expression_text(index)}]" if index else "")
                + f" = {expression_text(value, NEGATIVE)}"
            )
            text += f" ± {expression_text(deviation, NEGATIVE)}" if deviation else ""
            place = f" at {', '.join(map(part_text, at))}" if at else ""
            source = f' from "{origin}"'
            if indent + len(text + place + source) <= WIDTH:
                return text + place + source
            lines = [text]
            if at:
                lines.append("at " + filled(at, part_text, wrapped_part, column + 3, 0, column + 3))
            return under([*lines, source.lstrip()], column)


def _choice_statics(part: tree.Node, indent: int) -> str:
    """Prints the statics of a line `task`, `model` or `train` if they have comments; empty if they have none."""
    if not isinstance(part, tree.Choice) or not isinstance(part.value, tree.Call):
        return ""
    return _commented_statics(part.value.statics, part.value.closing, indent)


# Tables


def _table_part(part: tree.Row | tree.Column | tree.Columns | tree.Missing, indent: int) -> str:
    """Prints a row or a column; what does not fit on its line goes to lines of its own."""
    at: Sequence[tree.Setting | tree.Variation] = ()
    if isinstance(part, tree.Missing):
        return _unread(part)
    match part:
        case tree.Row(title=title, recipe=None, why=why):
            text = f'row    "{title}"' + (f' absent "{why}"' if why else "")
        case tree.Row(title=title, recipe=recipe, at=at):
            text = f'row    "{title}" {recipe}'
        case tree.Column(title=title, metric=metric, average=True, at=at):
            text = f'column "{title}" average of {metric.text}'
        case tree.Column(title=title, metric=metric, index=index, at=at):
            text = f'column "{title}" {metric.text}' + (f"[{expression_text(index)}]" if index else "")
        case tree.Columns(title=title, metric=metric, at=at):
            text = f'columns "{title}" {metric.text}' if title else f"columns {metric.text}"
    column = indent + len("column ")
    clauses = [(f"at {', '.join(map(part_text, at))}", "at " + _filled(at, column + 3))] if at else []
    if not isinstance(part, tree.Row) or part.recipe is not None:
        best_of = f"best of {', '.join(path.text for path in part.best_of)}"
        clauses += [(best_of, best_of)] if part.best_of else []
    if isinstance(part, tree.Row) and part.published is not None:
        published = part.published
        word = "claims median " if published.median else "claims "
        origin = "" if published.origin is None else f' from "{published.origin}"'
        wrapped_numbers = word + _filled(published.cells, column + len(word), len(origin)) + origin
        clauses.append((_published(published), wrapped_numbers))
    lines = [text]
    for flat, on_several in clauses:
        if (
            "\n" not in lines[-1]
            and len(last_line(lines[-1], indent if len(lines) == 1 else column)) + len(flat) < WIDTH
        ):
            lines[-1] += f" {flat}"
        else:
            lines.append(on_several)
    return under(lines, column)


def _filled(parts: Sequence[Part], column: int, room: int = 0) -> str:
    return filled(parts, part_text, wrapped_part, column, room, column)


def _published(published: tree.Published) -> str:
    word = "claims median" if published.median else "claims"
    origin = "" if published.origin is None else f' from "{published.origin}"'
    return f"{word} {', '.join(map(part_text, published.cells))}{origin}"
