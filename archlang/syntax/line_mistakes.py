"""Diagnostics of an unexpected token in a line of a recipe or a table, by what the line says before it."""

import re
from collections.abc import Callable

from archlang.diagnostics import Diagnostic, Edit
from archlang.diagnostics.names import did_you_mean
from archlang.source import Span
from archlang.syntax.mistakes import statics_without_bracket

_Read = Callable[[re.Match[str], Span], Diagnostic | None]

# A line is short, and a search through a long text takes time quadratic in its length.
_LONGEST_LINE = 1_000
_LINE = re.compile(
    r'\b(?:row|columns?)\s+"|\bcolumns\s+[A-Za-z_]|\b(?:vary|search|claim)\s+[A-Za-z_]'
    r"|(?<=[\s{])(?:task|model|train)(?=[ \t]+[A-Za-z_]|[ \t]*\Z)"
)
# Statics after the name of a task, a model or an optimizer without brackets, up to the end of the line.
_BARE_STATICS = re.compile(r"[ \t]*,?[ \t]*([A-Za-z_][\w.]*[ \t]*(?:=(?!=)|:)[^\r\n#{}]*[^\r\n#{}\s])")
_COLON = re.compile(r"(?<=[A-Za-z0-9_])[ \t]*:[ \t]*")
# The name of a task, a model or an optimizer without statics, in the line before a place.
_CHOICE_BEFORE = re.compile(
    r"(?<![^\r\n])(?P<indent>[ \t]*)(?:task|model|train)[ \t]+(?P<name>[A-Za-z_][\w.]*)[ \t]*(?:#[^\r\n]*)?"
    r"(?:\r\n?|\n)(?P<deeper>[ \t]*)\Z"
)
_VALUE = r'(?:[0-9][0-9_]*(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?|[A-Za-z_]\w*|"[^"\r\n]*")(?![\w.]|\s+in\b)'
_BARE_VALUES = re.compile(rf"{_VALUE}(?:\s*,\s*{_VALUE})+")
END_OF_LINE = re.compile(r"[ \t]*(?:#|[\r\n]|\Z)")
_FORM = "write a number for each column, as in `claims 0.84 ± 0.01, 0.9, -`"


def in_line(span: Span, token: str, begins_line: bool) -> Diagnostic | None:
    """Returns the diagnostic of an unexpected token at a place, if the line before it shows what is meant; None if it
    does not. `begins_line`: the token is the first of its line."""
    start = max(0, span.start - _LONGEST_LINE)
    if title := re.search(r"(?:^|[\r\n])[ \t]*(row|column)[ \t]+\Z", span.source.text[start : span.start]):
        return _title_without_quotes(span, title[1])
    line = next(reversed(list(_LINE.finditer(span.source.text, start, span.start))), None)
    if line is None:
        return None
    text = span.source.text[line.start() : span.start]
    for token_form, text_form, read in _FORMS:
        if re.match(token_form, token) and (match := re.search(text_form, text)):
            diagnostic = read(match, Span(span.source, line.start(), span.end))
            if diagnostic is not None and (begins_line or read is not _columns_without_values):
                return diagnostic
    return None


def _place(line: Span, start: int, end: int) -> Span:
    """Returns the place of some characters of a line."""
    return Span(line.source, line.start + start, line.start + end)


def _unexpected(place: Span, message: str, label: str, remedy: str, replacement: str | None = None) -> Diagnostic:
    diagnostic = Diagnostic("E0101", message, place, label, remedy=remedy)
    return diagnostic if replacement is None else diagnostic.with_edits(Edit(place, replacement))


def _misspelt_line(match: re.Match[str], line: Span) -> Diagnostic | None:
    near = did_you_mean(match[1], ("row", "column", "columns"))
    if near is None:
        return None
    message = f"no line of a table begins with `{match[1]}`"
    return _unexpected(_place(line, *match.span(1)), message, "unknown word", f"did you mean `{near}`?", near)


