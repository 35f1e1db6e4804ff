"""Neovim accepts corrections and renames a block, as a person does."""

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from archlang.plan.check import check
from tests.corpus.test_edits import failing_program
from tests.editor.test_server import MAIN, NAMED, TEN, USED

SCRIPT = Path(__file__).with_name("neovim.lua")
pytestmark = pytest.mark.slow


def in_neovim(folder: Path, **session: object) -> dict[str, Any]:  # Any: JSON
    """Runs a session of `neovim.lua` in a folder, and returns its result."""
    program = shutil.which("nvim")
    if program is None:
        pytest.skip("Neovim is not installed")
    file = folder / "session.json"
    command = [sys.executable, "-m", "archlang", "lsp"]
    file.write_text(json.dumps({"command": command, "folder": str(folder), **session}), encoding="utf-8")
    arguments = ["--headless", "-u", "NONE", "-i", "NONE", "-n", "--cmd", f"let $ARCHLANG_SESSION = '{file}'"]
    subprocess.run([program, *arguments, "-c", f"luafile {SCRIPT}"], check=True, capture_output=True, timeout=600)
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


def test_a_block_is_renamed_over_three_files(tmp_path: Path) -> None:
    files = {"used.arch": USED, "main.arch": MAIN, "named.arch": NAMED}
    for name, text in files.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    in_neovim(tmp_path, rename={"file": "used.arch", "line": 1, "column": 7, "name": "doubled"})
    for name, text in files.items():
        assert (tmp_path / name).read_text(encoding="utf-8") == text.replace("twice", "doubled")
        assert check(tmp_path / name) == ()
