"""A run folder describes its run completely, says what resumed it, and belongs to one run alone."""

import errno
import json
import os
import re
import shutil
import warnings
from pathlib import Path

import pytest
import torch

from archlang.plan.from_file import plan_recipe
from archlang.plan.plan import Plan
from archlang.tasks.kit.task import Kind
from archlang.train.record import run_folder
from archlang.train.record.curves import Curves
from archlang.train.record.mistakes import RunError, RunWarning
from archlang.train.record.reading import read_plan
from archlang.train.record.run_folder import RunFolder, this_process, with_resumption
from archlang.train.record.schemas import DataRecord, EvaluationTiming, StepMetrics, json_value
from archlang.train.record.summaries import summarize
from archlang.train.runs import evaluation, training
from archlang.train.runs.inputs import InputFormat
from archlang.train.stop import Stop
from archlang.train.trainer import Trainer
from tests.tiny_run import StopAfter, Train

CPU = torch.device("cpu")
DATA_JSON = {"train": {"items": 3, "groups": {"length": [1, 2]}, "sha256": "00"}}
DATA = DataRecord.model_validate(DATA_JSON)
FORMAT = InputFormat(kind=Kind.CLASSIFICATION, fields=(), words=("a",))


def step(number: int) -> StepMetrics:
    return StepMetrics(step=number, loss=0.5, lr=0.1, gradient_norm=None, mean_depth=None)


LINE = '{"step": 1, "loss": 0.5, "lr": 0.1}\n'


@pytest.fixture
def point(program: Path) -> Plan:
    return plan_recipe(program)


def begin(folder: Path, plan: Plan, precision: str = "32") -> RunFolder:
    record = RunFolder(folder)
    record.begin(plan, precision, DATA, FORMAT, CPU)
    return record


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_the_folder_describes_the_run(point: Plan, tmp_path: Path) -> None:
    begin(tmp_path / "a" / "b" / "run", point).close()
    folder = tmp_path / "a" / "b" / "run"
    assert (folder / "recipe.arch").read_text() == point.source.text
    run = json.loads((folder / "run.json").read_text())
    assert (run["recipe"], run["seed"], run["precision"]) == ("tiny", 1, "32")
    assert run["settings"]["train.lr"] == 0.01
    assert run["settings"]["task.order"] == {"symbol": "forward"}
    versions = json.loads((folder / "versions.json").read_text())
    assert versions["torch"] == torch.__version__
    assert versions["device"] == "cpu"
    assert json.loads((folder / "data.json").read_text()) == DATA_JSON


def test_how_steps_run_on_a_gpu_is_recorded_and_a_change_of_it_is_named() -> None:
    graphs, eager = (this_process(CPU, steps) for steps in ("as CUDA graphs", "eager"))
    assert "steps" not in json_value(this_process(CPU))
    assert json_value(graphs)["steps"] == "as CUDA graphs"
    record, changes = with_resumption(graphs, 7, eager)
    assert changes == "steps eager instead of as CUDA graphs"
    assert record.resumed[-1].steps == "eager"


def test_the_folder_of_the_same_run_is_opened(point: Plan, tmp_path: Path) -> None:
    begin(tmp_path / "run", point).close()
    before = contents(tmp_path / "run")
    again = RunFolder(tmp_path / "run")
    assert again.begin(point, "32", DATA, FORMAT, CPU)
    again.close()
    assert contents(tmp_path / "run") == before


