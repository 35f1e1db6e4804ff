"""`archlang table` and `archlang tune` on the command line."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from archlang.disk.folder import Folder
from archlang.plan.from_file import plan_search
from archlang.train.record.reading import LOCK
from archlang.train.runs import cost as costs
from archlang.train.runs.cost import RunCost
from archlang.train.runs.points import Point
from archlang.train.runs.tune import Tuning
from tests.cli.conftest import TINY, Command

pytestmark = pytest.mark.usefixtures("forked_workers")

PROGRAM = (
    TINY
    + """\
    claim test.accuracy = 1.00 ± 0.02 at task.order = backward from "nobody"
    search train.lr in 1e-3..1e-1 log, model.d in [4, 8]
}

table small {
    row    "Tiny" tiny
    row    "Tinier, by half" tiny at model.d = 4
    row    "DNC" absent "there is no such block"
    column "Longer" test.accuracy
    column "Five" test.accuracy[5]
}
"""
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "tiny.arch").write_text(PROGRAM)
    return tmp_path


@pytest.fixture
def below(folder: Path) -> Path:
    (folder / "below").mkdir()
    return folder / "below"


def table(archlang: Command, *arguments: str) -> Any:
    return archlang("table", "tiny.arch", "--device", "cpu", "--workers", "1", *arguments)


def test_a_table_runs_unfinished_points_and_prints_them_beside_the_claim(archlang: Command, folder: Path) -> None:
    result = table(archlang, "--seeds", "2", "--write", "table.md", "--compare", "Tiny,Tinier, by half")
    assert (result.code, result.err) == (0, "")
    cost = "Cost: at most 0.01 core-hours of training in 4 finished runs"
    for expected in ("Tiny", "absent", "paper 100 ± 2", "p = ", cost):
        assert expected in result.out
    assert (folder / "table.md").read_text().startswith("|  | Longer | Five |")
    again = table(archlang, "--seeds", "2", "--json")
    assert "4 of 4 runs are done" in again.err
    done = r"^done: .*, [\d.]+ s; [1-4] of 4 in \d+ s(, about \d+ (?:s|min) left)?$"
    assert len(re.findall(done, result.out, re.M)) == 4
    cells = json.loads(again.out)["cells"]
    assert [cell["seeds"] for cell in cells] == [2, 2, 2, 2, 0, 0]
    assert cells[0]["verdict"] in ("below", "reproduced")
    assert cells[0]["from"] == "nobody"
    (folder / "tiny.arch").write_text(PROGRAM.replace("test.accuracy[5]", "test.loss"))
    cells = json.loads(table(archlang, "--seeds", "2", "--json", "--no-run").out)["cells"]
    results = (json.loads(run.read_text()) for run in folder.glob("runs/tables/small/*/results.json"))
    losses = sorted(result["splits"]["test"]["loss"] for result in results)
    assert sorted(value for cell in cells[1::2] for value in cell["values"].values()) == losses


def test_no_run_shows_missing_runs(archlang: Command, folder: Path) -> None:
    result = table(archlang, "--no-run", "--only", "Tiny", "--format", "markdown")
    assert "| Tiny | not run" in result.out
    assert not (folder / "runs").exists()


def test_only_the_chosen_rows_need_the_statics_that_are_set(archlang: Command, folder: Path) -> None:
    other = "model Other(x: tokens[n]) -> logits[classes] { return embed[8](x) |> mean |> linear[classes] }\n"
    recipe = PROGRAM[PROGRAM.index("recipe tiny") : PROGRAM.index("\n    claim")].replace("tiny", "other") + "\n}\n"
    recipe = re.sub(r"model .*", "model Other", recipe)
    written = PROGRAM.replace('row    "DNC" absent "there is no such block"', 'row "Other" other')
    for program, name in ((written, "Tin*"), (PROGRAM[: PROGRAM.index("table small")], "tiny")):
        (folder / "tiny.arch").write_text(other + recipe + program)
        assert table(archlang, "--no-run", "--only", name, "--set", "model.d=16").code == 0
        for only in (("--only", "[Oo]ther"), ()):
            result = table(archlang, "--no-run", "--set", "model.d=16", *only)
            assert (result.code, "model.d" in result.err) == (1, True)
        assert "unknown row Nobody" in table(archlang, "--no-run", "--only", "Nobody").err


def test_stopped_runs_are_not_counted_as_ended(archlang: Command, folder: Path) -> None:
    result = table(archlang, "--for", "0s")
    assert "of 2 in" not in result.out
    assert "stopped; rerun the command to resume" in result.out


def test_a_dry_run_estimates_the_runs_and_leaves_no_files(archlang: Command, folder: Path) -> None:
    result = table(archlang, "--dry-run", "--seeds", "3", "--together")
    assert "6 runs to train and 0 done" in result.out
    assert "together they would be 2 models" in result.out
    assert "Tinier, by half, Longer, seed 3, about" in result.out
    assert not (folder / "runs").exists()


@pytest.mark.parametrize(
    ("arguments", "code", "reason"),
    [
        (("--precision", "16"), 1, "error: Tiny, Longer: the device `cpu` does not compute in precision 16"),
        (("--devices", "16"), 1, "error: Tiny, Longer: a batch of 8 cannot be shared by 16 processes"),
        (("--device", "mps"), 71, "error: Tiny, Longer: there is no device `mps`"),
        (("--engine-option", "nodes=2"), 1, "the engine `local` does not take the option `nodes`"),
    ],
)
def test_a_dry_run_names_the_rows_that_the_runs_refuse(
    archlang: Command, folder: Path, arguments: tuple[str, ...], code: int, reason: str
) -> None:
    result = table(archlang, "--dry-run", *arguments)
    assert (result.code, result.out) == (code, "")
    assert reason in result.err
    assert reason.startswith("the engine") or reason.replace("Tiny", "Tinier, by half") in result.err


def test_a_dry_run_counts_the_nodes_of_a_run(archlang: Command, folder: Path) -> None:
    pytest.importorskip("ray", reason="ray is not installed")
    result = table(archlang, "--dry-run", "--engine", "ray", "--engine-option", "nodes=3", "--devices", "3")
    assert "a batch of 8 cannot be shared by 9 processes" in result.err


def test_a_dry_run_counts_flops_and_ends_with_the_cost_here(archlang: Command, folder: Path) -> None:
    first, *lines = table(archlang, "--dry-run").out.splitlines()
    assert first == "preparing the data of ctl"
    units = {"FLOP": 1.0, "kFLOP": 1e3}
    counts = [line.split("about ")[1].replace(",", "").split() for line in [*lines[:2], lines[-1]]]
    flops = [float(count) * units[unit] for count, unit, *_ in counts]
    assert [line.partition(" steps, ")[0] for line in lines[:2]] == ["Tiny, Longer: 4", "Tinier, by half, Longer: 4"]
    assert 0 < flops[1] < flops[0]
    assert flops[2] == pytest.approx(flops[0] + flops[1], rel=0.02)
    assert lines[-1].endswith("FLOP/s on this machine")


def test_a_dry_run_times_runs_that_differ_in_their_task_alone_once(
    archlang: Command, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    timed = []

    def seconds(point: Point, cost: RunCost) -> float:
        timed.append(point.name)
        return 1.0

    monkeypatch.setattr(costs, "seconds_per_step", seconds)
    text = PROGRAM.replace(
        'column "Longer" test.accuracy', "columns test.accuracy at task.order in [forward, backward]"
    )
    (folder / "tiny.arch").write_text(text.replace('    column "Five" test.accuracy[5]\n', ""))
    lines = table(archlang, "--dry-run", "--seeds", "1").out.splitlines()
    assert timed == ["Tiny, forward, seed 1", "Tinier, by half, forward, seed 1"]
    assert sum("about 4 s, in " in line for line in lines) == 4


def test_a_dry_run_names_the_files_that_must_be_fetched(
    archlang: Command, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ARCHLANG_DATA", str(folder / "data"))
    recipe = (
        "recipe reader {\n    task lra_text\n    model tiny\n    train adamw[steps = 10, select = test.accuracy]\n}\n"
    )
    text = PROGRAM.replace("table small {", recipe + "table small {").replace("tiny at model.d = 4", "reader")
    (folder / "tiny.arch").write_text(text.replace("test.accuracy[5]", "test.loss"))
    result = table(archlang, "--dry-run")
    assert (result.code, result.err) == (0, "")
    assert result.out.startswith("must be fetched first: imdb/")
    assert "1 run needs these files and cannot be estimated; fetch them with `archlang data get imdb`" in result.out
    assert re.search(r"2 runs to train and 0 done; about \d+ s of training of 1 of them", result.out)
    assert table(archlang, "--dry-run", "--only", "Tinier*").out.splitlines()[-1] == "1 run to train and 0 done"


def test_a_dry_run_and_a_list_name_the_files_of_the_user_that_are_missing(
    archlang: Command, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ARCHLANG_DATA", str(folder / "data"))
    reader = """
