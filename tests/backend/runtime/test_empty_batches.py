"""Samples without positions in fields and sources; tests/semantics compares them with the interpreter's."""

import pytest
import torch

from tests.closeness import close
from tests.conftest import Compiled

WRITER = """
model m[d = 4](source: tokens[n], target: tokens[k]) -> logits[k, vocab] {
    t = embed[d](target)
    s = start_end(embed[d](source))
    return linear[vocab](t + attention[1, causal = true](t) + attention[1](t, s) + attention[1](t, embed[d](source)))
}
"""


def test_fields_are_padded_along_each_length_that_is_zero(compiled: Compiled) -> None:
    module = compiled(
        """
        model m[d = 4](x: tokens[n], y: tokens[m], z: seq[n + 1, d], v: vec[d]) -> logits[n, vocab] {
            h = embed[d](x) + attention[1](embed[d](x), embed[d](y)) + attention[1](embed[d](x), z)
            return linear[vocab](h) + linear[vocab](embed[d](x))
        }
        """
    )
    x, y, z, v = (
        torch.zeros(2, 0, dtype=torch.int64),
        torch.ones(2, 3, dtype=torch.int64),
        torch.ones(2, 1, 4),
        torch.ones(2, 4),
    )
    assert module(x, y, z, v).shape == (2, 0, 11)
    some = module(y, x, torch.ones(2, 4, 4), v)
    close(some, module(y, y, torch.ones(2, 4, 4), v, lengths={"y": [0, 0]}))


@pytest.mark.parametrize("cache", [True, False])
def test_an_answer_to_an_empty_source_is_the_same_beside_others(compiled: Compiled, cache: bool) -> None:
    module = compiled(WRITER)
    begin = torch.tensor([[1], [2]])
    alone = module.decode(torch.zeros(2, 0, dtype=torch.int64), begin=begin, limit=5, cache=cache)
    beside = module.decode(torch.ones(2, 4, dtype=torch.int64), lengths=[0, 0], begin=begin, limit=5, cache=cache)
    assert alone.tokens.shape == (2, 5)
    assert torch.equal(alone.tokens, beside.tokens)
    close(alone.logits, beside.logits)
