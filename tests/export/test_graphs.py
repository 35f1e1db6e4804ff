"""Exports to .pt2 and .onnx: equal results at lengths that tracing has not seen, and loops that stop."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import torch
from torch import Tensor

from archlang.export.formats import export, fields_with_lengths, input_names
from archlang.export.mistakes import ExportError
from tests.conftest import Compiled
from tests.sampling import one_in
from tests.semantics.test_constructs import BODIES
from tests.semantics.test_soundness_regressions import model
from tests.shipped_models import SHIPPED, shipped_batch, shipped_model

pytestmark = pytest.mark.usefixtures("unchecked")

if TYPE_CHECKING:
    from archlang.backend import Architecture

HALTING = """model small(x: tokens[n]) -> logits[classes] {
    h = embed[4](x)
    repeat 6 halting h by global_halt[0.9] { h <- tanh(linear[4](h)) }
    return h |> mean |> linear[classes]
}"""
CHUNKS_HALT = """model small(x: tokens[n]) -> logits[n, classes] {
    h = embed[4](x)
    y = scan c in chunks[3](h) {
        repeat 3 halting c by token_halt { c <- tanh(c + attention[1](c)) }
        emit c
    }
    return y |> linear[classes]
}"""
SELECTING = """model small(x: tokens[n]) -> logits[n, classes] {
    h = embed[4](x)
    v = sum(softmax_positions(linear[1](h)) * h)
    p = softmax(linear[3](h))
    e = linear[4](p * top_k[2](p))
    memory = append(append(expand(v), pad[1, 1](slice[-2, 2](h))), h)
    s = shift(h) + shift[-2](h) + cumulative_sum(h) / (indices(h) + 1) + gather(h, 2 * indices(h))
    g = hold[3](linear[4](patches[3](h)), h) + every[2](cumulative_max(interleave[2](concat(h, h))))
    y = (s - logsumexp_features(s)) * min_features(h) + attention[1](h, memory)
    return linear[classes](y + g + e + max(h) - min(h) + detach(h) + noise[0.5](h))
}"""
POINTERS = """model small(x: tokens[n]) -> logits[n, vocab] {
    memory = one_hot(x)
    w = pointer_unit[2, 4, causal = true, restart = true](addresses[5](memory), memory)
    p = dereference[causal = true](w, memory)
    c = relational_read[1, causal = true, dropout = 0.0](p, memory)
    return concat(p, c, stack_rnn[4, 6, 3](concat(p, c, memory))) |> linear[vocab]
}"""
RECURRENCES = """model small(x: tokens[n]) -> logits[n, vocab] {
    h = embed[8](x)
    k = unit_norm[2](linear[6](h))
    v = linear[4](h)
    g = -exp(linear[2](h))
    s = constant[3, 4]()
    a = linear_attention[2](k, k, v, g) + linear_attention[2](k, k, v, -exp(linear[6](h)))
    b = delta_rule[2](k, k, v, sigmoid(g)) + gated_delta_rule[2](k, k, v, sigmoid(g), g)
    c = linear_recurrence[2](k, k, v, -exp(linear[6](h)), -k, 0.5 * k, s)
    return linear[vocab](group_norm[2](a) + rms_norm[2](b) + c)
}"""
IMAGES = """model small(x: tokens[n]) -> logits[n, classes] {
    h = embed[4](x)
    p = linear[4](image_patches[2, columns = 4](h)) + convolve_image[4, width = 2, columns = 4, stride = 2](h)
    return linear[classes](hold[4](p, h) + convolve_image[4, width = 3, columns = 4, groups = 2](h))
}"""
GROWING_MAPS = """use archlang.models.attention_variants
model small(x: tokens[n]) -> logits[n, classes] { return linear[classes](delta_former[2](embed[4](x))) }"""
SUMS_OF_LENGTHS = """use archlang.models.loops
model small(x: tokens[n]) -> logits[n, classes] {
    h = embed[4](x)
    return linear[classes](continuous_thoughts[2, 6](h, greater[3](indices(h))))
}"""
DISTANCES = """model small(x: tokens[n]) -> logits[n, vocab] {
    h = embed[4](x)
    return linear[vocab](weigh(softmax_keys(scores[2](h, h) + relative_bias[2, 3](h, h)), h))
}"""
# Two heads of keys for four of queries, and fewer learned vectors than positions.
SHARED_KEYS = """model small(x: tokens[n]) -> logits[n, vocab] {
    h = learned_positions[6](embed[8](x))
    k = linear[4](h)
    return linear[vocab](weigh[causal = true, times = 2](softmax_keys[causal = true](scores[4](h, k)), k))
}"""
TOLERANCE = 2e-5


def _run(path: Path, module: Architecture, values: list[Tensor]) -> list[Tensor]:
    """The outputs of an exported file."""
    if path.suffix == ".pt2":
        with torch.no_grad():
            outputs = torch.export.load(path).module()(*values)
        return list(outputs) if isinstance(outputs, tuple) else [outputs]
    runtime = pytest.importorskip("onnxruntime")
    session = runtime.InferenceSession(str(path))
    inputs = {name: value.numpy() for name, value in zip(input_names(module), values, strict=True)}
    return [torch.from_numpy(output) for output in session.run(None, inputs)]


def _agree(module: Architecture, path: Path, sizes: list[tuple[int, int]]) -> None:
    """Exports a module, and compares its results for batches of some sizes and lengths."""
    if path.suffix == ".onnx":
        pytest.importorskip("onnxscript")
    assert export(module, path) == [path]
    for batch, length in sizes:
        fields, lengths = shipped_batch(module, batch, length)
        with torch.no_grad():
            expected = module(*fields, lengths=lengths)
        result, *steps = _run(path, module, [*fields, *(lengths[field.name] for field in fields_with_lengths(module))])
        assert result.shape == expected.shape
        # A scan computes something else at padding: its chunks have one length when exported.
        padding = torch.arange(result.shape[1]) >= lengths[module.program.inputs[0].name][:, None]
        different = (result - expected).abs() >= TOLERANCE
        assert not (different[~padding] if result.shape[1] == fields[0].shape[1] else different).any()
        if steps:
            assert module.sample_depth is not None
            assert torch.equal(steps[0], module.sample_depth)


PROGRAMS = {
    "halting": HALTING, "chunks halt": CHUNKS_HALT, "selecting": SELECTING, "pointers": POINTERS,
    "recurrences": RECURRENCES, "images": IMAGES, "growing maps": GROWING_MAPS,
    "sums of lengths": SUMS_OF_LENGTHS, "distances": DISTANCES, "shared keys": SHARED_KEYS,
    **{name: model(BODIES[name]) for name in (
        "a scan of empty samples", "a recurrent network", "2 positions before chunks of 3",
        "all positions before a position", "a memory of summaries", "a memory that grows in nested scans",
    )},
}  # fmt: skip


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("suffix", [".pt2", pytest.param(".onnx", marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    "name",
    [
        name if name in ("chunks halt", "growing maps", "shared keys") else pytest.param(name, marks=pytest.mark.slow)
        for name in PROGRAMS
    ],
)
def test_an_exported_model_equals_its_module_at_lengths_it_was_not_traced_at(
    compiled: Compiled, tmp_path: Path, name: str, suffix: str
) -> None:
    _agree(compiled(PROGRAMS[name]).eval(), tmp_path / f"model{suffix}", [(2, 7), (1, 2), (3, 64)])


def test_the_axes_of_a_graph_have_the_names_of_the_program(compiled: Compiled, tmp_path: Path) -> None:
    runtime = pytest.importorskip("onnxruntime")
    pytest.importorskip("onnxscript")
    export(compiled(HALTING).eval(), tmp_path / "model.onnx")
    session = runtime.InferenceSession(str(tmp_path / "model.onnx"))
    shapes = [put.shape for put in (*session.get_inputs(), *session.get_outputs())]
    assert {axis for shape in shapes for axis in shape if isinstance(axis, str)} == {"batch", "n"}


ATTENTION = """model small(x: tokens[n]) -> logits[n, classes] {
    h = embed[4](x)
    stack 2 { h <- norm(h + BLOCK(h)) }
    return h |> linear[classes]
}"""


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "block",
    one_in(
        2,
        ["attention[2]", "attention[2, causal = true, position = alibi]", "relative_attention[2, causal = true]",
         "attention[2, causal = true, kv_heads = 1, window = 9, qk_norm = true, bias = true, gate = per_head]",
         "attention[2, causal = true, kv_heads = 1, window = 9, sinks = true, softcap = 2.0]"],
    ),
)  # fmt: skip
def test_exported_attention_takes_sizes_for_which_a_module_has_other_kernels(
    compiled: Compiled, tmp_path: Path, block: str
) -> None:
    module = compiled(ATTENTION.replace("BLOCK", block)).eval()
    _agree(module, tmp_path / "model.pt2", [(2, 7), (48, 12), (16, 40)])


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("suffix", [".pt2", ".onnx"])
@pytest.mark.parametrize("name", SHIPPED)
def test_every_shipped_model_can_be_exported(name: str, suffix: str, tmp_path: Path) -> None:
    shortest = 4 if "panm" in name or "seq2seq" in name else 2
    _agree(shipped_model(name), tmp_path / f"model{suffix}", [(2, 7), (1, shortest), (3, 64), (1, 257)])


PAGE = Path(__file__).parent.parent.parent / "docs" / "export.md"
# The packages that are missing where the program of the page runs.
MISSING = {".pt2": ("archlang", "jaxtyping"), ".onnx": ("archlang", "jaxtyping", "torch", "onnx", "onnxscript")}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("suffix", MISSING)
def test_the_programs_of_the_page_run_an_exported_file_where_archlang_is_missing(
    compiled: Compiled, tmp_path: Path, suffix: str
) -> None:
    if suffix == ".onnx":
        pytest.importorskip("onnxruntime")
        pytest.importorskip("onnxscript")
    module = compiled(HALTING).eval()
    export(module, tmp_path / f"model{suffix}")
    programs = re.findall(r"^```text\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    (program,) = (text for text in programs if f'"model{suffix}"' in text)
    missing = f"import sys\nsys.modules.update(dict.fromkeys({MISSING[suffix]!r}))\n"
    output = "import json\nprint(json.dumps([tokens.tolist(), logits.tolist(), steps.tolist()]))\n"
    done = subprocess.run(
        [sys.executable, "-c", f"{missing}{program}{output}"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert not done.returncode, done.stderr
    tokens, logits, steps = map(torch.tensor, json.loads(done.stdout))
    assert torch.allclose(logits, module(tokens, lengths=[12, 7, 9]), atol=1e-6)
    assert module.sample_depth is not None
    assert torch.equal(steps, module.sample_depth)


def test_a_model_that_torch_cannot_trace_is_refused_with_its_reason(compiled: Compiled, tmp_path: Path) -> None:
    program = """model small(x: tokens[n]) -> logits[n, classes] {
        h = embed[4](x)
        return attention[1, causal = true, causal_rule = equal_lengths](h, learned[3, 4]()) |> linear[classes]
    }"""
    with pytest.raises(ExportError, match="`attention` cannot be exported: its code needs a length `n` with n != 3"):
        export(compiled(program), tmp_path / "model.pt2")
    assert not (tmp_path / "model.pt2").exists()


def test_export_leaves_a_training_module_in_training(compiled: Compiled, tmp_path: Path) -> None:
    module = compiled("model small(x: tokens[n]) -> logits[n, classes] { return embed[4](x) |> linear[classes] }")
    export(module.train(), tmp_path / "model.pt2")
    assert module.training
