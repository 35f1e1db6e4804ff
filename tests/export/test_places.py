"""A model that torch cannot export is refused at the line of the program, with the reason."""

from __future__ import annotations

from pathlib import Path

import pytest

from archlang.compile import build, compile_named
from archlang.export.formats import export
from archlang.export.mistakes import ExportError
from tests.export.plain.test_file import plugin_model

pytestmark = pytest.mark.usefixtures("unchecked")


@pytest.mark.parametrize(
    ("suffix", "expression", "reason"),
    [
        pytest.param(".pt2", "x if x.shape[1] % 7 == 0 else x + 1", r"% 7\) == 0", id="guard"),
        pytest.param(".pt2", "x if x.shape[1] != 3 else x + 1", "a length `n` with n != 3", id="number"),
        pytest.param(".pt2", "x.reshape(-1, 7, 4).reshape(x.shape)", "its code fixes the length `n`",
                     id="constant", marks=pytest.mark.slow),
        pytest.param(".pt2", "x * int(x.sum())", "data-dependent", id="value", marks=pytest.mark.slow),
        pytest.param(".onnx", "torch.special.bessel_j0(x)", "No ONNX function found for .*bessel",
                     id="operation", marks=pytest.mark.slow),
    ],
)  # fmt: skip
@pytest.mark.filterwarnings("ignore")
def test_a_block_that_torch_cannot_export_is_refused_at_its_line_with_the_reason(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], suffix: str, expression: str, reason: str
) -> None:
    if suffix == ".onnx":
        pytest.importorskip("onnxscript")
    with pytest.raises(ExportError, match=rf"m\.arch:5:27: `double` cannot be exported: .*{reason}") as refusal:
        export(plugin_model(tmp_path, "math", expression).eval(), tmp_path / f"model{suffix}")
    assert not (tmp_path / f"model{suffix}").exists()
    assert "Suggested fixes" not in str(refusal.value)
    assert capsys.readouterr().err == ""


def test_a_field_that_is_no_tensor_is_refused_at_its_line(tmp_path: Path) -> None:
    (tmp_path / "small.arch").write_text(
        "model small[d = 4](\n    x: tokens[n],\n    z: tokens[m],\n    y: seq[n + m, 3],\n)"
        " -> logits[classes] { return embed[d](x) |> last |> linear[classes] }\n"
    )
    graph = compile_named(tmp_path / "small.arch", "small", None, {"model.vocab": "5", "model.classes": "3"})
    with pytest.raises(ExportError, match=r"small\.arch:4:5: `small` cannot be exported: its field `y` is `seq\["):
        export(build(graph), tmp_path / "model.pt2")
