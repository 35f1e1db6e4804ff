"""The pages that define the linear recurrences: the blocks in chunks compute what they compute."""

import pytest
import torch

from archlang.backend.architecture import Architecture
from tests.closeness import same_gradients
from tests.conftest import Compiled

HEADS, LONG = 2, 70
STATE = "constant[3, 4]()"
DECAYS = {"a decay for each head": "-exp(linear[2](h))", "a decay for each feature": "-exp(linear[6](h))"}
RULES = {
    **{name: ("linear_attention[2, scale = 0.5]", f"q, k, v, {decay}") for name, decay in DECAYS.items()},
    "the delta rule": ("delta_rule[2, scale = 0.5]", "q, k, v, sigmoid(linear[2](h))"),
    "the gated delta rule": ("gated_delta_rule[2, scale = 0.5]", "q, k, v, sigmoid(linear[2](h)), -exp(linear[2](h))"),
    "a linear recurrence": ("linear_recurrence[2]", "q, k, v, -exp(linear[6](h)), -k, 0.5 * k"),
}


def program(rule: str, compiled: Compiled, by_position: bool) -> Architecture:
    """Returns a causal model of one mixer, given by its block or by its page."""
    block, inputs = RULES[rule]
    if by_position:
        block = block.replace("[", "_by_position[")
    state = f", {STATE}" if by_position or block.startswith("linear_recurrence") else ""
    text = (
        "use archlang.models.linear_recurrences\n"
        "model m(x: tokens[n]) -> logits[n, vocab] {\n    h = embed[8](x)\n    q = unit_norm[2](linear[6](h))\n"
        "    k = unit_norm[2](linear[6](h))\n    v = linear[4](h)\n"
        f"    return linear[vocab]({block}({inputs}{state}))\n}}\n"
    )
    torch.manual_seed(3)
    return compiled(text, vocab=5).double().eval()


@pytest.mark.parametrize("rule", RULES)
def test_the_block_in_chunks_computes_what_the_page_computes(rule: str, compiled: Compiled) -> None:
    page, block = program(rule, compiled, True), program(rule, compiled, False)
    block.load_state_dict(dict(zip(block.state_dict(), page.state_dict().values(), strict=True)))
    x, lengths = torch.randint(5, (3, LONG)), {"x": torch.tensor([LONG, 33, 1])}
    real = torch.arange(LONG) < lengths["x"][:, None]
    expected, actual = (module(x, lengths=lengths)[real] for module in (page, block))
    same_gradients(actual, expected, block.parameters(), page.parameters())


@pytest.mark.parametrize("by_position", [True, False])
@pytest.mark.parametrize("rule", RULES)
def test_decoding_keeps_the_state_of_a_recurrence(rule: str, by_position: bool, compiled: Compiled) -> None:
    module = program(rule, compiled, by_position)
    slow, fast = (module.decode(begin=1, limit=6, cache=cache) for cache in (False, True))
    assert fast.tokens.equal(slow.tokens)
    torch.testing.assert_close(fast.logits, slow.logits, atol=1e-10, rtol=1e-10)
