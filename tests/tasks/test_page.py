"""docs/tasks.md lists every task and every metric."""

from pathlib import Path

import pytest

from archlang.tasks.kit.metrics import MEANINGS
from archlang.tasks.kit.task import Kind
from tests.tasks.every import NAMES, build

PAGE = (Path(__file__).parents[2] / "docs" / "tasks.md").read_text(encoding="utf-8")
ROWS = [[cell.strip() for cell in line.strip("|").split("|")] for line in PAGE.splitlines() if line.startswith("| ")]


@pytest.mark.parametrize("name", NAMES)
def test_a_task_is_listed_with_its_kind_and_its_splits(name: str) -> None:
    task = build(name)
    beyond = [split for split in task.split_names() if split not in task.in_distribution]
    row = [f"`{name}`", task.kind.value, task.breakdown, ", ".join(task.in_distribution), ", ".join(beyond)]
    assert row in ROWS, f"write in docs/tasks.md: | {' | '.join(row)} |"


def test_every_kind_and_metric_is_explained() -> None:
    explained = {row[0]: row[1] for row in ROWS}
    assert {kind.value for kind in Kind} <= set(explained)
    assert {name: explained.get(f"`{name}`") for name in MEANINGS} == MEANINGS
