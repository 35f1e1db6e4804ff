"""Errors of a user's own functions name the file and the line."""

from pathlib import Path

import pytest

from archlang.plugins import PluginError, Plugins
from archlang.plugins.functions import PluginFunction
from archlang.train.stop import Terminated

MINE = """\
number = 3


def half(x):
    return x / 2


def stop(error):
    raise error
"""


@pytest.fixture
def plugins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Plugins:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text(MINE)
    return Plugins.read([tmp_path / "mine.py"])


def test_a_function_is_called(plugins: Plugins) -> None:
    assert PluginFunction.load(plugins, "mine:half", "`rate = mine.half`")(3) == 1.5


def test_an_error_of_a_function_names_its_line(plugins: Plugins) -> None:
    half = PluginFunction.load(plugins, "mine:half", "`rate = mine.half`")
    with pytest.raises(PluginError, match=r"^mine\.py:5 fails: TypeError: unsupported operand"):
        half("x")
    with pytest.raises(PluginError, match=r"^mine\.py fails: TypeError: .*missing 1 required"):
        half()


def test_a_wrong_result_names_the_first_line_of_the_function(plugins: Plugins) -> None:
    half = PluginFunction.load(plugins, "mine:half", "`rate = mine.half`")
    assert half.wrong("returns nan", "return a number").message == "mine.py:4: `rate = mine.half` returns nan"


def test_a_value_that_cannot_be_called_is_refused(plugins: Plugins) -> None:
    with pytest.raises(PluginError, match=r"names `number` of mine\.py, which is not a function"):
        PluginFunction.load(plugins, "mine:number", "`rate = mine.number`")


def test_an_exit_of_a_function_is_an_error_at_its_line(plugins: Plugins) -> None:
    stop = PluginFunction.load(plugins, "mine:stop", "`rate = mine.stop`")
    with pytest.raises(PluginError, match=r"^mine\.py:9 fails: SystemExit: 3"):
        stop(SystemExit(3))


@pytest.mark.parametrize("error", [KeyboardInterrupt(), Terminated(15)])
def test_a_signal_during_a_function_ends_the_command(error: BaseException, plugins: Plugins) -> None:
    stop = PluginFunction.load(plugins, "mine:stop", "`rate = mine.stop`")
    with pytest.raises(type(error)):
        stop(error)
