"""Claims about two architectures in one picture."""

from __future__ import annotations

from pathlib import Path

import archlang
from archlang.pages.pictures.arrange import arrange
from archlang.pages.pictures.comparison import beside
from archlang.pages.pictures.picture import Box
from archlang.pages.pictures.read import read
from archlang.pages.pictures.write import write

RECIPES = Path(archlang.__file__).parent / "recipes"


def pictures(*sets: str) -> tuple[Box, Box]:
    settings = dict(one.split("=") for one in sets)
    return read(RECIPES / "gut.arch", None, None, {}).picture(), read(
        RECIPES / "gut.arch", None, None, settings
    ).picture()


def marks(box: Box) -> set[tuple[str, str]]:
    return {(one.title, one.mark) for one in box.walk() if one.mark}


def test_an_architecture_beside_itself_has_no_marks() -> None:
    assert not marks(beside(*pictures(), ()))


def test_a_deeper_loop_is_marked_as_changed_on_both_sides() -> None:
    both = beside(*pictures("model.depth=3"), ("depth",))
    assert both.notes == ("depth",)
    assert marks(both) == {("repeat ≤ 4", "changed"), ("repeat ≤ 3", "changed")}


def test_what_is_in_one_of_them_is_new_or_gone() -> None:
    one = read(RECIPES / "gut.arch", None, None, {}).picture()
    other = read(RECIPES / "gutlb.arch", None, None, {}).picture()
    first, second = beside(one, other, ()).boxes
    assert {mark for _, mark in marks(second)} >= {"new"}
    assert ("scan", "new") in marks(second)
    assert "new" not in {mark for _, mark in marks(first)}
    assert "gone" not in {mark for _, mark in marks(second)}


def test_ids_differ_and_every_kind_of_picture_can_be_written(tmp_path: Path) -> None:
    both = beside(*pictures("model.depth=3"), ())
    ids = [box.id for box in both.walk()]
    assert len(ids) == len(set(ids))
    arrange(both)
    for ending in ("html", "svg", "dot", "mmd"):
        write(both, tmp_path / f"both.{ending}")
        assert (tmp_path / f"both.{ending}").read_text()
