"""The page of each contract code shows a block with only that mistake, and a corrected block."""

import re
from pathlib import Path

import pytest

import archlang
from archlang.contracts import Verdict, hold, program_blocks
from archlang.errors.render import plain
from archlang.plugins import Plugins

PAGES = sorted((Path(archlang.__file__).parent / "errors" / "pages").glob("E07*.md"))
EXPECTED = Path(__file__).parent.parent / "corpus" / "bad"


def fences(page: Path, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)


def verdicts(page: Path, which: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[Verdict]:
    """Returns the verdicts of the first (0) or the corrected (-1) block of a page; a correction may omit a fence."""
    monkeypatch.chdir(tmp_path)
    program = Path(f"{page.stem}.arch")
    program.write_text(fences(page, "arch")[which], encoding="utf-8")
    plugin = tmp_path / "mine.py"
    plugin.write_text(fences(page, "python")[which], encoding="utf-8")
    (block,) = program_blocks(program)
    return hold(block, plugins=Plugins.read([plugin]))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_failing_block_has_only_the_mistake_of_its_page(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mistakes = [verdict.mistake for verdict in verdicts(page, 0, monkeypatch, tmp_path) if verdict.mistake is not None]
    assert {mistake.code for mistake in mistakes} == {page.stem}, plain(mistakes)
    expected = EXPECTED / f"{page.stem}.txt"
    if not expected.exists():
        expected.write_text(plain(mistakes), encoding="utf-8")
        pytest.fail(f"{expected} was missing; review the new file")
    assert plain(mistakes) == expected.read_text(encoding="utf-8")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_corrected_block_has_no_mistake(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mistakes = [verdict.mistake for verdict in verdicts(page, -1, monkeypatch, tmp_path) if verdict.mistake is not None]
    assert not mistakes, plain(mistakes)
