"""A run on a stream resumes exactly, records what it reads, and loses nothing where the stream breaks."""

import json
import math
import shutil
import sys
from functools import partial
from pathlib import Path

import pytest

from archlang.errors import MachineError
from archlang.plan.from_file import plan_recipe
from archlang.plan.plan import Plan
from archlang.tasks.kit import mistakes
from archlang.tasks.kit.streams import Stream
from archlang.train import trainer
from archlang.train.record.checkpoint import Checkpoints
from archlang.train.record.mistakes import RunError, RunWarning
from archlang.train.runs import training
from archlang.train.runs.evaluation import evaluate_run
from archlang.train.step import EagerStep
from tests.hub import COMMIT, Hub
from tests.tiny_run import StopAfter
from tests.train.runs.test_training import (
    assert_killed_equals_uninterrupted,
    contents,
    lines,
    losses,
    steps,
    train_and_die,
)
from tests.train.test_several_processes import ARCHLANG, assert_same_curve, run

PROGRAM = """
model tiny(x: tokens[n]) -> logits[n, vocab] { return embed[4](x) |> linear[vocab] }

recipe tiny {
    task  text[path = "train/*.jsonl", valid = "valid.jsonl", stream = 2_000, length = 16, packed = true]
    model tiny
    train adamw[lr = 1e-2, batch = 16, steps = 44, every = 11]
}
"""


def write(file: Path, first: int, count: int) -> None:
    texts = (f"text {number} of {number % 7}" for number in range(first, first + count))
    file.write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))


@pytest.fixture
def plan(tmp_path: Path) -> Plan:
    (tmp_path / "train").mkdir()
    for number in range(2):
        write(tmp_path / "train" / f"{number}.jsonl", 200 * number, 200)
    write(tmp_path / "valid.jsonl", 500, 9)
    (tmp_path / "tiny.arch").write_text(PROGRAM)
    return plan_recipe(tmp_path / "tiny.arch")


