"""Every code has a page, whose program has this mistake only; the exact messages are in `bad`."""

import re
from pathlib import Path

import pytest

import archlang
from archlang.errors.render import plain
from archlang.plan.check import check

PAGES = sorted((Path(archlang.__file__).parent / "errors" / "pages").glob("*.md"))
BAD = Path(__file__).parent / "bad"
# Mistakes of a command line or of large programs.
WITHOUT_PROGRAM = {"E0226", "E0227", "E0228", "E0421", "E0603", "E0608", "E0612", "E0614", "W0203"}


def programs(page: Path) -> list[str]:
    return re.findall(r"^```arch\n(.*?)^```", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)


def in_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, page: Path, program: str) -> Path:
    monkeypatch.chdir(tmp_path)
    file = Path(f"{page.stem}.arch")
    file.write_text(program, encoding="utf-8")
    return file


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_failing_program_of_a_page_has_exactly_that_mistake(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    examples = programs(page)
    if page.stem.startswith("E07"):
        return  # reported by `archlang test`: see tests/contracts/test_pages.py
    if page.stem in WITHOUT_PROGRAM or (page.stem.startswith("E01") and not examples):
        assert not examples
        return
    diagnostics = check(in_file(tmp_path, monkeypatch, page, examples[0]))
    assert {diagnostic.code for diagnostic in diagnostics} == {page.stem}
    shown = plain(diagnostics).replace(str(Path(archlang.__file__).parent), "<library>")
    expected_file = BAD / f"{page.stem}.txt"
    if not expected_file.exists():
        expected_file.write_text(shown, encoding="utf-8")
        pytest.fail(f"{expected_file} was missing and is written now: check it, then run the test again")
    assert shown == expected_file.read_text(encoding="utf-8")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_corrected_program_of_a_page_has_no_mistake(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for program in programs(page)[1:]:
        assert check(in_file(tmp_path, monkeypatch, page, program)) == ()


def test_every_code_of_the_compiler_has_a_page() -> None:
    source = Path(archlang.__file__).parent
    codes = {
        code
        for file in (*source.rglob("*mistakes.py"), *source.rglob("messages.txt"), source / "errors" / "log.py")
        for code in re.findall(r"\b([EW]\d{4})\b", file.read_text(encoding="utf-8"))
    }
    assert codes == {page.stem for page in PAGES}
    assert len(codes) >= 40
