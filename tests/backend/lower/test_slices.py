"""Claims about values whose features are cut once: only the time changes."""

from pathlib import Path

import pytest
import torch
from torch import Tensor

from archlang.backend.lower.text import print_torch
from archlang.compile import load
from tests.closeness import close

PROGRAM = """
model m[d = 8](x: tokens[n]) -> logits[n, classes] {{
    h = embed[d](x)
    return linear[classes]({})
}}
"""
CUT = {
    "all features": "concat(slice_features[0, 5](h), slice_features[5, 3](h))",
    "with features that nothing takes": "concat(slice_features[4, 2](h), slice_features[1, 2](h), h)",
    "the same part twice": "tanh(slice_features[0, 4](h)) * slice_features[0, 4](h) + slice_features[4, 4](h)",
}
WHOLE = {
    "parts that overlap": "concat(slice_features[0, 5](h), slice_features[3, 5](h))",
    "one part": "slice_features[2, 5](h)",
}


@pytest.mark.parametrize("name", [*CUT, *WHOLE])
def test_parts_of_one_value_are_cut_at_once_if_they_do_not_overlap(tmp_path: Path, name: str) -> None:
    path = tmp_path / "program.arch"
    path.write_text(PROGRAM.format((CUT | WHOLE)[name]), encoding="utf-8")
    tokens = torch.arange(6).reshape(2, 3)
    results: list[list[Tensor]] = []
    for without in ((), ("slices",)):
        torch.manual_seed(0)
        module = load(path, "m", vocab=11, classes=3, without_passes=without).double()
        assert ("split_with_sizes" in print_torch(module)) == (name in CUT and not without)
        y = module(tokens)
        y.square().sum().backward()
        results.append([y, *(weight.grad for weight in module.parameters() if weight.grad is not None)])
    close(*results)
