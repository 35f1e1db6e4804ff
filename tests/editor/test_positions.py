"""Columns count units of UTF-16, as the protocol of editors says."""

import pytest

from archlang.editor.positions import offset, position
from archlang.errors import Source

SOURCE = Source("p.arch", "# α 𝄞 x\nh = 1\r\nlast")


@pytest.mark.parametrize("place", range(len(SOURCE.text) + 1))
def test_an_offset_comes_back_from_its_position(place: int) -> None:
    if SOURCE.text[place - 1 : place] != "\r":
        assert offset(SOURCE, *position(SOURCE, place)) == place


def test_a_sign_outside_of_the_basic_plane_takes_two_columns() -> None:
    assert position(SOURCE, SOURCE.text.index("x")) == (0, 7)


def test_a_column_behind_the_end_of_a_line_is_its_end() -> None:
    assert offset(SOURCE, 1, 99) == SOURCE.text.index("\r")
    assert offset(SOURCE, 99, 0) == len(SOURCE.text)
