"""Comparisons are 1 or 0, of sequences, vectors and maps."""

import torch

from archlang.blocks.comparisons import Equal, Greater


def test_a_comparison_is_1_where_it_holds() -> None:
    x = torch.tensor([[[-1.0, 0.0], [0.5, 2.0]]])
    assert Greater(than=0.0, d=2)(x).tolist() == [[[0, 0], [1, 1]]]
    assert Greater(than=0.5, d=2)(x).tolist() == [[[0, 0], [0, 1]]]
    assert Equal(to=0.0, d=2)(x).tolist() == [[[0, 1], [0, 0]]]
    assert Equal(to=2.0, d=2)(x[:, 1]).tolist() == [[0, 1]]
    assert Greater(than=0.0, d=2)(x.double()).dtype is torch.float64
