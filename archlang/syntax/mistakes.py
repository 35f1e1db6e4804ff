"""The wording of mistakes in the text itself: characters, brackets, and words in the wrong place."""

from __future__ import annotations

from collections.abc import Mapping

from archlang.diagnostics import Diagnostic, Label
from archlang.diagnostics.names import did_you_mean
from archlang.source import Span
from archlang.syntax.expected import ITEM, Expected

_LONGEST = 40
_INSTEAD: Mapping[str, str] = {
    ";": "delete it: a statement ends where the next one begins",
    "'": 'text stands in double quotes: `"…"`',
    "`": 'text stands in double quotes: `"…"`',
    "“": 'write straight quotes: `"…"`',
    "”": 'write straight quotes: `"…"`',
    "„": 'write straight quotes: `"…"`',
    "‘": 'write straight quotes: `"…"`',
    "’": 'write straight quotes: `"…"`',
    "−": "write `-`",
    "–": "write `-`",
    "—": "write `-`",
    "→": "write `->`",
    "←": "write `<-`",
    "×": "write `*`",
    "·": "write `*`",
    "÷": "write `/`",
    "≤": "write `<=`",
    "≥": "write `>=`",
    "≠": "write `!=`",
    "…": "write `..` in a range, `...` after the type of an input that may come several times",
    "&": "write `and`",
    "|": "write `or`; a value is passed on with `|>`",
    "!": "write `not`; two values differ with `!=`",
    "^": "multiply with `*`; there is no power",
    ".": "a number begins with a digit, as in `0.5`, and nothing stands around the dots of a name",
    "\\": "lines need no mark to go on",
}


def _shown(text: str) -> str:
    return f"`{text if len(text) <= _LONGEST else text[: _LONGEST - 1] + '…'}`"


def unexpected_token(span: Span, found: str, expected: Expected, around: str, is_reserved: bool) -> Diagnostic:
    """`around` is the innermost open bracket, or empty."""
    return Diagnostic(
        "E0101",
        f"expected {expected}, found {_shown(found)}",
        span,
        f"expected {expected}" if len(expected.phrases) == 1 and str(expected) != ITEM else "not expected here",
        remedy=_remedy(found, expected, around, is_reserved),
    )


def _remedy(found: str, expected: Expected, around: str, is_reserved: bool) -> str:
    near = did_you_mean(found, expected.words) if found.isidentifier() and not is_reserved else None
    binds = set(expected.phrases) <= {"`=`", "`<-`"}
    if near:
        return f"did you mean `{near}`?"
    if is_reserved and "a name" in expected.phrases:
        return f"{_shown(found)} is a word of the language; choose another name"
    if is_reserved and expected.phrases[0] == ITEM:
        return "statements stand between the braces of a block or a model"
    if found == "=" and around == "(":
        return "what is fixed at compile time stands in brackets: `block[name = value](…)`"
    if found == "=" and expected.operators:
        return "compare with `==`"
    if binds:
        return "a statement begins with `name =`, `name <-`, `return` or another word of the language"
    if found.replace(".", "").isidentifier() and "." in found and {"a name", "a statement"} & set(expected.phrases):
        return "the name of something new has no dots"
    if found in ("<", "<=", ">", ">=", "==", "!=", "in") and "a value" not in expected.phrases:
        return "comparisons do not chain: join them with `and`"
    if len(expected.phrases) == 1:
        return f"put {expected} before {_shown(found)}" if str(expected) != ITEM else f"delete {_shown(found)}"
    return f"put one of these before {_shown(found)}, or delete it"


def reserved_word(span: Span) -> Diagnostic:
    return Diagnostic(
        "E0101",
        f"`{span.text}` is a word of the language and cannot be a name",
        span,
        "cannot be a name",
        remedy="choose another name",
    )


def misspelt_keyword(span: Span, found: str, near: str) -> Diagnostic:
    return Diagnostic(
        "E0101", f"no statement begins with {_shown(found)}", span, "unknown word", remedy=f"did you mean `{near}`?"
    )


def value_missing(span: Span, before: str, following: Span) -> Diagnostic:
    return Diagnostic(
        "E0101",
        f"expected a value after `{before}`, found the next statement",
        span,
        "a value is missing",
        (Label(following, "the next statement begins here"),),
        f"write what stands for it after `{before}`, or delete `{before}`",
    )


