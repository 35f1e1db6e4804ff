"""Panels: every recorded number is in the cell that its row and column name."""

import base64
import json
import shutil
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest
import torch

import archlang as package
from archlang.backend.runtime.recording import Moment, Turn
from archlang.reports.inspection.heatmap import Heatmap, HeatmapFrame
from archlang.reports.inspection.panels import InspectedField, panels
from archlang.types import Dim

N = Dim.of("n")
FIELD = InspectedField("x", N, ("a", "b", "c", "d", "e"))


def moment(kind: str, values: torch.Tensor, turns: tuple[Turn, ...], *lengths: Dim, path: str = "p") -> Moment:
    return Moment(kind, path, turns, values, lengths)


def step(index: int) -> Turn:
    return Turn("repeat", "step", index)


def test_gates_are_one_panel_with_a_row_for_each_step_and_the_mean_over_channels() -> None:
    gates = torch.rand(3, 1, 5, 4)
    (panel,) = panels([moment("gate", gate, (step(i),), N) for i, gate in enumerate(gates)], [FIELD])
    (frame,) = panel.frames
    assert frame.rows == ("step 1", "step 2", "step 3")
    assert frame.columns == ("0 a", "1 b", "2 c", "3 d", "4 e")
    np.testing.assert_allclose(frame.values[0], gates[:, 0].mean(-1).numpy(), rtol=1e-6)


def test_chunks_are_side_by_side_and_skipped_steps_are_empty() -> None:
    c = Dim.of("c.length")
    first = [
        moment("gate", torch.full((1, 3, 2), 0.1 * i), (Turn("scan", "chunk", 0, 0), step(i)), c) for i in range(2)
    ]
    second = [moment("gate", torch.ones(1, 2, 2), (Turn("scan", "chunk", 1, 3), step(0)), c)]
    (panel,) = panels([*first, *second], [FIELD])
    values = panel.frames[0].values[0]
    np.testing.assert_array_equal(values[0], [0, 0, 0, 1, 1])
    np.testing.assert_allclose(values[1], [0.1, 0.1, 0.1, np.nan, np.nan], rtol=1e-6)
    assert panel.frames[0].columns[3] == "3 d"


def test_attention_has_a_frame_for_each_turn_and_the_maximum_over_heads_first() -> None:
    weights = torch.rand(2, 1, 3, 5, 5)
    (panel,) = panels([moment("attention", values, (step(i),), N, N) for i, values in enumerate(weights)], [FIELD])
    assert panel.choices == ("max over heads", "head 0", "head 1", "head 2")
    assert [frame.label for frame in panel.frames] == ["step 1", "step 2"]
    np.testing.assert_array_equal(panel.frames[1].values[0], weights[1, 0].amax(0).numpy())
    np.testing.assert_array_equal(panel.frames[1].values[3], weights[1, 0, 2].numpy())


def test_the_scale_of_attention_includes_numbers_below_0_and_above_1() -> None:
    weights = [torch.rand(1, 1, 5, 5), 3 * torch.rand(1, 1, 5, 5) - 1]
    scales = [panels([moment("attention", values, (), N, N)], [FIELD])[0] for values in weights]
    assert (scales[0].low, scales[0].high) == (0, 1)
    assert (scales[1].low, scales[1].high) == pytest.approx((float(weights[1].min()), float(weights[1].max())))


def test_slots_are_not_positions() -> None:
    weights = torch.rand(1, 1, 5, 2)
    (panel,) = panels([moment("attention", weights, (), N, Dim.of(2))], [FIELD])
    assert (panel.rows, panel.columns) == ("query, position of x", "key, slot")
    assert panel.frames[0].columns == ("0", "1")


def test_a_sample_halts_in_one_column_and_remaining_probability_counts_at_the_last_step() -> None:
    masses = (0.5, 0.25)
    halting = [moment("halting", torch.tensor([mass]), (step(i),)) for i, mass in enumerate(masses)]
    running = [moment("running", torch.tensor([i == 0]), (step(i),)) for i in range(2)]
    panel = next(panel for panel in panels([*halting, *running], [FIELD]) if panel.unit == "probability")
    np.testing.assert_array_equal(panel.frames[0].values[0], [[0.5], [0.25]])
    assert "Steps taken: 1.00, expected depth: 1.50" in panel.caption


