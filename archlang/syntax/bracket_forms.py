"""Forms of other languages, and half forms, in brackets and headers, by an unexpected token in them."""

from __future__ import annotations

import re

from archlang.diagnostics import Diagnostic, Edit
from archlang.diagnostics.edits import insertion
from archlang.diagnostics.names import meant_names
from archlang.diagnostics.percent import share_of
from archlang.syntax.form_place import LONGEST, Form, Place, last_opener, with_remedy
from archlang.syntax.mistakes import quoted
from archlang.syntax.outline import RESERVED

# The kinds of statics, by the words of other languages.
_KINDS = {"int": "int", "float": "float", "bool": "bool", "str": "symbol", "string": "symbol"}
_PERCENTAGE = re.compile(r"(?<![\w.])([0-9]+(?:\.[0-9]+)?)[ \t]*%\Z")
_STATICS_IN_BRACES = re.compile(r"\{([^{}\r\n]+)\}(?=[ \t]*\()")
_INPUTS_AND_CLOSER = re.compile(r"(\([^()\[\]{}\r\n]*\))\)")
_TYPE_BEFORE_NAME = re.compile(r"[ \t]*(\[[^\[\]\r\n]*\])?[ \t]+([A-Za-z_]\w*)(?=[ \t]*[,)=\]])")
_WORD = re.compile(r"\w+")
_OPEN_BRACKET = re.compile(r"\w\[[ \t]*\Z")
_ITEM_OF_ONE_NAME = re.compile(r"[\[,]\s*([A-Za-z_][\w.]*)[ \t]+\Z")
_PARAMETERS = re.compile(r"[ \t]*[:=](?:[^()\[\]{}\r\n]|\[[^()\[\]{}\r\n]*\])*(?P<closer>[\])])")
_NAMED_ITEM = re.compile(r"[^\[\]\r\n=]*,[ \t]*[A-Za-z_][\w.]*[ \t]*=(?!=)")
_BINDS = re.compile(r"[ \t]*[=:](?!=)")
_NAME_AND_COLON = re.compile(r"([A-Za-z_]\w*)(?P<colon>[ \t]*:[ \t]*)\Z")
_NAME_WITH_HYPHENS = re.compile(r"(?<![\w-])([A-Za-z]\w*(?:-[A-Za-z]\w*)+)[ \t]*\Z")
# Numbers and names of statics in parentheses.
_CALL_OF_STATICS = re.compile(r"\b([A-Za-z_][\w.]*)(?P<statics>\(([\w.]+(?:,[ \t]*[\w.]+)*)\))\Z")
_IN = re.compile(r"\bin[ \t]*\Z")
_STATICS_IN_BRACES_OF_LIST = re.compile(r"\{([^{}\r\n]+)\}")
_STATIC = re.compile(r"[A-Za-z_]\w*[ \t]*:[ \t]*(?:int|float|bool|symbol)[ \t]*=[ \t]*\Z")


def _percent(place: Place) -> Diagnostic | None:
    """`claim test.accuracy = 84%` or `lr = 0.1%,`, where the sign is that of a remainder without a second operand."""
    is_sign = place.token.text == "%"
    if not is_sign and ("a value" not in place.expected.phrases or place.token.text not in (",", ")", "]", "}")):
        return None
    end = place.token.end if is_sign else place.after
    number = _PERCENTAGE.search(place.text, max(0, end - LONGEST), end)
    if number is None:
        return None
    share, written = share_of(number[1]), place.span(*number.span())
    return place.unexpected(f"write a fraction: `{share}`", Edit(written, share))


def _statics_in_braces(place: Place) -> Diagnostic | None:
    """`attention{4}(h)`."""
    if place.token.text != "{" or not place.text[place.after - 1 : place.after].isidentifier():
        return None
    statics = _STATICS_IN_BRACES.match(place.text, place.token.start)
    if statics is None or place.after != place.token.start:
        return None
    written = place.span(*statics.span())
    diagnostic = Diagnostic("E0101", "statics stand in square brackets, found `{`", written, "in braces")
    return with_remedy(diagnostic, f"write `[{statics[1]}]`", Edit(written, f"[{statics[1]}]"))


