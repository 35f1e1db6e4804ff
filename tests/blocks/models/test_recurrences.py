"""Linear-time mixers and recurrences: trained in every weight, decoded step by step, and in chunks as on their page."""

import pytest
import torch

from archlang.backend.architecture import Architecture
from tests.closeness import close, same_gradients
from tests.conftest import Compiled
from tests.shipped_models import noisy

MIXERS = (
    "delta_net[heads = 2](h)", "delta_net[heads = 2, range = 2.0, convolution = true](h)",
    "gated_delta_net[heads = 2](h)", "gated_linear_attention[heads = 2, rank = 3](h)",
    "multi_scale_retention[heads = 2](h)", "state_space[heads = 2, states = 4](h)",
    "rwkv7_layers[heads = 2, layers = 2, hidden = 12, decay_rank = 2, gate_rank = 3](h)",
)  # fmt: skip
STATE = "constant[3, 4]()"
# The block in chunks, and its page; a page takes its first state.
RULES = {
    block: block.replace("[2", "_by_position[2", 1)[:-1] + ("" if STATE in block else f", {STATE}") + ")"
    for block in (
        "linear_attention[2, scale = 0.5](q, k, v, -exp(linear[2](h)))",
        "linear_attention[2, scale = 0.5](q, k, v, -exp(linear[6](h)))",
        "delta_rule[2, scale = 0.5](q, k, v, sigmoid(linear[2](h)))",
        "gated_delta_rule[2, scale = 0.5](q, k, v, sigmoid(linear[2](h)), -exp(linear[2](h)))",
        f"linear_recurrence[2](q, k, v, -exp(linear[6](h)), -k, 0.5 * k, {STATE})",
    )
}


def program(call: str, compiled: Compiled) -> Architecture:
    """Returns a causal model of one mixer."""
    text = (
        "use archlang.models.linear_mixers\nuse archlang.models.linear_recurrences\nuse archlang.models.rwkv\n"
        "model m(x: tokens[n]) -> logits[n, vocab] {\n    h = embed[8](x)\n    q = unit_norm[2](linear[6](h))\n"
        f"    k = unit_norm[2](linear[6](h))\n    v = linear[4](h)\n    return linear[vocab]({call})\n}}\n"
    )
    torch.manual_seed(4)
    return noisy(compiled(text, vocab=5))


@pytest.mark.parametrize("call", MIXERS)
def test_a_mixer_trains_every_weight(call: str, compiled: Compiled) -> None:
    module = program(call, compiled)
    module(torch.randint(5, (3, 9)), lengths={"x": torch.tensor([9, 5, 1])}).square().sum().backward()
    for parameter in module.parameters():
        assert parameter.grad is not None
        assert parameter.grad.isfinite().all()
        assert parameter.grad.ne(0).any()


@pytest.mark.parametrize("call", [*MIXERS, *RULES, *RULES.values()])
def test_a_mixer_is_decoded_step_by_step(call: str, compiled: Compiled) -> None:
    module = program(call, compiled)
    slow, fast = (module.decode(begin=1, limit=5, cache=cache) for cache in (False, True))
    assert fast.tokens.equal(slow.tokens)
    close(fast.logits, slow.logits)


@pytest.mark.parametrize("rule", RULES)
def test_the_block_in_chunks_computes_what_the_page_computes(rule: str, compiled: Compiled) -> None:
    page, block = program(RULES[rule], compiled), program(rule, compiled)
    block.load_state_dict(dict(zip(block.state_dict(), page.state_dict().values(), strict=True)))
    x, lengths = torch.randint(5, (3, 70)), {"x": torch.tensor([70, 33, 1])}
    real = torch.arange(70) < lengths["x"][:, None]
    expected, actual = (module(x, lengths=lengths)[real] for module in (page, block))
    same_gradients(actual, expected, block.parameters(), page.parameters())