def _title_without_quotes(span: Span, word: str) -> Diagnostic | None:
    if not span.text.replace(".", "").isidentifier():
        return None
    message = f"the title of a `{word}` is a string in quotes, found `{span.text}`"
    if later := re.compile(r'[ \t]+("[^"\r\n]*")').match(span.source.text, span.end):
        remedy = f"write the title first: `{word} {later[1]} {span.text}`"
        whole = Span(span.source, span.start, later.end())
        diagnostic = Diagnostic("E0101", message, span, "expected the title", remedy=remedy)
        return diagnostic.with_edits(Edit(whole, f"{later[1]} {span.text}"))
    # The name of a recipe or of a metric must follow the title.
    is_name = END_OF_LINE.match(span.source.text, span.end) or span.source.text.startswith("[", span.end)
    rest = f" {span.text}" if is_name else ""
    remedy = f'write `{word} "{span.text}"{rest or " …"}`'
    return _unexpected(span, message, "expected the title", remedy, f'"{span.text}"{rest}')


def _number_after_at(match: re.Match[str], line: Span) -> Diagnostic:
    number = line.source.text[line.start + match.end() : line.end]
    remedy = f"name a static, as in `at model.steps = 8`, or write `claims {number}` for a published result"
    place = _place(line, match.end(), match.end() + len(number))
    return _unexpected(place, f"expected a static after `at`, found `{number}`", "a number", remedy)


def _number_without_claims(match: re.Match[str], line: Span) -> Diagnostic:
    number = line.source.text[line.start + match.end() : line.end]
    place = _place(line, match.end(), match.end() + len(number))
    message = f"expected `claims` before the number `{number}`"
    return _unexpected(place, message, "a published result", f"write `claims {number}`", f"claims {number}")


def _clause_after_claims(match: re.Match[str], line: Span) -> Diagnostic:
    clause = "at" if match[1] == "at" else "best of"
    message = f"`{clause}` follows `claims` in this row"
    return _unexpected(_place(line, *match.span(1)), message, "not expected here", f"`{clause}` comes before `claims`")


def _row_without_recipe(match: re.Match[str], line: Span) -> Diagnostic:
    message = f"the row “{match[1]}” names no recipe"
    remedy = f'name a recipe after the title: `row "{match[1]}" name {match[2]} …`'
    return _unexpected(_place(line, *match.span(2)), message, "expected a recipe", remedy)


def _row_with_reason(match: re.Match[str], line: Span) -> Diagnostic:
    message = f"expected `absent` before the reason, found `{match[1]}`"
    remedy = 'write `absent "…"` for a row that archlang cannot run'
    return _unexpected(_place(line, *match.span(1)), message, "expected `absent`", remedy, "absent")


def _columns_without_values(match: re.Match[str], line: Span) -> Diagnostic:
    message = f"expected `at` after `{match[1]}`, found the next line"
    remedy = "write the values, as in `at task.order in [forward, backward]`, or `column` for a single column"
    return _unexpected(_place(line, *match.span(1)), message, "no values", remedy)


def _average_without_space(match: re.Match[str], line: Span) -> Diagnostic:
    message = "a space is missing in `averageof`"
    return _unexpected(_place(line, *match.span(1)), message, "two words", "write `average of`", "average of")


def _columns_of_group(match: re.Match[str], line: Span) -> Diagnostic:
    message = f"`columns` takes no group in brackets, as `{match[1]}[` begins"
    remedy = "write a line `column` for each, or the group after `at`, as in `at test.length in [9, 10]`"
    return _unexpected(_place(line, *match.span(1)), message, "a group follows", remedy)


def _several_values(match: re.Match[str], line: Span) -> Diagnostic:
    word = match[1]
    message = f"a `{word}` has one value of each static, and `in` gives several"
    if word == "column":
        remedy = "write `columns`, which writes a column for each value"
        return _unexpected(_place(line, *match.span(1)), message, "one column", remedy, "columns")
    remedy = f"write `=` and one value; a second value is a second `{word}`"
    return _unexpected(Span(line.source, line.end - 2, line.end), message, "expected `=`", remedy)


