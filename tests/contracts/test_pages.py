"""The page of each code of contracts has a block with that mistake and no other, and a corrected one."""

import re
from pathlib import Path

import pytest

import archlang
from archlang.contracts import Verdict, hold, importable, program_blocks
from archlang.diagnostics.render import plain

PAGES = sorted((Path(archlang.__file__).parent / "diagnostics" / "pages").glob("E07*.md"))
WORDS = Path(__file__).parent.parent / "corpus" / "bad"


def fences(page: Path, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)


def verdicts(page: Path, which: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[Verdict]:
    """Those of the first block of a page, or of its last: what a correction leaves alone is as it was."""
    monkeypatch.chdir(tmp_path)
    program = Path(f"{page.stem}.arch")
    program.write_text(fences(page, "arch")[which], encoding="utf-8")
    plugin = tmp_path / "mine.py"
    plugin.write_text(fences(page, "python")[which], encoding="utf-8")
    (block,) = program_blocks(program)
    with importable([plugin]):
        return hold(block)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_failing_block_of_a_page_has_exactly_that_mistake(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = [one.mistake for one in verdicts(page, 0, monkeypatch, tmp_path) if one.mistake is not None]
    assert {mistake.code for mistake in found} == {page.stem}, plain(found)
    words = WORDS / f"{page.stem}.txt"
    if not words.exists():
        words.write_text(plain(found), encoding="utf-8")
        pytest.fail(f"{words} was not there; read it, and keep it if the words are right")
    assert plain(found) == words.read_text(encoding="utf-8")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_corrected_block_of_a_page_has_no_mistake(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = [one.mistake for one in verdicts(page, -1, monkeypatch, tmp_path) if one.mistake is not None]
    assert not found, plain(found)
