"""What a block keeps of the positions before."""

import pytest
import torch

from archlang.backend.decode.block_cache import BlockCache


@pytest.mark.parametrize("dim", [1, 2])
def test_appended_tensors_equal_their_concatenation_and_are_rarely_copied(dim: int) -> None:
    cache, parts, places = BlockCache(), [torch.randn(2, 4, 4, 3)], set[int]()
    cache.append("x", parts[0], dim)
    for count in (0, *[1] * 50, 4, 3):
        parts.append(torch.randn(2, 4, 4, 3).narrow(dim, 0, count))
        known = cache.append("x", parts[-1], dim)
        assert known.equal(torch.cat(parts, dim)[:, -known.shape[1] :, -known.shape[2] :])
        places.add(known.untyped_storage().data_ptr())
        if known.shape[dim] > 20:  # a window drops the first positions
            cache.tensors["x"] = known.narrow(dim, 9, known.shape[dim] - 9)
    assert len(places) < 6
