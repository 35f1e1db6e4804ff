"""Both sides of the comparison compute the same."""

import pytest
import torch.nn.functional as F

from benchmarks.ndr import NAMES, Size, batch, pair
from tests.benchmarks.sides import same_sides

SMALL = Size(vocab=9, classes=5, d=16, heads=2, ff=24, steps=3, batch=4, length=7)


@pytest.mark.parametrize("heads", [1, 2])
def test_the_handwritten_module_has_the_outputs_and_gradients_of_the_compiled_page(heads: int) -> None:
    size = Size(**{**vars(SMALL), "heads": heads})
    modules = [module.double() for module in pair(size)]
    tokens, lengths, answers = batch(size)
    results = [module(tokens, lengths=lengths) for module in modules]
    same_sides(modules, results, [F.cross_entropy(logits, answers) for logits in results], NAMES)
