"""The linear-time mixers and RWKV-7: equal when decoded step by step, and trainable in every weight."""

import pytest
import torch

from archlang.backend.architecture import Architecture
from tests.blocks.models.batches import noisy
from tests.conftest import Compiled

MIXERS = {
    "delta_net": "delta_net[heads = 2]",
    "delta_net, convolution": "delta_net[heads = 2, range = 2.0, convolution = true]",
    "gated_delta_net": "gated_delta_net[heads = 2]",
    "gated_linear_attention": "gated_linear_attention[heads = 2, rank = 3]",
    "multi_scale_retention": "multi_scale_retention[heads = 2]",
    "state_space": "state_space[heads = 2, states = 4]",
    "rwkv7": "rwkv7_layers[heads = 2, layers = 2, hidden = 12, decay_rank = 2, gate_rank = 3]",
}


def program(name: str, compiled: Compiled) -> Architecture:
    text = (
        "use archlang.models.linear_mixers\nuse archlang.models.rwkv\n"
        "model m(x: tokens[n]) -> logits[n, vocab] {\n    h = embed[8](x)\n"
        f"    return linear[vocab](h + {MIXERS[name]}(h))\n}}\n"
    )
    torch.manual_seed(4)
    return noisy(compiled(text, vocab=5))


@pytest.mark.parametrize("name", MIXERS)
def test_a_mixer_trains_every_weight(name: str, compiled: Compiled) -> None:
    module = program(name, compiled)
    module(torch.randint(5, (3, 9)), lengths={"x": torch.tensor([9, 5, 1])}).square().sum().backward()
    for parameter in module.parameters():
        assert parameter.grad is not None
        assert parameter.grad.isfinite().all()
        assert parameter.grad.ne(0).any()


@pytest.mark.parametrize("name", MIXERS)
def test_a_mixer_is_decoded_step_by_step(name: str, compiled: Compiled) -> None:
    module = program(name, compiled)
    slow, fast = (module.decode(begin=1, limit=5, cache=cache) for cache in (False, True))
    assert fast.tokens.equal(slow.tokens)
    torch.testing.assert_close(fast.logits, slow.logits, atol=1e-10, rtol=1e-10)