def test_a_comment_or_another_recipe_in_the_file_changes_no_run(program: Path, tmp_path: Path) -> None:
    begin(tmp_path / "run", plan_recipe(program)).close()
    program.write_text("# A note.\n" + program.read_text() + "\nblock more(h: seq[n, d]) -> seq[n, d] { return h }\n")
    assert RunFolder(tmp_path / "run").check(plan_recipe(program), "32")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("recipe tiny", "recipe other", "its recipe is `tiny`, not `other`"),
        ("lr = 1e-2", "lr = 1e-3", "its `train.lr` differs"),
        ("d = 8", "d = 4", "its `model.d` differs"),
        ("train_size = 30", "train_size = 29", "its `task.train_size` differs"),
        ("norm(h)", "h", "its program means another model"),
        ("claim test.accuracy[5]", "test model.steps = 9\n    claim test.accuracy[5]", "means another model"),
    ],
)
def test_a_folder_of_another_run_is_an_error_and_unchanged(
    old: str, new: str, message: str, program: Path, tmp_path: Path
) -> None:
    begin(tmp_path / "run", plan_recipe(program)).close()
    before = contents(tmp_path / "run")
    program.write_text(program.read_text().replace(old, new))
    with pytest.raises(RunError, match="holds another run") as error:
        begin(tmp_path / "run", plan_recipe(program))
    assert message in str(error.value)
    assert contents(tmp_path / "run") == before


def test_another_precision_or_other_data_are_another_run(point: Plan, tmp_path: Path) -> None:
    begin(tmp_path / "run", point).close()
    with pytest.raises(RunError, match="its precision is `32`, not `bf16`"):
        begin(tmp_path / "run", point, "bf16")
    changed_data = DataRecord.model_validate({"train": {**DATA_JSON["train"], "items": 4}})
    with pytest.raises(RunError, match="its train split held other items"):
        RunFolder(tmp_path / "run").begin(point, "32", changed_data, FORMAT, CPU)


@pytest.mark.parametrize("text", ["", "[]", "{}", "\x00", '{"recipe": "tiny", "model": "tiny", "seed": 1}'])
def test_a_folder_with_a_damaged_description_is_unchanged(text: str, point: Plan, tmp_path: Path) -> None:
    begin(tmp_path / "run", point).close()
    (tmp_path / "run" / "run.json").write_text(text)
    before = contents(tmp_path / "run")
    with pytest.raises(RunError):
        begin(tmp_path / "run", point)
    assert contents(tmp_path / "run") == before


def test_a_folder_with_other_files_is_unchanged(point: Plan, tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.tex").write_text("x")
    with pytest.raises(RunError, match="holds other files"):
        begin(tmp_path / "mine", point)
    assert contents(tmp_path / "mine") == {"thesis.tex": b"x"}


def test_a_folder_that_a_killed_process_left_half_written_is_reused(point: Plan, tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "recipe.arch").write_text("half")
    (tmp_path / "run" / ".graph.txt.part").write_text("ha")
    begin(tmp_path / "run", point).close()
    assert (tmp_path / "run" / "recipe.arch").read_text() == point.source.text


def test_of_a_folder_that_cannot_be_written_completely_only_earlier_files_stay(
    program: Path, point: Plan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = RunFolder.write

    def full(self: RunFolder, name: str, text: str) -> None:
        if name == "data.json":
            raise RunError("no room", "make some")
        write(self, name, text)

    monkeypatch.setattr(RunFolder, "write", full)
    with pytest.raises(RunError, match="no room"):
        begin(tmp_path / "runs" / "run", point)
    assert not (tmp_path / "runs").exists()
    (tmp_path / "mine").mkdir()
    recipe = program.rename(tmp_path / "mine" / "recipe.arch")
    with pytest.raises(RunError, match="no room"):
        begin(tmp_path / "mine", plan_recipe(recipe))
    assert os.listdir(tmp_path / "mine") == ["recipe.arch"]


def test_a_read_only_disk_is_a_clear_error(point: Plan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def read_only(path: Path, *args: object, **kwargs: object) -> None:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS), str(path))

    monkeypatch.setattr(Path, "mkdir", read_only)
    with pytest.raises(RunError, match="cannot be written: Read-only file system"):
        begin(tmp_path / "run", point)


def test_lines_after_a_checkpoint_are_truncated(point: Plan, tmp_path: Path) -> None:
    record = begin(tmp_path / "run", point)
    record.append("metrics.jsonl", step(1))
    sizes = record.sizes()
    record.append("metrics.jsonl", step(2))
    record.append("timings.jsonl", EvaluationTiming(step=2, split="valid", seconds=1.0))
    record.truncate(sizes)
    record.close()
    assert (tmp_path / "run" / "metrics.jsonl").read_text() == LINE
    assert (tmp_path / "run" / "timings.jsonl").read_text() == ""


def test_lost_lines_cause_a_warning(point: Plan, tmp_path: Path) -> None:
    record = begin(tmp_path / "run", point)
    record.append("metrics.jsonl", step(1))
    with pytest.warns(RunWarning, match="has lost lines"):
        record.truncate({"metrics.jsonl": 1000})
    record.close()
    assert (tmp_path / "run" / "metrics.jsonl").read_text() == LINE


def test_a_line_that_cannot_be_written_is_a_clear_error(point: Plan, tmp_path: Path) -> None:
    record = begin(tmp_path / "run", point)
    (tmp_path / "run" / "metrics.jsonl").mkdir()
    with pytest.raises(RunError, match="metrics.jsonl cannot be written"):
        record.append("metrics.jsonl", step(1))
    record.close()


@pytest.mark.parametrize("is_link", [False, True])
def test_a_run_continues_without_curves_and_none_are_written_through_a_link(is_link: bool, tmp_path: Path) -> None:
    (tmp_path / "victim").mkdir()
    if is_link:
        (tmp_path / "curves").symlink_to("victim")
    else:
        (tmp_path / "curves").write_text("in the way")
    curves = Curves(tmp_path / "curves")
    with pytest.warns(RunWarning, match="curves is a link" if is_link else "no further points"):
        curves.add(1, {"loss": 1.0})
    curves.add(2, {"loss": 1.0})
    curves.close()
    assert not os.listdir(tmp_path / "victim")


def test_curves_on_a_full_disk_end_with_a_warning_and_no_traceback(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    resource = pytest.importorskip("resource")
    curves = Curves(tmp_path / "curves")
    curves.add(1, {"loss": 1.0})
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, limits[1]))
    try:
        with pytest.warns(RunWarning, match="no further points"):
            curves.add(2, {"loss": 1.0})
        curves.close()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert "Traceback" not in capfd.readouterr().err


