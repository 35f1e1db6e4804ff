"""Texts that control neither the terminal nor the writing direction."""

import json
import math
import re
import unicodedata

_TAB = "    "
# Everything that `str.isprintable` might refuse except line feeds, which separate the lines of JSON.
_CANDIDATE = re.compile(r"[^\n\x20-\x7e]")


def visible(text: str) -> str:
    """Replaces each tab by spaces, and each character that controls the terminal or the writing direction by U+FFFD."""
    text = text.replace("\t", _TAB)
    return text if text.isprintable() else "".join(sign if _is_harmless(sign) else "\ufffd" for sign in text)


def visible_lines(text: str) -> str:
    """As `visible`, and keeps line feeds."""
    return "\n".join(map(visible, text.split("\n")))


def json_text(value: object, indent: int | None = 2) -> str:
    """Returns JSON of the exact value, with escapes for characters that control the terminal; on one line if `indent`
    is None. Numbers that are NaN or infinite are null."""
    text = json.dumps(_without_nan(value), indent=indent, ensure_ascii=False, allow_nan=False)
    return _CANDIDATE.sub(lambda match: _escaped(match[0]), text)


def _without_nan(value: object) -> object:
    match value:
        case dict():
            return {key: _without_nan(item) for key, item in value.items()}
        case list() | tuple():
            return [_without_nan(item) for item in value]
        case float() if not math.isfinite(value):
            return None
    return value


def _is_harmless(sign: str) -> bool:
    return sign.isprintable() or unicodedata.category(sign) == "Zs"  # spaces of other widths


def _escaped(sign: str) -> str:
    if sign.isprintable():
        return sign
    # A file name that is not UTF-8 has lone surrogates, which are not valid in JSON.
    return "\ufffd" if "\ud800" <= sign <= "\udfff" else json.dumps(sign)[1:-1]
