"""Forms of other languages and half-written forms: what stands around an unexpected token, and what to write instead.

Each row has an example, whose corrected text the tests parse. Its pattern matches the text of a statement or a line, in
which `¦` stands before the unexpected token."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from archlang.errors import Diagnostic, Edit, Span
from archlang.errors.names import is_typing_error, share_of
from archlang.syntax.mistakes import NO_POWER

if TYPE_CHECKING:
    from archlang.syntax.place import Place

# A form is short, and a search through a long text takes time quadratic in its length.
LONGEST = 1_000
_NAME, _PATH, _END = r"[A-Za-z_]\w*", r"[A-Za-z_][\w.]*", r"(?=[ \t]*(?:#|[\r\n}]|$))"
_VALUE = r'(?:[0-9][0-9_]*(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?|[A-Za-z_]\w*|"[^"\r\n]*")(?![\w.]|\s+in\b)'
_LOOPS = "write `repeat n {{` for a number of steps, or `scan x in h {{` over the positions of `h`"
_STATICS = "put statics in square brackets: `block[name = value](…)`"


@dataclass(frozen=True)
class Form:
    """A row. The fields of the texts are the groups of the pattern, `token` and what `compute` adds; `edits` are groups
    with what replaces them. The form stands `at` a group, or at the token. If it has an `expected` phrase, the grammar
    expects that among others; with `=` before it, nothing else."""

    example: str
    pattern: str
    remedy: str
    edits: Mapping[str, str] = field(default_factory=dict)
    message: str = ""
    label: str = ""
    at: str = ""
    expected: str = ""
    place: str = ""
    is_safe: bool = False
    compute: Callable[[re.Match[str]], Mapping[str, str] | None] | None = None


def _share(match: re.Match[str]) -> Mapping[str, str]:
    return {"share": share_of(match["number"])}


def _kind(match: re.Match[str]) -> Mapping[str, str]:
    return {"kind": {"str": "symbol", "string": "symbol"}.get(match["word"], match["word"])}


def _equals(match: re.Match[str]) -> Mapping[str, str]:
    return {"correct": re.sub(r"(?<=\w)[ \t]*:[ \t]*", " = ", match["statics"])}


def _is_word_of_recipe(name: str) -> bool:
    return any(is_typing_error(name, word, ()) for word in ("task", "model", "train", "test"))


def _recipe(line: str) -> str:
    return f"recipe r {{\n    task  t\n    model m\n    train adamw\n    {line}\n}}\n"


def _table(line: str) -> str:
    return f'table t {{\n    row    "B" r\n    {line}\n    column "B" test.accuracy\n}}\n'


def _block(line: str, header: str = "block b[k: symbol](h: seq[n, d]) -> seq[n, d]") -> str:
    return f"{header} {{\n    a = h\n    {line}\n}}\n"


def _signature(header: str) -> str:
    return f"{header} {{\n    return h\n}}\n"


FORMS: tuple[Form, ...] = (
    # Lines of recipes and tables.
    Form(_table('row "A" r 0.5'), r'^row\s+"[^"]*"\s+\w+\s+¦(?P<number>[0-9][\w.]*)', "write `claims {number}`",
         {"number": "claims {number}"}, message="expected `claims` before the number `{number}`",
         label="a published result"),
    Form(_table("row B r"), rf"^(?P<line>row|column)[ \t]+¦(?P<name>{_PATH})(?![ \t]*\"|\w)",
         'write `{line} "{name}" …`', {"name": '"{name}"'},
         message="the title of a `{line}` is a string in quotes, found `{name}`", label="expected the title"),
    Form(_recipe("vary model.d in 8, 16"), rf"(?s)^vary\b(?:[^{{}}\[\]]|\[[^\[\]]*\])*?\bin\s+"
         rf"(?P<values>(?P<first>{_VALUE})(?:\s*¦?,\s*¦?{_VALUE})+)\s*(?:#[^\n]*)?\s*¦?", "write `[{values}]`",
         {"values": "[{values}]"}, at="values",
         message="the values that `vary` lists stand in square brackets, found `{first},`", label="not in brackets"),
    Form(_recipe('task "ctl"'), rf'¦(?P<string>"(?P<name>{_NAME})")', "write `{name}` without quotes",
         {"string": "{name}"}, expected="=a name", is_safe=True),
    Form(_recipe("claim test.loss = 1 from paper, p. 3"), rf"¦(?P<words>{_NAME}(?::\w+)?(?:[ \t,]+[\w.]+)*){_END}",
         'write it in quotes: `"{words}"`', {"words": '"{words}"'}, expected="=a string"),
    Form(_recipe("model m d = 64, widths = [1, 2]"),
         rf"^(?P<word>task|model|train)[ \t]+(?P<name>{_PATH})(?P<gap>[ \t]*¦?,?[ \t]*¦?)"
         rf"(?P<statics>{_PATH}[ \t]*(?:=(?!=)|:)[^\r\n#{{}}]*[^\r\n#{{}}\s])", "write `{word} {name}[{correct}]`",
         {"gap": "[", "statics": "{correct}]"}, at="statics",
         message="the statics of `{name}` stand in square brackets", label="not in brackets", compute=_equals),
    Form(_recipe("task = ctl"), rf"^(?P<word>task|model|train)(?P<sign>[ \t]*¦[=:][ \t]*)(?P<name>{_PATH})?",
         "write `{word} {name}`", {"sign": " "}, message="the name of a {word} follows `{word}`, found `{token}`",
         compute=lambda match: {"name": match["name"] or "name"}, place="recipe"),
    Form(_recipe('claim test.loss <= 1 from "p"'), r"^claim\b[^=]*¦(?P<sign><=?|>=?|in\b)",
         "write `=` and the number that was published", {"sign": "="}, expected="`=`"),
    Form(_recipe("where state <= 4 and flops <= 2e9"), r"^where\b.*(?P<word>[ \t]¦and)\b", "write `,`", {"word": ","},
         message="bounds stand behind each other with `,` between them, found `and`", label="expected `,`",
         place="recipe", is_safe=True),
    Form("recipe b extends a {\n    model m\n}\n", r"^recipe\b.*¦(?P<word>extends|inherits|of|on|is)\b",
         "write `from`", {"word": "from"}, is_safe=True),
    Form(_recipe("model.d = 4"), rf"^¦(?P<line>task|model|train)\.(?P<rest>{_PATH})\s*=",
         "write it in the line `{line}`, as in `{line} …[{rest} = …]`", place="recipe"),
    Form(_recipe('test.accuracy = 1.0 from "p"'), rf"^¦(?P<start>)(?P<path>{_NAME}\.{_PATH})\s*=",
         'write `claim {path} = … from "…"` for a published result', {"start": "claim "}, place="recipe"),
    Form(_recipe("seeds = 3"), r"^¦seeds?\b", "write `vary seed in 1..3`", place="recipe"),
    Form(_recipe("steps = 3"), rf"^¦(?P<name>{_NAME})\s*=(?!=)",
         "write a setting in its line `task`, `model` or `train`, as in `train adamw[{name} = …]`",
         place="recipe", compute=lambda match: None if _is_word_of_recipe(match["name"]) else {}),
    # Items and headers.
    Form("def b(h: s) -> s { return h }\n", r"^¦(?P<word>def|fn|func|function|class)\b(?!\s+(?:block|model)\b)",
         "write `block`, or `model`", {"word": "block"}),
    Form("import archlang.models.panm\n", r"^¦(?P<word>import|from|include)[ \t]+archlang\.", "write `use`",
         {"word": "use"}),
    Form("import torch\n", r"^¦(?:import|from|include)\b",
         "`use` names another program, and `extern block` a block in Python"),
    Form(_signature("block b(h: s) => s"), r"¦(?P<sign>:|[-=](?:[ \t]*>)?)", "write `->`", {"sign": "->"},
         expected="`->`"),
    Form(_signature("block b(h: s)"), r"¦\{", "write the type of the result before `{{`, as in `-> seq[n, d]`",
         expected="=`->`"),
    Form(_signature("block b(h) -> s"), r"¦[,)]", "write the type of the input after its name, as in `h: seq[n, d]`",
         expected="=`:`"),
    Form(_signature("block b[heads](h: s) -> s"), rf"(?P<name>{_NAME})(?P<end>)\s*¦[\],]",
         "declare its kind, as in `{name}: int`, or its default, as in `{name} = 4`", {"end": ": int"}, expected="`:`"),
    Form(_signature("block b(seq[n, d] h) -> s"),
         rf"^(?P<all>(?P<type>{_NAME}[ \t]*¦\[[^\[\]\r\n]*\])[ \t]+(?P<name>{_NAME}))(?=[ \t]*[,)=])",
         "write `{name}: {type}`", {"all": "{name}: {type}"}, message="the type of an input follows its name",
         label="before its name", at="all", expected="`:`"),
    Form(_signature("block b[int k](h: s) -> s"),
         rf"^(?P<all>(?P<word>int|float|bool|str|string)[ \t]+¦(?P<name>{_NAME}))(?=[ \t]*[\],=])",
         "write `{name}: {kind}`", {"all": "{name}: {kind}"}, message="the kind of a static follows its name",
         label="before its name", at="all", compute=_kind),
    Form(_signature("block b[k: 32](h: s) -> s"),
         rf"(?P<name>{_NAME})(?P<colon>[ \t]*:[ \t]*)¦(?P<value>[0-9][\w.]*|true|false)",
         "write `{name} = {value}`: a kind stands behind `:`", {"colon": " = "}, expected="=a kind (such as `int`)"),
    Form(_signature("block b(h: s, heads: int = 4) -> s"),
         rf"(?P<static>{_NAME}[ \t]*:[ \t]*(?:int|float|bool|symbol)[ \t]*=[ \t]*¦[\w.]+)",
         "a static stands in square brackets, before the inputs: `[{static}]`", expected="=a name"),
    Form(_signature("block b(h: s) -> s when d > 2"), r"¦\{",
         "write `where` for a condition of the statics, or `else` and another type", expected="=`else`"),
    Form(_signature("block b[k: symbol](h: s) -> s\n    where k in {relu}"),
         r"\bin[ \t]*¦(?P<all>\{(?P<items>[^{}\r\n]+)\})", "write `[{items}]`", {"all": "[{items}]"},
         message="a list stands in square brackets, found `{{`", label="in braces", at="all"),
    # Statements.
    Form(_block("for i in range(3):\n        a = norm(h)"), r"^(?P<first>for|while)[ \t]+¦", _LOOPS,
         at="first", message="no statement begins with `{first}`", label="a loop of another language"),
    Form(_block("let a = h + h"), rf"^let[ \t]+(?P<name>{_NAME})[ \t]*=.*¦(?P<found>\S)",
         "write `let {name} = linear[64]`, or bind a value without `let`: `{name} = …`",
         message="`let {name}` expects a block, found `{token}`", label="not a block"),
    Form(_block("in = h"),
         r"^(?:let[ \t]+)?¦?(?P<word>let|return|emit|if|repeat|stack|else|in|when|and|or|not|true|false)[ "
         r"\t]*¦?(?:=(?!=)|<-)", "choose another name", message="`{word}` is a reserved word",
         label="cannot be a name", at="word"),
    Form(_block("y = scan(h)"), r"=[ \t]*(?P<word>scan|experts)[ \t]*¦\(", "give the block another name",
         message="`{word}` begins a loop here, and calls no block", label="no loop", at="word"),
    Form(_block("y = experts v in h { emit v }"), r"\bexperts\b.*¦\{",
         "write the weights of the experts after `by`, as in `by softmax(linear[8](h))`"),
    Form(_block("if k is not relu { a = h }"), r"¦(?P<word>is\b(?:[ \t]+not\b)?)", "compare with `{sign}`",
         {"word": "{sign}"}, message="there is no operator `is`", label="no operator",
         compute=lambda match: {"sign": "!=" if "not" in match["word"] else "=="}),
    Form(_block("y = scan v of h { emit v }"), r"¦(?P<word>as|at|by|for|from|of|over|through|using|via|with)\b",
         "write `in`", {"word": "in"}, expected="`in`"),
    Form(_block("repeat 5 truncated 2 halting a by halt { a <- f(a) }"), r"¦halting\b",
         "write `repeat n halting h by …`: no other loop halts, and a halting loop is neither drawn nor truncated: "
         "it decides while it runs how many steps it takes"),
    Form(_block("repeat 5 settled truncated 2 { a <- f(a) }"),
         r"\brepeat\b[^{}]*\b(?:truncated|settled)\b[^{}]*¦(?:drawn|truncated|settled)\b",
         "write each of `drawn by …`, `truncated …` and `settled` at most once, in this order, after `repeat n`"),
    Form(_block("stack 5 truncated 2 { a <- f(a) }"), r"¦(?:truncated|settled)\b",
         "write it after `repeat n`, or after the `carry` of a `scan`: the steps of a `stack` have weights of their "
         "own, and those of the first steps would never train"),
    Form(_block("y: seq[n, d] = norm(h)"),
         rf"^{_NAME}(?P<type>¦:[ \t]*\w+[ \t]*(?:\[[^\[\]\r\n]*\])?)(?=[ \t]*=(?!=))", "delete the type", {"type": ""},
         message="the type of a value follows from what it is bound to", label="not written", at="type"),
    Form(_block("block c(h: s) -> s { return h }"), rf"^(?P<all>(?P<word>block|model|recipe)[ \t]+¦(?P<name>{_NAME}))",
         "move `{word} {name}` before this item", message="a {word} stands outside other items", label="in a body",
         at="all", place="body"),
    Form(_block("assert d > 2"), r"^(?P<word>assert)[ \t]+¦",
         "state conditions on statics after the result type, as in `where d > 2`", message="a body has no assertions",
         label="no statement", at="word"),
    Form(_block("return h ** 2"), r"(?P<sign>\*¦\*)", NO_POWER, message="there is no operator `**`",
         label="no operator", at="sign"),
    Form(_block("return h // 2"), r"(?P<sign>/¦/)[ \t]*[0-9][0-9_.]*[ \t]*(?:[-+*/)\]{},]|[\r\n]|$)", "write `/`",
         {"sign": "/"}, message="there is no operator `//`", label="no operator", at="sign"),
    Form(_block("// so"), r"(?P<sign>/¦/|^¦//)", "begin a comment with `#`; one `/` divides", {"sign": "#"},
         message="there is no sign `//`", label="neither a comment nor an operator", at="sign"),
    Form(_block("a := norm(h)"), r"(?P<sign>¦?:¦?=)", "write `=`", {"sign": "="}, message="`:=` binds no name",
         label="expected `=`", at="sign"),
    Form(_block("h += f(h)"), rf"^{_NAME}[ \t]*¦(?P<sign>[-+*/])", "bind the whole value: `name <- name {sign} …`",
         place="body"),
    Form(_block("u = h if k else f(h)"),
         r"^(?:\w+[ \t]*(?:=|<-)|return\b|emit\b).*\S[ \t]*(?P<word>if)\b[^{}\r\n]*¦else\b",
         "write `when` in place of `if`: `a when condition else b`", {"word": "when"},
         message="`if` begins a statement, not a condition of a value", label="in a value", at="word"),
    Form(_block("y = if k == 1 { norm(h) }"),
         rf"^(?:(?P<name>{_NAME})[ \t]*(?:=|<-)|return|emit)[ \t]*¦if\b[^{{}}]*\{{",
         "bind the name in both bodies, as in `if … {{ {bound} = … }} else {{ {bound} = … }}`, or write "
         "`a when condition else b`", message="`if` with a body is a statement, not a value",
         label="in place of a value", compute=lambda match: {"bound": match["name"] or "y"}),
    Form(_block("z = scan c in h carry a truncated 2, b { emit c }"), r"(?P<clause>truncated\s+[\w.]+)\s*¦,",
         "write `{clause}` after the last name of `carry`"),
    Form(_block("z = scan c in h, carry a { emit c }"), r"(?P<comma>,)[ \t]*(?P<word>carry)[ \t]+¦\w",
         "delete the comma before `{word}`", {"comma": ""}, at="comma", expected="`in`", is_safe=True),
    Form(_block("return repeat 3 { h <- norm(h) }"), r"¦(?P<word>repeat|stack)\b",
         "write the loop before this line, as in `y = {word} n {{ … emit h }}`, and use its result here",
         expected="a value"),
    Form(_block("return scan v in h { emit v }"), r"(?P<word>scan|experts)[ \t]+\w+[ \t]+¦in\b",
         "write the loop before this line, as in `y = {word} v in h … {{ … emit v }}`, and use its result here",
         message="expected a value, found `{word}`", label="a loop is no value", at="word"),
    Form(_block("if h = 3 { }"), r"^(?!\w+[ \t]*¦).*[\w)\]][ \t]*¦(?P<sign>=)(?!=)", "compare with `==`",
         {"sign": "=="}, expected="`{`", is_safe=True),
    Form(_block("a = b < c < d"), r"¦(?:<=?|>=?|==|!=|in\b)", "comparisons do not chain: join them with `and`",
         expected="a statement"),
    Form(_block("a, b = h, h"), rf"^{_NAME}[ \t]*¦,", "a statement binds one name: write a line for each",
         place="body"),
    Form(_block("return h, h"), r"^(?P<word>return|emit)\b[^()\[\]]*¦,",
         "`{word}` takes one value: join several, as in `{word} concat(a, b)`"),
    Form(_block("return (h, h)"), r"\([^()\[\]]*¦,", "join several values, as in `concat(a, b)`", expected="=`)`",
         place="body"),
    Form(_recipe("vary a in (1, 2)"), r"\([^()\[\]]*¦,", "write a list in square brackets: `[1, 2]`", expected="=`)`"),
    # Brackets and calls.
    Form(_recipe('claim test.accuracy = 84% from "p"'),
         r"(?<![\w.])(?P<all>(?P<number>[0-9]+(?:\.[0-9]+)?)[ \t]*(?:¦%|%(?=[ \t]*¦[,)\]}])))[ \t]*¦?",
         "write a fraction: `{share}`", {"all": "{share}"}, compute=_share),
    Form(_block("return h[:, -1]"), r"\w\[[ \t]*¦:",
         "a block reads positions, such as `last(h)` or `slice[start = 0, length = 4](h)`"),
    Form(_block("return attention(1)(h)"),
         rf"\b(?P<block>{_PATH})(?P<all>\((?P<statics>[\w.]+(?:,[ \t]*[\w.]+)*)\))¦\(",
         "put statics in square brackets: `{block}[{statics}](…)`", {"all": "[{statics}]"}),
    Form(_block("return f(h + a)(g)"), r"\)¦[(\[]", _STATICS),
    Form(_block("return f(h, x = 3)"), r"\([^()]*¦=", _STATICS, expected="`)`"),
    Form(_recipe("train adamw[lr: 1]"), r"\[.*(?P<sign>[ \t]*¦:)", "write `=`", {"sign": " ="}, expected="`]`"),
    Form(_block("return attention[4](h a)"), r'(?P<end>)(?<=\S)[ \t]*¦(?P<value>[\w"][\w."]*)',
         "write `,` before `{value}`", {"end": ","}, expected="`,`", place="brackets",
         compute=lambda match: None if match["value"] in ("for", "in", "if", "else") else {}),
    Form(_block("return f[1...3](h)"), r"[0-9](?P<dots>¦\.\.\.)", "a range has two points, as in `1..3`",
         {"dots": ".."}, is_safe=True),
)  # fmt: skip


def meant_form(place: Place, message: str, label: str) -> Diagnostic | None:
    """Returns the diagnostic of the first form that the words around a token show, with a message and a label of the
    token if the form has none; None if they show none."""
    start = place.token_start
    begin = max(place.unit_start, start - LONGEST)
    source = place.source
    text = f"{source.text[begin:start]}¦{source.text[start : start + LONGEST]}"
    phrases = place.expected.phrases

    def span(match: re.Match[str], group: str) -> Span:
        first, last = (begin + at - (begin + at > start) for at in match.span(group))
        return Span(source, first, last)

    for form in FORMS:
        wanted = form.expected
        if wanted and (phrases != (wanted[1:],) if wanted[0] == "=" else wanted not in phrases):
            continue
        if (
            form.place
            and not {"recipe": place.is_in_recipe, "body": place.is_in_body, "brackets": place.around in ("(", "[")}[
                form.place
            ]
        ):
            continue
        match = _COMPILED[form.pattern].search(text)
        computed = None if match is None else form.compute(match) if form.compute else {}
        if match is None or "¦" not in match[0] or computed is None:
            continue
        groups = {name: (value or "").replace("¦", "") for name, value in match.groupdict().items()}
        groups |= {"token": place.token_text, **computed}
        at = span(match, form.at) if form.at else place.token_span
        edits = [
            Edit(span(match, group), edit.format_map(groups))
            for group, edit in form.edits.items()
            if match[group] is not None
        ]
        diagnostic = Diagnostic(
            "E0101",
            form.message.format_map(groups) if form.message else message,
            at,
            form.label or label if form.message else label,
            remedy=form.remedy.format_map(groups),
        )
        return diagnostic.with_edits(*edits, is_safe=form.is_safe) if edits else diagnostic
    return None


_COMPILED = {form.pattern: re.compile(form.pattern) for form in FORMS}
