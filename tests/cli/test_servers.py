"""`archlang play` prints the address of its page and ends with Ctrl-C; `archlang lsp` needs its extra."""

import re
import sys
from pathlib import Path

import pytest

from archlang.play import server
from tests.cli.conftest import Command


def test_the_address_with_its_token_is_printed(archlang: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "serve", server.Server.server_close)
    result = archlang("play")
    assert (result.code, result.err) == (0, "")
    assert re.match(r"The playground is at http://127\.0\.0\.1:\d+/#token=[\w-]{43}\n", result.out)


def test_programs_are_beside_no_file_of_the_working_folder(
    archlang: Command, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    Path("mine.arch").write_text("block b(h: seq[n, d]) -> seq[n, d] { return h }\n")
    answers = []

    def ask(started: server.Server) -> None:
        answers.append(started.answer({"method": "check", "text": 'use "./mine.arch"\n'}))
        started.server_close()

    monkeypatch.setattr(server, "serve", ask)
    assert archlang("play").code == 0
    assert "there is no file" in str(answers)


def test_ctrl_c_ends_it(archlang: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(self: server.Server, poll_interval: float) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(server.Server, "serve_forever", interrupt)
    assert archlang("play").code == 130


def test_a_missing_extra_is_an_error_with_the_command_that_installs_it(
    archlang: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delitem(sys.modules, "archlang.editor.server", raising=False)
    monkeypatch.setitem(sys.modules, "lsprotocol", None)
    result = archlang("lsp")
    assert result.code == 71
    assert "`lsp` are not installed" in result.err
    assert "pip install 'archlang[lsp]'" in result.err
