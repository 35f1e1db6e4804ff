"""Diagnostics of the text itself: unknown characters, unmatched brackets, and words in the wrong place."""

import re
from collections.abc import Iterable
from dataclasses import replace

from archlang.diagnostics import Diagnostic, Edit, Label
from archlang.diagnostics.edits import insertion, without
from archlang.diagnostics.names import is_typing_error, meant_names, misspelt
from archlang.source import Span
from archlang.syntax.expected import ITEM, Expected
from archlang.syntax.outline import CLAUSE_WORDS, FOREIGN_ELSE_IF, ITEM_WORDS, PART_WORDS

_LONGEST = 40
NO_POWER = "write a product, as `h * h`; `exp(p * log(h))` is the power p of a positive `h`"

# Clauses of loops whose steps share their weights, where no such loop can have them.
_STEP_CLAUSES = {
    "truncated": "write it after `repeat n`, or after the `carry` of a `scan`: the steps of a `stack` have weights of "
    "their own, and those of the first steps would never train",
    "drawn": "write `repeat n drawn by …`: the steps of a `stack` have weights of their own, so their number is fixed, "
    "and a halting loop decides while it runs how many it takes",
    "halting": "write `repeat n halting h by …`: no other loop halts, and a halting loop is neither drawn nor "
    "truncated: it decides while it runs how many steps it takes",
}
# A clause that a halting loop cannot have, at the end of a text.
_TRUNCATED = re.compile(r"\btruncated\s+[\w.]+\s*$")


# What follows `at` and `best of` in a row, a column or a claim, at the end of a text.
_LATER_CLAUSE = {
    "at": re.compile(r"\b(best\s+of|claims|from)\b(?:(?!\b(?:row|columns?|claim)\b)[^{}])*$"),
    "best": re.compile(r"\b(claims)\b(?:(?!\b(?:row|columns?|claim)\b)[^{}])*$"),
}

# Keywords that follow others, as in `best of`.
_SECOND_WORDS = ("of", "median", "task", "block", "optimizer", "settings", "gradients", "on", "evenly", "by")
# What follows a name within a line, where another name or a string does not.
_ENDS_NAME = re.compile(r"[ \t]*+(?!(?!(?:in|at|best|claims|from)\b)[\w\"])")
_BINDER = re.compile(r"[ \t]*(?:=(?!=)|<-)")
_COLON = re.compile(r"[ \t]*:")

# A `:` after a name, and what ends a list of statics or contains other ones.
_PIECE_OF_STATICS = re.compile(r",\s*[A-Za-z_][\w.]*[ \t]*(?P<colon>:)|[()\[\]{\r\n]")

_BEGINS_LINE = re.compile(r"[\r\n][ \t]*\Z")
# An operand after a bracket that is open, at the end of a text.
_IN_BRACKETS = re.compile(r"[(\[][^()\[\]]*\w[ \t]*\Z")
_OPERAND = re.compile(r"[\w)\]][ \t]*\Z")
_DIVISOR = re.compile(r"[ \t]*[0-9][0-9_.]*[ \t]*(?:[-+*/)\]},]|$)", re.MULTILINE)
_COMPARE = "compare with `==`"
_CLASS = 'end the item with its class, as in `python "file:Class"`'
_STATICS = "put statics in square brackets: `block[name = value](…)`"
# Half a header `} else if … {`.
_ELSE_IF = re.compile(r"\}\s*else\s+if\b")
USE_LINE = re.compile(r"(?:^|[\r\n])[ \t]*use[ \t]+\Z")
_RETURNED = re.compile(r"[ \t]*(return|emit)\b")
# A sign that a value follows, at the end of a text.
_BEFORE_VALUE = re.compile(r"(?:\.\.|\|>|[-+*/%=])\Z")

# A line, or a body, that begins with a name, before what follows the name.
_NAME_OF_LINE = re.compile(r"(?:[^{}]*\{)?[ \t]*([A-Za-z_]\w*)[ \t]*\Z")

# Statics without their `]`, and the inputs after them.
_STATICS_OVER_INPUTS = re.compile(r"\[([^()\[\]{}\r\n]*\w)[ \t]*(\([^()\[\]{}\r\n]*\))\)")
_LARGEST_POWER = 10**12
# A power of integers.
_POWER = re.compile(r"(?<![\w.])(?P<base>[0-9]+)[ \t]*(?P<sign>\*\*)[ \t]*(?P<exponent>-?[0-9]+)(?![\w.])")

# Operators whose left operand is no pipe without parentheses.
OPERATORS_AFTER_PIPE = frozenset((*"+-*/%", "==", "!=", "<", "<=", ">", ">=", "and", "or", "when"))

