"""The parser's tables, made from `arch.lark` once and kept in the user's cache folder."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Literal, TypedDict

from archlang.files.atomic import write_atomically
from archlang.source.cache_folder import cache_folder

if TYPE_CHECKING:
    from lark import Lark

_GRAMMAR = Path(__file__).with_name("arch.lark")


class _Options(TypedDict):
    parser: Literal["lalr"]
    start: list[str]
    keep_all_tokens: bool
    maybe_placeholders: bool


_OPTIONS: _Options = {
    "parser": "lalr",
    "start": ["start", "expression"],
    "keep_all_tokens": True,
    "maybe_placeholders": True,
}


@cache
def grammar() -> Lark:
    """The parser: it starts at `start`, a whole file, or at `expression`."""
    # Imported when the first text is parsed, not with the package.
    from lark import Lark, __version__

    text = _GRAMMAR.read_text(encoding="utf-8")
    key = hashlib.sha256(f"{__version__} {_OPTIONS} {text}".encode()).hexdigest()[:32]
    try:
        place = cache_folder() / "grammar" / f"{key}.json"
    except OSError:
        return Lark(text, **_OPTIONS)
    made = _kept(place)
    if made is None:
        made = Lark(text, **_OPTIONS)
        _keep(made, place)
    return made


def callbacks(builders: Mapping[str, object]) -> dict[Any, Any]:  # Any: lark's rules, and functions of their parts
    """Returns the function of `builders` for each rule; the keys of `builders` are the names of the rules."""
    functions: dict[Any, Any] = grammar()._parse_tree_builder.create_callback(SimpleNamespace(**builders))  # type: ignore[no-untyped-call]  # lark's
    return functions


@cache
def spellings() -> Mapping[str, str]:
    """What stands in a program for each terminal that is always the same."""
    return {item.name: item.pattern.value for item in grammar().terminals if item.pattern.type == "str"}


def _kept(place: Path) -> Lark | None:
    """The tables of a file, which holds data only, unlike lark's own cache: nothing in it can run. None if the file is
    missing or not what was written."""
    from lark import Lark

    try:
        digest, _, text = place.read_text(encoding="ascii").partition("\n")
        if digest != _digest(text):
            return None
        stored = json.loads(text, object_hook=_with_numbers)
        loaded: Lark = Lark._load_from_dict(stored["data"], stored["memo"])  # type: ignore[no-untyped-call]  # lark's
        return loaded
    except Exception:  # Whatever is wrong with the file, the tables can be made from the grammar.
        return None


def _keep(made: Lark, place: Path) -> None:
    from lark.grammar import Rule
    from lark.lexer import TerminalDef

    data, memo = made.memo_serialize([TerminalDef, Rule])
    text = json.dumps({"data": data, "memo": memo})
    try:
        place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_atomically(place, f"{_digest(text)}\n{text}", durable=False)
    except OSError:
        # A folder that cannot be written costs a tenth of a second each time, no more.
        return


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("ascii")).hexdigest()


def _with_numbers(entries: dict[str, Any]) -> dict[str | int, Any]:  # Any: JSON
    # JSON has no numbers as keys; none of the tables' own words is one.
    return {int(key) if key.isdigit() else key: value for key, value in entries.items()}
