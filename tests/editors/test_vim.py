"""The files for Vim and Neovim."""

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from editors.__main__ import files
from tests.editor.parsed_words import shipped_files, words
from tests.syntax.conftest import EVERYTHING

FOLDER = Path(__file__).parents[2] / "editors" / "vim"
# Writes the name of the group of each place that a file lists.
SCRIPT = """\
set nocompatible encoding=utf-8
let &runtimepath = '{folder},' . &runtimepath
filetype plugin on
syntax on
edit {program}
let names = map(json_decode(readfile('{places}')[0]), {{_, place -> synIDattr(synID(place[0], place[1], 1), 'name')}})
call writefile([json_encode([&filetype, &commentstring, names])], '{result}')
quitall!
"""


@pytest.mark.parametrize("path", files(), ids=lambda path: path.name)
def test_the_files_are_those_that_the_grammar_makes(path: Path) -> None:
    assert path.read_text(encoding="utf-8") == files()[path], "run `python -m editors`"


def test_vim_reads_a_word_as_a_keyword_where_the_parser_does(tmp_path: Path) -> None:
    assert differences(EVERYTHING, tmp_path) == []


@pytest.mark.slow
@pytest.mark.parametrize("file", shipped_files(), ids=lambda file: f"{file.parent.name}-{file.stem}")
def test_vim_reads_each_word_of_a_shipped_file_as_the_parser_does(file: Path, tmp_path: Path) -> None:
    assert differences(file.read_text(encoding="utf-8"), tmp_path) == []


def differences(text: str, folder: Path) -> list[str]:
    """Returns the words that only the parser or only Vim reads as a keyword."""
    vim = shutil.which("vim")
    if vim is None:
        pytest.skip("vim is not installed")
    expected = [*words(text)]
    places = [place(text, start) for start, _, _ in expected]
    (folder / "program.arch").write_text(text, encoding="utf-8")
    (folder / "places.json").write_text(json.dumps(places), encoding="utf-8")
    script = {
        name: folder / file
        for name, file in (("program", "program.arch"), ("places", "places.json"), ("result", "result.json"))
    }
    (folder / "script.vim").write_text(SCRIPT.format(folder=FOLDER, **script), encoding="utf-8")
    command = [vim, "-u", "NONE", "-i", "NONE", "-n", "-e", "-s", "-S", str(folder / "script.vim")]
    subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, check=True, timeout=300)
    filetype, comments, groups = json.loads((folder / "result.json").read_text(encoding="utf-8"))
    assert (filetype, comments) == ("arch", "# %s")
    return [
        f"line {line}: {word} is {group}"
        for (line, _), (_, word, is_keyword), group in zip(places, expected, groups, strict=True)
        if (group in ("archKeyword", "archConstant")) != is_keyword
    ]


def place(text: str, start: int) -> tuple[int, int]:
    """Returns the line of a place and its column in bytes, as Vim counts them."""
    before = text[:start]
    return before.count("\n") + 1, len(before.rpartition("\n")[2].encode()) + 1