def _inputs_in_statics(place: Place) -> Diagnostic | None:
    """`attention[4(h))`."""
    if place.token.text != "(" or place.around != "[" or "`]`" not in place.expected.phrases:
        return None
    inputs = _INPUTS_AND_CLOSER.match(place.text, place.token.start)
    if inputs is None:
        return None
    closer = place.span(inputs.end() - 1, inputs.end())
    edits = insertion(place.token.source, place.after, "]"), Edit(closer, "")
    return place.unexpected(f"write `]` before `(`, as in `]{inputs[1]}`", *edits)


def _type_before_name(place: Place) -> Diagnostic | None:
    """`(seq[n, d] h)` or `[int heads = 2]` in a signature."""
    name = place.name
    if name is None or "`:`" not in place.expected.phrases or place.around not in ("(", "["):
        return None
    match = _TYPE_BEFORE_NAME.match(place.text, name.end, name.end + LONGEST)
    is_static = place.around == "["
    if match is None or match[2] in RESERVED or bool(match[1]) == is_static:
        return None
    if is_static and name.text not in _KINDS:
        return None
    what = "kind of a static" if is_static else "type of an input"
    written = place.span(name.start, match.end())
    correct = f"{match[2]}: {_KINDS[name.text] if is_static else name.text + match[1]}"
    diagnostic = Diagnostic("E0101", f"the {what} follows its name", written, "before its name")
    return with_remedy(diagnostic, f"write `{correct}`", Edit(written, correct))


def _positions_in_brackets(place: Place) -> Diagnostic | None:
    """`h[:, -1]`."""
    if place.token.text != ":" or place.around != "[" or not _OPEN_BRACKET.search(place.before):
        return None
    return place.unexpected("a block reads positions, such as `last(h)` or `slice[start = 0, length = 4](h)`")


def _second_comma(place: Place) -> Diagnostic | None:
    """`attention[4,, causal = true]`."""
    if place.token.text != "," or place.text[place.after - 1 : place.after] != ",":
        return None
    # A value may be missing between them.
    return place.unexpected("delete the second `,`", Edit(place.span(place.after, place.token.end), ""))


def _list_in_braces(place: Place) -> Diagnostic | None:
    """`where kind in {relu, gelu}`."""
    if place.token.text != "{" or not _IN.search(place.before):
        return None
    items = _STATICS_IN_BRACES_OF_LIST.match(place.text, place.token.start)
    if items is None:
        return place.unexpected("write the list in square brackets")
    written = place.span(*items.span())
    diagnostic = Diagnostic("E0101", "a list stands in square brackets, found `{`", written, "in braces")
    return with_remedy(diagnostic, f"write `[{items[1]}]`", Edit(written, f"[{items[1]}]"))


def _static_in_parentheses(place: Place) -> Diagnostic | None:
    """`(h: seq[n, d], heads: int = 4)`."""
    static = _STATIC.search(place.before)
    if place.around != "(" or static is None or place.expected.phrases != ("a name",):
        return None
    written = " ".join(f"{static[0]}{place.token.text}".split())
    return place.unexpected(f"a static stands in square brackets, before the inputs: `[{written}]`")


def _static_without_kind(place: Place) -> Diagnostic | None:
    """`block layer[heads](h: seq[n, d])`."""
    name = place.name
    if name is None or place.around != "[" or place.token.text not in ("]", ","):
        return None
    if set(place.expected.phrases) != {"`:`", "`=`"}:
        return None
    remedy = f"declare its kind, as in `{name.text}: int`, or its default, as in `{name.text} = 4`"
    return place.unexpected(remedy, insertion(place.token.source, name.end, ": int"))


