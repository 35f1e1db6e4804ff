"""Prints syntax trees of Python as text, with the comments of their sources and lines of at most 120 characters."""

from __future__ import annotations

import ast
import io
import keyword
import re
import textwrap
import tokenize
from collections.abc import Iterable, Iterator, Sequence

from archlang.diagnostics.visible import visible, visible_lines

WIDTH = 120
_INDENT = "    "
_BRACKETS = {"(": ")", "[": "]", "{": "}"}
# Comments for tools, and reasons for types that the plain code does not have.
_FOR_TOOLS = re.compile(r"#\s*(fmt:|type:|noqa|mypy:|Any\b)")


def attach_comments(tree: ast.Module, source: str) -> None:
    """Sets `comments` on each statement of a tree: those above it or in it. `print_statements` prints them above it."""
    statements = sorted(
        (node for node in ast.walk(tree) if isinstance(node, ast.stmt)), key=lambda node: (node.lineno, node.col_offset)
    )
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type != tokenize.COMMENT or _FOR_TOOLS.match(token.string):
            continue
        line = token.start[0]
        around = [
            node
            for node in statements
            if node.lineno <= line <= (node.end_lineno or node.lineno) and not hasattr(node, "body")
        ]
        after = [node for node in statements if node.lineno > line]
        owner = around[-1] if around else after[0] if after else None
        if owner is not None:
            owner.comments = [*comments_of(owner), token.string]  # type: ignore[attr-defined]


def comments_of(node: ast.stmt) -> list[str]:
    """Returns the comments that are printed above a statement."""
    comments: list[str] = getattr(node, "comments", [])
    return comments


def print_statements(statements: Iterable[ast.stmt], depth: int = 0) -> str:
    """Returns the text of statements, indented by `depth` steps, with a line break at its end."""
    return "".join(f"{line}\n" for line in _block(list(statements), depth))


def is_text_of(text: str, statements: Sequence[ast.stmt]) -> bool:
    """Returns whether a text is Python of these statements and of nothing else. The names in them may be any texts;
    spaces of docstrings do not count."""
    for node in ast.walk(tree := ast.Module([*statements], [])):
        names = [value for _, value in ast.iter_fields(node) if isinstance(value, str)]
        parts = (part for name in names for part in name.split("."))
        if not isinstance(node, ast.Constant) and any(keyword.iskeyword(p) or not p.isidentifier() for p in parts):
            return False
    try:
        return _dump(ast.parse(text)) == _dump(ast.parse(ast.unparse(ast.fix_missing_locations(tree))))
    except (SyntaxError, ValueError):
        return False


def _dump(tree: ast.Module) -> str:
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            node.value.value = " ".join(visible_lines(node.value.value).split())
    return ast.dump(tree)


def _block(statements: Sequence[ast.stmt], depth: int) -> Iterator[str]:
    for index, statement in enumerate(statements):
        is_definition = isinstance(statement, ast.FunctionDef | ast.ClassDef)
        after_definition = index > 0 and isinstance(statements[index - 1], ast.FunctionDef | ast.ClassDef)
        if index and (is_definition or after_definition):
            yield from [""] * (2 if depth == 0 else 1)
        indent = _INDENT * depth
        for line in (f"{indent}{visible(comment)}" for comment in comments_of(statement)):
            yield line if len(line) <= WIDTH else f"{line[: WIDTH - 1]}…"
        yield from _statement(statement, depth)


