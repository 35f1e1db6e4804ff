"""The tables on the page of measured results are those that archlang prints from the records of the runs."""

import re
import shlex
import sys
from pathlib import Path

import pytest

from archlang.cli.main import main

ROOT = Path(__file__).parent.parent.parent
PAGE = ROOT / "recipes" / "results" / "papers.md"
SECTIONS = re.findall(
    r"^```sh\n(archlang table [^\n]* --no-run --out recipes/results/papers/runs)\n```\n\n(\|.*?)\n\n",
    PAGE.read_text(encoding="utf-8"),
    re.MULTILINE | re.DOTALL,
)


def test_the_page_has_a_section_for_each_record() -> None:
    assert len(SECTIONS) == PAGE.read_text(encoding="utf-8").count("\n## ") - 3


@pytest.mark.parametrize(("command", "table"), SECTIONS, ids=[command.split("/")[-1] for command, _ in SECTIONS])
def test_a_measured_table_is_that_of_its_records(
    command: str, table: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(ROOT)
    monkeypatch.setattr(sys, "argv", [*shlex.split(command), "--format", "markdown"])
    with pytest.raises(SystemExit) as end:
        main()
    assert end.value.code == 0
    assert capsys.readouterr().out.startswith(f"{table}\n")
