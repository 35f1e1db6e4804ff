"""Every shipped model can be looked into, and what has something to show shows it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from archlang.backend.runtime.recording import recording
from archlang.compile import build, compile_graph
from archlang.pages.inspection.panels import Field, panels
from archlang.syntax.parser import parse, read
from archlang.syntax.tree import Definition
from tests.test_causality_probe import SHIPPED, SMALL, field

LENGTH = 9
# The blocks that a kind of panel is of.
SHOWS = {
    "Gate": {"copy_gate"},
    "Attention": {"attention", "relative_attention", "absrel_attention", "geometric_attention"},
    "Pointers": {"pointer_unit"},
    "Halting": {"act", "token_halt", "global_halt"},
}


@pytest.mark.parametrize(("file", "model"), SHIPPED, ids=[f"{file.stem}-{model}" for file, model in SHIPPED])
def test_a_model_shows_its_gates_attention_pointers_and_halting(file: Path, model: str) -> None:
    (definition,) = [i for i in parse(read(file)).items if isinstance(i, Definition) and i.name == model]
    statics = {p.name: SMALL[p.name] for p in definition.signature.statics if p.name in SMALL}
    sizes = {"k": 5} if "k]" in definition.span.text.partition("{")[0] else {}
    found = compile_graph(file, model, {**statics, "vocab": 5, "words": 5, "classes": 3, **sizes})
    module = build(found).eval()
    inputs = [field(value.type, LENGTH)[:1] for value in found.region.inputs]
    inputs = [one.float() if one.is_floating_point() else one for one in inputs]
    with torch.no_grad(), recording(module) as seen:
        module(*inputs)
    fields = [Field(v.name, v.type.lengths[0], tuple("abcdefghi")) for v in found.region.inputs if v.type.lengths]
    made = panels(seen.moments, fields)
    blocks = {instance.block for instance in module.program.graph.instances.values()}
    for kind, named in SHOWS.items():
        assert any(panel.title.startswith(f"{kind}: ") for panel in made) == bool(blocks & named), kind
    for panel in made:
        for frame in panel.frames:
            assert frame.values.shape == (len(panel.choices), len(frame.rows), len(frame.columns))
            if panel.unit == "weight":
                assert np.nanmax(frame.values) <= 1 + 1e-5
                assert np.nanmin(frame.values) >= 0