# A sign that binds in other languages, or is doubled.
_BINDING_SIGN = re.compile(r".?(?P<sign>:=|==)(?!=)")
# A setting of a recipe with its line.
_SETTING = re.compile(r"(task|model|train)\.([A-Za-z_][\w.]*)")
# The word of a loop in other languages, at the end of a text.
_FOREIGN_LOOP = re.compile(r"(?:^|[\r\n{])[ \t]*(?:for|while)[ \t]+\Z")
_LOOPS = "write `repeat n {` for a number of steps, or `scan x in h {` over the positions of `h`"

# The words with which an item begins in other languages.
_FOREIGN_ITEMS = {"def": "block", "fn": "block", "func": "block", "function": "block", "class": "model"}
_RETURNS_LOGITS = re.compile(r"[^{}\r\n]*->[ \t]*logits\b")
# What stands between such a word and that of this language.
_BEFORE_ITEM = re.compile(r"[ \t]+(?=(?:block|model|recipe|table)\b)")
_IMPORTS = ("import", "from", "include")
# A module of the library, after a word.
_LIBRARY = re.compile(r"[ \t]+archlang\.")


def quoted(text: str) -> str:
    return f"`{text if len(text) <= _LONGEST else text[: _LONGEST - 1] + '…'}`"


def unexpected(token: str, expected: Expected) -> tuple[str, str]:
    """Returns the message about an unexpected token, and its label."""
    is_one = len(expected.phrases) == 1 and str(expected) != ITEM
    return f"expected {expected}, found {quoted(token)}", f"expected {expected}" if is_one else "not expected here"


def unexpected_token(
    span: Span, token: str, expected: Expected, around: str, is_reserved: bool, is_keyword: bool, is_in_recipe: bool
) -> Diagnostic:
    """`token` is unexpected; `around` is the innermost open bracket, or empty. A keyword need not be reserved."""
    message, label = unexpected(token, expected)
    is_bound = _BINDER.match(span.source.text, span.end) is not None
    if (keyword := keyword_without_space(span, expected.words)) is not None:
        return keywords_without_space(span, keyword)
    if token in ("=", ":") and (sign := _BINDING_SIGN.match(span.source.text, max(0, span.start - 1))):
        return _foreign_binder(Span(span.source, *sign.span("sign")))
    is_part = any(phrase.startswith("a part of a recipe") for phrase in expected.phrases)
    if is_part and is_bound and not is_keyword and not any(is_typing_error(token, word, ()) for word in expected.words):
        return _setting_alone(Diagnostic("E0101", message, span, label))
    replacement = _replacement(token, expected, around, is_in_recipe)
    if replacement == "block" and _RETURNS_LOGITS.match(span.source.text, span.end):
        replacement = "model"
    if token in _FOREIGN_ITEMS and replacement and (item := _BEFORE_ITEM.match(span.source.text, span.end)):
        before = Span(span.source, span.start, item.end())
        diagnostic = Diagnostic("E0101", message, span, label, remedy=f"delete `{token}`")
        return diagnostic.with_edits(Edit(before, ""))
    if token == "import" and expected.phrases[0] == ITEM and _LIBRARY.match(span.source.text, span.end):
        replacement = "use"
    if replacement is not None:
        if replacement == "->" and (rest := re.compile(r"[ \t]*>").match(span.source.text, span.end)):
            span = Span(span.source, span.start, rest.end())
        signs = [span, *(_later_colons(span) if token == ":" and replacement == "=" else ())]
        diagnostic = Diagnostic("E0101", message, span, label, remedy=f"write `{replacement}`")
        return diagnostic.with_edits(*(Edit(sign, _space_before(sign) + replacement) for sign in signs))
    remedy = _remedy(token, expected, around, is_reserved, is_bound, is_in_recipe)
    if expected.phrases[0] == ITEM and token in _IMPORTS:
        remedy = "`use` names another program, and `extern block` a block in Python"
    if token == "]" and span.source.text.endswith("[", 0, span.start):
        diagnostic = Diagnostic(
            "E0101", message, span, label, remedy="write statics between the brackets, or delete `[]`"
        )
        return diagnostic.with_edits(Edit(Span(span.source, span.start - 1, span.end), ""))
    if token.isidentifier() and "`(`" in expected.phrases and _COLON.match(span.source.text, span.end):
        remedy = f"put inputs in parentheses: `({token}: …)`"
    if _FOREIGN_LOOP.search(span.source.text, max(0, span.start - _LONGEST), span.start):
        remedy = _LOOPS
    if token in ("(", "[") and span.source.text.endswith(")", 0, span.start):
        remedy = _STATICS
    line = span.source.text[max(span.source.line_bounds(span.line)[0], span.start - _LONGEST) : span.start]
    if token == "," and (returned := _RETURNED.match(line)):
        remedy = f"`{returned[1]}` takes one value: join several, as in `{returned[1]} concat(a, b)`"
    if token == "," and expected.phrases == ("`)`",) and around == "(":
        list_remedy = "write a list in square brackets: `[1, 2]`"
        remedy = list_remedy if is_in_recipe else "join several values, as in `concat(a, b)`"
    if set(expected.phrases) <= {"`=`", "`<-`"} and USE_LINE.search(line):
        remedy = "move the line `use` to the beginning of the file"
    diagnostic = Diagnostic("E0101", message, span, label, remedy=remedy)
    # A word of two letters is similar to most short names.
    possible = [word for word in expected.words if len(word) > 2 or len(token) <= 3]
    if token.isidentifier() and not is_keyword and meant_names(token, possible):
        return misspelt(diagnostic, token, possible)
    clause = _TRUNCATED.search(span.source.text, 0, span.start) if token == "halting" else None
    if clause is not None:
        written = clause[0].rstrip()
        return diagnostic.with_edits(without(Span(span.source, clause.start(), clause.start() + len(written))))
    if token == "," and (clause := _TRUNCATED.search(span.source.text, max(0, span.start - 100), span.start)):
        return replace(diagnostic, remedy=f"write `{clause[0].strip()}` after the last name of `carry`")
    if token in _LATER_CLAUSE:
        # A row is short, and a search through a long text takes time quadratic in its length.
        later = _LATER_CLAUSE[token].search(span.source.text, max(0, span.start - 1_000), span.start)
        if later is not None:
            earlier = "best of" if token == "best" else token
            return replace(diagnostic, remedy=f"`{earlier}` comes before `{' '.join(later[1].split())}`")
    if remedy == _COMPARE and _begins_line(span):
        return replace(diagnostic, remedy="bind a name: `name = …`, or delete `=`")
    if remedy == _COMPARE and "`]`" in expected.phrases:
        return replace(diagnostic, remedy="separate the statics with `,`, each as `name = value`")
    if remedy == _COMPARE and not (is_in_recipe and around not in ("(", "[")):
        return diagnostic.with_edits(Edit(span, "=="), is_safe=True)
    is_beside_comma = token in (",", "[") or line.rstrip().endswith(",")
    if len(expected.phrases) == 1 and remedy.startswith("put `") and not is_beside_comma:
        return diagnostic.with_edits(insertion(span.source, span.start, f"{str(expected).strip('`')} "))
    return diagnostic


