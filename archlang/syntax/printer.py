"""Prints trees as text: the formatter, and the text of single nodes for messages."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeVar

from archlang.syntax import tree
from archlang.syntax.expression_text import Part, expression, expression_text, number_text, part, part_text, type_text
from archlang.syntax.layout import STEP, WIDTH, Doc, Fill, Group, Indent, Line, flat, in_brackets, laid

S = TypeVar("S", bound=tree.Commented)

# Spaces before a comment at the end of a line.
_GAP = 3
# The keywords of recipe parts are padded, so that the text after them is aligned.
_WORD = len("train ")

Item = tree.Use | tree.Definition | tree.Extern | tree.Recipe | tree.Table
Simple = tree.Let | tree.Assign | tree.Update | tree.Loss | tree.Return | tree.Emit


def format_program(program: tree.Program) -> str:
    """Formats a program. Comments and single empty lines between statements stay."""
    blocks: list[str] = []
    for index, item in enumerate(program.items):
        if index > 0 and (item.blank or not _may_follow_closely(program.items[index - 1], item)):
            blocks.append("")
        blocks += item.leading
        blocks += [f"## {line}".rstrip() for line in item.documentation]
        if item.apart and item.documentation:
            blocks.append("")
        blocks.append(item_text(item) + (" " * _GAP + item.trailing if item.trailing else ""))
    if program.closing:
        blocks += [*([""] if program.items else []), *program.closing]
    return "".join(f"{block}\n" for block in blocks)


def _may_follow_closely(before: Item, item: Item) -> bool:
    """Whether no empty line is needed between two items: two `use` lines, or two recipes of one line each."""
    if isinstance(before, tree.Recipe) and isinstance(item, tree.Recipe):
        return "\n" not in item_text(before) + item_text(item)
    return isinstance(before, tree.Use) and isinstance(item, tree.Use)


def unparse(node: tree.Node) -> str:
    """Prints a node. Expressions, types and parameters are printed on one line of any length."""
    match node:
        case tree.TypeName() | tree.ConditionalType():
            return type_text(node)
        case tree.Signature():
            inputs = in_brackets("()", map(part, node.inputs))
            return flat((_statics(node.statics), inputs, _result(node))) + _where(node)
        case tree.Use() | tree.Definition() | tree.Extern() | tree.Recipe() | tree.Table():
            return item_text(node)
        case tree.Choice() | tree.AtTest() | tree.Vary() | tree.Search() | tree.Claim():
            return _recipe_part(node, 0)
        case tree.Row() | tree.Column() | tree.Columns():
            return _table_part(node, 0)
        case tree.Published():
            return flat(_published(node))
        case tree.Body():
            return _body(node, 0)
        case tree.Missing():
            return node.span.text
        case tree.StaticArgument() | tree.StaticParameter():
            return part_text(node)
        case tree.Commented():
            return _statement(node, 0)  # type: ignore[arg-type]  # the other nodes with comments
    is_part = isinstance(node, Part)
    return part_text(node) if is_part else expression_text(node)  # type: ignore[arg-type]  # every other node is an expression


# Signatures


def _statics(statics: Sequence[tree.StaticArgument | tree.StaticParameter]) -> Doc:
    return in_brackets("[]", map(part, statics)) if statics else ""


def _result(signature: tree.Signature) -> str:
    return f" -> {type_text(signature.result)}" if signature.result else ""


def _where(signature: tree.Signature) -> str:
    return f" where {', '.join(map(expression_text, signature.where))}" if signature.where else ""


def _where_line(signature: tree.Signature, end: str) -> str:
    conditions = Fill(tuple(map(expression, signature.where)))
    return " " * STEP + laid(("where ", Indent(conditions), end), STEP, STEP)


def _signature(head: str, signature: tree.Signature, has_inputs: bool, end: str = "") -> str:
    """Prints `head`, a signature and its `end` on as many lines as needed: inputs wrap before statics, and statics that
    do not fit on one line get one line each."""
    inputs = in_brackets("()", map(part, signature.inputs)) if has_inputs else ""
    after = (inputs, _result(signature), end)
    statics: Doc = _commented_statics(signature.statics, signature.closing, 0)
    if not statics and signature.statics:
        texts = [*map(part, signature.statics)]
        statics = in_brackets("[]", texts)
        if STEP + len(flat((Fill(tuple(texts)), "]", *after))) > WIDTH:
            lines = [(each, ",", Line()) for each in texts[:-1]]
            statics = Group(("[", Indent((Line(""), *lines, texts[-1], Line("", ","))), Line(""), "]"))
    return laid((head, statics, *after), 0, 0)


def _has_comments(nodes: Sequence[tree.Commented]) -> bool:
    return any(node.leading or node.trailing for node in nodes)


def _commented_statics(
    statics: Sequence[tree.StaticParameter | tree.StaticArgument], closing: Sequence[str], indent: int
) -> str:
    """Prints statics with comments in brackets, each on a line of its own; empty if they have none. `indent` is that of
    the line with the first bracket."""
    if not _has_comments(statics) and not closing:
        return ""
    lines = _commented(statics, closing, indent + STEP, lambda static, at: laid((part(static), ","), at, at))
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
    head, signature = f"{item.word} {item.name}", item.signature
    where = _where(signature)
    if not where or len(head + unparse(signature)) + len(" {") <= WIDTH:
        return _signature(head, signature, has_inputs=True, end=f"{where} {{")[:-1] + _body(item.body, 0)
    return f"{_signature(head, signature, has_inputs=True)}\n{_where_line(signature, ' {')[:-1]}{_body(item.body, 0)}"


def _extern(item: tree.Extern) -> str:
    head, signature = f"extern {item.word} {item.name}", item.signature
    has_inputs = item.word in ("block", "task")
    laid_signature = _signature(head, signature, has_inputs)
    clauses = [*_clauses(item)]
    if item.word != "settings":
        clauses.append(f'python "{item.python}"')
    line = " ".join([laid_signature + _where(signature), *map(flat, clauses)])
    if "\n" not in laid_signature and len(line) <= WIDTH:
        return line
    lines = [_where_line(signature, "")] if signature.where else []
    return "\n".join([laid_signature, *lines, *(" " * STEP + laid(clause, STEP, STEP) for clause in clauses)])


def _clauses(item: tree.Extern) -> Iterator[Doc]:
    """Yields the clauses after `where` in order."""
    yield from _clause("reads", item.reads)
    yield from _clause("gives", item.gives)
    yield from (Indent(part(caveat)) for caveat in item.caveats)
    yield from ["pure"] * item.pure + ["causal"] * item.causal
    yield from _clause("sizes", item.sizes)
    yield from _clause("costs", item.costs)
    yield from _clause("maps", item.maps)
    yield from _clause("records", item.records)
    yield from (Indent(part(cut)) for cut in item.cuts)
    yield from (f"with {settings.text}" for settings in item.includes)


def _clause(word: str, parts: Sequence[Part]) -> Iterator[Doc]:
    if parts:
        yield (f"{word} ", Indent(Fill(tuple(map(part, parts)))))


def signature_text(item: tree.Definition | tree.Extern) -> str:
    """Returns the signature as source text, without documentation."""
    statics = ",\n    ".join(unparse(parameter) for parameter in item.signature.statics)
    inputs = ", ".join(unparse(parameter) for parameter in item.signature.inputs)
    text = f"{item.word} {item.name}"
    if statics:
        text += f"[\n    {statics}\n]"
    if inputs or item.signature.result is not None:
        text += f"({inputs}){_result(item.signature)}"
    if item.signature.where:
        text += "\n    where " + ",\n        ".join(map(expression_text, item.signature.where))
    if isinstance(item, tree.Extern):
        text += "".join(f"\n    {laid(clause, STEP, STEP)}" for clause in _clauses(item))
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
        case tree.Missing():
            return _unread(statement)
        case tree.Unclear():
            return f"{_unread(statement.header)} {_body(statement.body, indent)}"
        case tree.If() | tree.Repeat() | tree.Stack() | tree.Halting():
            line = _on_one_line(statement)
            if line is not None and indent + len(line) <= WIDTH:
                return line
    return _on_lines(statement, indent)


def _on_lines(statement: Simple | tree.Loop | tree.If, indent: int) -> str:
    if isinstance(statement, Simple):
        return laid(_head(statement), indent, indent)
    text = laid((_head(statement), " {"), indent, indent)[:-1]
    if not isinstance(statement, tree.If):
        return text + _body(statement.body, indent)
    text += _body(statement.then, indent)
    if statement.otherwise is None:
        return text
    inner = _else_if(statement.otherwise)
    return f"{text} else {_on_lines(inner, indent) if inner else _body(statement.otherwise, indent)}"


def _unread(missing: tree.Missing) -> str:
    return " ".join(missing.span.text.split())


def _head(statement: Simple | tree.Loop | tree.If) -> Doc:
    """Returns a statement up to its body."""
    match statement:
        case tree.Let(name=name, value=value):
            return (f"let {name} = ", expression(value))
        case tree.Assign(name=name, value=value):
            return (f"{name} = ", expression(value))
        case tree.Update(name=name, value=value):
            return (f"{name} <- ", expression(value))
        case tree.Loss(name=name, value=value):
            return (f"loss {name} = ", expression(value))
        case tree.Return(value=value):
            return ("return ", expression(value))
        case tree.Emit(value=value):
            return ("emit ", expression(value))
        case tree.If(test=test):
            return ("if ", expression(test))
    target = f"{statement.target} = " if statement.target else ""
    match statement:
        case tree.Repeat(count=count, drawn=drawn):
            draw = (" drawn by ", expression(drawn)) if drawn else ""
            return (f"{target}repeat ", expression(count), draw, _truncation(statement))
        case tree.Stack(count=count):
            return (f"{target}stack ", expression(count))
        case tree.Halting(count=count, state=state, by=by):
            mixture = f" as {statement.mixture}" if statement.mixture else ""
            halting = f" halting {state}{mixture} by "
            return (f"{target}repeat ", expression(count), halting, expression(by), _truncation(statement))
        case tree.Scan(variable=variable, over=over):
            after = f" after {statement.before}" if statement.before else ""
            after += f"[{expression_text(statement.reach)}]" if statement.reach else ""
            states = (name.text + " growing" * (name.text in statement.growing) for name in statement.carry)
            carry = f" carry {', '.join(states)}" if statement.carry else ""
            return (f"{target}scan {variable}{after} in ", expression(over), carry, _truncation(statement))
        case tree.Experts(variable=variable, over=over, by=by):
            return (f"{target}experts {variable} in ", expression(over), " by ", expression(by))


def _truncation(loop: tree.Repeat | tree.Halting | tree.Scan) -> str:
    return "" if loop.truncated is None else f" truncated {expression_text(loop.truncated)}"


def _else_if(body: tree.Body) -> tree.If | None:
    """Returns the `if` that can follow `else` on its line: the only statement of the body, without comments."""
    if len(body.statements) == 1 and not body.closing:
        inner = body.statements[0]
        if isinstance(inner, tree.If) and not _has_comments([inner]):
            return inner
    return None


def _on_one_line(statement: tree.If | tree.Repeat | tree.Stack | tree.Halting) -> str | None:
    """Prints a statement on one line if each of its bodies is a single simple statement without comments."""
    body = _body_on_one_line(statement.then if isinstance(statement, tree.If) else statement.body)
    text = None if body is None else f"{flat(_head(statement))} {body}"
    if text is None or not isinstance(statement, tree.If) or statement.otherwise is None:
        return text
    inner = _else_if(statement.otherwise)
    otherwise = _on_one_line(inner) if inner else _body_on_one_line(statement.otherwise)
    return None if otherwise is None else f"{text} else {otherwise}"


def _body_on_one_line(body: tree.Body) -> str | None:
    if not body.statements and not body.closing:
        return "{}"
    if len(body.statements) != 1 or body.closing or _has_comments(body.statements):
        return None
    inner = body.statements[0]
    return f"{{ {flat(_head(inner))} }}" if isinstance(inner, Simple) else None


# Recipes


def _recipe_part(
    line: tree.Choice | tree.AtTest | tree.Vary | tree.Search | tree.Claim | tree.Missing, indent: int
) -> str:
    column = indent + _WORD
    match line:
        case tree.Missing():
            return _unread(line)
        case tree.Choice(word=word, value=value):
            if isinstance(value, tree.Call) and (statics := _choice_statics(line, indent)):
                return word.ljust(_WORD) + value.callee.text + statics
            return laid((word.ljust(_WORD), expression(value)), indent, indent)
        case tree.AtTest(settings=settings):
            return "test  " + _filled(settings, column)
        case tree.Vary(variations=variations):
            return "vary  " + _filled(variations, column)
        case tree.Search(sought=sought):
            return "search " + _filled(sought, column + 1)
        case tree.Claim(metric=metric, index=index, value=value, deviation=deviation, at=at, origin=origin):
            text = f"claim {'median ' if line.median else ''}{metric.text}{_index(index)}"
            text += f" = {number_text(value, deviation)}"
            place = f" at {', '.join(map(part_text, at))}" if at else ""
            source = f' from "{origin}"'
            if indent + len(text + place + source) <= WIDTH:
                return text + place + source
            lines = [text, f"at {_filled(at, column + 3)}"] if at else [text]
            return _under([*lines, source.lstrip()], column)


def _index(index: tree.Expression | None) -> str:
    return f"[{expression_text(index)}]" if index else ""


def _choice_statics(line: tree.Node, indent: int) -> str:
    """Prints the statics of a line `task`, `model` or `train` if they have comments; empty if they have none."""
    if not isinstance(line, tree.Choice) or not isinstance(line.value, tree.Call):
        return ""
    return _commented_statics(line.value.statics, line.value.closing, indent)


def _filled(parts: Sequence[Part], column: int) -> str:
    return laid(Fill(tuple(map(part, parts))), column, column)


def _under(lines: Iterable[str], indent: int) -> str:
    return ("\n" + " " * indent).join(lines)


# Tables


def _table_part(line: tree.Row | tree.Column | tree.Columns | tree.Missing, indent: int) -> str:
    """Prints a row or a column; what does not fit on its line goes to lines of its own."""
    at: Sequence[tree.Setting | tree.Variation] = ()
    best_of: Sequence[tree.Name] = ()
    match line:
        case tree.Missing():
            return _unread(line)
        case tree.Row(title=title, recipe=None, why=why):
            text = f'row    "{title}"' + (f' absent "{why}"' if why else "")
        case tree.Row(title=title, recipe=recipe, at=at, best_of=best_of):
            text = f'row    "{title}" {recipe}'
        case tree.Column(title=title, metric=metric, average=True, at=at):
            text = f'column "{title}" average of {metric.text}'
        case tree.Column(title=title, metric=metric, index=index, at=at, best_of=best_of):
            text = f'column "{title}" {metric.text}{_index(index)}'
        case tree.Columns(title=title, metric=metric, at=at, best_of=best_of):
            text = f'columns "{title}" {metric.text}' if title else f"columns {metric.text}"
    column = indent + len("column ")
    clauses: list[tuple[str, Doc]] = [("at ", Fill(tuple(map(part, at))))] if at else []
    clauses += [("best of ", ", ".join(path.text for path in best_of))] if best_of else []
    if isinstance(line, tree.Row) and line.published is not None:
        clauses.append(_published(line.published))
    lines = [text]
    for word, clause in clauses:
        before = len(lines[-1]) + (indent if len(lines) == 1 else column)
        if "\n" not in lines[-1] and before + len(flat((" ", word, clause))) <= WIDTH:
            lines[-1] += flat((" ", word, clause))
        else:
            lines.append(word + laid(clause, column + len(word), column + len(word)))
    return _under(lines, column)


def _published(published: tree.Published) -> tuple[str, Doc]:
    origin = "" if published.origin is None else f' from "{published.origin}"'
    return f"claims {'median ' if published.median else ''}", (Fill(tuple(map(part, published.cells))), origin)
