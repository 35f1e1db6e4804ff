"""Claims about bodies of loops that keep nothing until backward: their results do not change."""

import pytest
import torch
from torch import Tensor

from archlang.backend import Architecture
from archlang.backend.attach import rematerialize_bodies
from tests.shipped_models import SHIPPED, drawn_fields, shipped_model

pytestmark = pytest.mark.usefixtures("unchecked")


def kept_and_gradients(module: Architecture, fields: list[Tensor]) -> tuple[int, list[Tensor]]:
    """Returns how many numbers a training step keeps until backward, and its results and gradients."""
    kept: dict[int, int] = {}

    def keep(value: Tensor) -> Tensor:
        kept[value.untyped_storage().data_ptr()] = value.untyped_storage().nbytes()
        return value

    module.zero_grad()
    torch.manual_seed(1)
    with torch.autograd.graph.saved_tensors_hooks(keep, lambda value: value):
        result = module(*fields)
    (result.square().sum() + module.ponder).backward()
    gradients = [weight.grad for weight in module.parameters() if weight.grad is not None]
    return sum(kept.values()), [result.detach(), *(gradient.clone() for gradient in gradients)]


@pytest.mark.parametrize("name", sorted(SHIPPED))
def test_bodies_that_keep_only_states_have_the_same_gradients_bit_for_bit(name: str) -> None:
    module = shipped_model(name).train()
    fields = drawn_fields(module)
    kept, expected = kept_and_gradients(module, fields)
    for together in (3, 1):
        again = shipped_model(name).train()
        again.load_state_dict(module.state_dict())
        count = rematerialize_bodies(again, again.program.code, together)
        less, results = kept_and_gradients(again, fields)
        assert all(map(torch.equal, results, expected))
        assert len(results) == len(expected)
        assert less < kept or not count
