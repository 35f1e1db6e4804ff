"""`archlang export`: errors of the command line."""

from pathlib import Path

import pytest

from tests.cli.conftest import Command


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("model.arch", "-o", "model.txt"), 1, "no suffix of an export"),
        (("folder", "-o", "model.py", "--recipe", "r"), 2, "omit --model, --recipe and --set"),
        (("model.arch",), 2, "--out"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_impossible_requests_are_errors(
    archlang: Command, folder: Path, arguments: tuple[str, ...], code: int, words: str
) -> None:
    (folder / "folder").mkdir()
    result = archlang("export", *arguments)
    assert (result.code, result.out) == (code, "")
    assert words in result.err