def test_a_run_of_a_version_without_facts_resumes(tmp_path: Path, point: Plan) -> None:
    begin(tmp_path / "run", point).close()
    for name in ("graph.txt", "graph_at_test.txt"):
        file = tmp_path / "run" / name
        old = re.sub(r" costs \([^()]*(\([^()]*\)[^()]*)*\)", "", file.read_text(encoding="utf-8"))
        assert old != file.read_text(encoding="utf-8")
        file.write_text(old, encoding="utf-8")
    record = RunFolder(tmp_path / "run")
    assert record.begin(point, "32", DATA, FORMAT, CPU)
    record.close()


VICTIMS = (
    "recipe.arch", "run.json", "data.json", "graph.txt", "graph_at_test.txt", "versions.json", "metrics.jsonl",
    "timings.jsonl", "results.json", ".lock", "checkpoints", "tensorboard",
)  # fmt: skip


@pytest.mark.parametrize("name", VICTIMS)
def test_a_folder_with_a_link_in_place_of_its_own_file_is_refused(name: str, point: Plan, tmp_path: Path) -> None:
    begin(tmp_path / "run", point).close()
    victim = tmp_path / "victim"
    victim.write_bytes((tmp_path / "run" / name).read_bytes() if (tmp_path / "run" / name).is_file() else b"precious")
    before = victim.read_bytes()
    (tmp_path / "run" / name).unlink(missing_ok=True)
    (tmp_path / "run" / name).symlink_to(victim)
    with pytest.raises(RunError, match=f"{re.escape(name)} is a link"):
        begin(tmp_path / "run", point)
    assert victim.read_bytes() == before