def _setting_alone(diagnostic: Diagnostic) -> Diagnostic:
    """Completes the diagnostic of a line of a recipe that begins with a name and `=`."""
    span, word = diagnostic.span, diagnostic.span.text
    remedy = _line_of(word)
    if remedy is None and "." in word:
        if word.startswith("test.model."):
            place = Edit(Span(span.source, span.start + len("test"), span.start + len("test.")), " ")
            return replace(diagnostic, remedy=f"write `test {word.removeprefix('test.')}`").with_edits(place)
        remedy = f'write `claim {word} = … from "…"` for a published result'
        return replace(diagnostic, remedy=remedy).with_edits(insertion(span.source, span.start, "claim "))
    otherwise = f"write a setting in its line `task`, `model` or `train`, as in `train adamw[{word} = …]`"
    return replace(diagnostic, remedy=remedy or otherwise)


def _line_of(word: str) -> str | None:
    """Returns where a recipe says what a path or `seed` says; None for another word."""
    if setting := _SETTING.fullmatch(word):
        return f"write it in the line `{setting[1]}`, as in `{setting[1]} …[{setting[2]} = …]`"
    return "write `vary seed in 1..3`" if word in ("seed", "seeds") else None


def _space_before(sign: Span) -> str:
    return " " if sign.text == ":" and not sign.source.text.endswith(" ", 0, sign.start) else ""


def _later_colons(colon: Span) -> list[Span]:
    """Returns the places of `:` after the names of the statics that follow one, in its brackets and on its line."""
    depth, colons = 0, []
    for piece in _PIECE_OF_STATICS.finditer(colon.source.text, colon.end):
        depth += {"(": 1, "[": 1, ")": -1, "]": -1}.get(piece[0], 0)
        if depth < 0 or piece[0] in ("\n", "\r", "{"):
            break
        if piece["colon"] and depth == 0:
            colons.append(Span(colon.source, *piece.span("colon")))
    return colons


def _foreign_binder(sign: Span) -> Diagnostic:
    diagnostic = Diagnostic("E0101", f"{quoted(sign.text)} binds no name", sign, "expected `=`", remedy="write `=`")
    return diagnostic.with_edits(Edit(sign, "="))


def _replacement(token: str, expected: Expected, around: str, is_in_recipe: bool) -> str | None:
    """Returns what stands for a sign or a word of other languages, or for half a sign; None if the token is none."""
    if token in ("-", "=") and expected.phrases == ("`->`",):
        return "->"
    if token == ":":
        is_setting = "`=`" in expected.phrases and (around == "[" or is_in_recipe)
        return "->" if "`->`" in expected.phrases else "=" if is_setting else "{" if "`{`" in expected.phrases else None
    return _FOREIGN_ITEMS.get(token) if expected.phrases[0] == ITEM else None


