"""The grammar and its cached tables."""

import json
import logging
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import lark
import pytest

from archlang.errors import Source
from archlang.syntax import grammar as module
from archlang.syntax.parser import parse_tolerantly
from archlang.syntax.tokens import pattern
from tests.sampling import one_in

TEXT = Path(module.__file__).with_name("arch.lark").read_text(encoding="utf-8")


@pytest.fixture(autouse=True)
def fresh_grammar() -> Iterator[None]:
    clear()
    yield
    clear()


def clear() -> None:
    for cached in (module.grammar, module.spellings, module.kinds, pattern):
        cached.cache_clear()


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("ARCHLANG_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def parses() -> bool:
    program, diagnostics = parse_tolerantly(Source("x.arch", "use a"))
    return len(program.items) == 1 and diagnostics == ()


def test_grammar_has_no_conflicts(caplog: pytest.LogCaptureFixture) -> None:
    # Lark settles conflicts between shifting and reducing by itself, and tells only its log.
    level = lark.logger.level
    lark.logger.setLevel(logging.DEBUG)
    lark.logger.addHandler(caplog.handler)
    try:
        lark.Lark(TEXT, **{**module._OPTIONS, "debug": True})
    finally:
        lark.logger.removeHandler(caplog.handler)
        lark.logger.setLevel(level)
    assert "conflict" not in caplog.text.lower()


def test_every_rule_has_a_builder() -> None:
    from archlang.syntax.builder import TreeBuilder

    names = {rule.alias or rule.origin.name for rule in lark.Lark(TEXT, **module._OPTIONS).rules}
    # Rules with a question mark that never have more than one part keep it as it is.
    passed_on = {
        "item", "block_clause", "type", "manner", "statement", "part", "expression", "atom", "stage", "configured",
        "bound",
    }  # fmt: skip
    passed_on |= {"disjunction", "conjunction", "negation", "comparison", "sum", "product", "negative"}
    passed_on |= {"static_argument", "spread"}
    built = set(TreeBuilder(Source("empty.arch", "")).rules)
    assert {name for name in names if not name.startswith("_")} - built <= passed_on  # an inlined rule has a `_`
    assert built <= names


def test_tables_are_cached(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert parses()
    (cache_file,) = (folder / "grammar").iterdir()
    assert cache_file.stat().st_size > 1000
    assert (folder / "grammar").stat().st_mode & 0o077 == 0

    module.grammar.cache_clear()
    monkeypatch.setattr(module, "_store", lambda *_: pytest.fail("the tables were generated again"))
    assert parses()


DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "empty": lambda data: b"",
    "cut": lambda data: data[: len(data) // 2],
    "changed": lambda data: data.replace(b"NAME", b"MANE", 1),
    "binary": lambda data: b"\xff" * 100,
    "pickle": lambda data: b"cposix\nsystem\n(S'false'\ntR.",
}


@pytest.mark.parametrize("damage", one_in(5, DAMAGES.values()), ids=DAMAGES)
def test_damaged_tables_are_generated_again(folder: Path, damage: Callable[[bytes], bytes]) -> None:
    assert parses()
    (cache_file,) = (folder / "grammar").iterdir()
    cache_file.write_bytes(damage(cache_file.read_bytes()))
    clear()
    assert parses()
    assert module._load(cache_file) is not None


def _plant(cache_file: Path) -> None:
    """Writes tables that read every text as a comment."""
    text = cache_file.read_text().partition("\n")[2]
    tables = json.loads(text)
    (comment,) = (item for item in tables["memo"].values() if item.get("name") == "COMMENT")
    comment["pattern"]["value"] = "(?s:.+)"
    planted = json.dumps(tables)
    cache_file.write_text(f"{module._digest(planted)}\n{planted}")


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has other owners")
def test_tables_in_a_folder_that_others_can_write_are_not_used(folder: Path) -> None:
    assert parses()
    (cache_file,) = (folder / "grammar").iterdir()
    _plant(cache_file)
    clear()
    assert not parses()  # whoever owns the folder decides
    (folder / "grammar").chmod(0o777)
    clear()
    assert parses()


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes")
def test_a_pipe_in_place_of_the_tables_does_not_wait(folder: Path) -> None:
    assert parses()
    (cache_file,) = (folder / "grammar").iterdir()
    cache_file.unlink()
    os.mkfifo(cache_file)
    clear()
    assert parses()


def test_the_parser_works_without_a_writable_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("ARCHLANG_CACHE", str(tmp_path / "file" / "below"))
    assert parses()


def test_a_full_disk_leaves_no_temporary_file(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object, **_folders: object) -> None:
        raise OSError("no space left")

    monkeypatch.setattr("os.replace", full)
    assert parses()
    assert list((folder / "grammar").iterdir()) == []