@pytest.mark.parametrize("name", ["metrics.jsonl", "results.json"])
def test_a_link_that_appears_during_a_run_is_not_followed(name: str, point: Plan, tmp_path: Path) -> None:
    record = begin(tmp_path / "run", point)
    (tmp_path / "victim").write_text("precious")
    (tmp_path / "run" / name).symlink_to(tmp_path / "victim")
    with pytest.raises(RunError, match=f"{name} is a link"):
        record.append(name, step(1))
    with pytest.raises(RunError, match=f"{name} is a link"):
        record.write(name, "new")
    if name == "metrics.jsonl":
        with pytest.raises(RunError, match=f"{name} is a link"):
            record.truncate({name: 0})
    record.close()
    assert (tmp_path / "victim").read_text() == "precious"


def using(program: Path, name: str) -> Plan:
    """Returns the plan of the program, which takes a block from a file of this name."""
    path = program.parent / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("block twice(h: seq[n, d]) -> seq[n, d] {\n    return h + h\n}\n")
    program.write_text(f'use "./{name}"\n' + program.read_text().replace("norm(h)", "twice(h)"))
    return plan_recipe(program)


@pytest.mark.parametrize(
    "name", ["checkpoints/x.arch", "TensorBoard/x.arch", "wandb/x.arch", "results.json/x.arch", ".x.part/y.arch"]
)
def test_a_used_file_cannot_take_the_place_of_the_record(name: str, program: Path, tmp_path: Path) -> None:
    plan = using(program, name)
    with pytest.raises(RunError, match=f"uses the file `{re.escape(name)}`, whose name the run folder needs"):
        RunFolder(tmp_path / "run").check(plan, "32")
    with pytest.raises(RunError, match="rename the file; nothing was changed"):
        begin(tmp_path / "run", plan)
    assert not (tmp_path / "run").exists()


def test_used_files_with_the_same_name_elsewhere_are_both_copied(program: Path, tmp_path: Path) -> None:
    inner = tmp_path / "a" / "b" / "tiny.arch"
    inner.parent.mkdir(parents=True)
    for place, block in ((tmp_path, "twice"), (tmp_path / "a", "thrice")):
        (place / "shared.arch").write_text(f"block {block}(h: seq[n, d]) -> seq[n, d] {{\n    return h + h\n}}\n")
    text = program.read_text().replace("norm(h)", "twice(thrice(h))")
    inner.write_text('use "../shared.arch"\nuse "../../shared.arch"\n' + text)
    begin(tmp_path / "run", plan_recipe(inner, allow=[tmp_path])).close()
    copies = [path.read_text() for path in (tmp_path / "run" / "elsewhere").rglob("*.arch")]
    assert sorted(re.findall(r"block (\w+)", "".join(copies))) == ["thrice", "twice"]


def test_used_files_are_copied(program: Path, tmp_path: Path) -> None:
    plan = using(program, "parts/mine.arch")
    begin(tmp_path / "run", plan).close()
    assert plan_recipe(tmp_path / "run" / "recipe.arch").graph == plan.graph


def test_a_used_file_is_copied_if_no_operation_of_it_is_in_the_model(program: Path, tmp_path: Path) -> None:
    (tmp_path / "lib.arch").write_text("block same(h: seq[n, d]) -> seq[n, d] {\n    return h\n}\n")
    program.write_text('use "lib.arch"\n' + program.read_text().replace("norm(h)", "same(norm(h))"))
    begin(tmp_path / "run", plan_recipe(program)).close()
    assert (tmp_path / "run" / "lib.arch").read_text() == (tmp_path / "lib.arch").read_text()


def test_a_run_that_was_killed_while_it_copied_used_files_begins_again(program: Path, tmp_path: Path) -> None:
    plan = using(program, "parts/mine.arch")
    begin(tmp_path / "run", plan).close()
    complete = contents(tmp_path / "run")
    (tmp_path / "run" / "run.json").unlink()
    (tmp_path / "run" / "parts" / ".mine.arch.1234.part").write_text("block")
    begin(tmp_path / "run", plan).close()
    assert contents(tmp_path / "run").keys() == complete.keys()


