"""The buckets of distances, as T5 counts them."""

import math

import torch

from archlang.blocks.distance_buckets import DistanceBuckets


def test_short_distances_are_exact_and_long_ones_share_buckets() -> None:
    block = DistanceBuckets(buckets=32, furthest=128, d=1)
    distances = torch.arange(-3.0, 300)
    expected = []
    for distance in range(-3, 300):
        if distance < 16:
            expected.append(max(distance, 0))
        else:
            expected.append(min(16 + int(math.log(distance / 16) / math.log(128 / 16) * 16), 31))
    assert block(distances[:, None])[:, 0].tolist() == expected


def test_the_result_has_no_gradient() -> None:
    x = torch.randn(2, 3, requires_grad=True)
    assert not DistanceBuckets(buckets=4, furthest=8, d=3)(x).requires_grad
