"""Every shipped model can be inspected, and its blocks have their panels."""

from pathlib import Path

import numpy as np
import pytest
import torch

from archlang.backend.runtime.recording import recording
from archlang.compile import build
from archlang.reports.inspection.panels import InspectedField, panels
from tests.sampling import one_in
from tests.semantics.batches import samples
from tests.test_causality_probe import SHIPPED, small_graph

LENGTH = 9
# By the title of a panel, the blocks that have it.
SHOWS = {
    "Gate": {"copy_gate"},
    "Attention": {"attention", "weigh", "relative_attention", "absrel_attention", "geometric_attention"},
    "Pointers": {"pointer_unit"},
    "Halting": {"act", "token_halt", "global_halt", "bernoulli_halt", "bernoulli_token_halt"},
}


@pytest.mark.parametrize(("file", "model"), one_in(3, SHIPPED), ids=[f"{file.stem}-{model}" for file, model in SHIPPED])
def test_a_model_shows_its_gates_attention_pointers_and_halting(file: Path, model: str) -> None:
    graph = small_graph(file, model)
    module = build(graph).eval()
    (sample,) = samples(graph, [[LENGTH] * len(graph.region.inputs)], 0)
    inputs = [value[None].float() if value.is_floating_point() else value[None] for value in sample.fields]
    with torch.no_grad(), recording(module) as record:
        module(*inputs)
    fields = [
        InspectedField(value.name, value.type.lengths[0], tuple("abcdefghi"))
        for value in graph.region.inputs
        if value.type.lengths
    ]
    shown = panels(record.moments, fields)
    used_blocks = {instance.block for instance in module.program.graph.instances.values()}
    for title, blocks in SHOWS.items():
        assert any(panel.title.startswith(f"{title}: ") for panel in shown) == bool(used_blocks & blocks), title
    for panel in shown:
        for frame in panel.frames:
            assert frame.values.shape == (len(panel.choices), len(frame.rows), len(frame.columns))
            if panel.unit == "weight" and frame.values.size:  # at the first step of a growing memory it is empty
                # What `weigh` weighs with may have any numbers.
                low, high = (panel.low, panel.highest) if "weigh" in panel.title else (0, 1)
                assert np.nanmax(frame.values) <= high + 1e-5
                assert np.nanmin(frame.values) >= low
