"""The table of exports in docs/export.md can be repeated; an exported model computes only the steps of its sample."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch

from archlang.export.formats import export, input_names
from benchmarks.exported_depth import samples
from benchmarks.exports import SIZES, SUFFIXES, Row, measure, rows_of_page
from benchmarks.halting import gut
from tests.shipped_models import SHIPPED

pytestmark = pytest.mark.usefixtures("unchecked")
ROWS = {(row.model, row.suffix): row for row in rows_of_page()}
# These take a second or two.
QUICK = {("recurrent", ".py"), ("recurrent", ".pt2")}


def test_the_table_has_every_shipped_model_in_every_format() -> None:
    assert list(ROWS) == [(name, suffix) for name in SHIPPED for suffix in SUFFIXES]


def test_the_rows_of_the_table_differ_by_rounding_and_halt_at_the_same_steps() -> None:
    assert [row for row in ROWS.values() if row.difference > row.bound or row.steps == "different"] == []


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("name", "suffix"),
    [
        pytest.param(name, suffix, marks=() if (name, suffix) in QUICK else pytest.mark.slow)
        for name in SHIPPED
        for suffix in SUFFIXES
    ],
)
def test_a_row_of_the_table_can_be_repeated(name: str, suffix: str, tmp_path: Path) -> None:
    if suffix == ".onnx":
        pytest.importorskip("onnxruntime")
        pytest.importorskip("onnxscript")
    sizes = SIZES[:4] if (name, suffix) in QUICK else SIZES
    row, page = measure(name, suffix, tmp_path, sizes), ROWS[name, suffix]
    assert row.difference <= row.bound
    assert row.steps.partition(",")[0] == page.steps.partition(",")[0]
    assert bool(row.refusal) == bool(page.refusal)
    assert row.size == pytest.approx(page.size, rel=0.2, abs=1)


def test_a_row_is_read_as_it_is_printed() -> None:
    row = Row("ndr", ".onnx", 1.2e-07, 2.0e-07, "equal, at most 3", 347, 17.5, 0.61)
    refused = Row("ndr", ".pt2", refusal="ndr.arch:3:5: `odd` cannot be exported: 1 \\| `2`")
    assert Row.parse(str(row)) == row
    assert Row.parse(str(refused)) == refused


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_onnxruntime_computes_only_the_steps_that_a_sample_takes(tmp_path: Path) -> None:
    runtime = pytest.importorskip("onnxruntime")
    pytest.importorskip("onnxscript")
    module, batch = gut(8.0, d=16, ff=16, batch=16, length=9)
    pair = samples(module, batch)
    export(module, tmp_path / "gut.onnx")
    counts, steps = [], []
    for index, tokens in enumerate(pair):
        options = runtime.SessionOptions()
        options.enable_profiling = True
        options.profile_file_prefix = str(tmp_path / f"profile{index}")
        session = runtime.InferenceSession(str(tmp_path / "gut.onnx"), options)
        values = dict(zip(input_names(module), (tokens.numpy(), torch.tensor([9]).numpy()), strict=True))
        steps.append(float(session.run(None, values)[1][0]))
        events = json.loads(Path(session.end_profiling()).read_text(encoding="utf-8"))
        counts.append(sum(event.get("args", {}).get("op_name") == "MatMul" for event in events))
    early, late = steps
    assert early < late
    # If it always computed all steps, both counts would be equal.
    assert counts[1] - counts[0] >= late - early
