"""The command line of the benchmarks: its filters, its list and its tables."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

import benchmarks.__main__ as command
from benchmarks import GROUPS
from benchmarks.measure import Case, Group, Setting, Sides

CPU = Setting(torch.device("cpu"), tiny=True)


def _cases(setting: Setting) -> Iterator[Case]:
    def fail() -> Sides:
        raise AssertionError("it is built")

    yield Case("one thing", "another", lambda: Sides(lambda: None, lambda: None))
    yield Case("something else", "another", fail)
    yield Case("something large", "another", fail, memory=20)


@pytest.fixture(autouse=True)
def threads() -> Iterator[None]:
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


@pytest.fixture
def two_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    on_gpus = Group("others", "Only for GPUs.", _cases, devices=("cuda",))
    monkeypatch.setattr(command, "GROUPS", (Group("things", "Of no size.", _cases), on_gpus))


@pytest.mark.usefixtures("two_groups")
def test_a_list_builds_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    command.main(["--list"])
    assert capsys.readouterr().out.splitlines() == [
        "things: one thing, beside another (ms)",
        "things: something else, beside another (ms)",
        "things: something large, beside another (ms)",
    ]


@pytest.mark.usefixtures("two_groups")
def test_only_matching_cases_are_built_and_reported_in_every_format(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    files = [tmp_path / "results.json", tmp_path / "results.md"]
    command.main(
        ["ONE", "large", "--seconds", "0", "--rounds", "1", "--json", str(files[0]), "--markdown", str(files[1])]
    )
    out = capsys.readouterr().out
    table = files[1].read_text(encoding="utf-8")
    assert "### things\n\nOf no size.\n\n| case | beside | unit |" in out
    assert "| one thing | another | ms |" in table
    assert "| something large | another | ms | left out: would need about 20 GiB |" in table
    assert "threads 2" in table
    report = json.loads(files[0].read_text(encoding="utf-8"))
    assert set(report["machine"]) >= {"threads", "processor", "capability", "commit", "torch", "gpu"}
    (group,) = report["groups"]
    assert [result["case"] for result in group["results"]] == ["one thing", "something large"]
    assert group["results"][0]["rounds"] == 1


@pytest.mark.usefixtures("two_groups")
@pytest.mark.parametrize("name", ["nothing like that", "others"])
def test_a_filter_without_matches_is_an_error(name: str) -> None:
    with pytest.raises(SystemExit, match="no case on cpu matches"):
        command.main([name])


def test_a_missing_device_is_an_error_of_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(SystemExit, match="^no CUDA device is available: omit --device$"):
        command.main(["--device", "cuda"])


def test_no_two_cases_compare_the_same() -> None:
    names = [(case.name, case.beside) for group in GROUPS for case in group.cases(Setting(torch.device("cpu")))]
    assert len(names) == len(set(names))