def _statement(node: ast.stmt, depth: int) -> Iterator[str]:
    indent = _INDENT * depth
    match node:
        case ast.Expr(value=ast.Constant(value=str(text))):
            yield from _docstring(text, indent)
        case ast.FunctionDef():
            yield from (f"{indent}@{_text(decorator)}" for decorator in node.decorator_list)
            returns = f" -> {_text(node.returns)}" if node.returns is not None else ""
            yield from wrapped(f"def {node.name}({_parameters(node.args)}){returns}:", indent)
            yield from _function_body(node, depth + 1)
        case ast.ClassDef():
            yield from (f"{indent}@{_text(decorator)}" for decorator in node.decorator_list)
            bases = ", ".join([*map(_text, node.bases), *map(_text, node.keywords)])
            yield f"{indent}class {node.name}({bases}):" if bases else f"{indent}class {node.name}:"
            body = list(node.body)
            if _is_docstring(body[0]):
                yield from _block(body[:1], depth + 1)
                yield from [""] * (len(body) > 1)
                del body[0]
            yield from _block(body, depth + 1)
        case ast.If():
            yield from _if(node, depth, "if")
        case ast.For() | ast.While() | ast.With():
            head = ast.unparse(ast.fix_missing_locations(_with_body(node, [ast.Pass()])))
            yield from wrapped(_quoted(head.rsplit("\n", 1)[0]), indent)
            yield from _block(node.body, depth + 1)
            if not isinstance(node, ast.With) and node.orelse:
                yield f"{indent}else:"
                yield from _block(node.orelse, depth + 1)
        case _:
            lines = _simple(node).split("\n")
            comment = visible(getattr(node, "trailing", ""))
            result = list(wrapped(lines[0], indent))
            if comment and len(result[-1]) + len(comment) + 2 <= WIDTH:
                result[-1] += f"  {comment}"
            yield from result


def _simple(node: ast.stmt) -> str:
    """The text of a statement without statements in it. `ast.unparse` writes tuples in parentheses."""
    match node:
        case ast.Return(value=ast.Tuple(elts=elements)) if len(elements) > 1:
            return f"return {', '.join(map(_text, elements))}"
        case ast.Assign(value=ast.Tuple(elts=elements)) if len(elements) > 1:
            targets = "".join(f"{_target(target)} = " for target in node.targets)
            return f"{targets}{', '.join(map(_text, elements))}"
    return _text(node)


def _target(node: ast.expr) -> str:
    if isinstance(node, ast.Tuple) and len(node.elts) > 1:
        return ", ".join(map(_text, node.elts))
    return _text(node)


def _parameters(arguments: ast.arguments) -> str:
    """The text of parameters, with spaces around the default of one that has an annotation."""
    positional = [*arguments.posonlyargs, *arguments.args]
    missing: list[ast.expr | None] = [None] * (len(positional) - len(arguments.defaults))
    parts = [_parameter(*pair) for pair in zip(positional, [*missing, *arguments.defaults], strict=True)]
    if arguments.vararg is not None:
        parts.append(f"*{_text(arguments.vararg)}")
    elif arguments.kwonlyargs:
        parts.append("*")
    parts += [_parameter(*pair) for pair in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)]
    if arguments.kwarg is not None:
        parts.append(f"**{_text(arguments.kwarg)}")
    return ", ".join(parts)


def _parameter(argument: ast.arg, default: ast.expr | None) -> str:
    equals = " = " if argument.annotation is not None else "="
    return _text(argument) if default is None else f"{_text(argument)}{equals}{_text(default)}"


def _function_body(node: ast.FunctionDef, depth: int) -> Iterator[str]:
    body = list(node.body)
    if _is_docstring(body[0]):
        yield from _block(body[:1], depth)
        del body[0]
    arguments = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
    shapes = [f"{argument.arg} {shape}" for argument in arguments if (shape := getattr(argument, "shape", ""))]
    returned = getattr(node, "returned_shape", "")
    if shapes or returned:
        comment = f"{', '.join(shapes)}{f' -> {returned}' if returned else ''}".strip()
        indent = f"{_INDENT * depth}# "
        yield from textwrap.wrap(comment, WIDTH, initial_indent=indent, subsequent_indent=indent)
    yield from _block(body, depth)


def _if(node: ast.If, depth: int, word: str) -> Iterator[str]:
    indent = _INDENT * depth
    yield from wrapped(f"{word} {_text(node.test)}:", indent)
    yield from _block(node.body, depth + 1)
    if len(node.orelse) == 1 and isinstance(node.orelse[0], ast.If):
        yield from _if(node.orelse[0], depth, "elif")
    elif node.orelse:
        yield f"{indent}else:"
        yield from _block(node.orelse, depth + 1)


