"""Claims about two architectures in one picture."""

from __future__ import annotations

from pathlib import Path

import archlang
from archlang.pages.pictures.architecture import read
from archlang.pages.pictures.box import Box
from archlang.pages.pictures.formats import write_picture
from archlang.pages.pictures.placement import place_boxes
from archlang.pages.pictures.side_by_side import side_by_side

RECIPES = Path(archlang.__file__).parent / "recipes"


def pictures(*sets: str) -> tuple[Box, Box]:
    settings = dict(one.split("=") for one in sets)
    return read(RECIPES / "gut.arch", None, None, {}).picture(), read(
        RECIPES / "gut.arch", None, None, settings
    ).picture()


def marks(box: Box) -> set[tuple[str, str]]:
    return {(one.title, one.change) for one in box.walk() if one.change}


def test_an_architecture_beside_itself_has_no_marks() -> None:
    assert not marks(side_by_side(*pictures(), ()))


def test_a_deeper_loop_is_marked_as_changed_on_both_sides() -> None:
    both = side_by_side(*pictures("model.depth=3"), ("depth",))
    assert both.notes == ("depth",)
    assert marks(both) == {("repeat ≤ 4", "changed"), ("repeat ≤ 3", "changed")}


def test_what_is_in_one_of_them_is_new_or_gone() -> None:
    one = read(RECIPES / "gut.arch", None, None, {}).picture()
    other = read(RECIPES / "gutlb.arch", None, None, {}).picture()
    first, second = side_by_side(one, other, ()).boxes
    assert {mark for _, mark in marks(second)} >= {"new"}
    assert ("scan", "new") in marks(second)
    assert "new" not in {mark for _, mark in marks(first)}
    assert "gone" not in {mark for _, mark in marks(second)}


def test_ids_differ_and_every_kind_of_picture_can_be_written(tmp_path: Path) -> None:
    both = side_by_side(*pictures("model.depth=3"), ())
    ids = [box.id for box in both.walk()]
    assert len(ids) == len(set(ids))
    place_boxes(both)
    for ending in ("html", "svg", "dot", "mmd"):
        write_picture(both, tmp_path / f"both.{ending}")
        assert (tmp_path / f"both.{ending}").read_text()
