"""Every file of a run folder is written and read through its model."""

import json
import math
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from archlang.plan.from_file import plan_recipe
from archlang.train.record import schemas
from archlang.train.record.mistakes import RunError
from archlang.train.record.reading import read_metrics, read_record, read_results
from archlang.types.statics import InstanceOf, Interval, StaticValue, Symbol, static_from_json, static_to_json

STATICS: st.SearchStrategy[StaticValue] = st.recursive(
    st.booleans()
    | st.integers(-(2**63) + 1, 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text()
    | st.builds(Symbol, st.text())
    | st.builds(Interval, st.integers(), st.integers())
    | st.builds(InstanceOf, st.text()),
    lambda inner: st.lists(inner).map(tuple),
)


@given(STATICS)
def test_a_static_survives_as_json(value: StaticValue) -> None:
    again = static_from_json(json.loads(json.dumps(static_to_json(value))))
    assert again == value
    assert type(again) is type(value)


def test_the_description_of_a_run_is_read_as_it_was_written(program: Path, tmp_path: Path) -> None:
    run = schemas.RunRecord.of(plan_recipe(program), "32")
    (tmp_path / "run.json").write_text(schemas.json_text(run))
    assert read_record(tmp_path, "run.json", schemas.RunRecord) == run
    assert schemas.json_value(run)["settings"]["task.order"] == {"symbol": "forward"}
    assert schemas.json_value(run)["claims"][0]["from"] == "nobody"


def results(value: float) -> schemas.Results:
    split = schemas.SplitResult(
        items=4, written=2, loss=value, metrics={"accuracy": value}, groups={"length": {3: {"accuracy": value}}},
        depth=schemas.DepthRecord(mean=1.5, groups={"length": {3: 1.5}}),
        joint=(schemas.JointRecord(of={"length": 3, "ignore": 80}, metrics={"accuracy": value}),),
    )  # fmt: skip
    claim = schemas.ClaimResult(metric="test.accuracy", value=1, deviation=None, at={}, origin="nobody", measured=value)
    selection = schemas.Alternative(split="valid", metric="accuracy", step=1, value=value, best_step=2, best=0.5)
    return schemas.Results(
        best_step=None, breakdown="length", splits={"test": split}, selection=(selection,), claims=(claim,)
    )


@pytest.mark.parametrize("value", [0.25, math.nan, math.inf])
def test_results_are_read_as_they_were_written(value: float, tmp_path: Path) -> None:
    (tmp_path / "results.json").write_text(schemas.json_text(results(value)))
    restored = read_results(tmp_path)
    assert restored == results(value)
    assert restored.splits["test"].loss == (value if math.isfinite(value) else None)


def test_results_without_optional_parts_are_readable() -> None:
    split: dict[str, object] = {"items": 1, "loss": None, "metrics": {}, "groups": {}}
    restored = schemas.Results.model_validate({"best_step": 1, "breakdown": "length", "splits": {"test": split}})
    assert restored.splits["test"].depth is None
    assert {"written", "depth"}.isdisjoint(schemas.json_value(restored)["splits"]["test"])


def test_log_lines_are_restored_as_they_were_written(tmp_path: Path) -> None:
    step = schemas.StepMetrics(step=1, loss=0.5, lr=0.1, gradient_norm=None, mean_depth=2.0, losses={"z": 3.0})
    evaluation = schemas.EvaluationMetrics.of(1, "valid", math.nan, {"accuracy": 0.25})
    text = schemas.json_line(step) + schemas.json_line(evaluation)
    assert text == (
        '{"step": 1, "loss": 0.5, "lr": 0.1, "mean_depth": 2.0, "losses": {"z": 3.0}}\n'
        '{"step": 1, "split": "valid", "loss": null, "accuracy": 0.25}\n'
    )
    (tmp_path / "metrics.jsonl").write_text(text + '{"step": 2')
    assert read_metrics(tmp_path) == (step, evaluation)
    overflow = step.model_copy(update={"gradient_norm": math.inf})
    assert json.loads(schemas.json_line(overflow))["gradient_norm"] is None
    assert (evaluation.value("loss"), evaluation.value("accuracy"), evaluation.value("bleu")) == (None, 0.25, None)


@pytest.mark.parametrize(
    ("text", "reason"), [("{}", "recipe: Field required"), ("7", "should be an object"), ("{", "Invalid JSON")]
)
def test_a_damaged_file_names_its_first_fault(text: str, reason: str, tmp_path: Path) -> None:
    (tmp_path / "run.json").write_text(text)
    with pytest.raises(RunError, match=rf"run\.json is damaged: .*{reason}"):
        read_record(tmp_path, "run.json", schemas.RunRecord)