def _varied_by_sign(match: re.Match[str], line: Span) -> Diagnostic:
    values = re.match(r"\s*(\[[^\[\]\r\n]*\]|[\w.]+(?![\w.\[(]))", line.source.text[line.end : line.end + 100])
    written = values[1] if values else "[1, 2]"
    if written[0] != "[" and ".." not in written:
        written = f"[{written}]"
    sign = "==" if line.text.endswith("==") else "="
    message = f"`{match[1]}` lists the values of a static after `in`, found `{sign}`"
    place = Span(line.source, line.end - len(sign), line.end)
    diagnostic = Diagnostic("E0101", message, place, "expected `in`", remedy=f"write `in {written}`")
    if values is None:
        return diagnostic
    return diagnostic.with_edits(Edit(Span(line.source, place.start, line.end + values.end()), f"in {written}"))


def _settings_in_brackets(match: re.Match[str], line: Span) -> Diagnostic:
    settings = re.compile(r"\[[ \t]*([^\[\]\r\n]*(?:\[[^\[\]\r\n]*\][^\[\]\r\n]*)*?)[ \t]*\]").match(
        line.source.text, line.end - 1
    )
    message = f"the settings of a `{match[1]}` follow `at`, found `[`"
    sign = Span(line.source, line.end - 1, line.end)
    diagnostic = Diagnostic("E0101", message, sign, "expected `at`", remedy="write `at model.d = 64`")
    if settings is None or "=" not in settings[1]:
        return diagnostic
    place = Span(line.source, *settings.span())
    diagnostic = Diagnostic("E0101", message, sign, "expected `at`", remedy=f"write `at {settings[1]}`")
    return diagnostic.with_edits(Edit(place, f" at {settings[1]}"))


def _list_without_brackets(match: re.Match[str], line: Span) -> Diagnostic | None:
    values = _BARE_VALUES.match(line.source.text, line.start + match.start(1))
    if values is None:
        return None
    place = Span(line.source, *values.span())
    message = f"the values that `vary` lists stand in square brackets, found `{match[1]},`"
    return _unexpected(place, message, "not in brackets", f"write `[{place.text}]`", f"[{place.text}]")


def _statics_without_brackets(match: re.Match[str], line: Span) -> Diagnostic | None:
    end = line.start + match.end(2)
    statics = _BARE_STATICS.match(line.source.text, end)
    if statics is None:
        return None
    place, written = Span(line.source, end, statics.end()), _COLON.sub(" = ", statics[1])
    message = f"the statics of `{match[2]}` stand in square brackets"
    remedy = f"write `{match[1]} {match[2]}[{written}]`"
    diagnostic = Diagnostic("E0101", message, Span(line.source, *statics.span(1)), "not in brackets", remedy=remedy)
    return diagnostic.with_edits(Edit(place, f"[{written}]"))


def _sign_before_choice(match: re.Match[str], line: Span) -> Diagnostic:
    before = _CHOICE_BEFORE.search(line.source.text, max(0, line.start - _LONGEST_LINE), line.start)
    if before is not None and len(before["deeper"]) > len(before["indent"]):
        return statics_without_bracket(Span(line.source, *before.span("name")), _place(line, *match.span(1)))
    sign = Span(line.source, line.end - 1, line.end)
    message = f"the name of {_CHOSEN[match[1]]} follows `{match[1]}`, found `{sign.text}`"
    name = re.compile(r"[ \t]*([A-Za-z_][\w.]*)").match(line.source.text, line.end)
    remedy = f"write `{match[1]} {name[1] if name else 'name'}`"
    place = Span(line.source, line.start + len(match[1]), line.end)
    return Diagnostic("E0101", message, sign, "not expected here", remedy=remedy).with_edits(
        Edit(place, "" if line.source.text.startswith((" ", "\t"), line.end) else " ")
    )


