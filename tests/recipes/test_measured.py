"""The pages of the recipes' results have the numbers of the recorded runs and of the commands that print them."""

import json
import re
import shlex
import sys
from pathlib import Path
from statistics import mean
from typing import Any

import pytest

from archlang.cli.main import main

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "recipes" / "results"
# The recipe of each section of the page, and what its test is over, which tells baselines apart.
UP_TO_512, UP_TO_1024, FUNCTIONS = [128, 256, 512], [128, 256, 512, 1024], None
SECTIONS = {
    "`gutlb.arch`": ("gutlb", UP_TO_1024),
    "`tlb.arch`": ("tlb", UP_TO_1024),
    "transformer, rotary (`baseline` of `gutlb.arch` and of `tlb.arch`)": ("baseline", UP_TO_1024),
    "`gut.arch`": ("gut", UP_TO_512),
    "transformer, xPos (`baseline` of `gut.arch`)": ("baseline", UP_TO_512),
    "`ndr.arch`": ("ndr", FUNCTIONS),
    "`baseline` of `ndr.arch`": ("baseline", FUNCTIONS),
}


def numbers(results: dict[str, Any], groups: list[str]) -> list[list[float]]:
    """Returns the percentages of the groups of a run."""
    by_group = {
        group: measured.get("metrics", measured)
        for split in ("valid", "iid", "test")
        for group, measured in results["splits"][split]["groups"]["length"].items()
    }
    kinds = ("accuracy", "sequence_accuracy")
    return [[100 * by_group[group][kind] for kind in kinds if kind in by_group[group]] for group in groups]


@pytest.mark.parametrize("title", SECTIONS)
def test_the_page_of_the_quick_recipes_has_the_recorded_numbers(title: str) -> None:
    runs = {}
    for folder in (RESULTS / "quick" / "runs").iterdir():
        run = json.loads((folder / "run.json").read_text("utf-8"))
        if (run["recipe"], run["task"]["statics"].get("test_length")) == SECTIONS[title]:
            runs[run["seed"]] = json.loads((folder / "results.json").read_text("utf-8"))
    assert sorted(runs) == [1, 2, 3, 4, 5]
    page = (RESULTS / "quick.md").read_text("utf-8")
    section = page.partition(f"\n## {title}\n")[2].partition("\n## ")[0]
    rows = [[cell.strip() for cell in line.strip("| ").split("|")] for line in section.strip().splitlines()]
    groups = [cell.strip("*") for cell in rows[0][1:]]
    expected = {str(seed): numbers(runs[seed], groups) for seed in sorted(runs)}
    expected["mean"] = [
        [mean(values) for values in zip(*cells, strict=True)] for cells in zip(*expected.values(), strict=True)
    ]
    for row in rows[2:]:
        shown = [[float(number) for number in re.findall(r"[\d.]+", cell)] for cell in row[1:]]
        assert shown == [[pytest.approx(value, abs=0.051) for value in cell] for cell in expected.pop(row[0])]
    assert expected == {}


PAPERS, QUICK, LANGUAGE, FIELD = (
    (RESULTS / f"{page}.md").read_text(encoding="utf-8") for page in ("papers", "quick", "language", "field")
)
RECORDS = r"--(?:out|also) recipes/results/\w+(?:/runs|\.jsonl)"
TABLE = rf"^```sh\n(archlang table [^\n]* --no-run {RECORDS})\n```\n\n(\|.*?)\n\n"
COMMANDS = re.findall(TABLE, PAPERS + QUICK + LANGUAGE + FIELD, re.MULTILINE | re.DOTALL)


def test_the_pages_have_a_section_for_each_record() -> None:
    sections = [
        PAPERS.count("\n## ") - 3,
        QUICK.count("\n## ") - len(SECTIONS) - 1,
        LANGUAGE.count("\n## Records\n"),
        1,
    ]
    assert len(COMMANDS) == sum(sections)


@pytest.mark.parametrize(("command", "table"), COMMANDS, ids=[command.split()[2] for command, _ in COMMANDS])
def test_a_measured_table_is_that_of_its_records(
    command: str, table: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(ROOT)
    monkeypatch.setattr(sys, "argv", [*shlex.split(command), "--format", "markdown"])
    with pytest.raises(SystemExit) as end:
        main()
    assert end.value.code == 0
    assert capsys.readouterr().out.startswith(f"{table}\n")