def _equals_missing(place: Place) -> Diagnostic | None:
    """`adamw[steps 600]`."""
    name, opener = _ITEM_OF_ONE_NAME.search(place.before), last_opener(place.before)
    if place.around != "[" or "`,`" not in place.expected.phrases or name is None or opener is None:
        return None
    if not place.before[opener - 1 : opener].isidentifier():
        return None  # a list
    token = place.token.text
    is_word = token.isidentifier() and token not in ("true", "false")
    has_names = "=" in place.before[opener:] or _NAMED_ITEM.match(place.text, place.token.end) is not None
    if is_word and (token in RESERVED or not has_names):
        return None
    if not (token[0].isalnum() or token[0] in '_"') or _BINDS.match(place.text, place.token.end):
        return None
    edit = insertion(place.token.source, place.after, " =")
    return place.unexpected(f"write `{name[1]} = {token}`", edit)


def _opener_missing(place: Place) -> Diagnostic | None:
    """`block layer heads: int](…) -> …` or `block layer h: seq[n, d]) -> …`."""
    phrases = place.expected.phrases
    if "`(`" not in phrases or "`->`" not in phrases or not place.token.text.isidentifier():
        return None
    rest = _PARAMETERS.match(place.text, place.token.end, place.token.end + LONGEST)
    if rest is None or (rest["closer"] == "]" and "`[`" not in phrases):
        return None
    opener = "[" if rest["closer"] == "]" else "("
    edit = insertion(place.token.source, place.token.start, opener)
    return place.unexpected(f"write `{opener}` before `{place.token.text}`", edit)


def _comma_missing(place: Place) -> Diagnostic | None:
    """`attention[heads causal = true]`."""
    token = place.token.text
    begins_value = token.replace(".", "").isidentifier() or token[0].isdigit() or token[0] == '"'
    if place.around not in ("(", "[") or "`,`" not in place.expected.phrases or not begins_value:
        return None
    if (token in RESERVED and token not in ("true", "false")) or meant_names(token, place.expected.words):
        return None
    rest = _WORD.match(place.text, place.token.end)
    is_named = rest is None and re.compile(r"[ \t]*[=:](?!=)").match(place.text, place.token.end) is not None
    edit = insertion(place.token.source, place.after, ",")
    # The words `drop out` may be one name.
    is_safe = is_named and not re.search(r"[A-Za-z_]\w*\Z", place.text[max(0, place.after - 40) : place.after])
    return place.unexpected(f"write `,` before {quoted(token)}", edit, is_safe=is_safe)


def _default_after_colon(place: Place) -> Diagnostic | None:
    """`model small[d: 32]`."""
    name = _NAME_AND_COLON.search(place.before)
    token = place.token.text
    if name is None or place.around != "[" or not (token[0].isdigit() or token in ("true", "false")):
        return None
    if not all("kind" in phrase for phrase in place.expected.phrases):
        return None
    colon = place.span(place.token.start - len(name["colon"]), place.token.start)
    return place.unexpected(f"write `{name[1]} = {token}`: a kind stands behind `:`", Edit(colon, " = "))


def _hyphen_in_name(place: Place) -> Diagnostic | None:
    """`adamw[weight-decay = 0.1]`."""
    name = _NAME_WITH_HYPHENS.search(place.before)
    if place.token.text != "=" or place.around != "[" or name is None:
        return None
    begin = place.token.start - len(name[0])
    meant = name[1].replace("-", "_")
    edit = Edit(place.span(begin, begin + len(name[1])), meant)
    return place.unexpected(f"write `{meant}`: names have no `-`", edit)


def _statics_before_inputs(place: Place) -> Diagnostic | None:
    """`attention(1)(h)`."""
    call = _CALL_OF_STATICS.search(place.before)
    if place.token.text != "(" or call is None or place.after != place.token.start:
        return None
    begin = place.token.start - len(call["statics"])
    remedy = f"put statics in square brackets: `{call[1]}[{call[3]}](…)`"
    return place.unexpected(remedy, Edit(place.span(begin, place.token.start), f"[{call[3]}]"))


FORMS: tuple[Form, ...] = (
    _percent,
    _statics_in_braces,
    _inputs_in_statics,
    _type_before_name,
    _positions_in_brackets,
    _second_comma,
    _statics_before_inputs,
    _default_after_colon,
    _hyphen_in_name,
    _list_in_braces,
    _static_in_parentheses,
    _static_without_kind,
    _equals_missing,
    _opener_missing,
    _comma_missing,
)