def _is_docstring(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def _with_body(node: ast.For | ast.While | ast.With, body: list[ast.stmt]) -> ast.stmt:
    fields = {name: value for name, value in ast.iter_fields(node) if name not in ("body", "orelse")}
    if not isinstance(node, ast.With):
        fields["orelse"] = []
    return type(node)(body=body, **fields)


def _docstring(text: str, indent: str) -> Iterator[str]:
    text = re.sub(r'"(?=""|\Z)', r'\\"', visible_lines(text).replace("\\", "\\\\"))
    lines = f'"""{text}"""'.split("\n")
    rest = [line for line in lines[1:] if line.strip()]
    margin = min((len(line) - len(line.lstrip()) for line in rest), default=0)
    yield indent + lines[0]
    yield from ((indent + line[margin:]).rstrip() for line in lines[1:])


def _text(node: ast.AST) -> str:
    text = _quoted(ast.unparse(node))
    # Python 3.11 writes an only argument that is a generator in parentheses of its own.
    while pair := next((pair for pair in _brackets(text) if _is_doubled(text, *pair)), None):
        start, end = pair
        text = f"{text[: start + 1]}{text[start + 2 : end - 1]}{text[end:]}"
    return text


def _is_doubled(text: str, start: int, end: int) -> bool:
    """Whether brackets hold a generator in brackets, and nothing else."""
    return text[start : start + 2] == "((" and text[end - 1 : end + 1] == "))" and _is_generator(text[start + 1 : end])


def _is_generator(text: str) -> bool:
    try:
        return isinstance(ast.parse(text, mode="eval").body, ast.GeneratorExp)
    except SyntaxError:
        return False


def _quoted(text: str) -> str:
    """Replaces the single quotes of `ast.unparse` by double quotes."""
    return re.sub(r"(?<![\w'\"])'([^'\"\\\n]*)'", r'"\1"', text)


# Long lines


def wrapped(text: str, indent: str) -> Iterator[str]:
    """Yields the lines of one line of code, broken in its brackets if it is too long."""
    if len(indent) + len(text) <= WIDTH:
        yield indent + text
        return
    for start, end in _outermost_brackets(text):
        content = text[start + 1 : end]
        head, tail = text[: start + 1], text[end:]
        if not content or len(indent) + len(head) > WIDTH or len(indent) + len(tail) > WIDTH:
            continue
        yield indent + head
        inner = indent + _INDENT
        parts = list(_parts(content))
        if len(inner) + len(content) <= WIDTH:
            yield inner + content
        elif len(parts) > 1:
            for part in parts:
                *lines, last = wrapped(part, inner)
                yield from lines
                yield f"{last}," if not part.startswith("**") else last
        else:
            yield from wrapped(content, inner)
        yield indent + tail
        return
    variable, equals, value = text.partition(" = ")
    if equals and "(" not in variable:
        yield from wrapped_sum(variable, value, indent)
        return
    yield indent + text


def wrapped_sum(variable: str, value: str, indent: str) -> Iterator[str]:
    """Yields an assignment with its value in parentheses."""
    yield f"{indent}{variable} = ("
    yield from wrapped(value, indent + _INDENT)
    yield f"{indent})"


def _outermost_brackets(text: str) -> list[tuple[int, int]]:
    """The places of the outermost brackets, widest first."""
    pairs = [pair for pair in _brackets(text) if not any(a < pair[0] and pair[1] < b for a, b in _brackets(text))]
    return sorted(pairs, key=lambda pair: pair[0] - pair[1])


def _brackets(text: str) -> list[tuple[int, int]]:
    """The places of all brackets, in the order of their ends."""
    pairs: list[tuple[int, int]] = []
    opened: list[int] = []
    quote = ""
    for index, character in enumerate(text):
        if quote:
            quote = "" if character == quote else quote
        elif character in "'\"":
            quote = character
        elif character in _BRACKETS:
            opened.append(index)
        elif character in _BRACKETS.values():
            pairs.append((opened.pop(), index))
    return pairs


def _parts(content: str) -> Iterator[str]:
    """The parts of the content of brackets between its commas; a comprehension is one part."""
    if re.search(r"\bfor .* in ", content):
        yield content
        return
    depth, begin, quote = 0, 0, ""
    for index, character in enumerate(content):
        if quote:
            quote = "" if character == quote else quote
        elif character in "'\"":
            quote = character
        elif character in _BRACKETS:
            depth += 1
        elif character in _BRACKETS.values():
            depth -= 1
        elif character == "," and depth == 0:
            yield content[begin:index].strip()
            begin = index + 1
    if content[begin:].strip():
        yield content[begin:].strip()