def unknown_character(span: Span) -> Diagnostic:
    text = span.text
    if text[0].isprintable():
        what = _shown(text)
    else:
        what = f"the invisible character U+{ord(text[0]):04X}"
    if text[0] in _INSTEAD:
        remedy = _INSTEAD[text[0]]
    elif text[0].isalnum():
        remedy = "names are made of the letters a to z, digits and `_`"
    else:
        remedy = "delete it, or put it between quotes or into a comment"
    return Diagnostic("E0102", f"{what} does not belong to the language", span, "unknown character", remedy=remedy)


def unclosed_bracket(opener: Span, noticed: Span) -> Diagnostic:
    closer = {"(": ")", "[": "]", "{": "}"}[opener.text]
    at_end = noticed.start >= len(noticed.source.text.rstrip())
    return Diagnostic(
        "E0103",
        f"`{opener.text}` is never closed",
        opener,
        "opened here",
        (Label(noticed, "the text ends here" if at_end else f"a `{closer}` should stand before this"),),
        f"add `{closer}`",
    )


def unmatched_closer(closer: Span, opener: Span | None) -> Diagnostic:
    if opener is None:
        return Diagnostic(
            "E0104", f"`{closer.text}` closes nothing", closer, "nothing is open", remedy="delete it, or open it before"
        )
    wanted = {"(": ")", "[": "]", "{": "}"}[opener.text]
    return Diagnostic(
        "E0104",
        f"`{closer.text}` cannot close `{opener.text}`",
        closer,
        f"expected `{wanted}`",
        (Label(opener, "opened here"),),
        f"write `{wanted}`",
    )


def unterminated_string(span: Span) -> Diagnostic:
    return Diagnostic(
        "E0105", "this text has no closing quote on its line", span, "begins here", remedy='add `"` where the text ends'
    )


def nested_too_deep(span: Span, limit: int) -> Diagnostic:
    return Diagnostic(
        "E0106",
        f"this is more than {limit} levels deep, where each bracket and each step of a chain is a level",
        span,
        "too deep",
        remedy="give inner parts names of their own",
    )


def number_out_of_range(span: Span) -> Diagnostic:
    return Diagnostic(
        "E0107",
        f"the number {_shown(span.text)} is out of range",
        span,
        "out of range",
        remedy="whole numbers go up to 2^63 - 1, others from 1e-308 to 1e308",
    )


def file_unreadable(place: Span, reason: str) -> Diagnostic:
    return Diagnostic(
        "E0108",
        f"the file `{place.source.path}` cannot be read: {reason}",
        place,
        remedy="check the path and its rights",
    )


def not_utf8(place: Span, offset: int) -> Diagnostic:
    return Diagnostic(
        "E0109",
        f"the file `{place.source.path}` is no UTF-8 text: byte {offset} cannot be read",
        place,
        remedy="save the file as UTF-8",
    )


def file_too_large(place: Span, limit: int) -> Diagnostic:
    return Diagnostic(
        "E0110",
        f"`{place.source.path}` is larger than {limit:_} bytes, which no program is",
        place,
        remedy="name an `.arch` file",
    )


def unexpected_end(span: Span, expected: Expected) -> Diagnostic:
    return Diagnostic(
        "E0111",
        f"the text ends where {expected} should follow",
        span,
        "the text ends here",
        remedy="write the rest, or delete what was begun",
    )


def malformed_number(span: Span) -> Diagnostic:
    return Diagnostic(
        "E0112",
        f"{_shown(span.text)} is neither a number nor a name",
        span,
        "not a number",
        remedy="write numbers as `14`, `30_000`, `0.5` or `1.5e-4`; names begin with a letter",
    )


def too_many_words(span: Span, limit: int) -> Diagnostic:
    return Diagnostic(
        "E0113",
        f"this file has more than {limit:_} words and signs",
        span,
        f"word {limit + 1:_}",
        remedy="divide the program into several files that are checked one by one",
    )


def word_too_long(span: Span, limit: int) -> Diagnostic:
    return Diagnostic(
        "E0114",
        f"{_shown(span.text)} is longer than {limit:_} characters",
        span,
        "too long",
        remedy="shorten it, or put long explanations into comments",
    )
