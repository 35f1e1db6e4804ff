"""Neovim accepts corrections and renames a block, as a person does."""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from archlang.plan.check import check
from tests.corpus.test_edits import failing_program
from tests.editor.test_server import MAIN, NAMED, USED

ROOT = Path(__file__).parents[2]
SCRIPT = Path(__file__).with_name("neovim.lua")
TEN = ("E0101", "E0102", "E0202", "E0212", "E0214", "E0224", "E0301", "E0306", "E0434", "E0502")
pytestmark = pytest.mark.slow


DOCUMENTED = re.search(r"^```lua\n(.*?)^```", (ROOT / "docs" / "editors.md").read_text(encoding="utf-8"), re.M | re.S)
assert DOCUMENTED is not None
# How the documentation starts the server, each with the first version of Neovim that can do so.
PLUGIN = f"vim.opt.runtimepath:append({str(ROOT / 'editors' / 'vim')!r})"
STARTS = [
    pytest.param(PLUGIN, (0, 7), id="plugin"),
    pytest.param(f"vim.lsp.enable = nil\n{PLUGIN}", (0, 8), id="plugin before 0.11"),
    pytest.param(DOCUMENTED[1], (0, 11), id="init.lua"),
]


def in_neovim(
    folder: Path, start: str, first_version: tuple[int, int], **session: object
) -> dict[str, Any]:  # Any: JSON
    """Runs a session of `neovim.lua` in a folder, and returns its result."""
    program = shutil.which("nvim")
    if program is None:
        pytest.skip("Neovim is not installed")
    if (version := version_of(program)) < first_version:
        pytest.skip(f"Neovim {version[0]}.{version[1]} is older than {first_version[0]}.{first_version[1]}")
    command = folder / "bin" / "archlang"
    command.parent.mkdir()
    command.write_text(
        f'#!/bin/sh\nPYTHONPATH={shlex.quote(str(ROOT))} exec {shlex.quote(sys.executable)} -m archlang "$@"\n'
    )
    command.chmod(0o755)
    file = folder / "session.json"
    file.write_text(json.dumps({"folder": str(folder), **session}), encoding="utf-8")
    configuration = folder / "init.lua"
    configuration.write_text(start, encoding="utf-8")
    environment = {
        **os.environ, "ARCHLANG_SESSION": str(file), "PATH": f"{command.parent}{os.pathsep}{os.environ['PATH']}"
    }  # fmt: skip
    arguments = [program, "--headless", "-u", str(configuration), "-i", "NONE", "-n", "-c", f"luafile {SCRIPT}"]
    subprocess.run(arguments, env=environment, stdin=subprocess.DEVNULL, check=True, capture_output=True, timeout=600)
    result: dict[str, Any] = json.loads((folder / "result.json").read_text(encoding="utf-8"))
    assert "failure" not in result, result["failure"]
    return result


def version_of(program: str) -> tuple[int, int]:
    """Returns the version of Neovim."""
    printed = subprocess.run([program, "--version"], check=True, capture_output=True, text=True).stdout
    version = re.match(r"NVIM v(\d+)\.(\d+)", printed)
    assert version is not None, printed
    return int(version[1]), int(version[2])


@pytest.mark.parametrize(("start", "first_version"), STARTS)
def test_ten_mistakes_are_mended_by_accepting_the_offered_edit(
    start: str, first_version: tuple[int, int], tmp_path: Path
) -> None:
    for code in TEN:
        (tmp_path / f"{code}.arch").write_text(failing_program(code), encoding="utf-8")
    result = in_neovim(tmp_path, start, first_version, mistakes=[f"{code}.arch" for code in TEN])
    assert result["servers"] == 1
    assert [each["code"] for each in result["corrected"]] == [*TEN]
    for code, each in zip(TEN, result["corrected"], strict=True):
        (tmp_path / f"{code}.arch").write_text(each["text"], encoding="utf-8")
        assert [mistake for mistake in check(tmp_path / f"{code}.arch") if mistake.is_error] == []


@pytest.mark.parametrize(("start", "first_version"), STARTS)
def test_a_block_is_renamed_over_three_files(start: str, first_version: tuple[int, int], tmp_path: Path) -> None:
    files = {"used.arch": USED, "main.arch": MAIN, "named.arch": NAMED}
    for name, text in files.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    rename = {"file": "used.arch", "line": 1, "column": 7, "name": "doubled"}
    in_neovim(tmp_path, start, first_version, rename=rename)
    for name, text in files.items():
        assert (tmp_path / name).read_text(encoding="utf-8") == text.replace("twice", "doubled")
        assert check(tmp_path / name) == ()