def test_steps_are_averaged_over_positions_and_those_that_a_chunk_skips_are_0() -> None:
    """Columns 2, 2, 2, 1, 1: their mean is 1.6, that of the two chunks 1.5."""
    turns = [(0, 0), (0, 1), (1, 0)]  # chunk and step
    moments = [
        moment(kind, torch.ones(1, (3, 2)[chunk]) / scale, (Turn("scan", "chunk", chunk, 3 * chunk), step(index)), N)
        for kind, scale in (("halting", 2), ("running", 1))
        for chunk, index in turns
    ]
    halting, running = panels(moments, [FIELD])
    np.testing.assert_array_equal(running.frames[0].values[0], [[1, 1, 1, 1, 1], [1, 1, 1, 0, 0]])
    assert "Steps taken: 1.60, expected depth: 1.30" in halting.caption


def test_each_pointer_has_a_trajectory_over_addresses() -> None:
    w = torch.rand(1, 4, 2, 5)
    (panel,) = panels([moment("pointer", w, (), Dim.of("t"), N)], [FIELD])
    assert panel.choices == ("max over pointers", "pointer 0", "pointer 1")
    np.testing.assert_array_equal(panel.frames[0].values[2], w[0, :, 1].numpy())
    assert panel.frames[0].columns[0] == "0 a"


def test_one_block_in_two_loops_has_two_panels() -> None:
    gates = [moment("gate", torch.rand(1, 5, 2), (Turn(loop, "step", 0),), N) for loop in ("repeat", "repeat_2")]
    assert len(panels(gates, [FIELD])) == 2


def test_the_shades_of_a_panel_are_its_values_in_254_levels() -> None:
    values = np.array([[[0.0, 0.5], [1.0, np.nan]]])
    panel = Heatmap("t", "c", "r", "k", "u", ("all",), (HeatmapFrame("", ("0", "1"), ("0", "1"), values),))
    shades = np.frombuffer(base64.b64decode(panel.to_json()["frames"][0]["shades"]), dtype=np.uint8)
    assert shades.tolist() == [0, 127, 254, 255]


@pytest.mark.parametrize("value", [0.0, 1.0])
def test_a_panel_of_equal_values_has_a_scale(value: float) -> None:
    panel = Heatmap("t", "c", "r", "k", "u", ("all",), (HeatmapFrame("", ("0",), ("0",), np.full((1, 1, 1), value)),))
    assert panel.highest > panel.low


def position(index: int) -> Turn:
    return Turn("scan", "position", index, index)


def chunk_of_one(index: int) -> Turn:
    return Turn("scan", "chunk", index, index)


@pytest.mark.parametrize("turn", [position, chunk_of_one])
def test_a_scan_of_single_positions_has_one_map_of_its_memory_over_time(turn: Callable[[int], Turn]) -> None:
    memory = torch.randn(5, 1, 3, 2)
    (panel,) = panels([moment("memory", after, (turn(i),), Dim.of(3)) for i, after in enumerate(memory)], [FIELD])
    (frame,) = panel.frames
    assert (frame.rows, frame.columns) == (("0 a", "1 b", "2 c", "3 d", "4 e"), ("0", "1", "2"))
    assert panel.choices == ("mean over channels", "channel 0", "channel 1")
    np.testing.assert_allclose(frame.values[0], memory[:, 0].abs().mean(-1).numpy(), rtol=1e-6)
    np.testing.assert_allclose(frame.values[2], memory[:, 0, :, 1].abs().numpy(), rtol=1e-6)


def test_a_scan_of_single_positions_has_one_map_of_attention_over_time() -> None:
    read = torch.rand(5, 1, 2, 1, 3)
    (panel,) = panels(
        [moment("attention", weights, (position(i),), Dim.of(1), Dim.of(3)) for i, weights in enumerate(read)], [FIELD]
    )
    (frame,) = panel.frames
    assert (panel.rows, frame.rows[4], frame.columns) == ("time", "4 e", ("0", "1", "2"))
    np.testing.assert_array_equal(frame.values[2], read[:, 0, 1, 0].numpy())


