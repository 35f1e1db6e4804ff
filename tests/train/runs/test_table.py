"""A table shows the runs that are done, and the time that they took."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from archlang.graph.summary import summarize
from archlang.plan.from_file import plan_recipe, plan_table
from archlang.plan.plan import TableColumn
from archlang.reports.result_table import ResultCell
from archlang.train.record.mistakes import RunError
from archlang.train.record.reading import Timing
from archlang.train.record.schemas import (
    EvaluationTiming,
    JointRecord,
    Results,
    SavingTiming,
    SplitResult,
    Statics,
    StepTiming,
)
from archlang.train.record.summaries import run_costs
from archlang.train.runs.points import folder_name, make_folder, run_point
from archlang.train.runs.table import FinishedRun, TableRuns, TimeSpent, recorded, time_spent
from archlang.types.statics import Symbol

RESULTS = Results(
    best_step=1,
    breakdown="length",
    splits={
        "test": SplitResult(
            items=4,
            loss=1.5,
            metrics={"accuracy": 0.5},
            groups={
                "length": {8: {"accuracy": 0.25}},
                "ignore": {80: {"accuracy": 0.75}},
                "window": {1: {"accuracy": 0.6}},
            },
            joint=(JointRecord(of={"length": 8, "ignore": 80}, metrics={"accuracy": 0.125}),),
        )
    },
    group_names={"window": ("first", "later")},
)


@pytest.mark.parametrize(
    ("column", "value"),
    [
        (TableColumn("", "test.accuracy"), 0.5),
        (TableColumn("", "test.accuracy", 8), 0.25),
        (TableColumn("", "test.accuracy", None, {"ignore": 0.8}), 0.75),
        (TableColumn("", "test.accuracy", 8, {"ignore": 0.8}), 0.125),
        (TableColumn("", "test.accuracy", None, {"window": Symbol("later")}), 0.6),
        (TableColumn("", "test.accuracy", None, {"window": Symbol("first")}), None),
        (TableColumn("", "test.accuracy", 9), None),
        (TableColumn("", "test.accuracy", 8, {"ignore": 0.1}), None),
        (TableColumn("", "iid.accuracy"), None),
        (TableColumn("", "test.perplexity"), None),
        (TableColumn("", "test.loss"), 1.5),
    ],
)
def test_a_column_reads_a_metric_a_group_a_joint_group_or_the_loss(column: TableColumn, value: float | None) -> None:
    assert FinishedRun(RESULTS, Path()).value(column)[0] == value


def test_a_table_shows_the_seconds_and_the_memory_of_runs(program: Path, tmp_path: Path) -> None:
    table = """
table cost {
    row    "R" tiny
    columns run.seconds at model.d in [8, 16]
    column "Memory" run.memory
}
"""
    program.write_text(program.read_text() + table)
    plan = plan_table(program, "cost", sets={"train.steps": "3"}, seeds=[1])
    runs = TableRuns(plan, tmp_path / "runs", device="cpu")
    for point in runs.points():
        run_point(point)
    small, _, memory = runs.cell_results()
    assert 0 < small.values[1] < 100
    assert 10 < memory.values[1] < 100_000
    (folder,) = {runs.run_folder(point) for point in small.cell.plans}
    (folder / "timings.jsonl").write_text("{}\n")
    assert "timings.jsonl is damaged" in runs.cell_results()[0].damaged[1]


def test_costs_of_the_card_are_columns_that_need_no_run(program: Path, tmp_path: Path) -> None:
    table = """
