"""`archlang explain`: the page of a code."""

from archlang.diagnostics import codes
from tests.cli.conftest import Command


def test_a_code_prints_its_page(archlang: Command) -> None:
    result = archlang("explain", "E0401")
    assert (result.code, result.out) == (0, codes.explain("E0401"))
    assert archlang("explain", "e0401").out == result.out


def test_without_a_code_all_are_listed(archlang: Command) -> None:
    lines = archlang("explain").out.splitlines()
    assert [line.split()[0] for line in lines] == list(codes.titles())
    assert len(lines) >= 40


def test_an_unknown_code_is_guessed(archlang: Command) -> None:
    result = archlang("explain", "E401")
    assert (result.code, result.out) == (2, "")
    assert result.err == "error: there is no code E401\n  help: did you mean E0401?\n"
    assert "`archlang explain` lists all codes" in archlang("explain", "sizes").err
