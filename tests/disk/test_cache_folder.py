"""The folder of caches."""

import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from archlang.disk.cache_folder import cache_folder, own_cache


def test_the_environment_names_the_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ARCHLANG_CACHE", str(tmp_path))
    assert cache_folder() == tmp_path


def test_the_default_folder_is_the_users_cache_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ARCHLANG_CACHE")
    assert cache_folder().name in ("archlang", "Cache")
    assert cache_folder().is_absolute()


def test_a_missing_home_folder_raises_os_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def homeless(*_: object, **__: object) -> Path:
        raise RuntimeError("no home")

    monkeypatch.delenv("ARCHLANG_CACHE")
    monkeypatch.setattr("archlang.disk.cache_folder.user_cache_path", homeless)
    with pytest.raises(OSError, match="no home folder"):
        cache_folder()


def test_a_folder_of_its_own_is_for_this_user_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ARCHLANG_CACHE", str(tmp_path / "cache"))
    assert own_cache("grammar") == own_cache("grammar") == tmp_path / "cache" / "grammar"
    assert sys.platform == "win32" or (tmp_path / "cache" / "grammar").stat().st_mode & 0o077 == 0


def _of_another_user(folder: Path) -> None:
    folder.mkdir()
    os.chown(folder, 54321, -1)


def _open_to_others(folder: Path) -> None:
    folder.mkdir()
    folder.chmod(0o770)


def _in_an_open_folder(folder: Path) -> None:
    folder.mkdir(mode=0o700)
    folder.parent.chmod(0o777)


def _linked(folder: Path) -> None:
    (folder.parent / "elsewhere").mkdir()
    folder.symlink_to("elsewhere")


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has other owners")
@pytest.mark.parametrize("plant", [_of_another_user, _open_to_others, _in_an_open_folder, _linked, Path.touch])
def test_a_folder_that_another_user_can_have_filled_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, plant: Callable[[Path], None]
) -> None:
    if plant is _of_another_user and os.geteuid() != 0:
        pytest.skip("only root gives files away")
    monkeypatch.setenv("ARCHLANG_CACHE", str(tmp_path))
    plant(tmp_path / "grammar")
    with pytest.raises(OSError, match=r"another user can write it|no folder|exists"):
        own_cache("grammar")
