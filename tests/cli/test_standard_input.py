"""`-` for a program: commands that only read read standard input, and the others say that they do not."""

from pathlib import Path

import pytest

from tests.cli.conftest import MODEL, Command


@pytest.mark.parametrize(
    "command",
    [
        ("check", "FILE"), ("fmt", "FILE", "--diff"), ("viz", "FILE"), ("summary", "FILE"), ("show", "FILE"),
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


@pytest.mark.parametrize("command", ["show", "summary", "diff", "viz"])
def test_a_mistake_in_standard_input_is_one_of_stdin(archlang: Command, folder: Path, command: str) -> None:
    second_file = ["model.arch"] if command == "diff" else []
    result = archlang(command, "-", *second_file, stdin=MODEL.replace("last", "lsat").encode())
    assert result.code == 1
    assert "unknown block `lsat`\n --> <stdin>:2:27\n" in result.err


@pytest.mark.parametrize(
    ("command", "name"),
    [
        (("watch", "-"), "watch"), (("train", "-"), "train"), (("table", "-"), "table"), (("tune", "-"), "tune"),
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
