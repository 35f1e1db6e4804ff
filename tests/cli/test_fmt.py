"""`archlang fmt`: formatted files, output and exit code."""

from pathlib import Path

import pytest

from tests.cli.conftest import BROKEN, GOOD, UGLY, Command

PRETTY = "block layer(h: seq[n, d]) -> seq[n, d] {\n    # why\n    return norm(h)\n}\n"


def test_a_program_is_formatted_in_place_and_once_is_enough(archlang: Command, folder: Path) -> None:
    result = archlang("fmt", "ugly.arch", "good.arch")
    assert (result.code, result.out) == (0, "formatted ugly.arch\n1 changed, 1 unchanged\n")
    assert (folder / "ugly.arch").read_text() == PRETTY
    assert archlang("fmt", "--check", "ugly.arch").code == 0


def test_check_says_which_would_change_and_writes_nothing(archlang: Command, folder: Path) -> None:
    result = archlang("fmt", "--check", "good.arch", "ugly.arch")
    assert (result.code, result.out) == (1, "would format ugly.arch\n1 would change, 1 unchanged\n")
    assert (folder / "ugly.arch").read_text() == UGLY


def test_diff_prints_what_would_change_and_writes_nothing(archlang: Command, folder: Path) -> None:
    result = archlang("fmt", "--diff", "ugly.arch", "good.arch")
    assert result.code == 0
    assert result.out.startswith("--- ugly.arch\n+++ ugly.arch (formatted)\n")
    assert "+block layer(h: seq[n, d])" in result.out
    assert "\\ No newline at end of file\n" in result.out
    assert "good.arch" not in result.out
    assert (folder / "ugly.arch").read_text() == UGLY


def test_a_file_with_syntax_errors_is_unchanged_and_the_others_are_formatted(archlang: Command, folder: Path) -> None:
    result = archlang("fmt", "broken.arch", "ugly.arch")
    assert (result.code, result.out) == (1, "formatted ugly.arch\n1 changed, 0 unchanged, 1 not formatted\n")
    assert "E0101" in result.err
    assert (folder / "broken.arch").read_text() == BROKEN


def test_a_program_with_another_mistake_is_formatted(archlang: Command, folder: Path) -> None:
    assert archlang("fmt", "--check", "bad.arch").code == 0


@pytest.mark.parametrize("line_end", ["\r\n", "\r"])
def test_line_endings_become_line_feeds(archlang: Command, folder: Path, line_end: str) -> None:
    text = f"## What it is for.\n{GOOD}"
    (folder / "good.arch").write_bytes(text.replace("\n", line_end).encode())
    assert archlang("fmt", "good.arch").code == 0
    assert (folder / "good.arch").read_bytes() == text.encode()


def test_the_standard_input_is_formatted_to_the_standard_output(archlang: Command) -> None:
    result = archlang("fmt", "-", stdin=UGLY.encode())
    assert (result.code, result.out, result.err) == (0, PRETTY, "")


def test_the_standard_input_can_be_checked_and_compared(archlang: Command) -> None:
    result = archlang("fmt", "-", "--check", stdin=UGLY.encode())
    assert (result.code, result.out) == (1, "would format <stdin>\n")
    assert archlang("fmt", "-", "--check", stdin=GOOD.encode()).code == 0
    assert archlang("fmt", "-", "--diff", stdin=UGLY.encode()).out.startswith("--- <stdin>\n")


@pytest.mark.parametrize(
    ("stdin", "code"), [(b"\xff", "E0109"), (BROKEN.encode(), "E0101"), (b" " * 2_000_000, "E0110")]
)
def test_a_broken_standard_input_is_a_diagnostic_and_no_output(archlang: Command, stdin: bytes, code: str) -> None:
    result = archlang("fmt", "-", stdin=stdin)
    assert (result.code, result.out) == (1, "")
    assert result.err.startswith(f"error[{code}]")


def test_stdin_is_not_combined_with_files(archlang: Command, folder: Path) -> None:
    result = archlang("fmt", "-", "ugly.arch", stdin=UGLY.encode())
    assert (result.code, result.out) == (2, "")
    assert (folder / "ugly.arch").read_text() == UGLY


def test_a_link_remains_a_link(archlang: Command, folder: Path) -> None:
    (folder / "link.arch").symlink_to("ugly.arch")
    assert archlang("fmt", "link.arch").code == 0
    assert (folder / "link.arch").is_symlink()
    assert (folder / "ugly.arch").read_text() == PRETTY


def test_the_rights_of_a_file_stay(archlang: Command, folder: Path) -> None:
    (folder / "ugly.arch").chmod(0o640)
    archlang("fmt", "ugly.arch")
    assert (folder / "ugly.arch").stat().st_mode & 0o777 == 0o640


def test_a_full_disk_leaves_the_file_as_it_was(
    archlang: Command, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(source: str, target: str, **folders: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.replace", full)
    before = set(folder.iterdir())
    result = archlang("fmt", "ugly.arch")
    assert result.code == 71
    assert (
        result.err
        == "error: `ugly.arch` cannot be written: No space left on device\n  help: the file was not changed\n"
    )
    assert (folder / "ugly.arch").read_text() == UGLY
    assert set(folder.iterdir()) == before


def test_a_byte_order_mark_stays(archlang: Command, folder: Path) -> None:
    (folder / "ugly.arch").write_text(UGLY, "utf-8-sig")
    assert archlang("fmt", "ugly.arch").code == 0
    assert (folder / "ugly.arch").read_bytes() == PRETTY.encode("utf-8-sig")
    assert archlang("fmt", "--check", "ugly.arch").code == 0


def test_a_byte_order_mark_of_standard_input_stays(archlang: Command) -> None:
    for program in (UGLY, PRETTY):
        result = archlang("fmt", "-", stdin=program.encode("utf-8-sig"))
        assert (result.code, result.out, result.err) == (0, f"\ufeff{PRETTY}", "")
    assert archlang("fmt", "-", "--check", stdin=PRETTY.encode("utf-8-sig")).code == 0
