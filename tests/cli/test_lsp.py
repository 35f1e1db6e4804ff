"""`archlang lsp` without its extra says how to install it."""

import sys

import pytest

from tests.cli.conftest import Command


def test_a_missing_extra_is_an_error_with_the_command_that_installs_it(
    archlang: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delitem(sys.modules, "archlang.editor.server", raising=False)
    monkeypatch.setitem(sys.modules, "lsprotocol", None)
    result = archlang("lsp")
    assert result.code == 71
    assert "`lsp` are not installed" in result.err
    assert "pip install 'archlang[lsp]'" in result.err
