"""Operating-system errors name the path that they are about."""

from pathlib import Path

import pytest

from archlang.disk.os_errors import os_errors_as


def test_an_os_error_becomes_the_reported_error(tmp_path: Path) -> None:
    with (
        pytest.raises(ValueError, match="missing: No such file or directory"),
        os_errors_as(lambda path, reason: ValueError(f"{path.name}: {reason}"), tmp_path / "missing"),
    ):
        (tmp_path / "missing").read_text()


def test_other_errors_are_unchanged(tmp_path: Path) -> None:
    with pytest.raises(KeyError), os_errors_as(lambda path, reason: ValueError(reason), tmp_path):
        raise KeyError
