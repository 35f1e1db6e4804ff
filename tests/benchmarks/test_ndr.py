"""Both sides of the comparison compute the same."""

from functools import partial

import pytest
import torch
import torch.nn.functional as F

from benchmarks.comparison import hand_name
from benchmarks.ndr import NAMES, Size, batch, pair

SMALL = Size(vocab=9, classes=5, d=16, heads=2, ff=24, steps=3, batch=4, length=7)


@pytest.mark.parametrize("heads", [1, 2])
def test_the_handwritten_module_has_the_outputs_and_gradients_of_the_compiled_page(heads: int) -> None:
    size = Size(**{**vars(SMALL), "heads": heads})
    ours, theirs = (module.double() for module in pair(size))
    tokens, lengths, answers = batch(size)
    results = ours(tokens, lengths=lengths), theirs(tokens, lengths)
    torch.testing.assert_close(*results, rtol=1e-10, atol=1e-10)
    names = [name for name, _ in ours.named_parameters()]
    weights = dict(theirs.named_parameters())
    assert {hand_name(name, NAMES) for name in names} == set(weights)
    our_gradients = torch.autograd.grad(F.cross_entropy(results[0], answers), list(ours.parameters()))
    their_gradients = torch.autograd.grad(
        F.cross_entropy(results[1], answers), [weights[hand_name(name, NAMES)] for name in names]
    )
    for name, our, their in zip(names, our_gradients, their_gradients, strict=True):
        torch.testing.assert_close(our, their.view_as(our), rtol=1e-9, atol=1e-10, msg=partial("{}: {}".format, name))