def keyword_without_space(span: Span, words: Iterable[str]) -> str | None:
    """Returns the keyword with which a word begins that lacks a space, as `from` in `fromtrial {`; None if another word
    or a string follows, before which the word may be a misspelt keyword."""
    for word in sorted(words, key=len, reverse=True):
        rest = span.text.removeprefix(word)
        if (
            rest not in ("", span.text)
            and not rest.startswith(".")
            and (rest in _SECOND_WORDS or _ENDS_NAME.match(span.source.text, span.end))
        ):
            return word
    return None


def keywords_without_space(span: Span, keyword: str) -> Diagnostic:
    rest = span.text.removeprefix(keyword)
    message = f"a space is missing in {quoted(span.text)}"
    diagnostic = Diagnostic("E0101", message, span, "two words", remedy=f"write `{keyword} {rest}`")
    # One letter more may also be a typing error.
    return diagnostic.with_edits(insertion(span.source, span.start + len(keyword), " "), is_safe=len(rest) > 1)


def empty_text(span: Span, what: str) -> Diagnostic:
    message = f"{what} is empty"
    return Diagnostic("E0101", message, span, "nothing is written", remedy="write it between the quotes")


def _remedy(token: str, expected: Expected, around: str, is_reserved: bool, is_bound: bool, is_in_recipe: bool) -> str:
    binds = set(expected.phrases) <= {"`=`", "`<-`"} and not is_in_recipe
    if binds and token == ",":
        return "a statement binds one name: write a line for each"
    if token == "{" and expected.phrases == ("`->`",):
        return "write the type of the result before `{`, as in `-> seq[n, d]`"
    if token in (",", ")") and around == "(" and expected.phrases == ("`:`",):
        return "write the type of the input after its name, as in `h: seq[n, d]`"
    if token in _STEP_CLAUSES:
        return _STEP_CLAUSES[token]
    if is_reserved and "a name" in expected.phrases:
        return f"{quoted(token)} is a reserved word; choose another name"
    if (is_reserved or is_bound) and expected.phrases[0] == ITEM:
        return "put statements between the braces of a block or a model"
    if token == "=" and around == "(":
        return _STATICS
    if token == "{" and expected.phrases == ("`else`",):
        return "write `where` for a condition of the statics, or `else` and another type"
    if token == "(" and "`[`" in expected.phrases:
        return "put statics in square brackets: `name[static = value]`"
    if token == "=" and expected.operators:
        return _COMPARE
    if "a value" in expected.phrases and token in ("repeat", "stack"):
        return f"write the loop before this line, as in `y = {token} n {{ … emit h }}`, and use its result here"
    if "a value" in expected.phrases and token == "if":
        return "write `a when condition else b` in place of `if`"
    if is_in_recipe and len(expected.phrases) > 1 and (line := _line_of(token)) is not None:
        return line
    if binds and token in ("+", "-", "*", "/"):
        return f"bind the whole value: `name <- name {token} …`"
    if binds:
        return "begin a statement with `name =`, `name <-`, `return` or another keyword"
    if token.replace(".", "").isidentifier() and "." in token and {"a name", "a statement"} & set(expected.phrases):
        return "bind a name without dots"
    if token in ("<", "<=", ">", ">=", "==", "!=", "in") and "a value" not in expected.phrases:
        return "comparisons do not chain: join them with `and`"
    if len(expected.phrases) == 1:
        return f"put {expected} before {quoted(token)}" if str(expected) != ITEM else f"delete {quoted(token)}"
    if any(phrase.startswith("a part of") for phrase in expected.phrases):
        return f"begin the line with one of these words in place of {quoted(token)}, or delete it"
    return f"put one of these before {quoted(token)}, or delete it"


def loop_in_value(span: Span, word: str) -> Diagnostic:
    """`span` is that of `word` (`scan` or `experts`) where a value is expected."""
    head = "scan v in h" if word == "scan" else "experts v in h by w"
    remedy = f"write the loop before this line, as in `y = {head} {{ … emit v }}`, and use its result here"
    return Diagnostic("E0101", f"expected a value, found `{word}`", span, "a loop is no value", remedy=remedy)


def reserved_word(span: Span) -> Diagnostic:
    message = f"`{span.text}` is a reserved word"
    remedy = "name the charge, as in `charge cost = …`" if span.text == "charge" else "choose another name"
    return Diagnostic("E0101", message, span, "cannot be a name", remedy=remedy)


def misspelt_keyword(span: Span, word: str, possible: Iterable[str]) -> Diagnostic:
    message = f"no statement begins with {quoted(word)}"
    for keyword in ("return", "emit"):
        if word.startswith(keyword):
            # The rest is a value, without a space before it.
            return keywords_without_space(span, keyword)
    return misspelt(Diagnostic("E0101", message, span, "unknown keyword"), word, possible)