def test_a_scan_of_single_positions_has_one_map_of_pointers_over_time() -> None:
    weights = torch.rand(5, 1, 1, 2, 4)
    (panel,) = panels([moment("pointer", w, (position(i),), Dim.of(1), Dim.of(4)) for i, w in enumerate(weights)], [])
    np.testing.assert_array_equal(panel.frames[0].values[1], weights[:, 0, 0, 0].numpy())


def test_the_texts_of_time_are_those_of_the_field_that_the_scan_splits() -> None:
    chunked_field = InspectedField("y", Dim.of("m"), ("u", "v"))
    turns = [Turn("scan", "position", i, i, Dim.of("m")) for i in range(2)]
    memory = [moment("memory", torch.randn(1, 3, 2), (turn,), Dim.of(3)) for turn in turns]
    (panel,) = panels(memory, [FIELD, chunked_field])
    assert panel.frames[0].rows == ("0 u", "1 v")


def test_a_chunk_of_one_of_several_fields_has_its_texts() -> None:
    chunked_field = InspectedField("y", Dim.of("m"), ("u", "v"))
    chunk = Turn("scan", "chunk", 1, 3, N)
    (panel,) = panels([moment("gate", torch.ones(1, 2, 2), (chunk,), Dim.of("c.length"))], [chunked_field, FIELD])
    assert panel.frames[0].columns[3:] == ("3 d", "4 e")


def test_slots_that_a_scan_of_single_positions_writes_are_columns() -> None:
    change = [moment("change", torch.rand(1, 3), (position(i),), Dim.of(3)) for i in range(5)]
    (panel,) = panels(change, [FIELD])
    assert (panel.rows, panel.frames[0].rows) == ("time", ("0 a", "1 b", "2 c", "3 d", "4 e"))


def test_a_change_names_the_state_the_turns_and_the_loop() -> None:
    (panel,) = panels([moment("change", torch.rand(1, 5), (step(0),), N, path="halting.c")], [FIELD])
    assert panel.title == "Change of the state c by step: halting"
    assert "each step of the loop moves its state c, |c' - c| / |c'|" in panel.caption


# The page paints on a canvas, so the colours come from its script.
PAINTED = """
globalThis.matchMedia = () => ({ matches: process.argv[1] === "dark", addEventListener() {} });
globalThis.document = { querySelectorAll: () => [] };
const script = require("fs").readFileSync(0, "utf8") +
  "\\n;[...Array(255).keys()].map((level) => [channels(level / 254), ink(level / 254)])";
console.log(JSON.stringify((0, eval)(script.replace('"use strict";', ""))));
"""


def luminance(channels: Sequence[float]) -> float:
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in (value / 255 for value in channels)]
    return float(np.dot(linear, (0.2126, 0.7152, 0.0722)))


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_number_of_a_cell_has_a_contrast_of_4_5_to_its_colour(scheme: str) -> None:
    node = shutil.which("node")
    if node is None:
        pytest.skip("node is not installed")
    script = (Path(package.__file__).parent / "reports" / "assets" / "inspection.js").read_text(encoding="utf-8")
    done = subprocess.run([node, "-e", PAINTED, scheme], input=script, capture_output=True, text=True, check=True)
    painted = json.loads(done.stdout)
    assert len(painted) == 255
    for channels, ink in painted:
        dark, light = sorted([luminance(channels), {"#000": 0.0, "#fff": 1.0}[ink]])
        assert (light + 0.05) / (dark + 0.05) >= 4.5


def test_a_gate_is_drawn_on_the_scale_from_0_to_1_and_encoded_by_its_largest_value() -> None:
    (panel,) = panels([moment("gate", torch.full((1, 5, 2), 0.004), (), N)], [FIELD])
    facts = panel.to_json()
    assert (facts["low"], facts["scale"]) == (0.0, 1.0)
    assert facts["high"] == pytest.approx(0.004)
    shades = np.frombuffer(base64.b64decode(facts["frames"][0]["shades"]), dtype=np.uint8)
    assert shades.tolist() == [254] * 5
