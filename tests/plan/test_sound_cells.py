"""Cells of a table that had no mistake are not planned again, and the steps of their checks are counted again."""

from collections.abc import Sequence

import pytest

from archlang.editor.document import Document, Memory
from archlang.plan.cells import CellPlanner
from archlang.plan.plan import Plan
from archlang.syntax.tree import Setting
from tests.plan.test_checked_bodies import assert_as_in_a_new_process

TEXT = """block mixer(h: seq[n, d]) -> seq[n, d] {
    return norm(h)
}

model m[d = 8, deep = 1, f: block = norm](x: tokens[n]) -> logits[classes] {
    h = embed[d](x)
    repeat deep { h <- f(h) }
    return h |> last |> linear[classes]
}

recipe first {
    task  ctl
    model m
    train adamw[steps = 10]
}

recipe second from first { model m[d = 16] }

table t {
    row     "A" first
    row     "B" first at model.deep = 2
    row     "C" first at model.f = mixer
    row     "D" second at model.deep = 3
    row     "E" second at model.deep = 4
    columns "Order" test.accuracy at task.order in [forward, backward]
    column  "Ten" test.accuracy[10] at task.order = forward
    column  "Wide" test.accuracy at model.d = 32
}
"""


@pytest.fixture
def planned(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The settings of the cells that are planned."""
    settings: list[str] = []
    plan = CellPlanner.plan

    def record(cells: CellPlanner, recipe: str, at: Sequence[Setting]) -> Plan | None:
        settings.append(f"{recipe} {', '.join(setting.span.text for setting in at)}")
        return plan(cells, recipe, at)

    monkeypatch.setattr(CellPlanner, "plan", record)
    return settings


CHANGES = [
    ("deep = 4", "deep = 5", 5),
    ("deep = 4", "deep = 0.5", 5),
    ('"E"', '"Every"', 2),
    ("d = 32", "d = 64", 7),
    ("test.accuracy[10]", "test.accuracy[11]", 5),
    ("test.accuracy[10]", "test.accuracy[100]", 5),
    ("return norm(h)", "return relu(h)", 5),
    ("d = 16", "d = 24", 7),
    ("return h |>", "return norm(h) |>", 15),
    ("task  ctl", "task  ctl[order = forward]", 15),
]


@pytest.mark.parametrize(("before", "after", "count"), CHANGES)
def test_only_cells_that_a_change_is_about_are_planned(planned: list[str], before: str, after: str, count: int) -> None:
    """Besides them the first cell of each recipe, which computes what the cells of a recipe share."""
    memory = Memory()
    assert Document("t.arch", TEXT, memory=memory).diagnostics == ()
    planned.clear()
    text = TEXT.replace(before, after, 1)
    found = Document("t.arch", text, memory=memory).diagnostics
    assert len(planned) == count
    assert found == Document("t.arch", text).diagnostics


@pytest.mark.parametrize("limit", range(3_000, 13_000, 1_000))
def test_known_cells_count_as_many_steps(monkeypatch: pytest.MonkeyPatch, limit: int) -> None:
    memory = Memory()
    Document("t.arch", TEXT, memory=memory).diagnostics  # noqa: B018  # computes them
    monkeypatch.setattr("archlang.plan.check.MOST_STEPS_WITH_POINTS", limit)
    for before, after, _ in CHANGES:
        # A mistake elsewhere: no recipe is left out of the check as a whole.
        text = TEXT.replace(before, after, 1).replace("task  ctl", "task  ctl[seeed = 1]")
        assert_as_in_a_new_process("t.arch", text, memory)