table cost {
    row    "R" tiny
    row    "Wide" tiny at model.d = 16
    column "Parameters" run.parameters
    column "FLOPs" run.flops[32]
    column "Accuracy" test.accuracy
}
"""
    program.write_text(program.read_text() + table)
    runs = TableRuns(plan_table(program, "cost", seeds=[1, 2]), tmp_path / "runs", device="cpu")
    cells = {(cell.cell.row.title, cell.cell.column.title): cell for cell in runs.cell_results()}
    for title, d in (("R", 8), ("Wide", 16)):
        costs = summarize(plan_recipe(program, sets={"model.d": str(d)}).graph, 32)
        assert cells[title, "Parameters"].values == {1: costs.unique, 2: costs.unique}
        assert cells[title, "FLOPs"].values == {1: costs.flops, 2: costs.flops}
        assert ResultCell.of(cells[title, "FLOPs"]).result == f"{costs.flops:,}"
        assert cells[title, "Accuracy"].missing == (1, 2)
    assert not (tmp_path / "runs").exists()
    program.write_text(program.read_text().replace('    column "Accuracy" test.accuracy\n', ""))
    assert plan_table(program, "cost").plans == ()


def test_the_best_is_chosen_by_the_metric_after_by(
    program: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = 'table best {\n row "R" tiny best of model.d by valid.loss\n column "C" test.accuracy\n}\n'
    program.write_text(program.read_text().replace("    claim", "    vary model.d in [8, 16]\n    claim", 1) + table)
    runs = TableRuns(plan_table(program, "best", seeds=[1]), tmp_path, device="cpu")

    def finished(folder: Path) -> FinishedRun:
        loss, accuracy = (2.0, 0.9) if folder == runs.points()[0].folder else (1.0, 0.3)
        valid, test = (
            SplitResult(items=4, loss=each, metrics={"accuracy": accuracy}, groups={}) for each in (loss, 1.0)
        )
        return FinishedRun(Results(best_step=1, breakdown="length", splits={"valid": valid, "test": test}), folder)

    monkeypatch.setattr(FinishedRun, "read", staticmethod(finished))
    (cell,) = runs.cell_results()
    assert (cell.values, cell.option) == ({1: 0.3}, "d = 16")


def test_a_folder_name_depends_on_the_run_alone(program: Path) -> None:
    plan = plan_recipe(program)
    assert folder_name(plan, "32") == folder_name(plan_recipe(program), "32")
    changed_plans = [plan_recipe(program, sets={"model.d": "16"}), replace(plan, seed=2)]
    names = {folder_name(plan, "bf16"), *(folder_name(each, "32") for each in (plan, *changed_plans))}
    assert len(names) == 4


def test_a_folder_name_has_no_settings_of_the_optimizer_that_are_off(program: Path) -> None:
    plan = plan_recipe(program)

    def name(settings: Statics, statics: Statics) -> str:
        train = replace(plan.train, statics={**plan.train.statics, **statics})
        return folder_name(replace(plan, settings={**plan.settings, **settings}, train=train), "32")

    assert name({"train.newer": False}, {"newer": False}) == folder_name(plan, "32")
    # What is absent here is not off.
    changes: list[tuple[Statics, Statics]] = [({"test.model.on": False}, {}), ({"train.losses.z": 0}, {"losses.z": 0})]
    assert len({folder_name(plan, "32"), *(name(*change) for change in changes)}) == 3


def test_a_folder_name_has_no_place_of_the_program_and_its_files(program: Path, tmp_path: Path) -> None:
    plans = []
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        moved = tmp_path / folder / "p.arch"
        words = "model m(x: tokens[n]) -> logits[classes] { return embed[4](x) |> mean |> linear[classes] }"
        moved.write_text(f'{words} recipe r {{ task file["w.tsv", test = "t/w.tsv"] model m train adamw[steps = 1] }}')
        plans.append(plan_recipe(moved))
    first, second = plans
    assert folder_name(first, "32") == folder_name(second, "32")
    other = plan_recipe(tmp_path / "b" / "p.arch", sets={"task.path": '"/w.tsv"'})
    assert folder_name(other, "32") != folder_name(second, "32")


def test_a_corrected_claim_and_a_new_row_keep_the_folders_of_a_table(program: Path) -> None:
    table = """
