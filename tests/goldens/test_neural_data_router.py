"""Neural Data Router's golden arrays, and programs in archlang."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import Tensor

from tests.goldens.golden import Golden, Program, close

TOLERANCE = 1e-5

GEOMETRIC = """
model attend[heads: int, head_dim: int](x: seq[n, d]) -> seq[n, d] {
    return geometric_attention[heads, head_dim = head_dim](x)
}
"""


@pytest.mark.goldens("ndr", "b_geom_attention")
def test_geometric_attention(golden: Golden, folder: Path) -> None:
    heads, head_dim, d = golden["p_wq"].shape
    weights: dict[str, str | Tensor] = {
        "geometric_attention.query.weight": "p_wq",
        "geometric_attention.key.weight": "p_wk",
        "geometric_attention.value.weight": "p_wv",
        "geometric_attention.output.weight": "p_wo",
        "geometric_attention.query_bias": "p_bq",
        "geometric_attention.direction.weight": torch.cat((golden["p_w_dir_left"], golden["p_w_dir_right"])),
        "geometric_attention.direction.bias": torch.cat((golden["p_b_dir_left"], golden["p_b_dir_right"])),
        "geometric_attention.content_scale": "p_alpha",
        "geometric_attention.direction_scale": "p_beta",
        "geometric_attention.score_bias": "p_gamma",
    }
    program = Program(GEOMETRIC, golden, weights, folder, d=d, heads=heads, head_dim=head_dim)
    close(golden, program(golden["x"], x=golden["lens"]), "out", TOLERANCE)
