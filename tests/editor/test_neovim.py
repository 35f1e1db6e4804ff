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
from tests.editor.test_server import MAIN, NAMED, TEN, USED

ROOT = Path(__file__).parents[2]
SCRIPT = Path(__file__).with_name("neovim.lua")
pytestmark = pytest.mark.slow


DOCUMENTED = re.search(r"^```lua\n(.*?)^```", (ROOT / "docs" / "editors.md").read_text(encoding="utf-8"), re.M | re.S)
assert DOCUMENTED is not None
# How the documentation starts the server, by lines of `init.lua` and by the plugin.
STARTS = {"init.lua": DOCUMENTED[1], "plugin": f"vim.opt.runtimepath:append({str(ROOT / 'editors' / 'vim')!r})"}


def in_neovim(folder: Path, start: str = "init.lua", **session: object) -> dict[str, Any]:  # Any: JSON
    """Runs a session of `neovim.lua` in a folder, and returns its result."""
    program = shutil.which("nvim")
    if program is None:
        pytest.skip("Neovim is not installed")
    command = folder / "bin" / "archlang"
    command.parent.mkdir()
    command.write_text(
        f'#!/bin/sh\nPYTHONPATH={shlex.quote(str(ROOT))} exec {shlex.quote(sys.executable)} -m archlang "$@"\n'
    )
    command.chmod(0o755)
    file = folder / "session.json"
    file.write_text(json.dumps({"folder": str(folder), **session}), encoding="utf-8")
    configuration = folder / "init.lua"
    configuration.write_text(f"if vim.lsp.enable then\n{STARTS[start]}\nend\n", encoding="utf-8")
    environment = {
        **os.environ, "ARCHLANG_SESSION": str(file), "PATH": f"{command.parent}{os.pathsep}{os.environ['PATH']}"
    }  # fmt: skip
    arguments = [program, "--headless", "-u", str(configuration), "-i", "NONE", "-n", "-c", f"luafile {SCRIPT}"]
    subprocess.run(arguments, env=environment, stdin=subprocess.DEVNULL, check=True, capture_output=True, timeout=600)
    result: dict[str, Any] = json.loads((folder / "result.json").read_text(encoding="utf-8"))
    assert "failure" not in result, result["failure"]
    return result


def test_ten_mistakes_are_mended_by_accepting_the_offered_edit(tmp_path: Path) -> None:
    for code in TEN:
        (tmp_path / f"{code}.arch").write_text(failing_program(code), encoding="utf-8")
    result = in_neovim(tmp_path, mistakes=[f"{code}.arch" for code in TEN])
    assert [each["code"] for each in result["corrected"]] == [*TEN]
    for code, each in zip(TEN, result["corrected"], strict=True):
        (tmp_path / f"{code}.arch").write_text(each["text"], encoding="utf-8")
        assert [mistake for mistake in check(tmp_path / f"{code}.arch") if mistake.is_error] == []


@pytest.mark.parametrize("start", STARTS)
def test_a_block_is_renamed_over_three_files(start: str, tmp_path: Path) -> None:
    files = {"used.arch": USED, "main.arch": MAIN, "named.arch": NAMED}
    for name, text in files.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    in_neovim(tmp_path, start, rename={"file": "used.arch", "line": 1, "column": 7, "name": "doubled"})
    for name, text in files.items():
        assert (tmp_path / name).read_text(encoding="utf-8") == text.replace("twice", "doubled")
        assert check(tmp_path / name) == ()