table lengths from "a paper" {
    row    "R" tiny claims 0.5
    column "5" test.accuracy[5]
}
"""
    text = program.read_text()
    names = []
    for changed in (
        text + table,
        text.replace("1.00 ± 0.02", "0.99 ± 0.03").replace("nobody", "somebody") + table.replace("0.5", "median 0.25"),
        text + table.replace("a paper", "another paper").replace("column", 'row "S" claims 0.75\n    column'),
    ):
        program.write_text(changed)
        (plan,) = plan_table(program, "lengths").plans
        names.append(folder_name(plan, "32"))
    assert len(set(names)) == 1


def test_finished_runs_are_not_repeated_and_have_values_or_a_damage(program: Path, tmp_path: Path) -> None:
    table = plan_table(program, sets={"train.steps": "3"}, seeds=[1, 2])
    runs = TableRuns(table, tmp_path / "runs", device="cpu")
    first, second = runs.points()
    result = run_point(first)
    assert (result.error, result.stopped) == ("", False)
    assert runs.points() == (second,)
    cell = runs.cell_results()[0]
    results = json.loads((first.folder / "results.json").read_text())
    assert cell.values == {1: results["splits"]["test"]["metrics"]["accuracy"]}
    assert cell.missing == (2,)
    (first.folder / "results.json").write_bytes(b"\xff\xfe")
    cell = runs.cell_results()[0]
    assert (cell.values, cell.missing) == ({}, (2,))
    assert "results.json is damaged" in cell.damaged[1]


def test_a_folder_of_runs_with_a_link_in_place_of_a_run_is_refused(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    make_folder(tmp_path / "table", ["first", "second"])
    (tmp_path / "table" / "second").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(RunError, match="second is a link"):
        make_folder(tmp_path / "table", ["first", "second"])


def test_an_average_is_that_of_each_seed_that_all_its_cells_have(program: Path, tmp_path: Path) -> None:
    program.write_text(
        program.read_text()
        + """