def _comma_before_clause(match: re.Match[str], line: Span) -> Diagnostic:
    message = f"expected a setting after `,`, found `{match[2]}`"
    return _unexpected(_place(line, *match.span(1)), message, "not expected here", "delete `,`", "")


def _word_before_number(match: re.Match[str], line: Span) -> Diagnostic:
    word, place = match[1], _place(line, *match.span(1))
    message = f"expected a number or `-`, found `{word}`"
    if word == "mean":
        return _unexpected(place, message, "not a number", "delete it: numbers without `median` are means", "")
    if did_you_mean(word, ("median",)):
        return _unexpected(place, message, "not a number", "did you mean `median`?", "median")
    remedy = f"{_FORM}; `claims median …` if they are medians"
    if word == "median":
        remedy = "write `median` once, before the first number"
    return _unexpected(place, message, "not a number", remedy)


def _deviation_in_brackets(match: re.Match[str], line: Span) -> Diagnostic:
    place = Span(line.source, line.end - 1, line.end)
    return _unexpected(place, "expected `,` or `±`, found `(`", "not expected here", "write a deviation after `±`")


_CHOSEN = {"task": "a task", "model": "a model", "train": "an optimizer"}
_CLAIMS = r"^row\b.*\bclaims\b[^\"{}]*"
# The unexpected token, the line before it, and what is reported.
_FORMS: tuple[tuple[str, str, _Read], ...] = (
    (r'"', r"(?s)[\r\n][ \t]*([A-Za-z_]\w*)\s*$", _misspelt_line),
    (r"[A-Za-z_]", rf"(?s){_CLAIMS}\b(at|best)\s+$", _clause_after_claims),
    (r"[A-Za-z_]", r'^row\s+"([^"]*)"\s+(at|best)\s+$', _row_without_recipe),
    (r'"', r'^row\s+"[^"]*"\s+(\w+)\s*$', _row_with_reason),
    (r"\[$", r'^(row)\s+"[^"]*"\s+\w+\s*$', _settings_in_brackets),
    (r"[A-Za-z_}]", r'^columns\s+(?:"[^"]*"\s+)?([\w.]+)\s*(?:#[^\n]*\n\s*)*$', _columns_without_values),
    (r"[A-Za-z_]", r'^columns?\s+"[^"]*"\s+(averageof)\s+$', _average_without_space),
    (r"\[$", r'^columns\s+(?:"[^"]*"\s+)?([\w.]+)\s*$', _columns_of_group),
    (r"in$", r"(?s)^(row|column|claim)\b.*\bat\b[^{}]*$", _several_values),
    (r"==?$", r"(?s)^(vary|search)\b[^{}]*$", _varied_by_sign),
    (r"", rf"^vary\b(?:[^{{}}\[\]]|\[[^\[\]]*\])*?\bin\s+({_VALUE})\s*,", _list_without_brackets),
    (r",$|[A-Za-z_]", r"^(task|model|train)\s+([A-Za-z_][\w.]*)\s*,?\s*$", _statics_without_brackets),
    (r"[=:]$", r"^(task|model|train)\s*$", _sign_before_choice),
    (r"[0-9-]|median$|of$", r"(?s)\bat\b.*(,)\s*(claims|best)\s*$", _comma_before_clause),
    (r"[0-9]", r'^(?:row|columns?)\b[^"]*"[^"]*"[^"]*\bat\s+$', _number_after_at),
    (r"[0-9]", r'^row\s+"[^"]*"\s+(?!at\b|best\b|claims\b)\w+\s+$', _number_without_claims),
    (r"[0-9]", rf"(?s){_CLAIMS}(?<![\w.])([A-Za-z_]\w*)\s+$", _word_before_number),
    (r"\($", rf"(?s){_CLAIMS}[0-9]\s*$", _deviation_in_brackets),
)