model spans(x: tokens[n]) -> logits[n, 2] { return embed[4](x) |> linear[2] }
recipe reader {
    task  squad[tokenizer = "none/tokenizer.json", word_limit = 30]
    model spans
    train adamw[steps = 10, select = test.f1]
}
table answers {
    row    "Reader" reader
    column "F1" test.f1
}
"""
    (folder / "tiny.arch").write_text(PROGRAM + reader)
    path = folder / "none" / "tokenizer.json"
    lines = table(archlang, "answers", "--dry-run").out.splitlines()
    assert lines[-2:] == [f"missing: {path}, which 1 run needs", "1 run to train and 0 done"]
    listed = archlang("table", "tiny.arch", "answers", "--list")
    assert "  1 cell needs a file that is missing: none/tokenizer.json" in listed.out.splitlines()


def test_a_time_limit_stops_the_table_and_a_rerun_resumes(archlang: Command, folder: Path) -> None:
    result = table(archlang, "--for", "0s")
    assert "rerun the command to resume" in result.out
    assert "not run" in result.out
    assert table(archlang, "--json", "--only", "Tiny").code == 0


def test_a_point_that_another_process_runs_has_not_failed(archlang: Command, folder: Path) -> None:
    assert table(archlang, "--only", "Tiny").code == 0
    (results,) = (folder / "runs" / "tables" / "small").glob("*/results.json")
    results.unlink()
    with Folder.open(results.parent) as opened, opened.lock(LOCK):
        result = table(archlang, "--only", "Tiny")
    assert result.code == 0
    assert "running in another process: Tiny, Longer, seed 1" in result.out
    assert re.search(r"│ Tiny +│ running +│", result.out)


def test_a_failed_point_is_reported_and_exits_with_1(archlang: Command, folder: Path) -> None:
    result = table(archlang, "--set", "train.lr=1e30", "--only", "Tiny")
    assert result.code == 1
    assert "failed: Tiny, Longer, seed 1: " in result.out


@pytest.mark.slow
def test_seeds_train_together_or_a_warning_says_why_not(archlang: Command, folder: Path) -> None:
    tiny = PROGRAM[: PROGRAM.index("table small")]
    packed = "recipe packed" + tiny.partition("recipe tiny")[2].replace("batch = 8", "batch = 8, batch_of = tokens")
    rows = PROGRAM[PROGRAM.index("table small") :].replace("tiny at model.d = 4", "packed")
    (folder / "tiny.arch").write_text(tiny + packed + rows)
    result = table(archlang, "--seeds", "2", "--together", "--json")
    assert result.code == 0
    assert [cell["seeds"] for cell in json.loads(result.out)["cells"]] == [2, 2, 2, 2, 0, 0]
    warning, *done = sorted(result.err.splitlines(), key=lambda line: not line.startswith("warning"))
    assert warning == (
        "warning: Tinier, by half, Longer, seed 1: `tiny` cannot train together: a batch is a number of tokens, so "
        "the seeds have batches of different sizes; its seeds train one after another"
    )
    assert [line.partition(", Longer, ")[2][:6] for line in done] == ["seed 1", "seed 2"] * 2
    again = table(archlang, "--seeds", "2", "--json")
    assert (again.out, "4 of 4 runs are done" in again.err) == (result.out, True)
    for run in (folder / "runs" / "tables" / "small").iterdir():
        assert archlang("eval", str(run), "--device", "cpu").code == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--only", "Nobody"], "unknown row Nobody help: the rows are “Tiny”, “Tinier, by half”, “DNC”"),
        (["--only", "Tinny"], "unknown row Tinny help: did you mean “Tiny”?"),
        (["--write", "table.doc"], "has no suffix of a table or a picture"),
        (["--seeds", "some"], "not a number of seeds"),
        (["--seeds", "0"], "'0' names no seed"),
        (["--seeds", "3..1"], "'3..1' names no seed; write 3, 1..5 or 1,4,7"),
        (["--for", "soon"], "not a duration"),
        (["--save", "1__0"], "not a duration or a number of steps"),
        (["--format", "word"], "is not one of"),
        (["tiny.arch", "--dry-run"], "takes one file, and `tiny.arch` is a second one"),
        (["tiny.arch", "--list"], "or with `--list` a folder"),
        (["--together", "--devices", "2"], "`--together` and several devices or nodes exclude each other"),
        (["--together", "--engine-option", "nodes=2"], "`--together` and several devices or nodes exclude each other"),
        (["--no-run", "--engine", "foo"], "'foo' is not one of local, ray, slurm"),
        (["--list", "--only", "Tiny"], "`--list` and `--only` exclude each other"),
        (["--list", "--format", "latex"], "`--list` has no format latex"),
    ],
)
def test_a_wrong_option_is_an_error_before_anything_runs(
    archlang: Command, folder: Path, arguments: list[str], message: str
) -> None:
    result = table(archlang, *arguments)
    assert (result.code, result.out) == (2, "")
    assert message in " ".join(result.err.replace("│", " ").split())
    assert not (folder / "runs").exists()


@pytest.mark.parametrize("option", ["--no-run", "--dry-run", "--yes"])
def test_a_file_is_no_folder_of_runs(archlang: Command, folder: Path, option: str) -> None:
    result = table(archlang, "--out", "tiny.arch", option)
    assert (result.code, result.out) == (1, "")
    assert "tiny.arch is a file" in result.err


def test_tune_prints_the_best_trial_as_a_valid_recipe(archlang: Command, folder: Path) -> None:
    pytest.importorskip("optuna", reason="optuna is not installed")
    options = ("--trials", "2", "--prune", "median", "--device", "cpu", "--workers", "1")
    result = archlang("tune", "tiny.arch", *options, "--json")
    assert result.code == 0, result.err
    tuned = json.loads(result.out)
    assert [trial["pruned"] for trial in tuned["trials"]] == [False, False]
    assert tuned["trials"][0]["accuracy"] >= tuned["trials"][1]["accuracy"]
    model = PROGRAM[: PROGRAM.index("recipe tiny")]
    (folder / "best.arch").write_text(model + tuned["best"])
    assert archlang("check", "best.arch").code == 0
    printed = archlang("tune", "tiny.arch", "--trials", "0", "--device", "cpu")
    assert "recipe tiny {" in printed.out


def test_a_trial_that_was_cut_off_is_not_done_and_resumes(archlang: Command, folder: Path) -> None:
    pytest.importorskip("optuna", reason="optuna is not installed")
    search = plan_search(folder / "tiny.arch")
    next(Tuning(search, folder / "runs" / "tune" / search.recipe)._points(1))  # a trial whose process dies
    looked = archlang("tune", "tiny.arch", "--trials", "0")
    assert (looked.code, looked.err) == (0, "")
    assert re.search(r"trial 0: .*: not done; it resumes with the next search", looked.out)


def test_a_folder_without_a_search_is_not_made_one(archlang: Command, folder: Path) -> None:
    pytest.importorskip("optuna", reason="optuna is not installed")
    (folder / "run").mkdir()
    (folder / "run" / "run.json").touch()
    (folder / "empty").mkdir()
    before = sorted(folder.rglob("*"))
    for out, trials, reason in (
        ("missing", "0", "missing has no search of this recipe"),
        ("empty", "0", "empty has no search of this recipe"),
        ("run", "0", "run holds another run: a search has a folder of its own"),
        ("run", "1", "run holds another run: a search has a folder of its own"),
    ):
        result = archlang("tune", "tiny.arch", "--trials", trials, "--out", out, "--device", "cpu")
        assert result.code == 1
        assert reason in " ".join(result.err.split())
        assert sorted(folder.rglob("*")) == before


def test_tune_names_its_pruners(archlang: Command, folder: Path) -> None:
    result = archlang("tune", "tiny.arch", "--prune", "mean")
    assert result.code == 2
    assert "one of median, hyperband" in " ".join(result.err.replace("│", " ").split())


def test_tune_without_a_search_is_an_error(archlang: Command, folder: Path) -> None:
    program = folder / "tiny.arch"
    program.write_text(PROGRAM.replace("    search train.lr in 1e-3..1e-1 log, model.d in [4, 8]\n", ""))
    result = archlang("tune", "tiny.arch")
    assert result.code == 1
    assert "E0614" in result.err


PUBLISHED = (
    PROGRAM
    + """