table lengths {
    row    "R" tiny
    columns test.accuracy at test.length in [5, 6]
}
table averages {
    row    "R" claims 0.5 from "a paper"
    column "Both" average of lengths
}
"""
    )
    runs = TableRuns(plan_table(program, "averages", seeds=[1, 2]), tmp_path / "runs", device="cpu")
    first, _ = runs.points()
    run_point(first)
    (cell,) = runs.cell_results()
    groups = json.loads((first.folder / "results.json").read_text())["splits"]["test"]["groups"]["length"]
    assert cell.values == {1: sum(group["accuracy"] for group in groups.values()) / 2}
    assert cell.missing == (2,)


_SOFTWARE = {
    "archlang": "0.1.0", "python": "3", "torch": "2", "machine": "m", "system": "s", "processor": "p", "cores": 8,
    "threads": 2, "device": "cpu", "gpus": [],
}  # fmt: skip
# 2 s, then 3 s of training steps, and 1 s of evaluation.
_TIMINGS = [
    {"step": 10, "time": 0.0, "steps_per_second": 5.0},
    {"step": 10, "split": "valid", "seconds": 1.0},
    {"step": 40, "time": 90.0, "steps_per_second": 10.0},
]


def run_folder(folder: Path, done: bool = True, **software: object) -> Path:
    folder.mkdir()
    (folder / "versions.json").write_text(json.dumps({**_SOFTWARE, **software}))
    (folder / "timings.jsonl").write_text("".join(json.dumps(line) + "\n" for line in _TIMINGS))
    if done:
        (folder / "results.json").write_text(RESULTS.model_dump_json(by_alias=True))
    return folder


def time_of(*folders: Path) -> TimeSpent:
    return time_spent(filter(None, map(recorded, folders)))


def test_a_run_has_the_seconds_of_its_training_steps_and_its_largest_memory() -> None:
    timings = [
        StepTiming(step=10, time=0.0, steps_per_second=5.0, memory=2**20),
        StepTiming(step=40, time=90.0, steps_per_second=10.0, memory=3 * 2**20),
    ]
    assert run_costs(timings) == {"seconds_of_steps": 2.0 + 3.0, "memory": 3 * 2**20}
    assert run_costs([]) == {}


def test_the_costs_of_a_run_are_sums_of_seconds_and_means_over_the_time_of_the_steps() -> None:
    timings: list[Timing] = [
        StepTiming(
            step=10, time=0.0, steps_per_second=5.0, tokens_per_second=50.0, flops_per_second=1e9,
            peak_share=0.1, data_seconds=0.5,
        ),
        SavingTiming(step=10, saving=0.25), EvaluationTiming(step=10, split="valid", seconds=1.5),
        StepTiming(
            step=40, time=90.0, steps_per_second=5.0, tokens_per_second=10.0, flops_per_second=5e9,
            peak_share=0.5, data_seconds=1.0,
        ),
        SavingTiming(step=40, saving=0.5),
    ]  # fmt: skip
    assert run_costs(timings) == pytest.approx({
        "seconds_of_steps": 8.0, "seconds_of_data": 1.5, "seconds_of_evaluation": 1.5, "seconds_of_saving": 0.75,
        "tokens_per_second": 20.0, "flops_per_second": 4e9, "peak_share": 0.4,
    })  # fmt: skip


def test_the_time_of_finished_runs_counts_steps_and_validation_by_the_threads_of_a_cpu(tmp_path: Path) -> None:
    resumed = [{**_SOFTWARE, "threads": 4, "step": 20}]
    folders = [
        run_folder(tmp_path / "two threads"),
        run_folder(tmp_path / "resumed with four", resumed=resumed),
        run_folder(tmp_path / "gpu", device="cuda:0"),
        run_folder(tmp_path / "not done", done=False),
        tmp_path / "not begun",
    ]
    assert time_of(*folders) == TimeSpent(3, (6 * 2 + 6 * 4) / 3600, 6 / 3600)


@pytest.mark.parametrize("threads", [-1, 10**400])
def test_a_run_with_an_impossible_number_of_threads_is_not_counted(tmp_path: Path, threads: int) -> None:
    assert time_of(run_folder(tmp_path / "run", threads=threads)) == TimeSpent()


@pytest.mark.parametrize(
    "lines",
    [
        "", "{}\n", '{"step": 1' + 400 * "0" + ', "time": 0.0, "steps_per_second": 5.0}\n',
        '{"step": 10, "time": 0.0, "steps_per_second": 1e-308}\n',
        '{"step": 10, "time": 0.0, "steps_per_second": -1.0}\n', '{"step": 10, "split": "valid", "seconds": -1.0}\n',
        '{"step": 10, "split": "valid", "seconds": 1e999}\n', '{"step": 10, "split": "valid", "seconds": NaN}\n',
    ],
)  # fmt: skip
def test_a_run_whose_times_are_damaged_or_missing_is_not_counted(tmp_path: Path, lines: str) -> None:
    folder = run_folder(tmp_path / "run")
    (folder / "timings.jsonl").write_text(lines)
    assert replace(time_of(folder), untimed=0) == TimeSpent()


def test_the_sentence_names_the_unit_and_rounds_up() -> None:
    assert "times the threads; 2 more have no times)." in TimeSpent(1, 0.001, untimed=2).sentence()
    assert TimeSpent(1, 0.001).sentence() == (
        "Cost: at most 0.01 core-hours of training in 1 finished run (wall time of steps and validation, on a CPU "
        "times the threads)."
    )
    assert TimeSpent(2, 0.0, 1.5).sentence() == (
        "Cost: at most 1.50 GPU-hours of training in 2 finished runs (wall time of steps and validation)."
    )
    assert "at most 1.00 core-hours and 0.50 GPU-hours" in TimeSpent(5, 1.0, 0.5).sentence()
