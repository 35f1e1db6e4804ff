"""Claims about lower triangles: torch's, and its derivatives."""

import pytest
import torch

from archlang.backend.kernels.triangle import lower_triangle


@pytest.mark.parametrize("diagonal", [-2, 0, 1, 3, 9])
def test_a_lower_triangle_is_that_of_torch_with_all_derivatives(diagonal: int) -> None:
    x = torch.randn(2, 3, 4, 6, dtype=torch.float64).transpose(1, 2).requires_grad_()
    assert torch.equal(lower_triangle(x, diagonal), x.tril(diagonal))
    assert torch.autograd.gradcheck(lambda x: lower_triangle(x, diagonal), x)
    assert torch.autograd.gradgradcheck(lambda x: lower_triangle(x, diagonal), x)
    (transformed,) = torch.vmap(lambda x: lower_triangle(x, diagonal))(x[None])
    assert torch.equal(transformed, x.tril(diagonal))