def value_missing(sign: Span, following: Span) -> Diagnostic:
    """`sign` is the last sign or word of a line, and `following` the name, keyword or `}` that begins the next line."""
    before = sign.text
    found, label = "the next statement", "the next statement begins here"
    if following.text in (*PART_WORDS, *CLAUSE_WORDS, *ITEM_WORDS):
        found, label = "the next line", "the next line begins here"
    elif following.text == "}":
        found, label = "`}`", "the body ends here"
    message = f"expected a value after `{before}`, found {found}"
    remedy = f"write a value after `{before}`, or delete `{before}`"
    return Diagnostic("E0101", message, sign, "a value is missing", (Label(following, label),), remedy)


def doubled_minus(value: Span) -> Diagnostic:
    """`value` is a negative one right after a minus, or after the sign of an update."""
    sign = "<-" if value.source.text.endswith("<-", 0, value.start) else "-"
    span = Span(value.source, value.start - len(sign), value.start + 1)
    message, remedy = f"`{span.text}` may be one sign or two", f"write `{sign}`, or a space between the two: `{sign} -`"
    return Diagnostic("E0101", message, span, "a doubled sign", remedy=remedy).with_edits(Edit(span, sign))


def operator_after_pipe(operator: Span, pipe: Span) -> Diagnostic:
    """`pipe` is the pipe before the operator."""
    message = f"a pipe ends before `{operator.text}`: its stages are blocks"
    piped = " ".join(pipe.text.split())
    remedy = f"write the pipe in parentheses: `({piped if len(piped) < _LONGEST else '…'}) {operator.text} …`"
    source = operator.source
    diagnostic = Diagnostic("E0101", message, operator, "not expected here", (Label(pipe, "the pipe"),), remedy)
    return diagnostic.with_edits(insertion(source, pipe.start, "("), insertion(source, pipe.end, ")"))


def name_missing(span: Span) -> Diagnostic:
    """`span` is a name and the dot after it."""
    message = f"expected a name after {quoted(span.text)}"
    return Diagnostic("E0101", message, span, "a name is missing", remedy="write a name after `.`, or delete `.`")


def foreign_else_if(word: Span) -> Diagnostic:
    message = f"no statement begins with `{word.text}`"
    diagnostic = Diagnostic("E0101", message, word, "unknown keyword", remedy="write `else if`")
    return diagnostic.with_edits(Edit(word, "else if"))


def misspelt_else(word: Span) -> Diagnostic:
    message = f"no statement begins with `{word.text}`"
    diagnostic = Diagnostic("E0101", message, word, "unknown keyword", remedy="did you mean `else`?")
    return diagnostic.with_edits(Edit(word, "else"), is_safe=is_typing_error(word.text, "else", ()))


def if_in_value(word: Span, otherwise: Span) -> Diagnostic:
    """`word` is an `if` after a value, and `otherwise` the `else` after it."""
    labels = (Label(otherwise, "and the other value here"),)
    remedy = "write `when` in place of `if`: `a when condition else b`"
    diagnostic = Diagnostic("E0101", "`if` begins a statement, not a condition of a value", word, "in a value", labels)
    return replace(diagnostic, remedy=remedy).with_edits(Edit(word, "when"))


def if_as_value(word: Span, name: str | None) -> Diagnostic:
    """`word` is an `if` with a body in place of a value, which a statement binds to a name or returns."""
    message = "`if` with a body is a statement, not a value"
    bound = "y" if name is None else name
    remedy = f"bind the name in both bodies, as in `if … {{ {bound} = … }} else {{ {bound} = … }}`, or write "
    remedy += "`a when condition else b`"
    return Diagnostic("E0101", message, word, "in place of a value", remedy=remedy)


def else_without_if(word: Span) -> Diagnostic:
    remedy = "write the `if` before it, or delete the line"
    return Diagnostic("E0101", "`else` follows no `if`", word, "no `if` before it", remedy=remedy)


_EXTERN_CLAUSES = frozenset(CLAUSE_WORDS) - {"where", "gives"}


def line_incomplete(span: Span, expected: Expected, following: Span) -> Diagnostic:
    """`span` is the last word or sign of a line, after which the next line was read on."""
    message = f"expected {expected} after {quoted(span.text)}, found the next line"
    labels = (Label(following, "the next line begins here"),)
    if "`{`" in expected.phrases and following.text in _EXTERN_CLAUSES:
        remedy = f"write `extern block`, of which `{following.text}` is a clause, or a body in braces"
        return Diagnostic("E0101", message, span, "incomplete", labels, remedy)
    if "`{`" in expected.phrases:
        remedy = "complete the line, and end it with `{`"
        diagnostic = Diagnostic("E0101", message, span, "incomplete", labels, remedy)
        return diagnostic.with_edits(insertion(span.source, span.end, " {"))
    if "python" in expected.words:
        return Diagnostic("E0101", message, span, "incomplete", labels, _CLASS)
    if span.text != ",":
        remedy = "complete the line, or delete it"
        if {"at", "from"} <= set(expected.words) and "`±`" in expected.phrases:
            remedy = 'end the claim with its source, as in `from "paper, Table 1"`'
        elif "`<-`" in expected.phrases and following.text == "}" and _begins_line(span):
            diagnostic = Diagnostic("E0101", message, span, "incomplete", labels, f"write `return {span.text}`")
            return diagnostic.with_edits(insertion(span.source, span.start, "return "))
        return Diagnostic("E0101", message, span, "incomplete", labels, remedy)
    remedy = "delete `,`, or write what follows it"
    return Diagnostic("E0101", message, span, "incomplete", labels, remedy).with_edits(Edit(span, ""))


