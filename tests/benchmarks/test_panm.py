"""What is measured side by side computes the same."""

from __future__ import annotations

import torch
from torch.testing import assert_close

from benchmarks.panm import NAMES, batch, pair


def test_the_model_by_hand_has_the_results_and_gradients_of_the_page() -> None:
    ours, theirs = (module.eval() for module in pair())
    source, target = batch()
    found = []
    for module in (ours, theirs):
        torch.manual_seed(3)
        logits = module(source, target)
        (logits * torch.arange(logits.shape[-1])).mean().backward()
        found.append(logits)
    assert_close(found[0], found[1], atol=1e-5, rtol=1e-5)
    gradients = {name: parameter.grad for name, parameter in theirs.named_parameters()}
    for name, parameter in ours.named_parameters():
        head = max((one for one in NAMES if name.startswith(one)), key=len)
        assert_close(parameter.grad, gradients.pop(NAMES[head] + name.removeprefix(head)), atol=5e-6, rtol=1e-4)
    assert not gradients
