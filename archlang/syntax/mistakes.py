"""Diagnostics of the text itself: characters, brackets, misplaced words, early ends; phrases for what is expected."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from archlang.errors import Diagnostic, Edit, Label, Span
from archlang.errors.edits import insertion, without
from archlang.errors.messages import Message, Messages
from archlang.errors.names import is_typing_error

ITEM = "an item (`use`, `block`, `model`, `extern`, `recipe` or `table`)"

# Groups of terminals with a phrase for the group. Where the grammar accepts every terminal of the first set, the phrase
# replaces all terminals of both sets.
_GROUPS = tuple(
    (phrase, frozenset(signs.split()), frozenset(group.split()))
    for phrase, signs, group in (
        ("a value", "NUMBER STRING NAME", "DOTTED TRUE FALSE NOT MINUS LSQB LPAR SCAN EXPERTS REPEAT STACK"),
        ("a statement", "LET RETURN", "LOSS EMIT IF REPEAT STACK SCAN NAME"),
        (ITEM, "USE EXTERN", "BLOCK MODEL RECIPE TABLE $END"),
        (
            "a part of a recipe (`task`, `model`, `train`, `test`, `vary`, `search`, `where` or `claim`)",
            "VARY CLAIM",
            "TASK MODEL TRAIN TEST SEARCH WHERE",
        ),
        ("a part of a table (`row`, `column` or `columns`)", "ROW COLUMN", "COLUMNS"),
        ("a name", "NAME", "DOTTED"),
        ("a number", "NUMBER", ""),
        ("a string", "STRING", ""),
    )
)
# What a name is after a terminal.
_NAMED = {
    "ARROW": "a type",
    "READS": "an input",
    "COSTS": "a quantity (such as `parameters`)",
    "MAPS": "a map (such as `key(x)`)",
    "RECORDS": "what is recorded (such as `attention`)",
}
_OPERATORS = frozenset(("|>", "when", "or", "and", "==", "!=", "<", "<=", ">", ">=", "in", "..", "±", "+-", *"+-*/%"))
# Those that can also follow what is no value: the input of a loop, `random` and the number of a claim.
_OF_OTHERS = frozenset(("in", "when", "±", "+-"))


@dataclass(frozen=True)
class Expected:
    """The accepted tokens: phrases for a message, the keywords among them, and whether an operator is accepted."""

    phrases: tuple[str, ...]
    words: tuple[str, ...] = ()
    operators: bool = False

    def __str__(self) -> str:
        *first, last = self.phrases
        return f"{', '.join(first)} or {last}" if first else last


def named_after(terminal: str | None, around: str, is_read: bool) -> str | None:
    """Returns what a name is that is missing after a terminal; None if any name can follow, or something else. `around`
    is the innermost open bracket; the terminal `is_read`: it stands in a clause `reads`."""
    if terminal == "COLON":
        return "a type" if around == "(" else "a kind (such as `int`)"
    return "what is read of it (such as `causal`)" if is_read and terminal == "NAME" else _NAMED.get(terminal or "")


def expected(terminals: Iterable[str], spellings: Mapping[str, str]) -> Expected:
    """Describes terminals; `spellings` maps each terminal of fixed spelling to its spelling."""
    left = set(terminals)
    words = tuple(sorted(spellings[name] for name in left if spellings.get(name, "").isalpha()))
    phrases: list[str] = []
    for phrase, signs, group in _GROUPS:
        if signs <= left:
            phrases.append(phrase)
            left -= signs | group
    texts = {spellings[name] for name in left if name in spellings}
    operators = bool(texts & _OPERATORS - _OF_OTHERS)
    # After an expression, a missing terminator is more likely than a missing operator.
    if operators and (phrases or texts - _OPERATORS - set("([")):
        texts -= _OPERATORS | set("([")
    texts -= {"+-"}  # `±` in other signs
    phrases += [f"`{text}`" for text in sorted(texts, key=lambda text: (not text.isalpha(), text == ",", text))]
    if not phrases:
        phrases.append("the end of the text")
    return Expected(tuple(phrases), words, operators)


_LONGEST = 40
_CLASS = 'end the item with its class, as in `python "file:Class"`'
NO_POWER = "write a product, as `h * h`; `exp(p * log(h))` is the power p of a positive `h`"
# Characters, what to do about them, and what replaces them wherever they stand; an empty text deletes them.
_SIGNS: tuple[tuple[str, str, str | None], ...] = (
    (";", "delete it: statements need no separator", ""),
    ("'`", 'write strings in double quotes: `"…"`', '"'),
    ("“”„‘’", 'write straight quotes: `"…"`', '"'),
    ("−–—", "write `-`", "-"),
    ("→", "write `->`", "->"),
    ("←", "write `<-`", "<-"),
    ("×·", "write `*`", "*"),
    ("÷", "write `/`", "/"),
    ("≤", "write `<=`", "<="),
    ("≥", "write `>=`", ">="),
    ("≠", "write `!=`", "!="),
    ("…", "write `..` in a range, and `...` after the type of a variadic input", None),
    ("@", "write `linear[d](h)` for a product with weights; `scores` and `weigh` multiply sequences", None),
    ("&", "write `and`", None),
    ("|", "write `or`, or `|>` for a pipe", None),
    ("!", "write `not`, or `!=` for a comparison", None),
    ("^", NO_POWER, None),
    (".", "write `0.5` with a digit before the point, and a dotted name without spaces", None),
    ("\\", "delete it: a statement can span several lines", ""),
    ("?", "write `a when condition else b` for a choice", None),
    ("\u00a0", "delete it, or move it into a string or a comment", " "),
)
_OF_SIGN = {sign: (remedy, replacement) for signs, remedy, replacement in _SIGNS for sign in signs}
# Letters of other alphabets that look like Latin ones, and letters and digits of full width.
_LATIN = {
    **str.maketrans("аеорсухіјѕԁһАВЕКМНОРСТХІЈЅ", "aeopcyxijsdhABEKMHOPCTXIJS"),
    **str.maketrans("οΑΒΕΖΗΙΚΜΝΟΡΤΥΧ", "oABEZHIKMNOPTYX"),
    **{
        code: code - 0xFEE0 for code in (*range(0xFF10, 0xFF1A), *range(0xFF21, 0xFF3B), *range(0xFF41, 0xFF5B), 0xFF3F)
    },
}
_QUOTES = "'`“”„‘’"
# A string in other quotes.
_STRING = re.compile(rf"[{_QUOTES}]([^{_QUOTES}\"\r\n]*)[{_QUOTES}]")
_USE_LINE = re.compile(r"(?:^|[\r\n])[ \t]*use[ \t]+\Z")
# A number whose digits before or after the point are missing.
_HALF_NUMBER = re.compile(r"(?<![\w.])(?P<whole>[0-9_]*)\.(?P<digits>[0-9_]*)(?![\w.])")
_WHOLE_DIGITS = re.compile(r"[0-9_]*\Z")
_rows = Messages("archlang.syntax")


def __getattr__(name: str) -> Message:
    return _rows.__getattr__(name)


def quoted(text: str) -> str:
    return f"`{text if len(text) <= _LONGEST else text[: _LONGEST - 1] + '…'}`"


def unexpected(token: str, expected: Expected) -> tuple[str, str]:
    """Returns the message about an unexpected token, and its label."""
    is_one = len(expected.phrases) == 1 and str(expected) != ITEM
    return f"expected {expected}, found {quoted(token)}", f"expected {expected}" if is_one else "not expected here"


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


def begins_line(span: Span) -> bool:
    """Returns whether a word or a sign is the first one of its line."""
    return not span.source.text[span.source.line_bounds(span.line)[0] : span.start].strip()


def line_incomplete(span: Span, expected: Expected, following: Span | None) -> Diagnostic:
    """`span` is the last word or sign of a line, after which `following` begins the next line, if the item has one."""
    message = f"expected {expected} after {quoted(span.text)}, found the next line"
    labels = () if following is None else (Label(following, "the next line begins here"),)
    remedy, edit = "complete the line, or delete it", None
    if "`{`" in expected.phrases:
        remedy, edit = "complete the line, and end it with `{`", insertion(span.source, span.end, " {")
    elif "python" in expected.words:
        remedy = _CLASS
    elif span.text == ",":
        remedy, edit = "delete `,`, or write what follows it", Edit(span, "")
    elif "`<-`" in expected.phrases and following is not None and following.text == "}" and begins_line(span):
        remedy, edit = f"write `return {span.text}`", insertion(span.source, span.start, "return ")
    diagnostic = Diagnostic("E0101", message, span, "incomplete", labels, remedy)
    return diagnostic if edit is None else diagnostic.with_edits(edit)


def foreign_else(word: Span, is_chained: bool) -> Diagnostic:
    """`word` begins a branch of an `if`; it `is_chained` if it stands for `else if`."""
    message, meant = f"no statement begins with `{word.text}`", "else if" if is_chained else "else"
    remedy = "write `else if`" if is_chained else "did you mean `else`?"
    diagnostic = Diagnostic("E0101", message, word, "unknown keyword", remedy=remedy)
    return diagnostic.with_edits(Edit(word, meant), is_safe=not is_chained and is_typing_error(word.text, meant, ()))


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


def unclosed_bracket(opener: Span, noticed: Span, end: int | None = None) -> Diagnostic:
    """`noticed` is the word or sign before which the closing bracket is missing, and `end` the end of that before."""
    closer = {"(": ")", "[": "]", "{": "}"}[opener.text]
    at_end = noticed.start == noticed.end  # of the item, or of the text
    is_last = noticed.start >= len(noticed.source.text.rstrip())
    where = "the text ends here" if is_last else f"`{closer}` is missing {'here' if at_end else 'before this'}"
    labels = (Label(noticed, where),)
    message = f"`{opener.text}` is never closed"
    diagnostic = Diagnostic("E0103", message, opener, "opened here", labels, f"add `{closer}`")
    text = noticed.source.text
    if closer == "}":
        start, _ = noticed.source.line_bounds(noticed.line)
        place = noticed.start if at_end else start
        line = text[opener.source.line_bounds(opener.line)[0] : opener.start]
        closing = line[: len(line) - len(line.lstrip())] + closer
        return diagnostic.with_edits(insertion(opener.source, place, f"\n{closing}" if at_end else f"{closing}\n"))
    end = len(text[: noticed.start].rstrip()) if end is None else end
    if sign := _BEFORE_VALUE.search(text, max(0, end - 2), end):
        return replace(diagnostic, remedy=f"write a value after `{sign[0]}`, and add `{closer}`")
    # `linear[d(h)`: the inputs of the call stand behind the bracket.
    inputs = _INPUTS_AT_END.search(text, opener.end, end) if closer == "]" else None
    if inputs is not None and inputs.start() == opener.end:
        return replace(diagnostic, remedy="add `]` before `(`").with_edits(insertion(opener.source, inputs.end(1), "]"))
    return diagnostic.with_edits(insertion(opener.source, end, closer))


_BEFORE_VALUE = re.compile(r"(?:\.\.|\|>|[-+*/%=])\Z")
_INPUTS_AT_END = re.compile(r"(\w+)[ \t]*\([^()\[\]{}\r\n]*\)\Z")


def unmatched_closer(closer: Span, opener: Span | None) -> Diagnostic:
    if opener is None:
        message, remedy = f"`{closer.text}` has no opening bracket", "delete it, or add the opening bracket"
        diagnostic = Diagnostic("E0104", message, closer, "no open bracket", remedy=remedy)
        return diagnostic.with_edits(without(closer))
    expected = {"(": ")", "[": "]", "{": "}"}[opener.text]
    message = f"`{closer.text}` does not match `{opener.text}`"
    labels = (Label(opener, "opened here"),)
    diagnostic = Diagnostic("E0104", message, closer, f"expected `{expected}`", labels, f"write `{expected}`")
    return diagnostic.with_edits(Edit(closer, expected))


def unbound_call(call: Span, beginning: str) -> Diagnostic:
    """`beginning` is what makes a statement of a call; empty if that is unknown."""
    name = call.text.partition("(")[0].partition("[")[0]
    short = call.text if len(call.text) < _LONGEST and "\n" not in call.text else f"{name}(…)"
    message = f"the value of {quoted(short)} is neither bound nor returned"
    remedy = f"write `{beginning}{short}`" if beginning else f"bind it to a name, as in `y = {short}`, or delete it"
    diagnostic = Diagnostic("E0101", message, call, "no statement", remedy=remedy)
    return diagnostic.with_edits(insertion(call.source, call.start, beginning) if beginning else None)


def colon_for_brace(colon: Span) -> Diagnostic:
    remedy = "write `{`, and `}` after the body"
    diagnostic = Diagnostic("E0101", "a body stands between braces, found `:`", colon, "expected `{`", remedy=remedy)
    return diagnostic.with_edits(Edit(colon, ("" if colon.source.text[colon.start - 1].isspace() else " ") + "{"))


def unterminated_string(span: Span) -> Diagnostic:
    message = "this string has no closing quote on its line"
    diagnostic = Diagnostic("E0105", message, span, "begins here", remedy='add `"` at the end of the string')
    path = re.match(r'"[^\s",\])]*\.\w+', span.text)  # the path of a file ends before the next word
    end = span.start + path.end() if path else span.start + len(span.text.rstrip())
    return diagnostic.with_edits(insertion(span.source, end, '"'))


def in_setting(diagnostic: Diagnostic, name: str) -> Diagnostic:
    """Returns a mistake in the value of a setting, with advice about its form where a word or sign is out of place."""
    if diagnostic.code not in ("E0101", "E0104", "E0111"):
        return diagnostic
    remedy = f"write one value, such as `{name}=64`; in a shell, quote what it would change: `'{name}=[1, 2]'`"
    return replace(diagnostic, remedy=remedy)


def unexpected_end(span: Span, expected: Expected) -> Diagnostic:
    message = f"expected {expected}, found the end of the text"
    remedy = "complete the item, or delete it"
    if "python" in expected.words:
        remedy = _CLASS
    return Diagnostic("E0111", message, span, "the text ends here", remedy=remedy)


def unknown_character(span: Span) -> Diagnostic:
    text, edit, is_safe = span.text, None, True
    if text[0].isprintable():
        character = quoted(text)
    else:
        character = f"the invisible character U+{ord(text[0]):04X}"
    if text == "." and span.source.text.endswith((")", "]"), 0, span.start):
        remedy = "apply a block with `|>`, as in `norm(h) |> relu`"
    elif text in (".", "/") and _USE_LINE.search(span.source.text, max(0, span.start - _LONGEST), span.start):
        remedy = "write the path of a file in quotes"
    elif text == "." and span.source.text.endswith("..", 0, span.start):
        remedy, edit = "a range has two points, as in `1..3`", Edit(span, "")
    elif text == "." and (number := _complete_number(span)) is not None:
        edit, is_safe = number, number.span.text[0] == "."
        remedy = f"write `{number.text}`" + ("" if is_safe else ", or delete the point")
    elif text[0] in _OF_SIGN:
        remedy = _OF_SIGN[text[0]][0]
    elif (latin := text.translate(_LATIN)).isascii() and latin.isidentifier():
        alike = next(character for character in text if not character.isascii())
        remedy, edit = f"write `{latin}`: `{alike}` is a letter of another alphabet", Edit(span, latin)
    elif text[0].isalnum():
        remedy = "write names with the letters a to z, digits and `_`"
    else:
        remedy = "delete it, or move it into a string or a comment"
    message = f"{character} is not allowed outside strings and comments"
    if text[0] in _QUOTES:
        string = _STRING.match(span.source.text, span.start)
        edit = None if string is None else Edit(Span(span.source, *string.span()), f'"{string[1]}"')
        is_safe = string is not None
    diagnostic = Diagnostic("E0102", message, span, "unknown character", remedy=remedy)
    if edit is None:
        _, replacement = _OF_SIGN.get(text, ("", None if text.isprintable() else ""))
        edit = None if replacement is None else Edit(span, replacement)
    return diagnostic if edit is None else diagnostic.with_edits(edit, is_safe=is_safe)


def _complete_number(point: Span) -> Edit | None:
    text = point.source.text
    digits = _WHOLE_DIGITS.search(text, max(0, point.start - _LONGEST), point.start)
    number = _HALF_NUMBER.match(text, point.start if digits is None else digits.start())
    if number is None or not (number["whole"] or number["digits"]):
        return None
    return Edit(Span(point.source, *number.span()), f"{number['whole'] or '0'}.{number['digits'] or '0'}")