def _begins_line(span: Span) -> bool:
    """Whether a word or a sign is the first one of its line."""
    return _BEGINS_LINE.search(span.source.text, max(0, span.start - _LONGEST), span.start) is not None


def statics_without_bracket(name: Span, following: Span) -> Diagnostic:
    """`name` is a name in a recipe, and `following` begins the next line, which has statics of it."""
    message = f"`[` is missing after {quoted(name.text)}, before its statics"
    labels = (Label(following, "the statics begin here"),)
    remedy = f"write `{name.text}[` before the statics, and `]` after them"
    return Diagnostic("E0101", message, name, "expected `[`", labels, remedy)


def application_without_brackets(block: Span, argument: Span, closer: str) -> Diagnostic:
    """`argument` is a name that follows the name of a block, with or without statics, on its line; `closer` is the
    closing bracket after it whose opening bracket is missing, if there is one."""
    message = f"the argument {quoted(argument.text)} is not in parentheses"
    expected, remedy = "(", f"write `{block.text}({argument.text})`"
    if closer == "]":
        message = f"`[` is missing after {quoted(block.text)}, before its statics"
        expected, remedy = "[", f"write `{block.text}[{argument.text}`"
    elif closer:
        remedy = f"write `{block.text}({argument.text}`"
    diagnostic = Diagnostic("E0101", message, argument, f"expected `{expected}`", (Label(block, "the block"),), remedy)
    edits = [Edit(Span(block.source, block.end, argument.start), expected)]
    return diagnostic.with_edits(*edits, *([] if closer else [insertion(block.source, argument.end, ")")]))


def arrow_in_expression(arrow: Span) -> Diagnostic:
    message = "`->` stands only before the type of a result"
    line = arrow.source.text[arrow.source.line_bounds(arrow.line)[0] : arrow.start]
    if (name := _NAME_OF_LINE.match(line)) is not None:
        remedy = f"bind a name with `{name[1]} = …`, or update the state of a loop with `{name[1]} <- …`"
        return Diagnostic("E0101", message, arrow, "binds no name", remedy=remedy)
    remedy = "write `|>` to apply a block, as in `h |> norm`"
    return Diagnostic("E0101", message, arrow, "not an operator", remedy=remedy).with_edits(Edit(arrow, "|>"))


def let_of_other(name: Span, token: Span) -> Diagnostic:
    """`token` is unexpected after `let`, the `name`, and perhaps `=` and a block."""
    message = f"`let {name.text}` expects a block, found {quoted(token.text)}"
    remedy = f"write `let {name.text} = linear[64]`, or bind a value without `let`: `{name.text} = …`"
    if token.text == "(":
        remedy = f"declare a block: `block {name.text}(…) -> … {{ … }}`"
    return Diagnostic("E0101", message, token, "not a block", remedy=remedy)


# The number of steps of a loop, up to a sign in it.
_STEPS_OF_LOOP = re.compile(r"\b(?:repeat|stack)[ \t]+[\w(][^{}\r\n]*\Z")


def foreign_comment(span: Span) -> Diagnostic:
    start = span.source.line_bounds(span.line)[0]
    is_division = _OPERAND.search(span.source.text, start, span.start) and _DIVISOR.match(span.source.text, span.end)
    is_division = is_division or _STEPS_OF_LOOP.search(span.source.text, start, span.start)
    if is_division or _IN_BRACKETS.search(span.source.text, start, span.start):
        diagnostic = Diagnostic("E0101", "there is no operator `//`", span, "no operator", remedy="write `/`")
        return diagnostic.with_edits(Edit(span, "/"))
    remedy = "begin a comment with `#`; one `/` divides"
    diagnostic = Diagnostic("E0101", "there is no sign `//`", span, "neither a comment nor an operator", remedy=remedy)
    return diagnostic.with_edits(Edit(span, "#"))


def power_operator(span: Span) -> Diagnostic:
    message = "there is no operator `**`"
    start, end = span.source.line_bounds(span.line)
    for power in _POWER.finditer(span.source.text, start, end):
        if power.start("sign") == span.start and (value := _power(power["base"], power["exponent"])):
            diagnostic = Diagnostic("E0101", message, span, "no operator", remedy=f"write `{value}`")
            return diagnostic.with_edits(Edit(Span(span.source, *power.span()), value))
    return Diagnostic("E0101", message, span, "no operator", remedy=NO_POWER)