def parts(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """Returns the places from which parts are read, to which later ones are appended."""
    read, places = Stream._part, list[object]()

    def watched(stream: Stream, place: object) -> object:
        places.append(place)
        return read(stream, place)

    monkeypatch.setattr(Stream, "_part", watched)
    return places


def test_a_killed_run_resumes_in_the_middle_and_at_the_end_of_a_part(
    plan: Plan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    places = parts(monkeypatch)
    moments = [(EagerStep, "take", 5), (trainer, "evaluate", 2), (EagerStep, "take", 16)]
    assert_killed_equals_uninterrupted(plan, tmp_path, *moments)
    assert len(set(map(str, places))) >= 3
    assert places.count(None) > 1


def test_a_run_that_is_killed_after_any_step_of_a_part_resumes_exactly(plan: Plan, tmp_path: Path) -> None:
    training.train(plan, tmp_path / "whole", device="cpu")
    items = training.make_settings(plan)[1].generate("train", 0)
    end = math.ceil(len(items) / 16)
    assert 1 < end < 44 / 2
    for step in (end - 1, end, end + 1):
        run = tmp_path / str(step)
        train_and_die(partial(training.train, plan, device="cpu", save=1), run, EagerStep, "take", step + 1)
        assert max(steps(run)) == step
        training.train(plan, run, device="cpu")
        assert contents(run) == contents(tmp_path / "whole")


def test_a_run_on_the_hub_that_is_killed_resumes_exactly(plan: Plan, tmp_path: Path, hub: Hub) -> None:
    hub.files = {file.name: file.read_bytes() for file in (tmp_path / "train").iterdir()}
    sets = {"task.path": f'"hf://owner/name@{COMMIT}"'}
    on_hub = plan_recipe(tmp_path / "tiny.arch", sets=sets)
    assert_killed_equals_uninterrupted(on_hub, tmp_path, (EagerStep, "take", 9), (EagerStep, "take", 18))
    record = json.loads((tmp_path / "killed" / "data.json").read_text())
    assert record["train"]["stream"] == f"hf://owner/name@{COMMIT}"
    program = (tmp_path / "tiny.arch").read_text().replace("train/*.jsonl", f"hf://owner/name@{COMMIT}")
    (tmp_path / "tiny.arch").write_text(program)
    training.train(plan_recipe(tmp_path / "tiny.arch"), tmp_path / "by_program", device="cpu")
    assert contents(tmp_path / "by_program") == contents(tmp_path / "killed")


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="the processes need gloo")
def test_two_processes_resume_the_run_of_one_and_read_the_same_parts(plan: Plan, tmp_path: Path) -> None:
    training.train(plan, tmp_path / "whole", device="cpu")
    training.train(plan, tmp_path / "run", device="cpu", stop=StopAfter(20))
    done = max(steps(tmp_path / "run"))
    assert 0 < done < 40
    run([*ARCHLANG, "train", "--resume", "run", "--device", "cpu", "--devices", "2"], tmp_path)
    assert_same_curve(tmp_path / "run", tmp_path / "whole")


def test_the_steps_of_a_run_are_those_of_its_seed(plan: Plan, tmp_path: Path) -> None:
    for name, seed in (("a", "1"), ("b", "1"), ("c", "2")):
        training.train(plan_recipe(tmp_path / "tiny.arch", sets={"seed": seed}), tmp_path / name, device="cpu")
    assert losses(tmp_path / "a") == losses(tmp_path / "b") != losses(tmp_path / "c")


def test_a_record_says_what_is_read_and_a_run_does_not_resume_on_something_else(plan: Plan, tmp_path: Path) -> None:
    training.train(plan, tmp_path / "run", device="cpu", save=20)
    record = json.loads((tmp_path / "run" / "data.json").read_text())
    assert record["train"]["stream"].startswith("2 files, names, sizes and ends sha256:")
    assert "stream" not in record["valid"]
    write(tmp_path / "train" / "1.jsonl", 201, 200)
    restored = "read from 2 files, names, sizes and ends sha256:.*; it resumes once these are restored"
    with pytest.raises(RunError, match=f"its train split held other items, {restored}"):
        training.train(plan, tmp_path / "run", device="cpu")
    write(tmp_path / "train" / "1.jsonl", 200, 200)
    training.train(plan, tmp_path / "run", device="cpu")


def test_an_evaluation_does_not_read_the_stream(plan: Plan, tmp_path: Path) -> None:
    trained = training.train(plan, tmp_path / "run", device="cpu")
    shutil.rmtree(tmp_path / "train")
    assert evaluate_run(tmp_path / "run", device="cpu").splits == trained.splits


@pytest.mark.parametrize("part", [2, 3])
def test_where_a_stream_breaks_the_run_is_saved_and_resumes_exactly(
    plan: Plan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, part: int
) -> None:
    training.train(plan, tmp_path / "whole", device="cpu")
    places = parts(monkeypatch)
    read = Stream._part

    def broken(stream: Stream, place: object) -> object:
        if len(places) == part:
            raise mistakes.stream_broken(stream.source, "the cable")
        return read(stream, place)

    with monkeypatch.context() as patched:
        patched.setattr(Stream, "_part", broken)
        with pytest.raises(MachineError, match="2 files.* cannot be reached: the cable"):
            training.train(plan, tmp_path / "run", device="cpu")
    done = max(steps(tmp_path / "run"))
    assert lines(tmp_path / "run")[-1]["step"] == done > (part - 1) * 8
    training.train(plan, tmp_path / "run", device="cpu")
    assert contents(tmp_path / "run") == contents(tmp_path / "whole")


@pytest.mark.parametrize("place", ["x", [5], [0, "x"], [0, -1], {"a": 1}, [2, 0]])
def test_a_checkpoint_with_another_place_is_refused(
    plan: Plan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: object
) -> None:
    training.train(plan, tmp_path / "run", device="cpu")
    latest = Checkpoints.latest

    def changed(checkpoints: Checkpoints) -> object:
        checkpoint = latest(checkpoints)
        assert checkpoint is not None
        object.__setattr__(checkpoint, "stored_state", checkpoint.state.model_copy(update={"place": place}))
        return checkpoint

    monkeypatch.setattr(Checkpoints, "latest", changed)
    with pytest.raises(RunError, match=r"state\.pt is damaged: .* is no place in 2 files"):
        training.train(plan, tmp_path / "run", device="cpu")


def test_seeds_train_one_after_another(plan: Plan, tmp_path: Path) -> None:
    plans = [plan_recipe(tmp_path / "tiny.arch", sets={"seed": seed}) for seed in ("1", "2")]
    with pytest.warns(RunWarning, match="each seed reads its own parts of a stream"):
        training.train_together(plans, [tmp_path / "1", tmp_path / "2"], device="cpu")
    training.train(plan, tmp_path / "alone", device="cpu")
    assert contents(tmp_path / "1") == contents(tmp_path / "alone")


@pytest.mark.parametrize(
    ("sets", "message"),
    [
        ({"train.steps": "0", "train.epochs": "2"}, "nobody knows how many samples a stream has"),
        ({"train.select": "train.perplexity"}, "weights cannot be selected on `train`, which is a stream"),
    ],
)
def test_what_needs_the_whole_of_a_stream_is_refused(
    plan: Plan, tmp_path: Path, sets: dict[str, str], message: str
) -> None:
    with pytest.raises(RunError, match=message):
        training.train(plan_recipe(tmp_path / "tiny.arch", sets=sets), tmp_path / "run", device="cpu")
    assert not (tmp_path / "run").exists()
