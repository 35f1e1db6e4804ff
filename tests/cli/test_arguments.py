"""Files, folders, `-` and words that the shell completes, as arguments of commands."""

from pathlib import Path

import pytest
import typer

from archlang.cli.arguments import arch_files
from tests.cli.conftest import GOOD, MODEL, Command


def write(*names: str) -> None:
    for name in names:
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(name).write_text("")


@pytest.mark.parametrize(
    ("files", "named", "programs"),
    [
        ("b.arch a.arch", "b.arch missing.arch a.arch", "b.arch missing.arch a.arch"),  # in the order of their names
        ("b.arch a/c.arch a/b/d.arch a/notes.md", ".", "a/b/d.arch a/c.arch b.arch"),  # those of a folder are sorted
        ("a.arch .venv/lib/b.arch deep/.git/c.arch", ".", "a.arch"),  # without hidden folders, unless one is named
        ("a.arch .venv/lib/b.arch", ".venv", ".venv/lib/b.arch"),
        ("odd.arch/a.arch", ".", "odd.arch/a.arch"),
    ],
)
def test_files_and_folders_name_programs(files: str, named: str, programs: str) -> None:
    write(*files.split())
    assert arch_files([*map(Path, named.split())]) == [*map(Path, programs.split())]


def test_a_folder_without_programs_is_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    Path("empty").mkdir()
    with pytest.raises(typer.Exit) as end:
        arch_files([Path("empty")])
    assert end.value.exit_code == 1
    assert "the folder `empty` contains no .arch file" in capsys.readouterr().err


@pytest.mark.parametrize(
    "command",
    [
        ("check", "FILE"), ("viz", "FILE"), ("summary", "FILE"), ("card", "FILE"), ("show", "FILE"),
        ("show", "FILE", "--tree"), ("show", "FILE", "--lowered"), ("diff", "FILE", "model.arch", "--recipe", "wide"),
        ("diff", "model.arch", "FILE", "--recipe", "wide"),
    ],
    ids=" ".join,
)  # fmt: skip
def test_a_program_of_standard_input_is_read_like_a_file(
    archlang: Command, folder: Path, command: tuple[str, ...]
) -> None:
    of_input, of_file = (
        archlang(*(name if word == "FILE" else word for word in command), stdin=MODEL.encode())
        for name in ("-", "model.arch")
    )
    assert of_input.code == 0, of_input.err
    assert of_input.out.replace("<stdin>", "model.arch") == of_file.out


@pytest.mark.parametrize("command", ["check", "show", "summary", "card", "diff", "viz"])
def test_a_mistake_in_standard_input_is_one_of_stdin(archlang: Command, folder: Path, command: str) -> None:
    second_file = ["model.arch"] if command == "diff" else []
    result = archlang(command, "-", *second_file, stdin=MODEL.replace("last", "lsat").encode())
    assert result.code == 1
    assert "unknown block `lsat`\n --> <stdin>:2:27\n" in result.err


@pytest.mark.parametrize(
    ("command", "name"),
    [
        (("train", "-"), "train"), (("table", "-"), "table"), (("tune", "-"), "tune"),
        (("export", "-", "--out", "m.py"), "export"), (("report", "-"), "report"), (("test", "-"), "test"),
        (("data", "show", "ctl", "--program", "-"), "data show"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)  # fmt: skip
def test_a_command_that_cannot_read_standard_input_says_what_to_do(
    archlang: Command, folder: Path, command: tuple[str, ...], name: str
) -> None:
    result = archlang(*command, stdin=MODEL.encode())
    assert (result.code, result.out) == (2, "")
    assert result.err == (
        f"error: `archlang {name}` does not read standard input\n"
        "  help: save the program as a file, and name the file\n"
    )


def test_standard_input_is_compared_with_a_file(archlang: Command) -> None:
    result = archlang("diff", "-", "-", stdin=MODEL.encode())
    assert result.code == 2
    assert result.err.startswith("error: both programs are `-`\n")


@pytest.mark.parametrize("command", ["check", "fmt"])
@pytest.mark.parametrize(("stdin", "code"), [(b"\xff", "E0109"), (b"block {", "E0101"), (b" " * 2_000_000, "E0110")])
def test_a_standard_input_that_is_no_program_is_a_diagnostic(
    archlang: Command, command: str, stdin: bytes, code: str
) -> None:
    result = archlang(command, "-", stdin=stdin)
    assert (result.code, result.out == "") == (1, command == "fmt")
    assert result.err.startswith(f"error[{code}]")


@pytest.mark.parametrize(
    "words", [("check", "good.arch"), ("fmt", "ugly.arch"), ("check", "--fix"), ("check", "--plugin", "mine.py")]
)
def test_standard_input_is_read_alone(archlang: Command, folder: Path, words: tuple[str, ...]) -> None:
    before = (folder / "ugly.arch").read_text()
    result = archlang(words[0], "-", *words[1:], stdin=GOOD.encode())
    assert (result.code, result.out, (folder / "ugly.arch").read_text()) == (2, "", before)
    assert "`-` cannot be combined with" in result.err


@pytest.mark.parametrize(
    ("words", "completions"),
    [
        (("blocks", "geometric"), {"geometric_attention"}),
        (("blocks", "pan"), {"panm"}),
        (("tasks", "ct"), {"ctl"}),
        (("optimizers", "adam"), {"adam", "adamw"}),
        (("explain", "E050"), {"E0501"}),
        (("new", "b"), {"block"}),
        (("recipes", "gut"), {"gut", "gutlb"}),
    ],
)
def test_a_word_is_completed(
    words: tuple[str, ...], completions: set[str], archlang: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("_ARCHLANG_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", " ".join(["archlang", *words]))
    monkeypatch.setenv("COMP_CWORD", str(len(words)))
    assert completions <= set(archlang().out.split())