def _power(base: str, exponent: str) -> str | None:
    """Returns the power of two written integers as a number of the language; None if it has many digits."""
    if base == "10" and exponent.startswith("-"):
        return f"1e{exponent}"
    if exponent.startswith("-") or len(base + exponent) > 4:
        return None
    value = int(base) ** int(exponent)
    return f"{value:_}" if value < _LARGEST_POWER else None


def unclosed_bracket(opener: Span, noticed: Span) -> Diagnostic:
    closer = {"(": ")", "[": "]", "{": "}"}[opener.text]
    at_end = noticed.start >= len(noticed.source.text.rstrip())
    labels = (Label(noticed, "the text ends here" if at_end else f"`{closer}` is missing before this"),)
    message = f"`{opener.text}` is never closed"
    diagnostic = Diagnostic("E0103", message, opener, "opened here", labels, f"add `{closer}`")
    text = noticed.source.text
    if closer == "}":
        start, _ = noticed.source.line_bounds(noticed.line)
        place = len(text.rstrip()) if at_end else start
        line = text[opener.source.line_bounds(opener.line)[0] : opener.start]
        closing = line[: len(line) - len(line.lstrip())] + closer
        return diagnostic.with_edits(insertion(opener.source, place, f"\n{closing}" if at_end else f"{closing}\n"))
    end = len(text[: noticed.start].rstrip())
    if sign := _BEFORE_VALUE.search(text, max(0, end - 2), end):
        return replace(diagnostic, remedy=f"write a value after `{sign[0]}`, and add `{closer}`")
    # `linear[d(h)`: the inputs of the call stand behind the bracket.
    inputs = _INPUTS_AT_END.search(text, opener.end, end) if closer == "]" else None
    if inputs is not None and inputs.start() == opener.end:
        return replace(diagnostic, remedy="add `]` before `(`").with_edits(insertion(opener.source, inputs.end(1), "]"))
    return diagnostic.with_edits(insertion(opener.source, end, closer))


_INPUTS_AT_END = re.compile(r"(\w+)[ \t]*\([^()\[\]{}\r\n]*\)\Z")


def unmatched_closer(closer: Span, opener: Span | None) -> Diagnostic:
    if opener is None:
        message, remedy = f"`{closer.text}` has no opening bracket", "delete it, or add the opening bracket"
        diagnostic = Diagnostic("E0104", message, closer, "no open bracket", remedy=remedy)
        return diagnostic.with_edits(without(closer))
    expected = {"(": ")", "[": "]", "{": "}"}[opener.text]
    message = f"`{closer.text}` does not match `{opener.text}`"
    labels = (Label(opener, "opened here"),)
    statics = _STATICS_OVER_INPUTS.fullmatch(closer.source.text, opener.start, closer.end)
    if statics is not None:
        correct = f"[{statics[1]}]{statics[2]}"
        diagnostic = Diagnostic("E0104", message, closer, "one too many", labels, f"write `{correct}`")
        return diagnostic.with_edits(insertion(closer.source, statics.end(1), "]"), Edit(closer, ""))
    diagnostic = Diagnostic("E0104", message, closer, f"expected `{expected}`", labels, f"write `{expected}`")
    return diagnostic.with_edits(Edit(closer, expected))


def else_missing(closer: Span) -> Diagnostic:
    """`closer` is the `}` of an `if`, and what follows it on its line; the lines after it are indented deeper."""
    message = "the lines after this `}` are indented as a body, which has no header"
    if _ELSE_IF.match(closer.text):
        return Diagnostic("E0101", message, closer, "incomplete", remedy="write a condition and `{` after `} else if`")
    diagnostic = Diagnostic("E0101", message, closer, "expected `} else {`", remedy="write `} else {`")
    return diagnostic.with_edits(Edit(closer, "} else {"))


def if_missing(closer: Span) -> Diagnostic:
    """`closer` is the `}` before an `else`, and what follows it on its line; the lines before it are indented
    deeper."""
    message = "this `else` has no `if`: the lines before it are indented as its body, which has no header"
    remedy = "write `if`, a condition and `{` before these lines"
    return Diagnostic("E0101", message, closer, "without `if`", remedy=remedy)


def if_missing_before(header: Span, word: Span) -> Diagnostic:
    """`header` stands before the `{` of a body that an `else` follows, and `word` is its first word."""
    if word.text in FOREIGN_ELSE_IF:
        return foreign_else_if(word)
    if sorted(word.text) == ["f", "i"] and header != word:
        return misspelt_keyword(word, word.text, ("if",))
    message = f"expected `if` before {quoted(header.text)}: an `else` follows its body"
    diagnostic = Diagnostic("E0101", message, header, "not a header", remedy="write `if` before the condition")
    return diagnostic.with_edits(insertion(header.source, header.start, "if "))


def closer_missing_before_else(word: Span) -> Diagnostic:
    message = "expected `}` before `else`"
    diagnostic = Diagnostic("E0101", message, word, "the body before it is not closed", remedy="write `} else`")
    return diagnostic.with_edits(insertion(word.source, word.start, "} "))