def test_other_files_in_a_folder_of_used_files_are_not_taken_for_leftovers(program: Path, tmp_path: Path) -> None:
    plan = using(program, "parts/mine.arch")
    (tmp_path / "run" / "parts").mkdir(parents=True)
    (tmp_path / "run" / "parts" / "mine.arch").write_text("my own version")
    with pytest.raises(RunError, match="holds other files"):
        begin(tmp_path / "run", plan)


def test_a_run_of_an_earlier_version_resumes_and_is_read(tmp_path: Path) -> None:
    folder = Path(shutil.copytree(Path(__file__).parent / "earlier_run", tmp_path / "run"))
    before = (folder / "metrics.jsonl").read_text()
    plan, precision = read_plan(folder)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RunWarning)  # of another torch, Python or machine
        result = training.train(plan, folder, device="cpu", precision=precision)
    assert (result.step, result.stopped) == (40, False)
    assert (folder / "metrics.jsonl").read_text().startswith(before)
    assert evaluation.evaluate_run(folder, device="cpu").splits == result.splits
    assert summarize(folder).results is not None


NOW = this_process(torch.device("cpu"))


def test_nothing_is_recorded_if_nothing_has_changed() -> None:
    assert with_resumption(NOW, 4, NOW.model_copy(update={"system": "another kernel", "cores": 128})) == (NOW, "")


@pytest.mark.parametrize(
    ("field", "value", "words"),
    [
        ("torch", "9.9", "torch 9.9 instead of"),
        ("python", "4.0.0", "python 4.0.0 instead of"),
        ("archlang", "7.0", "archlang 7.0 instead of"),
        ("device", "cuda:0", "device cuda:0 instead of cpu"),
        ("gpus", ("H100",), "gpus H100 instead of none"),
        ("threads", 77, "threads 77 instead of"),
    ],
)
def test_what_the_bits_may_depend_on_is_recorded(field: str, value: object, words: str) -> None:
    record, changes = with_resumption(NOW, 4, NOW.model_copy(update={field: value}))
    assert changes.startswith(words)
    assert [(resumed.step, getattr(resumed, field)) for resumed in record.resumed] == [(4, value)]


def test_a_record_is_compared_with_the_last_resumption() -> None:
    newer = NOW.model_copy(update={"torch": "9.9"})
    record, _ = with_resumption(NOW, 4, newer)
    assert with_resumption(record, 8, newer) == (record, "")
    assert len(with_resumption(record, 8, NOW)[0].resumed) == 2


def test_resuming_with_another_torch_is_said_once_and_shown(
    program: Path, tmp_path: Path, train: Train, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "run"
    training.train(plan_recipe(program), folder, device="cpu", stop=StopAfter(12))
    begun = json.loads((folder / "versions.json").read_text())
    monkeypatch.setattr(run_folder, "this_process", lambda device, steps: NOW.model_copy(update={"torch": "9.9"}))
    with pytest.warns(RunWarning, match=r"resumes with torch 9\.9 instead of") as caught:
        train(folder)
    assert len(caught) == 1
    recorded = json.loads((folder / "versions.json").read_text())
    assert {name: value for name, value in recorded.items() if name != "resumed"} == begun
    begun_with, resumed_with = summarize(folder).history
    assert begun_with.startswith(f"begun with archlang {NOW.archlang}, torch {NOW.torch}")
    assert resumed_with.startswith("resumed at step ")
    assert resumed_with.endswith(f"torch 9.9 instead of {NOW.torch}")


def test_a_run_resumes_with_the_threads_that_it_began_with(
    program: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, before = tmp_path / "run", torch.get_num_threads()
    seen: set[int] = set()
    asked = Trainer.is_stop_asked

    def watching(run: Trainer, stop: Stop) -> bool:
        seen.add(torch.get_num_threads())
        return asked(run, stop)

    monkeypatch.setattr(Trainer, "is_stop_asked", watching)
    try:
        for threads, expected in ((1, 1), (2, 1)):
            seen.clear()
            torch.set_num_threads(threads)
            training.train(plan_recipe(program), folder, device="cpu", stop=StopAfter(6))
            assert seen == {expected}
            assert torch.get_num_threads() == threads
    finally:
        torch.set_num_threads(before)
