"""The parser, whose tables are generated from `arch.lark` once and cached in the user's cache folder."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from copy import copy
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from archlang.disk.cache_folder import own_cache
from archlang.disk.folder import write_atomically
from archlang.disk.readable import read_named

if TYPE_CHECKING:
    from lark import Lark

_GRAMMAR = Path(__file__).with_name("arch.lark")
_LARGEST = 1 << 24
"""the largest cache file, in bytes"""


_OPTIONS: dict[str, Any] = {  # Any: lark's options
    "parser": "lalr", "start": ["start", "expression"], "keep_all_tokens": True, "maybe_placeholders": True,
}  # fmt: skip


@cache
def grammar() -> Lark:
    """Returns the parser, which accepts the start rules `start` (a file) and `expression`."""
    # Imported at the first use, because importing lark takes time.
    from lark import Lark, __version__

    text = _GRAMMAR.read_text(encoding="utf-8")
    key = hashlib.sha256(f"{__version__} {_OPTIONS} {text}".encode()).hexdigest()[:32]
    try:
        cache_file = own_cache("grammar") / f"{key}.json"
    except OSError:
        return Lark(text, **_OPTIONS)
    parser = _load(cache_file)
    if parser is None:
        parser = Lark(text, **_OPTIONS)
        _store(parser, cache_file)
    return parser


class Callbacks:
    """The function of `builders` for each rule; the keys of `builders` are the names of the rules.

    Most texts need few of them, so each is made when it is called first. They are found by the identity of the rule,
    because lark computes the hash of a rule from all of its symbols."""

    def __init__(self, builders: Mapping[str, object]) -> None:
        self._builders = SimpleNamespace(**builders)
        self._functions: dict[int, Any] = {}  # Any: lark's functions of parts

    def __contains__(self, terminal: str) -> bool:
        return False  # tokens are not normalized

    def __getitem__(self, rule: Any) -> Any:  # Any: a rule of lark
        function = self._functions.get(id(rule))
        if function is None:
            function = self._functions[id(rule)] = _builders_of_rules()[rule].create_callback(self._builders)[rule]
        return function


@cache
def _builders_of_rules() -> dict[Any, Any]:  # Any: lark's rules and its builders of trees
    of_all = grammar()._parse_tree_builder
    builders = {}
    for rule, wrappers in of_all.rule_builders:
        builders[rule] = copy(of_all)
        builders[rule].rule_builders = [(rule, wrappers)]
    return builders


@cache
def kinds() -> Mapping[str, str]:
    """Returns the terminal of each keyword and sign."""
    return {text: name for name, text in spellings().items()}


@cache
def spellings() -> Mapping[str, str]:
    """Returns the spelling of each terminal that has only one, such as `->` for `ARROW`."""
    return {item.name: item.pattern.value for item in grammar().terminals if item.pattern.type == "str"}


def _load(cache_file: Path) -> Lark | None:
    """Loads a parser from a cache file, or returns None if the file is missing or damaged.

    The file is JSON, because lark's own cache is a pickle, which can run code."""
    from lark import Lark

    try:
        digest, _, text = read_named(cache_file, _LARGEST).decode("ascii").partition("\n")
        if digest != _digest(text):
            return None
        stored = json.loads(text, object_hook=_with_numbers)
        loaded: Lark = Lark._load_from_dict(stored["data"], stored["memo"])  # type: ignore[no-untyped-call]  # lark's
        return loaded
    except Exception:  # a damaged cache file is regenerated
        return None


def _store(parser: Lark, cache_file: Path) -> None:
    from lark.grammar import Rule
    from lark.lexer import TerminalDef

    data, memo = parser.memo_serialize([TerminalDef, Rule])
    text = json.dumps({"data": data, "memo": memo})
    try:
        write_atomically(cache_file, f"{_digest(text)}\n{text}", durable=False)
    except OSError:
        # Without a cache, each process generates the tables in about 0.1 s.
        return


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("ascii")).hexdigest()


def _with_numbers(entries: dict[str, Any]) -> dict[str | int, Any]:  # Any: JSON
    # JSON turns integer keys into strings; no other key of the tables consists of digits.
    return {int(key) if key.isdigit() else key: value for key, value in entries.items()}
