"""A quotient that is infinite at padding does not change results or gradients at real positions."""

import pytest
import torch
import torch.nn.functional as F

from tests.conftest import Compiled

PROGRAMS = {
    "sequence": """
        w = 1 / softmax_positions(linear[1](h))
        y = attention[1](h, w * h) + sum(w * h) + geometric_attention[1](h, w * h) + lstm[d](w * h)
    """,
    "map": """
        a = softmax_keys(scores(h, h))
        repeat 2 {
            t = transpose_map(a)
            a <- transpose_map(t / outer_sum(sum_keys(t), 0 * sum_keys(t)))
        }
        y = weigh(a, h)
    """,
    "chunk": """
        m = constant[2, d]()
        y = scan c in chunks[3](h) carry m {
            w = 1 / softmax_positions(linear[1](c))
            m <- m + attention[1](m, w * c)
            emit c + attention[1](c, m)
        }
    """,
}


@pytest.mark.parametrize("body", PROGRAMS.values(), ids=PROGRAMS)
def test_a_quotient_at_padding_stays_finite(body: str, compiled: Compiled) -> None:
    text = "model m[d = 4](x: tokens[n]) -> logits[n, vocab] { h = embed[d](x) " + body + "return linear[vocab](y) }"
    module = compiled(text).double()
    x, lengths = torch.randint(0, 5, (2, 5)), torch.tensor([5, 4])
    outcomes = []
    for padding in (0, 3):
        module.zero_grad()
        result = module(F.pad(x, (0, padding)), lengths=lengths)
        real = torch.cat([result[0, :5], result[1, :4]])
        torch.autograd.backward(real.square().sum())
        outcomes.append([real.detach(), *(weight.grad for weight in module.parameters())])
    for plain, padded in zip(*outcomes, strict=True):
        torch.testing.assert_close(plain, padded, atol=1e-10, rtol=1e-10)
