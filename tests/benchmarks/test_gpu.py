"""The stages of `python -m benchmarks.gpu` end in time, keep their results, and are repeated if they have failed."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks import gpu
from benchmarks.gpu import Stage


def stage(name: str, code: str, longest: float = 60.0, part: float = 1.0) -> Stage:
    return Stage(name, (sys.executable, "-c", code), longest, part)


@pytest.fixture
def staged(monkeypatch: pytest.MonkeyPatch) -> list[Stage]:
    """The stages of the command; a test adds its own."""
    own: list[Stage] = []

    def stages(_device: str, _out: Path) -> Iterator[Stage]:
        return iter(own)

    monkeypatch.setattr(gpu, "stages", stages)
    return own


def states(folder: Path) -> dict[str, str]:
    stored = json.loads((folder / "stages.json").read_text(encoding="utf-8"))
    return {ended["name"]: ended["state"] for ended in stored["stages"]}


def run(folder: Path, minutes: float = 2.0) -> dict[str, str]:
    gpu.main(["--device", "cpu", "--minutes", str(minutes), "--out", str(folder)])
    return states(folder)


def test_a_stage_that_fails_is_written_down_and_does_not_stop_the_next(staged: list[Stage], tmp_path: Path) -> None:
    staged += [stage("first", "print('why'); raise SystemExit(3)"), stage("second", "print('fine')")]
    assert run(tmp_path) == {"first": "failed", "second": "passed"}
    page = (tmp_path / "README.md").read_text(encoding="utf-8")
    assert "## first: failed" in page
    assert "why" in page
    assert "fine" in page


def test_a_second_call_repeats_only_what_has_not_passed(staged: list[Stage], tmp_path: Path) -> None:
    count = f"open({str(tmp_path / 'count')!r}, 'a').write('x')"
    staged += [stage("first", count), stage("second", f"{count}; raise SystemExit(1)")]
    run(tmp_path)
    run(tmp_path)
    assert (tmp_path / "count").read_text(encoding="utf-8") == "xxx"


def test_a_stage_over_its_time_is_interrupted_so_that_it_can_write(staged: list[Stage], tmp_path: Path) -> None:
    code = "import time\ntry:\n    time.sleep(60)\nexcept KeyboardInterrupt:\n    print('written')"
    staged += [stage("long", code, longest=2.0)]
    assert run(tmp_path) == {"long": "out of time"}
    assert "written" in (tmp_path / "README.md").read_text(encoding="utf-8")


def test_a_stage_does_not_begin_when_its_part_of_the_time_is_over(staged: list[Stage], tmp_path: Path) -> None:
    staged += [stage("speed", "", part=0.0), stage("training", "")]
    assert run(tmp_path) == {"speed": "not begun", "training": "passed"}


def test_a_folder_with_other_contents_is_refused(staged: list[Stage], tmp_path: Path) -> None:
    (tmp_path / "stages.json").write_text("[]", encoding="utf-8")
    with pytest.raises(SystemExit, match="choose another folder"):
        run(tmp_path)


def test_without_a_gpu_the_rehearsal_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    with pytest.raises(SystemExit, match="--device cpu rehearses every stage"):
        gpu.main(["--out", str(tmp_path)])


def test_trainings_on_a_gpu_ask_for_nothing_that_cuda_graphs_refuse(tmp_path: Path) -> None:
    trainings = [each.command for each in gpu.stages("cuda", tmp_path) if "archlang" in each.command]
    assert len(trainings) == 2
    for command in trainings:
        assert "--graphs" in command
        assert "--precision" not in command  # they need 32 bits


@pytest.mark.slow
def test_every_stage_passes_in_a_rehearsal_on_the_cpu(tmp_path: Path) -> None:
    assert set(run(tmp_path, 60).values()) == {"passed"}
