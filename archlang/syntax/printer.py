"""Formats a program by its tokens, and prints single nodes on one line for messages."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from archlang.errors import Source
from archlang.syntax import tree
from archlang.syntax.layout import STEP, WIDTH, bracket_depths, laid, spaced, without_comma
from archlang.syntax.tokens import CHOICE_WORDS, ITEM_WORDS, LINE_WORDS, closers, tokens

if TYPE_CHECKING:
    from lark import Token

# Spaces before a comment at the end of a line.
_GAP = 3


def one_line(text: str) -> str:
    """Returns the tokens of a text on one line, without comments."""
    return spaced(tokens(Source("", text))[0])


def unparse(node: tree.Syntax) -> str:
    """Prints an expression, a type, a parameter, or a part of a recipe on one line of any length."""
    match node:
        case tree.Number(text=text) | tree.Name(text=text):
            return text
        case tree.String(value=text):
            return f'"{text}"'
        case tree.ListOf(items=items):
            return f"[{', '.join(map(unparse, items))}]"
        case tree.Choice(word=word, value=value):
            return f"{word} {unparse(value)}"
        case tree.Vary(variations=variations):
            return f"vary {', '.join(map(unparse, variations))}"
        case tree.Variation(path=path, values=values):
            return f"{path.text} in {unparse(values)}"
        case tree.CallExpression(callee=callee, statics=statics, arguments=None):
            return f"{callee.text}[{', '.join(map(unparse, statics))}]" if statics else callee.text
        case tree.StaticArgument(name=name, value=value):
            return f"{name} = {unparse(value)}" if name else unparse(value)
        case tree.StaticParameter(name=name, kind=kind, default=default):
            return name + (f": {kind}" if kind else "") + (f" = {unparse(default)}" if default else "")
    return one_line(node.span.text)


def signature_text(item: tree.Definition | tree.Extern) -> str:
    """Returns the signature as source text, without documentation."""
    signature = item.signature
    text = f"{item.word} {item.name}"
    if signature.statics:
        statics = ",\n    ".join(map(unparse, signature.statics))
        text += f"[\n    {statics}\n]"
    if signature.result is not None:
        text += f"({', '.join(map(unparse, signature.inputs))}) -> {unparse(signature.result)}"
    clauses: list[tuple[str, Sequence[tree.Syntax]]] = [("where", signature.where)]
    if isinstance(item, tree.Extern):
        clauses += [("reads", item.reads), ("gives", item.gives), ("demands", item.demands)]
        clauses += (
            [*(("", (caveat,)) for caveat in item.caveats)]
            + [("pure", ())] * item.pure
            + [("causal", ())] * item.causal
        )
        clauses += [("sizes", item.sizes), ("costs", item.costs), ("maps", item.maps), ("records", item.records)]
        clauses += [*(("", (cut,)) for cut in item.cuts), ("acts", item.acts)]
        clauses += [("with", (name,)) for name in item.includes]
    for word, nodes in clauses:
        if nodes or word in ("pure", "causal"):
            code = tokens(Source("", f"{word} {', '.join(map(unparse, nodes))}"))[0]
            text += f"\n    {laid(code, STEP, STEP)}"
    return text


@dataclass
class _Row:
    """A line of the formatted text, or several, with the comment beside it."""

    text: str
    comment: str
    is_after_blank: bool


def format_program(program: tree.Program) -> str:
    """Formats a program without mistakes: each statement gets a line, but a body of one that stands on a line stays
    there. Comments and single empty lines between statements stay."""
    rows = _Formatter(program).rows()
    column, lines = 0, list[str]()
    for index, row in enumerate(rows):
        # The comments beside adjacent lines are aligned.
        if row.comment and (index == 0 or not _are_aligned(rows[index - 1], row)):
            group = [row.text]
            for before, each in pairwise(rows[index:]):
                if not _are_aligned(before, each):
                    break
                group.append(each.text)
            column = max(len(text) - text.rfind("\n") - 1 for text in group) + _GAP
        *first, last = row.text.split("\n")
        lines += [*([""] * row.is_after_blank), *first, last.ljust(column) + row.comment if row.comment else last]
    return "".join(f"{line}\n" for line in lines)


def _are_aligned(above: _Row, row: _Row) -> bool:
    return bool(above.comment and row.comment) and not row.is_after_blank and "\n" not in row.text


class _Formatter:
    """Cuts the tokens of a program into lines."""

    def __init__(self, program: tree.Program) -> None:
        source = program.source
        code, comments, _ = tokens(source)
        self._tokens = sorted((*code, *comments), key=lambda token: token.start_pos or 0)
        pairs = closers(code, ("LBRACE",)).items()
        self._bodies = {id(code[first]): code[first : last + 1] for first, last in pairs}
        # The next body of an `if`, which begins on the line where a body ends: `else {`
        self._others = {
            id(code[first]): code[last + 1 : last + 3] for first, last in pairs if code[last + 1 : last + 2] == ["else"]
        }
        self._comments = [comment.start_pos or 0 for comment in comments]
        # Where statements, the lines of recipes and tables, and items begin.
        self._starts = {item.span.start for item in program.items}
        for node in (node for item in program.items for node in tree.walk(item)):
            if isinstance(node, tree.Recipe | tree.Table):
                self._starts |= {part.span.start for part in node.parts}
            elif isinstance(node, tree.Body) and source.text[node.span.start] == "{":
                self._starts |= {statement.span.start for statement in node.statements}
        self._inline_end = -1  # of the last body on the line of its header
        self._rows: list[_Row] = []
        self._line: list[Token] = []
        self._depth = 0
        self._item = ""  # its first word
        self._has_ended = False  # whether the last row ends an item
        self._last = 0  # the line of the last token in a row

    def rows(self) -> list[_Row]:
        following: list[Token | None] = [None]
        for token in reversed(self._tokens):
            following.append(following[-1] if token.type == "COMMENT" else token)
        for index, token in enumerate(self._tokens):
            code = following[-1 - index]  # the token, or the first after a comment
            begins = code is None or self._begins_line(code)
            if token.type == "COMMENT" and begins:
                is_beside = bool(self._line) and self._tokens[index - 1].line == token.line
                self._flush(token if is_beside else None)
                if not is_beside:
                    self._put([token], " " * STEP * self._depth + token.rstrip(), code)
                continue
            if begins:
                self._flush()
                self._depth -= token == "}"
                self._item = self._item if self._depth else str(token)
            self._line.append(token)
            if token == "{" and self._is_inline(self._bodies[id(token)]):
                self._inline_end = self._bodies[id(token)][-1].end_pos or 0
        self._flush()
        return self._rows

    def _begins_line(self, token: Token) -> bool:
        place = token.start_pos or 0
        return place >= self._inline_end and (token == "}" or place in self._starts)

    def _is_inline(self, body: Sequence[Token]) -> bool:
        start, end = body[0].start_pos or 0, body[-1].end_pos or 0
        has_comments = bisect_left(self._comments, start) < bisect_left(self._comments, end)
        if has_comments or "{" in body[1:] or sum(token.start_pos in self._starts for token in body) > 1:
            return False
        line = [token for token in self._line if token.type != "COMMENT"]
        has_room = STEP * self._depth + len(spaced([*line, *body[1:], *self._others.get(id(body[0]), ())])) <= WIDTH
        return len(body) == 2 or (has_room and line[0].line == body[-1].line)

    def _flush(self, beside: Token | None = None) -> None:
        """Ends a line, with the comment beside it."""
        line, self._line = self._line, []
        code = [token for token in line if token.type != "COMMENT"]
        if not code:
            return
        margin = " " * STEP * self._depth
        text = self._with_comments(line) if len(code) < len(line) else ""
        for comment in () if text else (token for token in line if token.type == "COMMENT"):
            # Those in a line move above it, where `##` would make them documentation.
            moved = f"# {comment.lstrip('# ')}" if self._depth == 0 else str(comment)
            self._put(line, margin + " " * STEP * (code[0] == "}") + moved.rstrip(), code[0])
        pad = 0
        if self._depth == 1 and self._item in ("recipe", "table") and code[0] in LINE_WORDS:
            pad = max(0, (6 if self._item == "table" else 5) - len(code[0]))
        text = text or laid(code, len(margin), len(margin) + pad)
        text = code[0] + " " * pad + text[len(code[0]) :]
        self._put(line, margin + text, code[0], "" if beside is None else beside.rstrip())
        self._has_ended = self._depth == 0 and code[-1] != "{"
        self._depth += code[-1] == "{"

    def _put(self, line: Sequence[Token], text: str, following: Token | None, comment: str = "") -> None:
        """Adds a row of some tokens; `following` is the first that is no comment."""
        above = self._rows[-1].text if self._rows else "{"
        is_after_blank = (line[0].line or 0) - self._last > 1 and not above.endswith("{") and following != "}"
        if self._has_ended:
            is_short = "\n" not in above and above != "}" and above.partition(" ")[0] == following
            is_after_blank = is_after_blank or not (is_short and following in ("use", "recipe"))
        self._rows.append(_Row(text, comment, is_after_blank))
        self._has_ended, self._last = False, line[-1].line or 0

    def _with_comments(self, line: list[Token]) -> str:
        """Prints a line whose comments all stand in its first list of statics; empty if others do."""
        depths = bracket_depths(line)
        opener = next((place for place, token in enumerate(line) if token == "[" and depths[place] == 0), len(line))
        closer = next((place for place in range(opener + 1, len(line)) if depths[place] == 0), opener)
        inside = [place for place, token in enumerate(line) if token.type == "COMMENT"]
        if not all(opener < place < closer and depths[place] == 1 for place in inside):
            return ""
        indent = STEP * self._depth
        margin = f"\n{' ' * (indent + STEP)}"
        text = spaced(line[: opener + 1])
        part: list[Token] = []
        for place in range(opener + 1, closer):
            token = line[place]
            if token.type != "COMMENT":
                part.append(token)
            is_last = all(each.type == "COMMENT" for each in line[place + 1 : closer])
            if part and (is_last or (token == "," and depths[place] == 1)):
                comma = "," * (line[0] in (*ITEM_WORDS, *CHOICE_WORDS, "extern") or not is_last)
                text += margin + laid(without_comma(part), indent + STEP, indent + STEP) + comma
                part = []
            if token.type == "COMMENT":
                is_beside = not part and line[place - 1].line == token.line
                text += " " * _GAP + token if is_beside else margin + token
        return text + f"\n{' ' * indent}" + laid(line[closer:], indent, indent)
