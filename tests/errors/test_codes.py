"""Every diagnostic code has a page."""

import re

import pytest

from archlang.errors import codes


def test_every_code_has_a_title_in_order() -> None:
    titles = codes.titles()
    assert list(titles) == sorted(titles)
    assert titles["E0103"] == "unclosed bracket"
    assert all(re.fullmatch(r"[EW]\d{4}", code) and title for code, title in titles.items())


def test_a_page_begins_with_its_code_and_title() -> None:
    for code, title in codes.titles().items():
        assert codes.explain(code).startswith(f"# {code}: {title}\n\n")


def test_there_is_no_page_for_an_unknown_code() -> None:
    with pytest.raises(KeyError):
        codes.explain("../../etc/passwd")
