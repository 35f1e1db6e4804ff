"""The stages of benchmarks.gpu end in time, and keep their results; trainings and tables can be timed."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from archlang.plan.from_file import plan_recipe
from benchmarks import gpu, scale, together, training
from benchmarks.gpu import Stage
from benchmarks.points import Cost, cost


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


def test_named_stages_run_alone(staged: list[Stage], tmp_path: Path) -> None:
    staged += [stage("first", ""), stage("halting as CUDA graphs", "")]
    gpu.main(["cuda graphs", "--device", "cpu", "--minutes", "2", "--out", str(tmp_path)])
    assert states(tmp_path) == {"halting as CUDA graphs": "passed"}


def test_a_folder_with_other_contents_is_refused(staged: list[Stage], tmp_path: Path) -> None:
    (tmp_path / "stages.json").write_text("[]", encoding="utf-8")
    with pytest.raises(SystemExit, match="choose another folder"):
        run(tmp_path)


def test_without_a_gpu_the_rehearsal_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    with pytest.raises(SystemExit, match="--device cpu rehearses every stage"):
        gpu.main(["--out", str(tmp_path)])


def test_what_no_run_has_measured_comes_after_the_checks_and_before_trainings(tmp_path: Path) -> None:
    names = [each.name for each in gpu.stages("cuda", tmp_path)]
    assert names[:3] == ["kernels", "tests of the GPU", "peak memory"]
    assert (
        names.index("steps of NDR, table lookup") == names.index("linear recurrences beside flash-linear-attention") + 1
    )
    assert names[-7].startswith("NDR on table lookup, forward")
    assert len(set(names)) == len(names)


def test_trainings_on_a_gpu_ask_for_nothing_that_cuda_graphs_refuse(tmp_path: Path) -> None:
    trainings = [each.command for each in gpu.stages("cuda", tmp_path) if "archlang" in each.command]
    assert len(trainings) == 7
    for command in trainings:
        assert "--eager" not in command


@pytest.mark.slow
def test_every_stage_passes_in_a_rehearsal_on_the_cpu(tmp_path: Path) -> None:
    assert set(run(tmp_path, 60).values()) == {"passed"}


SMALL = {"train.batch": "8", "model.d": "8", "task.test_size": "8"}


def test_the_bare_loop_and_train_can_be_timed_on_the_recipe() -> None:
    plan = plan_recipe(training.RECIPE, sets={**SMALL, "train.steps": "2", "model.steps": "2"})
    assert training.bare(plan) > 0
    assert training.full(plan) > 0


def test_seeds_can_be_timed_separately_and_stacked_or_the_reason_why_not_is_raised() -> None:
    few = {**together.NEVER, **SMALL, "model.layers": "1"}
    plans = [plan_recipe(together.RECIPE, "baseline", sets={**few, "seed": seed}) for seed in "12"]
    assert together.alone(plans[0], "cpu", "32", 1, 2) > 0
    assert together.together(plans, "cpu", "32", 1, 2) > 0
    few["train.batch_of"] = "tokens"
    plans = [plan_recipe(together.RECIPE, "baseline", sets={**few, "seed": seed}) for seed in "12"]
    with pytest.raises(SystemExit, match="cannot train together"):
        together.together(plans, "cpu", "32", 1, 2)


def test_the_overhead_of_an_engine_is_the_time_of_its_workers_outside_training() -> None:
    assert Cost(points=10, workers=2, elapsed=6.0, training=11.0).overhead == pytest.approx(0.1)


def test_the_start_of_a_training_on_texts_is_measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scale, "_ROWS", 100)
    (tmp_path / "scale.arch").write_text(scale.PROGRAM)
    assert scale.write_texts(tmp_path / "texts.txt", 15_000) == 200
    _seconds, busy, peak, private = scale.measure(tmp_path, tmp_path / "cache")
    assert busy > 0
    assert peak > private > 0


@pytest.mark.slow
def test_every_point_is_run(tmp_path: Path) -> None:
    result = cost(3, 1, tmp_path)
    assert result.points == 3
    assert 0 < result.training <= result.elapsed
    assert len(list((tmp_path / "runs").glob("*/results.json"))) == 3
