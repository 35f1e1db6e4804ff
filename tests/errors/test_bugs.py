"""The internal error that is kept for `archlang bug`."""

from pathlib import Path

import pytest

from archlang.errors.bugs import keep_bug, kept_bug


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("ARCHLANG_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def test_the_last_error_is_kept_with_its_program() -> None:
    assert kept_bug() is None
    keep_bug(RuntimeError("first"))
    keep_bug(ValueError("second"), text="model m")
    report = kept_bug() or ""
    assert "first" not in report
    assert "```arch\nmodel m\n```" in report
    assert "ValueError: second" in report


def test_what_is_kept_is_bounded(tmp_path: Path) -> None:
    program = tmp_path / "large.arch"
    program.write_text("x" * 1_000_000)
    keep_bug(ValueError("y" * 1_000_000), [program, tmp_path / "missing.arch"])
    assert len(kept_bug() or "") < 50_000


def test_a_cache_that_cannot_be_written_keeps_nothing(cache: Path) -> None:
    cache.write_text("a file")
    keep_bug(ValueError())
    assert kept_bug() is None