table published from "A paper, Table 3" {
    row    "Tiny" tiny claims 0.9810 ± 0.0100, -
    row    "Prior work" claims median 0.5, 0.1250
    columns "Longer" test.accuracy at task.order in [forward, backward]
}
"""
)


def test_a_list_of_a_folder_names_every_table_and_what_cannot_run(archlang: Command, folder: Path, below: Path) -> None:
    (folder / "tiny.arch").rename(below / "tiny.arch")
    (below / "other.arch").write_text(PUBLISHED)
    result = archlang("table", "below", "--list")
    assert result.code == 0
    lines = result.out.splitlines()
    assert lines[0] == "below/other.arch: small (nobody)"
    assert "  cannot run: DNC: there is no such block" in lines
    assert "below/other.arch: published (A paper, Table 3)" in lines
    assert "  rows: Tiny; Prior work" in lines
    assert "  4 cells: 2 can run, 2 cannot; 3 have a published number" in lines
    assert "  cannot run: Prior work: published numbers only" in lines
    assert lines[-1] == "3 tables, 16 cells: 10 can run, 7 with a published number, 0 measured"
    records = json.loads(archlang("table", "below", "--list", "--json").out)
    assert [record["table"] for record in records] == ["small", "published", "small"]
    refused = archlang("table", "below")
    assert refused.code == 2
    assert "below is a folder" in refused.err


def test_a_list_of_a_folder_reports_broken_files_and_lists_the_others(archlang: Command, below: Path) -> None:
    (below / "a.arch").write_text(PUBLISHED.replace("-> logits[classes]", "-> logits[classes"))
    (below / "b.arch").write_text(PUBLISHED)
    result = archlang("table", "below", "--list")
    assert result.code == 1
    assert "published" in result.out
    assert result.err.count("error[") == 1
    assert "error: 1 file has errors" in result.err
    records = json.loads(archlang("table", "below", "--list", "--json").out)
    assert {record["file"] for record in records} == {"below/b.arch"}


def test_a_folder_without_tables_is_said_to_have_none(archlang: Command, below: Path) -> None:
    (below / "a.arch").write_text("block b(h: seq[n, d]) -> seq[n, d] { return norm(h) }\n")
    result = archlang("table", "below", "--list")
    assert (result.code, result.out) == (0, "no program in below has a table\n")
    assert json.loads(archlang("table", "below", "--list", "--json").out) == []
    (below / "b.arch").write_text(PUBLISHED)
    assert "1 table, " in archlang("table", "below", "published", "--list").out
    assert archlang("table", "below", "publishd", "--list").out == "no program in below has a table `publishd`\n"


def test_a_cell_of_the_best_shows_the_point_with_the_best_mean(archlang: Command, folder: Path) -> None:
    varied = PROGRAM.replace("    claim", "    vary  train.lr in [1e-9, 0.05]\n    claim", 1)
    varied = varied.replace('"Tiny" tiny', '"Tiny" tiny best of train.lr')
    (folder / "tiny.arch").write_text(varied)
    result = table(archlang, "--seeds", "1", "--only", "Tiny", "--json")
    assert result.code == 0
    cells = json.loads(result.out)["cells"]
    runs = [json.loads(run.read_text()) for run in folder.glob("runs/tables/small/*/results.json")]
    accuracies = [run["splits"]["test"]["metrics"]["accuracy"] for run in runs]
    assert len(accuracies) == 2
    assert cells[0]["mean"] == max(accuracies)
    assert cells[0]["best_of"].startswith("lr = ")


def test_some_rows_run_and_all_are_shown_with_the_runs_of_another_folder(archlang: Command, folder: Path) -> None:
    options = "--seeds", "1", "--format", "markdown"
    assert table(archlang, *options, "--run", "Tiny", "--out", "first").code == 0
    result = table(archlang, *options, "--run", "Tinier*", "--out", "second", "--also", "first")
    assert len(list((folder / "first").glob("tiny-*"))) == len(list((folder / "second").glob("tiny-*"))) == 1
    assert "not run" not in result.out
    assert re.search(r"Tinier, by half is [12] of 2 in Longer, [12] of 2 in Five\.", result.out)
    assert table(archlang, *options, "--no-run", "--out", "second", "--also", "first", "--write", "all.jsonl").code == 0
    alone = table(archlang, *options, "--out", "third", "--also", "all.jsonl")
    assert "2 of 2 runs are done" in alone.err
    assert set(alone.out.splitlines()) < set(result.out.splitlines())  # which also have the place of the row
    unknown = table(archlang, "--run", "Tniy")
    assert (unknown.code, "did you mean “Tiny”?" in unknown.err) == (2, True)


@pytest.mark.parametrize("records", ['{"run": "tiny"}\n', '{"run": "ti'])
def test_records_that_are_damaged_are_named_with_their_line(records: str, archlang: Command, folder: Path) -> None:
    (folder / "all.jsonl").write_text(records)
    result = table(archlang, "--no-run", "--also", "all.jsonl")
    assert result.code == 1
    assert "all.jsonl is damaged: line 1: " in result.err
