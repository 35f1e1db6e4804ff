"""An exported model computes as many steps as its sample takes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch

from archlang.export.formats import export, input_names
from benchmarks.exported_depth import samples
from benchmarks.halting import gut
from tests.unchecked_shapes import unchecked_shapes


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_onnxruntime_computes_only_the_steps_that_a_sample_takes(tmp_path: Path) -> None:
    runtime = pytest.importorskip("onnxruntime")
    pytest.importorskip("onnxscript")
    with unchecked_shapes():
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
