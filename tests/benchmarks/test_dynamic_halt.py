"""Both sides of the comparison compute the same, and samples halt at different depths."""

from dataclasses import replace

import pytest
import torch
import torch.nn.functional as F

from benchmarks.dynamic_halt import NAMES, SIZES, batch, pair, tiny
from tests.benchmarks.sides import same_sides


@pytest.mark.parametrize(("name", "chunk"), [("UT", 0), ("GUT", 0), ("TLB", 4), ("TLB", 6), ("GUTLB", 4), ("GUTLB", 6)])
def test_the_handwritten_module_has_the_outputs_costs_and_gradients_of_the_page(name: str, chunk: int) -> None:
    size = replace(tiny(SIZES[name]), chunk=chunk)
    modules = [module.double() for module in pair(size)]
    tokens, lengths, answers = batch(size)
    lengths[1], lengths[2] = 2, 5  # some chunks have no real position
    results, losses = [], []
    for module in modules:
        logits = module(tokens, lengths=lengths)
        assert isinstance(module.ponder, torch.Tensor)
        results.append(torch.cat((logits.flatten(), module.ponder[None])))
        losses.append(F.cross_entropy(logits, answers) + 0.1 * module.ponder)
    same_sides(modules, results, losses, NAMES)


@pytest.mark.parametrize("name", ["UT", "GUT", "GUTLB"])
def test_samples_halt_at_different_depths(name: str) -> None:
    size = tiny(SIZES[name])
    ours, _ = pair(size)
    tokens, lengths, _ = batch(size)
    ours(tokens, lengths=lengths)
    assert ours.sample_depth is not None
    assert len(set(ours.sample_depth.tolist())) > 1
    assert 0 < float(ours.sample_depth.mean()) < size.depth
