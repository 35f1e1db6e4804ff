"""`archlang check` and `fmt`: corrected and formatted files, output and exit code."""

import gc
import json
from pathlib import Path

import pytest

from tests.cli.conftest import BAD, BROKEN, GOOD, UGLY, Command

PRETTY = "block layer(h: seq[n, d]) -> seq[n, d] {   # why\n    return norm(h)\n}\n"


def test_a_program_without_mistakes_ends_with_0(archlang: Command, folder: Path) -> None:
    result = archlang("check", "good.arch")
    assert (result.code, result.out, result.err) == (0, "1 file, no errors\n", "")


def test_a_mistake_is_printed_to_stderr_with_exit_code_1(archlang: Command, folder: Path) -> None:
    result = archlang("check", "good.arch", "bad.arch")
    assert (result.code, result.out) == (1, "2 files, 1 error\n")
    assert result.err == (
        "error[E0202]: unknown block `nrom`\n"
        " --> bad.arch:2:12\n"
        "2 |     return nrom(h)\n"
        "  |            ^^^^ no such block\n"
        "  help: did you mean `norm`?\n"
        "\n"
    )


def test_a_warning_ends_with_0(archlang: Command, folder: Path) -> None:
    text = "block layer(h: seq[n, d]) -> seq[n, d] {\n    a = norm(h)\n    return h\n}\n"
    (folder / "unused.arch").write_text(text)
    result = archlang("check", "unused.arch")
    assert (result.code, result.out) == (0, "1 file, 1 warning\n")
    assert "warning[W0201]" in result.err


def test_a_folder_checks_all_programs_in_it(archlang: Command, folder: Path) -> None:
    (folder / "deep" / "er").mkdir(parents=True)
    (folder / "good.arch").rename(folder / "deep" / "er" / "good.arch")
    (folder / "deep" / "notes.txt").write_text("no program")
    assert archlang("check", "deep").out == "1 file, no errors\n"


def test_a_mistake_in_a_shared_file_is_reported_once(archlang: Command, folder: Path) -> None:
    for name in ("one", "two"):
        (folder / f"{name}.arch").write_text('use "./bad.arch"\n')
    assert archlang("check", "one.arch", "two.arch", "bad.arch").err.count("E0202") == 1


def test_json_lists_the_diagnostics(archlang: Command, folder: Path) -> None:
    result = archlang("check", "--json", "bad.arch")
    assert (result.code, result.err) == (1, "")
    (entry,) = json.loads(result.out)
    assert (entry["code"], entry["file"], entry["remedy"]) == ("E0202", "bad.arch", "did you mean `norm`?")
    assert json.loads(archlang("check", "--json", "good.arch").out) == []


@pytest.mark.parametrize(
    "content",
    [b"\xff\xfe\x00", b"block \x00", b"(" * 100_000, b"9" * 10_000, "block \u202e\ud800".encode("utf-8", "replace")],
    ids=["no UTF-8", "a zero byte", "brackets", "a giant number", "turned writing"],
)
def test_any_bytes_have_a_diagnostic(archlang: Command, folder: Path, content: bytes) -> None:
    (folder / "odd.arch").write_bytes(content)
    result = archlang("check", "odd.arch")
    assert result.code == 1
    assert result.err.startswith("error[E01")


@pytest.mark.parametrize("name", ["nothing.arch", "empty", "/dev/null", "x" * 300])
def test_an_unreadable_path_is_an_error_with_a_remedy(archlang: Command, folder: Path, name: str) -> None:
    (folder / "empty").mkdir()
    result = archlang("check", name)
    assert result.code == 1
    assert name in result.err
    assert result.err.startswith("error")
    assert "help: " in result.err


def test_garbage_is_collected_as_before_when_a_check_is_over(archlang: Command, folder: Path) -> None:
    thresholds = gc.get_threshold()
    archlang("check", "good.arch", "bad.arch")
    assert gc.get_threshold() == thresholds


