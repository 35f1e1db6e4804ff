"""The maker of the processor."""

from __future__ import annotations

import platform
from collections.abc import Iterator
from pathlib import Path

import pytest

from archlang.kernels.processor import is_made_by


@pytest.fixture(autouse=True)
def asked_anew() -> Iterator[None]:
    is_made_by.cache_clear()
    yield
    is_made_by.cache_clear()


def test_the_maker_is_read_from_the_system(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Path, "read_text", lambda self, encoding: "vendor_id\t: AuthenticAMD\n")
    assert is_made_by("AuthenticAMD")
    assert not is_made_by("GenuineIntel")


def test_python_reports_the_maker_if_the_system_does_not(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(self: Path, encoding: str) -> str:
        raise FileNotFoundError(self)

    monkeypatch.setattr(Path, "read_text", fail)
    monkeypatch.setattr(platform, "processor", lambda: "Intel64 Family 6 Model 158, GenuineIntel")
    assert is_made_by("GenuineIntel")
