"""A run is reproducible, resumes exactly, stores its evaluation, and is refused if the memory cannot hold it."""

import gc
import json
import os
import shutil
import signal
import weakref
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from archlang.errors import ProgramError
from archlang.graph.summary import summarize
from archlang.plan.from_file import plan_recipe
from archlang.plan.plan import Plan
from archlang.plugins import PluginError
from archlang.tasks.kit.metrics import Tally
from archlang.tasks.kit.pages import PageTask
from archlang.train import score, trainer
from archlang.train.record import checkpoint
from archlang.train.record.checkpoint import Checkpoints
from archlang.train.record.mistakes import RunError, RunMachineError, RunWarning
from archlang.train.record.run_folder import RunFolder
from archlang.train.record.schemas import EvaluationMetrics, json_value
from archlang.train.runs import evaluation, training
from archlang.train.runs.training import require_memory
from archlang.train.step import EagerStep
from archlang.train.stop import Stop
from archlang.train.trainer import Interval, Watcher, evaluations_since_best, ranking
from tests.sampling import one_in
from tests.tiny_run import Train

ON_GPU = (pytest.mark.gpu, pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device"))


def contents(folder: Path) -> dict[str, bytes]:
    """Returns the files that equal runs have in common: not times, and not TensorBoard's events."""
    checkpoints = sorted((folder / "checkpoints").glob("step-*/weights.safetensors"))
    files = [folder / "metrics.jsonl", folder / "results.json", *checkpoints]
    return {str(file.relative_to(folder)): file.read_bytes() for file in files if file.exists()}


def lines(folder: Path, name: str = "metrics.jsonl") -> list[dict[str, Any]]:  # Any: as JSON is
    return [json.loads(line) for line in (folder / name).read_text().splitlines()]


def losses(folder: Path) -> list[float]:
    return [line["loss"] for line in lines(folder) if "lr" in line]


def steps(folder: Path) -> list[int]:
    return sorted(int(path.name[5:]) for path in (folder / "checkpoints").glob("step-*"))


def damage(folder: Path, step: int) -> None:
    with (folder / "checkpoints" / f"step-{step:08d}" / "weights.safetensors").open("r+b") as file:
        file.seek(-1, 2)
        file.write(b"\x55")


# Reproducible


def test_the_same_seed_gives_the_same_run_bit_for_bit_and_another_seed_another(
    train: Train, tmp_path: Path, finished_run: Path
) -> None:
    train(tmp_path / "a")
    assert contents(tmp_path / "a") == contents(finished_run)
    train(tmp_path / "b", seed="2")
    assert losses(tmp_path / "b") != losses(finished_run)


def test_steps_that_are_computed_again_do_not_change_a_run(program: Path, tmp_path: Path, finished_run: Path) -> None:
    training.train(plan_recipe(program), tmp_path / "b", device="cpu", remat="auto")
    assert contents(tmp_path / "b") == contents(finished_run)


def _fails(*_: object) -> Callable[..., object]:
    raise RuntimeError("no compiler")


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(
    ("device", "backend"), [("cpu", "eager"), ("cpu", _fails), pytest.param("cuda", "inductor", marks=ON_GPU)]
)
def test_a_model_that_torch_compiles_or_fails_to_compile_trains_as_it_is(
    device: str, backend: object, program: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = program.read_text().replace(" halting h by token_halt", "").replace(", ponder = 0.01", "")
    program.write_text(text.replace("dropout[0.1]", "").replace("steps = 40", "steps = 8"))
    training.train(plan_recipe(program), tmp_path / "a", device=device, eager=True)
    compiled: list[object] = []

    def compile_with_backend(module: object, **_: object) -> object:
        compiled.append(module)
        return torch_compile(module, backend=backend)

    torch_compile: Callable[..., object] = torch.compile
    monkeypatch.setattr(trainer, "is_compiled", lambda *_, **__: True)
    monkeypatch.setattr(torch, "compile", compile_with_backend)
    with torch._dynamo.config.patch(suppress_errors=False):  # the run sets it
        training.train(plan_recipe(program), tmp_path / "b", device=device)
    assert compiled
    assert losses(tmp_path / "b") == pytest.approx(losses(tmp_path / "a"), rel=1e-4)


def test_more_evaluations_do_not_change_training(train: Train, tmp_path: Path, finished_run: Path) -> None:
    train(tmp_path / "b", train__every="3")
    assert losses(finished_run) == losses(tmp_path / "b")
    evaluated = [line["step"] for line in lines(tmp_path / "b") if line.get("split") == "valid"]
    assert evaluated == [*range(3, 40, 3), 40]


def test_a_static_of_test_time_does_not_change_training(
    train: Train, program: Path, tmp_path: Path, finished_run: Path
) -> None:
    program.write_text(program.read_text().replace("claim", "test model.steps = 9\n    claim", 1))
    outcome = train(tmp_path / "b")
    assert losses(finished_run) == losses(tmp_path / "b")
    assert max(line["mean_depth"] for line in lines(tmp_path / "b") if "mean_depth" in line) <= 2
    assert "limit = 9" in (tmp_path / "b" / "graph_at_test.txt").read_text()
    assert outcome.splits == evaluation.evaluate_run(tmp_path / "b", device="cpu").splits


# Resuming


class Killed(BaseException):
    """No code of a run catches this."""


def at_call(monkeypatch: pytest.MonkeyPatch, owner: object, name: str, number: int, act: Callable[[], None]) -> None:
    """Calls `act` just before the `number`-th call of a function."""
    function = getattr(owner, name)
    calls = 0

    def watched(*args: object, **kwargs: object) -> object:
        nonlocal calls
        calls += 1
        if calls == number:
            act()
        return function(*args, **kwargs)

    monkeypatch.setattr(owner, name, watched)


def die() -> None:
    raise Killed


def train_and_die(train: Train, folder: Path, owner: object, name: str, number: int) -> None:
    save = Checkpoints.save

    def save_and_wait(checkpoints: Checkpoints, *arguments: Any) -> None:  # Any: those of `save`
        save(checkpoints, *arguments)
        checkpoints.finish()

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(Checkpoints, "save", save_and_wait)
        at_call(patched, owner, name, number, die)
        with pytest.raises(Killed):
            train(folder)


def assert_killed_equals_uninterrupted(
    plan: Plan, folder: Path, *moments: tuple[object, str, int], precision: str = "32"
) -> None:
    """Compares a run that dies at several moments, one after another, with an uninterrupted one."""

    def train(folder: Path) -> evaluation.Result:
        return training.train(plan, folder, device="cpu", precision=precision)

    train(folder / "uninterrupted")
    for moment in moments:
        train_and_die(train, folder / "killed", *moment)
    train(folder / "killed")
    assert contents(folder / "killed") == contents(folder / "uninterrupted")


MOMENTS: list[tuple[object, str, int]] = [
    (RunFolder, "write", 3), (EagerStep, "take", 1), (EagerStep, "take", 15), (trainer, "evaluate", 1),
    (trainer, "evaluate", 3), (trainer, "evaluate", 6), (RunFolder, "append", 2), (RunFolder, "append", 31),
    (RunFolder, "sizes", 2), (torch, "save", 1), (torch, "save", 4), (os, "rename", 3), (os, "replace", 9),
    (checkpoint, "_sha256", 5), (evaluation, "measured_claims", 1),
]  # fmt: skip


@pytest.mark.parametrize(("owner", "name", "number"), one_in(2, MOMENTS))
def test_a_killed_run_resumes_as_if_it_had_not_been_killed(
    owner: object, name: str, number: int, train: Train, tmp_path: Path, finished_run: Path
) -> None:
    train_and_die(train, tmp_path / "killed", owner, name, number)
    train(tmp_path / "killed")
    assert contents(tmp_path / "killed") == contents(finished_run)


@pytest.mark.parametrize("precision", ["32", "bf16"])
def test_a_killed_run_with_noise_resumes_in_each_precision(precision: str, program: Path, tmp_path: Path) -> None:
    program.write_text(program.read_text().replace("dropout[0.1](feedforward[8](norm(h)))", "noise[0.5](norm(h))"))
    assert_killed_equals_uninterrupted(plan_recipe(program), tmp_path, (EagerStep, "take", 25), precision=precision)


@pytest.mark.parametrize(
    ("save", "seconds_unsaved", "moment", "resumed_at"),
    [
        (7, 60.0, (EagerStep, "take", 20), 14),
        (timedelta(0), 60.0, (EagerStep, "take", 20), 19),
        (timedelta(hours=1), 60.0, (EagerStep, "take", 20), 10),
        (timedelta(hours=1), 60.0, (trainer, "evaluate", 3), 10),
        (timedelta(hours=1), 0.0, (trainer, "evaluate", 3), 20),
    ],
)
def test_a_killed_run_loses_at_most_what_lies_between_two_saves_and_a_long_evaluation_no_step(
    save: Interval, seconds_unsaved: float, moment: tuple[object, str, int], resumed_at: int,
    program: Path, tmp_path: Path, finished_run: Path, monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    def train(folder: Path) -> evaluation.Result:
        return training.train(plan_recipe(program), folder, device="cpu", save=save)

    monkeypatch.setattr(trainer, "_SECONDS_UNSAVED", seconds_unsaved)
    train_and_die(train, tmp_path / "killed", *moment)
    assert max(steps(tmp_path / "killed")) == resumed_at
    train(tmp_path / "killed")
    names = ("metrics.jsonl", "results.json", "checkpoints/step-00000040/weights.safetensors")
    assert all(contents(tmp_path / "killed")[name] == contents(finished_run)[name] for name in names)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize(("owner", "name", "step"), [(EagerStep, "take", 3), (trainer, "evaluate", 20)])
def test_a_stopped_run_resumes_as_if_it_had_not_been_stopped(
    owner: object, name: str, step: int, number: signal.Signals, train: Train, tmp_path: Path, finished_run: Path
) -> None:
    before = signal.getsignal(number)
    with pytest.MonkeyPatch.context() as patched:
        at_call(patched, owner, name, 3, lambda: os.kill(os.getpid(), number))
        stopped = train(tmp_path / "run")
    assert (stopped.stopped, stopped.step) == (True, step)
    assert step in steps(tmp_path / "run")
    assert not (tmp_path / "run" / "results.json").exists()
    assert signal.getsignal(number) == before
    train(tmp_path / "run")
    assert contents(tmp_path / "run") == contents(finished_run)


def test_a_run_that_is_stopped_during_its_final_evaluation_repeats_only_that(
    program: Path, tmp_path: Path, finished_run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stop = Stop()
    restore = trainer.Trainer.restore_best

    def asking(run: trainer.Trainer) -> int | None:
        stop.requested = True
        return restore(run)

    with monkeypatch.context() as patched:
        patched.setattr(trainer.Trainer, "restore_best", asking)
        assert training.train(plan_recipe(program), tmp_path / "run", device="cpu", stop=stop).stopped
    assert not (tmp_path / "run" / "results.json").exists()
    monkeypatch.setattr(EagerStep, "take", None)
    training.train(plan_recipe(program), tmp_path / "run", device="cpu")
    assert contents(tmp_path / "run") == contents(finished_run)


@pytest.fixture
def run(finished_run: Path, tmp_path: Path) -> Path:
    """A copy of a finished run."""
    return Path(shutil.copytree(finished_run, tmp_path / "run"))


def test_a_run_that_has_ended_is_only_evaluated_again(
    train: Train, run: Path, finished_run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(EagerStep, "take", None)
    assert train(run) == train(run)
    assert contents(run) == contents(finished_run)


def test_a_run_with_a_damaged_checkpoint_resumes_from_the_previous_one(
    train: Train, run: Path, finished_run: Path
) -> None:
    damage(run, 40)
    with pytest.warns(RunWarning, match="step-00000040 is damaged"):
        train(run)
    assert contents(run) == contents(finished_run)


def test_a_run_whose_checkpoints_are_all_damaged_is_an_error(train: Train, run: Path) -> None:
    for step in steps(run):
        damage(run, step)
    before = contents(run)
    with pytest.warns(RunWarning), pytest.raises(RunError, match="every checkpoint"):
        train(run)
    assert contents(run) == before


# Selection


def test_the_best_weights_are_evaluated_the_latest_of_equal_ones(
    train: Train, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    values = iter([0.2, 0.9, 0.9, 0.4])
    measure = score.evaluate

    def evaluate(*args: object, **kwargs: object) -> object:
        result = measure(*args, **kwargs)  # type: ignore[arg-type] # its own arguments
        value = next(values, None) if result.split == "valid" else None
        tally = Tally(np.array([value or 0.0]), np.array([1]))
        return result if value is None else replace(result, tallies={"accuracy": tally})

    monkeypatch.setattr(trainer, "evaluate", evaluate)
    train(tmp_path / "run")
    assert json.loads((tmp_path / "run" / "results.json").read_text())["best_step"] == 30
    assert steps(tmp_path / "run") == [30, 40]


IMPATIENT = {"train.lr": "1e-12", "train.every": "5", "train.patience": "2"}


def test_a_run_with_patience_ends_after_as_many_evaluations_without_a_better_value(
    program: Path, tmp_path: Path
) -> None:
    outcome = training.train(plan_recipe(program, sets=IMPATIENT), tmp_path / "run", device="cpu")
    assert (outcome.step, outcome.stopped) == (15, False)
    assert [line["step"] for line in lines(tmp_path / "run") if line.get("split") == "valid"] == [5, 10, 15]
    results = json.loads((tmp_path / "run" / "results.json").read_text())
    assert (results["ended_early"], results["best_step"]) == (15, 15)  # the latest of equal values


@pytest.mark.parametrize(
    ("owner", "name", "number"), [(EagerStep, "take", 13), (torch, "save", 3), (evaluation, "measured_claims", 1)]
)
def test_a_killed_run_with_patience_ends_at_the_same_step(
    owner: object, name: str, number: int, program: Path, tmp_path: Path
) -> None:
    assert_killed_equals_uninterrupted(plan_recipe(program, sets=IMPATIENT), tmp_path, (owner, name, number))


def test_a_damaged_best_checkpoint_is_replaced_with_a_warning(run: Path) -> None:
    best = json.loads((run / "results.json").read_text())["best_step"]
    damage(run, best)
    with pytest.warns(RunWarning, match="another checkpoint is used"):
        outcome = evaluation.evaluate_run(run, device="cpu")
    assert outcome.step in set(steps(run)) - {best}


@pytest.mark.parametrize(
    ("setting", "complaint"),
    [
        ({"train__select": "valid.beauty"}, "no metric `beauty`"),
        ({"task__train_size": "1000000"}, "more than the 34 distinct items"),
    ],
)
def test_a_plan_that_cannot_run_leaves_no_files(
    setting: dict[str, str], complaint: str, train: Train, tmp_path: Path
) -> None:
    with pytest.raises(ProgramError, match=complaint):
        train(tmp_path / "run", **setting)
    assert not (tmp_path / "run").exists()


# The run folder


def test_a_run_is_evaluated_on_every_split_except_its_training_split(train: Train, run: Path) -> None:
    outcome = train(run)
    assert outcome.results is not None
    assert list(outcome.results.splits) == ["iid", "valid", "test"]
    assert json.loads((run / "results.json").read_text()) == json_value(outcome.results)
    test = outcome.results.splits["test"]
    assert [claim.measured for claim in outcome.results.claims] == [
        test.metrics["accuracy"], test.groups["length"][5]["accuracy"],
    ]  # fmt: skip
    assert outcome.trained["length"] == [1, 2, 3]


def test_curves_hold_no_times(finished_run: Path) -> None:
    assert {name for line in lines(finished_run) for name in line} == {
        "step", "loss", "lr", "gradient_norm", "mean_depth", "split", "accuracy",
    }  # fmt: skip
    timings = lines(finished_run, "timings.jsonl")
    saved = [line for line in timings if "saving" in line]
    assert {line["step"] for line in saved} == {10, 20, 30, 40}
    assert len(timings) - len(saved) == len(lines(finished_run))
    of_steps = [line for line in timings if "steps_per_second" in line]
    # A batch has 8 samples, the last of an epoch fewer, and a sample has 4 to 6 tokens.
    assert max(line["samples_per_second"] / line["steps_per_second"] for line in of_steps) == pytest.approx(8)
    assert all(3.9 < line["tokens_per_second"] / line["samples_per_second"] < 6.1 for line in of_steps)
    # Forward and backward of samples of at most 6 tokens; a CPU has no known peak.
    most = 3 * summarize(plan_recipe(finished_run.parent / "tiny.arch").graph, 6).flops
    assert all(0.5 * most < line["flops_per_second"] / line["samples_per_second"] < 1.001 * most for line in of_steps)
    assert all(0 < line["data_seconds"] < 4 / line["steps_per_second"] for line in of_steps)
    assert not any("peak_share" in line for line in of_steps)
    assert any((finished_run / "tensorboard").iterdir())


def test_a_run_records_and_shows_its_share_of_a_known_peak(
    program: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown = []

    class Shares(Watcher):
        def reached(self, peak_share: float) -> None:
            shown.append(peak_share)

    monkeypatch.setattr(trainer, "peak_flops", lambda device, precision: 1e12)
    plan = plan_recipe(program, sets={"train.steps": "2", "train.every": "1"})
    training.train(plan, tmp_path / "run", device="cpu", watcher=Shares())
    recorded = [line for line in lines(tmp_path / "run", "timings.jsonl") if "peak_share" in line]
    assert [line["peak_share"] for line in recorded] == shown
    assert [line["flops_per_second"] / 1e12 for line in recorded] == pytest.approx(shown)
    assert len(recorded) == 2


def test_an_evaluation_needs_the_folder_alone_and_does_not_change_it(train: Train, program: Path, run: Path) -> None:
    outcome = train(run)
    program.unlink()
    moved = run.rename(run.parent / "moved")
    before = {path: path.read_bytes() for path in moved.rglob("*") if path.is_file()}
    evaluated = evaluation.evaluate_run(moved, device="cpu")
    assert (evaluated.splits, evaluated.trained) == (outcome.splits, outcome.trained)
    assert before == {path: path.read_bytes() for path in moved.rglob("*") if path.is_file()}


def test_a_run_that_has_not_ended_can_be_evaluated(train: Train, tmp_path: Path) -> None:
    train_and_die(train, tmp_path / "run", EagerStep, "take", 15)
    assert evaluation.evaluate_run(tmp_path / "run", ["test"], device="cpu").step == 10


def test_changed_data_cause_a_warning(run: Path) -> None:
    data = json.loads((run / "data.json").read_text())
    data["test"]["sha256"] = "0"
    (run / "data.json").write_text(json.dumps(data))
    with pytest.warns(RunWarning, match="the test split is not the one"):
        evaluation.evaluate_run(run, device="cpu")


# Errors


def test_a_loss_that_is_nan_ends_the_run_at_once(train: Train, tmp_path: Path) -> None:
    with pytest.raises(RunError, match=r"loss became NaN or infinite at step [23];?") as caught:
        train(tmp_path / "run", train__lr="1e30", train__clip="0.0")
    assert "train.lr" in caught.value.remedy
    assert "no checkpoint yet" in caught.value.remedy


def test_weights_that_are_nan_are_not_saved(train: Train, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    step = EagerStep.take

    def spoiling(self: EagerStep, at: int, items: Sequence[np.ndarray]) -> object:
        result = step(self, at, items)
        if at == 19:
            with torch.no_grad():
                next(self.run.module.parameters())[0, 0] = float("nan")
        return result

    monkeypatch.setattr(EagerStep, "take", spoiling)
    with pytest.raises(RunError, match="weights became NaN or infinite at step 20") as caught:
        train(tmp_path / "run")
    assert "the checkpoint of step 10 is kept" in caught.value.remedy
    assert steps(tmp_path / "run") == [10]


def test_only_tasks_of_archlang_run(program: Path, tmp_path: Path) -> None:
    point: Plan = plan_recipe(program)
    with pytest.raises(PluginError, match="the task `ctl` is Python of its own, `os:system`"):
        training.train(replace(point, task=replace(point.task, python="os:system")), tmp_path / "run", device="cpu")


# Metrics that are better if lower


WRITER = """
model writer[d = 8](source: tokens[n], target: tokens[m]) -> logits[m, vocab] {
    return linear[vocab](embed[d](target) + linear[d](embed[d](target)))
}
recipe writer {
    task  copy[symbols = 2, train = 1..3, valid = 4..4, test = [5], train_size = 60, valid_size = 20, test_size = 5]
    model writer
    train adamw[lr = 0.5, batch = 8, steps = 30, every = 5, select = valid.perplexity]
}
"""


def test_the_run_with_the_lowest_perplexity_is_selected(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(PageTask, "metrics", ("perplexity", "accuracy"))
    (tmp_path / "writer.arch").write_text(WRITER)
    training.train(plan_recipe(tmp_path / "writer.arch"), tmp_path / "run", device="cpu")
    measured = {int(line["step"]): line["perplexity"] for line in lines(tmp_path / "run") if "perplexity" in line}
    assert len(set(measured.values())) == len(measured) == 6
    results = json.loads((tmp_path / "run" / "results.json").read_text())
    assert results["best_step"] == min(measured, key=measured.__getitem__)
    assert (results["breakdown"], results["in_distribution"]) == ("length", ["train"])


def test_evaluations_since_the_best_begin_at_the_first_of_equal_values() -> None:
    values = (float("nan"), 3.0, 2.0, float("nan"), 2.0, 4.0)
    history = [EvaluationMetrics.of(step, "valid", value, {"accuracy": value}) for step, value in enumerate(values)]
    assert [evaluations_since_best(history[:count], "valid", "accuracy") for count in range(7)] == [0, 0, 0, 1, 2, 3, 0]
    assert [evaluations_since_best(history[:count], "valid", "loss") for count in range(7)] == [0, 0, 0, 0, 1, 2, 3]
    assert evaluations_since_best(history, "iid", "accuracy") == 0


def test_of_equal_values_the_latest_is_first_for_all_metrics() -> None:
    values = ((1, 3.0), (2, 2.0), (3, float("nan")), (4, 2.0))
    history = [EvaluationMetrics.of(step, "valid", value, {"perplexity": value}) for step, value in values]
    history.append(EvaluationMetrics.of(9, "iid", 1.0, {"perplexity": 1.0}))
    assert ranking(history, "valid", "perplexity") == [4, 2, 1]
    assert ranking(history, "valid", "loss") == [4, 2, 1]


WEIGHTS = """
model wide(x: tokens[n]) -> logits[classes] {
    return embed[1000](x) |> mean |> linear[1000] |> linear[classes]
}
recipe wide {
    task  ctl
    model wide
    train %s
}
"""


@pytest.mark.parametrize(
    ("optimizer", "copies"),
    [("adamw[steps = 1]", 4), ("rmsprop[steps = 1]", 3), ("sgd[steps = 1]", 2), ("sgd[steps = 1, momentum = 0.9]", 3)],
)
def test_weights_gradients_and_moments_must_fit(
    optimizer: str, copies: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "wide.arch").write_text(WEIGHTS % optimizer)
    plan = plan_recipe(tmp_path / "wide.arch")
    weights = summarize(plan.graph, 1).unique
    assert weights > 1_000_000
    monkeypatch.setattr(training, "available_memory", lambda: 4 * copies * weights)
    require_memory(plan, torch.device("cpu"))
    monkeypatch.setattr(training, "available_memory", lambda: 4 * copies * weights - 1)
    with pytest.raises(RunMachineError, match="0.0 GB of free memory"):
        require_memory(plan, torch.device("cpu"))


def test_the_graphs_of_an_earlier_run_take_no_memory_of_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "wide.arch").write_text(WEIGHTS % "adamw[steps = 1]")
    step = type("Step", (), {})()
    step.run = step  # a trainer and its step hold each other
    earlier, order = weakref.ref(step), list[str]()
    monkeypatch.setattr(torch.cuda, "empty_cache", lambda: order.append(f"emptied after {earlier()}"))

    def asked(_: torch.device) -> tuple[int, int]:
        order.append("asked")
        return 1 << 40, 1 << 40

    monkeypatch.setattr(torch.cuda, "mem_get_info", asked)
    gc.disable()
    del step
    try:
        require_memory(plan_recipe(tmp_path / "wide.arch"), torch.device("cuda", 0))
    finally:
        gc.enable()
    assert order == ["emptied after None", "asked"]


def test_a_machine_that_does_not_say_its_memory_refuses_nothing(
    train: Train, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(training, "available_memory", lambda: None)
    train(tmp_path / "run", train__steps="2")
