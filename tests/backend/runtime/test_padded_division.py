"""A quotient that is infinite at padding does not change results or gradients at real positions."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from archlang.export.plain.file import plain_module, plain_text
from tests.conftest import Compiled

READERS = {
    "attention": "y = attention[1](w)",
    "relative attention": "y = relative_attention[1](w)",
    "geometric attention": "y = geometric_attention[1](w)",
    "map": "y = weigh(softmax_keys(scores(w, w)), w)",
    "recurrence": "y = lstm[4](w)",
    "pointers": "y = relational_read[1](linear[4](w), w)",
    "global halting": "y = w repeat 3 halting y by global_halt[0.9] { y <- y + tanh(linear[4](y)) }",
    "scan": "m = mean(w) y = scan c in chunks[2](w) carry m { m <- m + mean(attention[1](c)) emit c + m }",
}


FORMS = [("attention", "tokens"), ("global halting", "tokens"), ("attention", "plain file"), ("scan", "plain file")]


@pytest.mark.parametrize(("reader", "form"), [*((reader, "vectors") for reader in READERS), *FORMS])
def test_what_padding_holds_changes_no_result_and_no_gradient(reader: str, form: str, compiled: Compiled) -> None:
    field = "x: tokens[n]) -> seq[n, 4] { h = embed[4](x)" if form == "tokens" else "x: seq[n, 4]) -> seq[n, 4] { h = x"
    architecture = compiled(
        f"model m({field} w = linear[4](exp(-20 * log(0.01 + abs(h)))) {READERS[reader]} return y }}"
    )
    module: nn.Module = architecture
    if form == "plain file":
        module = plain_module(architecture, plain_text(architecture))
    module.eval()
    vectors = torch.tensor([[1.0, 1.1, 1.2, 1.3], [1.2, 1.1, 1.0, 1.0], [1.3, 1.1, 1.0, 1.2]])
    real = vectors[None]
    if form == "tokens":
        real = torch.arange(3)[None]
        with torch.no_grad():
            module.get_parameter("embed.weight")[:3] = vectors
    outcomes = []
    for content in (None, torch.nan, torch.inf, 1e30, 0.0):
        x = real
        if form == "tokens" and content is not None:
            x = F.pad(real, (0, 2), value=4)
            with torch.no_grad():
                module.get_parameter("embed.weight")[4] = content
        elif content is not None:
            x = F.pad(real, (0, 0, 0, 2), value=content)
        module.zero_grad()
        result = module(x, lengths=torch.tensor([3]))[:, :3]
        result.sum().backward()
        outcomes.append([result.detach(), *(w.grad[:4] for w in module.parameters() if w.grad is not None)])
    for outcome in outcomes[1:]:
        torch.testing.assert_close(outcome, outcomes[0], atol=1e-6, rtol=1e-5)
