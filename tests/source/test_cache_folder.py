"""The folder of caches."""

from pathlib import Path

import pytest

from archlang.source.cache_folder import cache_folder


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
    monkeypatch.setattr("archlang.source.cache_folder.user_cache_path", homeless)
    with pytest.raises(OSError, match="no home folder"):
        cache_folder()