def foreign_loop(header: Span) -> Diagnostic:
    """`header` is that of a loop of another language."""
    message = f"no statement begins with `{header.text.split()[0]}`"
    return Diagnostic("E0101", message, header, "a loop of another language", remedy=_LOOPS)


def colon_for_brace(header: Span) -> Diagnostic:
    """`header` is that of a body without braces; it ends with a colon."""
    colon = Span(header.source, header.end - 1, header.end)
    remedy = "write `{`, and `}` after the body"
    diagnostic = Diagnostic("E0101", "a body stands between braces, found `:`", colon, "expected `{`", remedy=remedy)
    return diagnostic.with_edits(Edit(colon, _space_before(colon) + "{"))


def brace_missing(line: Span) -> Diagnostic:
    """`line` is one without a `{`; the lines after it are indented deeper, and a `}` ends them."""
    message = "the lines after this one are indented as its body, but it has no `{`"
    remedy = (
        "write the header of a body, which ends with `{`, such as `y = repeat 3 {`, or indent the lines as this one"
    )
    return Diagnostic("E0101", message, line, "not a header", remedy=remedy)


def unterminated_string(span: Span) -> Diagnostic:
    message = "this string has no closing quote on its line"
    diagnostic = Diagnostic("E0105", message, span, "begins here", remedy='add `"` at the end of the string')
    path = re.match(r'"[^\s",\])]*\.\w+', span.text)  # the path of a file ends before the next word
    end = span.start + path.end() if path else span.start + len(span.text.rstrip())
    return diagnostic.with_edits(insertion(span.source, end, '"'))


def nested_too_deep(span: Span, limit: int) -> Diagnostic:
    message = f"this is nested more than {limit} levels deep; each bracket and each step of a chain is a level"
    return Diagnostic("E0106", message, span, "too deep", remedy="bind inner expressions to names")


def number_out_of_range(span: Span) -> Diagnostic:
    remedy = "integers go up to 2^63 - 1, other numbers from 1e-308 to 1e308"
    return Diagnostic("E0107", f"the number {quoted(span.text)} is out of range", span, "out of range", remedy=remedy)


def brace_in_setting(brace: Span) -> Diagnostic:
    return Diagnostic("E0101", f"a value has no `{brace.text}`", brace, "not expected here")


def in_setting(diagnostic: Diagnostic, name: str) -> Diagnostic:
    """Returns a mistake in the value of a setting, with advice about its form where a word or sign is out of place."""
    if diagnostic.code not in ("E0101", "E0104", "E0111"):
        return diagnostic
    remedy = f"write one value, such as `{name}=64`; in a shell, quote what it would change: `'{name}=[1, 2]'`"
    return replace(diagnostic, remedy=remedy)


def file_unreadable(place: Span, reason: str) -> Diagnostic:
    message = f"the file `{place.source.path}` cannot be read: {reason}"
    return Diagnostic("E0108", message, place, remedy="check the path and its permissions")


def file_misnamed(place: Span) -> Diagnostic:
    return replace(file_unreadable(place, "its name has a control character"), remedy="rename the file")


def file_missing(place: Span) -> Diagnostic:
    remedy = "check the path; `archlang recipes` lists the programs that come with archlang"
    return replace(file_unreadable(place, "there is no such file"), remedy=remedy)


def not_utf8(place: Span, offset: int) -> Diagnostic:
    message = f"the file `{place.source.path}` is not UTF-8: byte {offset} is invalid"
    return Diagnostic("E0109", message, place, remedy="save the file as UTF-8")


def file_too_large(place: Span, limit: int) -> Diagnostic:
    message = f"`{place.source.path}` is larger than {limit:_} bytes"
    return Diagnostic("E0110", message, place, remedy="name an `.arch` file")


def unexpected_end(span: Span, expected: Expected) -> Diagnostic:
    message = f"expected {expected}, found the end of the text"
    remedy = "complete the item, or delete it"
    if "python" in expected.words:
        remedy = _CLASS
    return Diagnostic("E0111", message, span, "the text ends here", remedy=remedy)


def malformed_number(span: Span) -> Diagnostic:
    message = f"{quoted(span.text)} is neither a number nor a name"
    remedy = "write numbers as `14`, `30_000`, `0.5` or `1.5e-4`; begin names with a letter"
    return Diagnostic("E0112", message, span, "not a number", remedy=remedy)


def too_many_words(span: Span, limit: int) -> Diagnostic:
    message = f"this file has more than {limit:_} tokens"
    return Diagnostic("E0113", message, span, f"token {limit + 1:_}", remedy="split the program into several files")


def word_too_long(span: Span, limit: int) -> Diagnostic:
    message = f"{quoted(span.text)} is longer than {limit:_} characters"
    return Diagnostic("E0114", message, span, "too long", remedy="shorten it, or move long explanations into comments")