def test_fix_corrects_the_file_and_says_what_it_changed(archlang: Command, folder: Path) -> None:
    result = archlang("check", "--fix", "bad.arch", "good.arch")
    assert (result.code, result.err) == (0, "")
    assert result.out == "corrected bad.arch:2:12: unknown block `nrom`\n2 files, 1 correction, no errors left\n"
    assert (folder / "bad.arch").read_text(encoding="utf-8") == GOOD


def test_fix_keeps_a_byte_order_mark_and_line_ends(archlang: Command, folder: Path) -> None:
    bad = (folder / "bad.arch").read_text()
    assert archlang("check", "--fix", "bad.arch").code == 0
    corrected = (folder / "bad.arch").read_text()
    (folder / "bad.arch").write_bytes(bad.replace("\n", "\r\n").encode("utf-8-sig"))
    assert archlang("check", "--fix", "bad.arch").code == 0
    assert (folder / "bad.arch").read_bytes() == corrected.replace("\n", "\r\n").encode("utf-8-sig")


def test_fix_with_json_prints_only_what_is_left(archlang: Command, folder: Path) -> None:
    (folder / "bad.arch").write_text(BAD.replace("(h)\n", "(h + other)\n"), encoding="utf-8")
    result = archlang("check", "--fix", "--json", "bad.arch")
    assert [(each["code"], each["safe"]) for each in json.loads(result.out)] == [("E0201", False)]


def test_fix_leaves_used_files_alone(archlang: Command, folder: Path) -> None:
    (folder / "user.arch").write_text('use "./used.arch"\n', encoding="utf-8")
    used = GOOD.replace("norm(h)", "norm(h);")
    (folder / "used.arch").write_text(used, encoding="utf-8")
    assert archlang("check", "--fix", "user.arch").code == 1
    assert (folder / "used.arch").read_text(encoding="utf-8") == used


def test_a_program_of_standard_input_uses_files_of_the_working_folder(archlang: Command, folder: Path) -> None:
    user = b'use "./good.arch"\nblock b(h: seq[n, d]) -> seq[n, d] { return layer(h) }\n'
    assert archlang("check", "-", stdin=user).code == 0
    result = archlang("check", "-", stdin=user.replace(b"./good.arch", b"../good.arch"))
    assert result.err.startswith("error[E0233]")


def test_a_program_is_formatted_in_place_and_once_is_enough(archlang: Command, folder: Path) -> None:
    result = archlang("fmt", "ugly.arch", "good.arch")
    assert (result.code, result.out) == (0, "formatted ugly.arch\n1 changed, 1 unchanged\n")
    assert (folder / "ugly.arch").read_text() == PRETTY
    assert archlang("fmt", "--check", "ugly.arch").code == 0


def test_check_says_which_would_change_and_writes_nothing(archlang: Command, folder: Path) -> None:
    result = archlang("fmt", "--check", "good.arch", "ugly.arch")
    assert (result.code, result.out) == (1, "would format ugly.arch\n1 would change, 1 unchanged\n")
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


@pytest.mark.parametrize(
    ("text", "option", "expected"),
    [(UGLY, (), (0, PRETTY)), (UGLY, ("--check",), (1, "would format <stdin>\n")), (GOOD, ("--check",), (0, ""))],
)
def test_the_standard_input_is_formatted_or_checked(
    text: str, option: tuple[str, ...], expected: tuple[int, str], archlang: Command
) -> None:
    result = archlang("fmt", "-", *option, stdin=text.encode())
    assert (result.code, result.out) == expected


def test_a_link_remains_a_link(archlang: Command, folder: Path) -> None:
    (folder / "link.arch").symlink_to("ugly.arch")
    assert archlang("fmt", "link.arch").code == 0
    assert (folder / "link.arch").is_symlink()
    assert (folder / "ugly.arch").read_text() == PRETTY


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
    for program in (UGLY, PRETTY):
        result = archlang("fmt", "-", stdin=program.encode("utf-8-sig"))
        assert (result.code, result.out, result.err) == (0, f"\ufeff{PRETTY}", "")
    for place, read in (("ugly.arch", b""), ("-", PRETTY.encode("utf-8-sig"))):
        assert archlang("fmt", "--check", place, stdin=read).code == 0
