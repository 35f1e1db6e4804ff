"""Diagnostics of characters that no word or sign of the language has."""

import re

from archlang.errors import Diagnostic, Edit
from archlang.errors.source import Span
from archlang.syntax.mistakes import quoted

NO_POWER = "write a product, as `h * h`; `exp(p * log(h))` is the power p of a positive `h`"
_LONGEST = 40
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
    elif text == "." and (number := _number_at(span)) is not None:
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


def _number_at(point: Span) -> Edit | None:
    """Returns the edit that completes a number without digits on one side of its point."""
    text = point.source.text
    digits = _WHOLE_DIGITS.search(text, max(0, point.start - _LONGEST), point.start)
    number = _HALF_NUMBER.match(text, point.start if digits is None else digits.start())
    if number is None or not (number["whole"] or number["digits"]):
        return None
    return Edit(Span(point.source, *number.span()), f"{number['whole'] or '0'}.{number['digits'] or '0'}")
