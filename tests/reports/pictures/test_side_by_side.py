"""Two architectures in one picture."""

from pathlib import Path

import archlang
from archlang.compile import compile_named
from archlang.plan.from_file import plan_recipe
from archlang.reports.pictures.box import Box
from archlang.reports.pictures.changes import side_by_side
from archlang.reports.pictures.formats import write_picture
from archlang.reports.pictures.picture import draw
from archlang.reports.pictures.placement import place_boxes

RECIPES = Path(archlang.__file__).parent / "recipes"


def picture(file: str, **sets: str) -> Box:
    settings = {name.replace("_", "."): value for name, value in sets.items()}
    return draw(plan_recipe(RECIPES / file, sets=settings).graph)


def marks(box: Box) -> set[tuple[str, str]]:
    return {(inner.title, inner.change) for inner in box.walk() if inner.change}


def test_an_architecture_beside_itself_has_no_marks() -> None:
    assert not marks(side_by_side(picture("gut.arch"), picture("gut.arch"), ()))


def test_a_deeper_loop_is_marked_as_changed_on_both_sides() -> None:
    both = side_by_side(picture("gut.arch"), picture("gut.arch", model_depth="3"), ("depth",))
    assert both.notes == ("depth",)
    assert marks(both) == {("repeat ≤ 4", "changed"), ("repeat ≤ 3", "changed")}


def test_boxes_of_one_architecture_are_new_or_gone() -> None:
    before, after = side_by_side(picture("gut.arch"), picture("gutlb.arch"), ()).boxes
    assert {change for _, change in marks(after)} >= {"new"}
    assert ("scan", "new") in marks(after)
    assert "new" not in {change for _, change in marks(before)}
    assert "gone" not in {change for _, change in marks(after)}


def test_a_stack_that_becomes_a_repeat_is_one_changed_box(tmp_path: Path) -> None:
    def drawn(loop: str) -> Box:
        file = tmp_path / f"{loop}.arch"
        file.write_text(
            "model m(x: tokens[n]) -> logits[n, vocab] {\n    h = embed[8](x)\n"
            f"    {loop} 3 {{ h <- norm(h + feedforward[16](h)) }}\n    return linear[vocab](h)\n}}\n"
        )
        return draw(compile_named(file, None, None, {"vocab": "5"}))

    both = side_by_side(drawn("stack"), drawn("repeat"), ())
    assert marks(both) == {("stack × 3", "changed"), ("repeat × 3", "changed")}


def test_ids_are_distinct_and_every_format_can_be_written(tmp_path: Path) -> None:
    both = side_by_side(picture("gut.arch"), picture("gut.arch", model_depth="3"), ())
    ids = [box.id for box in both.walk()]
    assert len(ids) == len(set(ids))
    place_boxes(both)
    for suffix in ("html", "svg", "mmd"):
        write_picture(both, tmp_path / f"both.{suffix}")
        assert (tmp_path / f"both.{suffix}").read_text()
