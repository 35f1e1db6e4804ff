"""Both sides of the comparison compute the same."""

import torch
from torch.testing import assert_close

from benchmarks.panm import NAMES, batch, pair


def test_the_handwritten_model_has_the_outputs_and_gradients_of_the_page() -> None:
    ours, theirs = (module.eval() for module in pair())
    source, target = batch()
    outputs = []
    for module in (ours, theirs):
        torch.manual_seed(3)
        logits = module(source, target)
        (logits * torch.arange(logits.shape[-1])).mean().backward()
        outputs.append(logits)
    assert_close(outputs[0], outputs[1], atol=1e-5, rtol=1e-5)
    gradients = {name: parameter.grad for name, parameter in theirs.named_parameters()}
    for name, parameter in ours.named_parameters():
        prefix = max((prefix for prefix in NAMES if name.startswith(prefix)), key=len)
        assert_close(parameter.grad, gradients.pop(NAMES[prefix] + name.removeprefix(prefix)), atol=5e-6, rtol=1e-4)
    assert not gradients
