"""Forms of other languages, and half forms, in lines of recipes and tables, by an unexpected token in them."""

from __future__ import annotations

import re

from archlang.diagnostics import Diagnostic, Edit
from archlang.syntax.form_place import Form, Place, with_remedy

_SPACE = re.compile(r"(?:\s|#[^\r\n]*)*+")
# `and` between settings, and the name of the second.
_AND_BEFORE_SETTING = re.compile(r"(?P<sign>[ \t]+and)[ \t]+[A-Za-z_][\w.]*[ \t]*\Z")
_QUOTED_NAME = re.compile(r'"([A-Za-z_]\w*)"')
_REST_OF_LINE = re.compile(r"(?::[A-Za-z_]\w*)?(?:[ \t,]+[\w.]+)*(?=[ \t]*(?:#|\r|\n|\}|$))")
_END_OF_LINE = re.compile(r"[ \t]*(?:#[^\r\n]*)?(?:\r|\n)")
_TEST_LINE = re.compile(r"\btest[ \t]+([A-Za-z_]\w*)[ \t]*\Z")
_ONE_STATIC = re.compile(r"\[([^\[\]{}\r\n,]+=[^\[\]{}\r\n,]+)\]")
_BODY = re.compile(r"\s*\{")
_EXTENDS = ("extends", "inherits", "of", "on", "is")


def _and_between_settings(place: Place) -> Diagnostic | None:
    """`at model.d = 64 and seed = 1`."""
    word = _AND_BEFORE_SETTING.search(place.before)
    if place.token.text != "=" or not place.is_in_recipe or place.around in ("(", "[") or word is None:
        return None
    begin = place.token.start - len(word[0])
    written = place.span(begin, begin + len(word["sign"]))
    diagnostic = Diagnostic("E0101", "`and` joins conditions, not settings", written, "between two settings")
    return with_remedy(diagnostic, "write `,`", Edit(written, ","))


def _order_for_binder(place: Place) -> Diagnostic | None:
    """`claim test.accuracy > 0.9`, or `claim test.accuracy in 0.9..1.0`."""
    is_order = place.token.text in ("<", "<=", ">", ">=", "in") and {"`=`", "`[`"} <= set(place.expected.phrases)
    if not place.is_in_recipe or not is_order:
        return None
    return place.unexpected("write `=` and the number that was published", Edit(place.token, "="))


def _equality_for_binder(place: Place) -> Diagnostic | None:
    """`at model.d == 64`."""
    if place.token.text != "==" or "`=`" not in place.expected.phrases:
        return None
    return place.unexpected("write `=`", Edit(place.token, "="), is_safe=True)


def _values_for_one(place: Place) -> Diagnostic | None:
    """`test task.length in [32, 64]`."""
    if place.token.text != "in" or not place.is_in_recipe or place.expected.phrases != ("`=`",):
        return None
    return place.unexpected("write `=` and one value: only `vary` and `search` take several")


def _name_in_quotes(place: Place) -> Diagnostic | None:
    """`task "ctl"`."""
    name = _QUOTED_NAME.fullmatch(place.token.text)
    if name is None or place.expected.phrases != ("a name",):
        return None
    return place.unexpected(f"write `{name[1]}` without quotes", Edit(place.token, name[1]), is_safe=True)


def _text_without_quotes(place: Place) -> Diagnostic | None:
    """`claim test.accuracy = 0.9 from paper`."""
    if place.expected.phrases != ("a string",) or not place.token.text.isidentifier():
        return None
    rest = _REST_OF_LINE.match(place.text, place.token.end)
    words = place.token if rest is None else place.span(place.token.start, rest.end())
    written = f'"{words.text.rstrip()}"'
    return place.unexpected(f"write it in quotes: `{written}`", Edit(words, written))


def _model_in_brackets(place: Place) -> Diagnostic | None:
    """`test model[steps = 8]`."""
    written = _TEST_LINE.search(place.before)
    statics = _ONE_STATIC.match(place.text, place.token.start)
    if place.token.text != "[" or not place.is_in_recipe or written is None or statics is None:
        return None
    name = place.span(place.token.start - len(written[1]), statics.end())
    correct = f"model.{statics[1].strip()}"
    return place.unexpected(f"write `test {correct}`", Edit(name, correct))


def _second_claim(place: Place) -> Diagnostic | None:
    """`claim test.accuracy = 0.9, iid.accuracy = 0.8 from "p"`."""
    is_path = place.token.text.replace(".", "").isidentifier() and "." in place.token.text
    if not place.is_in_recipe or not is_path or "from" not in place.expected.words:
        return None
    if place.text[place.after - 1 : place.after] != ",":
        return None
    return place.unexpected("write a line `claim` for each metric, each with its source")


def _comma_before_body(place: Place) -> Diagnostic | None:
    """`recipe b from a, {`."""
    if place.token.text != "," or "`{`" not in place.expected.phrases:
        return None
    if _SPACE.match(place.text, place.token.end) is None or not _BODY.match(place.text, place.token.end):
        return None
    return place.unexpected("delete it", Edit(place.token, ""), is_safe=True)


def _paths_together(place: Place) -> Diagnostic | None:
    """`vary model.d, model.heads in [[16, 2], [32, 4]]`."""
    if place.token.text != "," or not place.is_in_recipe or place.expected.phrases != ("`in`",):
        return None
    return place.unexpected("write the values after each path, as in `model.d in [16, 32], model.heads in [2, 4]`")


def _comma_after_line(place: Place) -> Diagnostic | None:
    """`task ctl,` in a recipe."""
    if place.token.text != "," or not place.is_in_recipe or place.around != "{":
        return None
    if _END_OF_LINE.match(place.text, place.token.end) is None:
        return None
    return place.unexpected("delete it: a line of its own ends without a comma", Edit(place.token, ""), is_safe=True)


def _recipe_that_extends(place: Place) -> Diagnostic | None:
    """`recipe b extends a {`."""
    if place.token.text not in _EXTENDS or "from" not in place.expected.words:
        return None
    return place.unexpected("write `from`", Edit(place.token, "from"), is_safe=True)


def _deviation(place: Place) -> Diagnostic | None:
    """`claim test.accuracy = 0.98 +/- 0.01`."""
    if "`±`" not in place.expected.phrases or not place.text.startswith("+/-", place.token.start):
        return None
    sign = Edit(place.span(place.token.start, place.token.start + 3), "±")
    return place.unexpected("write `±`, or `+-`", sign, is_safe=True)


FORMS: tuple[Form, ...] = (
    _and_between_settings,
    _order_for_binder,
    _equality_for_binder,
    _values_for_one,
    _name_in_quotes,
    _text_without_quotes,
    _model_in_brackets,
    _second_claim,
    _comma_before_body,
    _paths_together,
    _comma_after_line,
    _recipe_that_extends,
    _deviation,
)
