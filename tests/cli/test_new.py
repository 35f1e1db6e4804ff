"""`archlang new` writes files that work at once, and end with what to type next."""

import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import Command


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def commands(out: str) -> list[list[str]]:
    return [shlex.split(line) for line in out.partition("next, type\n")[2].splitlines()]


def test_a_new_project_is_a_folder_of_its_own(archlang: Command, folder: Path) -> None:
    result = archlang("new", "project", "my_idea")
    assert [path.name for path in folder.iterdir()] == ["my_idea"]
    names = {path.name for path in (folder / "my_idea").iterdir()}
    assert names == {"README.md", ".gitignore", "my_idea.arch", "test_my_idea.py"}
    (check, *_, test) = commands(result.out)
    assert archlang(*check[1:]).out == "1 file, no errors\n"
    assert archlang("fmt", "--check", "my_idea").code == 0
    assert test == ["pytest", "my_idea/test_my_idea.py"]
    written = (folder / "my_idea" / "README.md").read_text()
    assert all(f"archlang {command} my_idea.arch" in written for command in ("check", "train", "table"))


@pytest.mark.parametrize("kind", ["block", "task", "recipe"])
def test_new_files_have_no_mistakes(archlang: Command, folder: Path, kind: str) -> None:
    result = archlang("new", kind, "my_idea")
    assert result.code == 0, result.err
    check, *others = commands(result.out)
    checked = archlang(*check[1:])
    assert checked.code == 0, checked.err
    assert "no errors" in checked.out
    assert archlang("fmt", "--check", "my_idea.arch").code == 0
    assert {command[0] for command in others} == {"archlang", "pytest"}


@pytest.mark.parametrize("kind", ["block", "task", "recipe", "project"])
def test_the_next_commands_quote_a_folder_with_a_space(archlang: Command, folder: Path, kind: str) -> None:
    for command in commands(archlang("new", kind, "my_idea", "--folder", "sp ace").out):
        files = [word for word in command if word.endswith((".arch", ".py"))]
        assert all((folder / file).exists() for file in files), command
    assert (folder / "sp ace").exists()


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["block", "task", "recipe", "project"])
def test_every_next_command_works(archlang: Command, folder: Path, kind: str) -> None:
    for command in commands(archlang("new", kind, "my_idea").out):
        if command[0] == "pytest":
            done = subprocess.run([sys.executable, "-m", *command, "-q"], capture_output=True, text=True, check=False)
            assert done.returncode == 0, done.stdout
            continue
        result = archlang(*command[1:])
        assert result.code == 0, (command, result.err)


def test_existing_files_are_not_overwritten(archlang: Command, folder: Path) -> None:
    (folder / "mine.py").write_text("precious")
    result = archlang("new", "block", "mine")
    assert result.code == 1
    assert "mine.py exists" in result.err
    assert [path.name for path in folder.iterdir()] == ["mine.py"]
    assert archlang("new", "block", "mine", "--folder", "other").code == 0
    assert (folder / "other" / "mine.arch").exists()


@pytest.mark.parametrize("name", ["Mine", "1st", "a-b", "../mine", "repeat"])
def test_a_name_that_the_language_does_not_allow_is_refused(archlang: Command, folder: Path, name: str) -> None:
    assert archlang("new", "block", name).code != 0
    assert not list(folder.iterdir())


@pytest.mark.parametrize(
    ("names", "reason"),
    [
        (("torch", "numpy", "json", "pytest", "archlang"), "{0}.py would hide the Python module `{0}`"),
        (("linear", "embed"), "the library has a block `{0}`, which the program uses"),
    ],
)
def test_a_name_that_hides_what_the_program_needs_is_refused(
    names: tuple[str, ...], reason: str, archlang: Command, folder: Path
) -> None:
    for name in names:
        result = archlang("new", "block", name)
        assert result.code == 1
        assert f"`{name}` cannot be a name: {reason.format(name)}" in result.err
        assert not list(folder.iterdir())


@pytest.mark.parametrize(("kind", "name"), [("block", "attention"), ("task", "ctl")])
def test_a_name_of_the_library_is_written_with_a_note(kind: str, name: str, archlang: Command, folder: Path) -> None:
    result = archlang("new", kind, name)
    assert result.code == 0
    assert f"where {name}.arch is used, `{name}` is its {kind}, and not that of the library" in result.out


def test_an_unknown_kind_is_refused(archlang: Command) -> None:
    assert archlang("new", "model", "mine").code == 2
