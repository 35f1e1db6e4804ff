"""Claims about samples without positions: alone, they have the result that they have beside longer ones."""

import pytest
import torch
from torch import Tensor

from tests.closeness import close
from tests.conftest import Compiled

HEAD = "model m[d = 8](x: tokens[n]) -> logits[{}] {{ h = embed[d](x) {} }}"
# Each body, and by how much its result is longer than x: None where it has no positions.
BODIES = {
    "return linear[vocab](h)": 0,
    "return linear[vocab](h + attention[2](h))": 0,
    "return linear[vocab](start_end(h) |> attention[2])": 2,
    "return linear[vocab](start_end(start_end(h)))": 4,
    "return mean(h) |> linear[vocab]": None,
    "return last(h) + first(h) |> linear[vocab]": None,
    "m = learned[3, d]()  y = scan c in chunks[3](h) carry m { m <- norm(m + attention[1](m, c))"
    "  emit c + attention[1](c, m) }  return linear[vocab](y)": 0,
    "repeat 3 halting h by token_halt[0.9] { h <- norm(h + attention[1](h)) }  return linear[vocab](h)": 0,
    "repeat 3 halting h by global_halt[0.9] { h <- norm(h + attention[1](h)) }  return mean(h) |> linear[vocab]": None,
    "return linear[vocab](bilstm[8](h))": 0,
    "return gru[8](h, mean(h)) |> reverse |> linear[vocab]": 0,
    "k = learned[4, d]()  return mean(attention[2](k, h)) |> linear[vocab]": None,
}
WRITER = """
model m[d = 4](source: tokens[n], target: tokens[k]) -> logits[k, vocab] {
    t = embed[d](target)
    s = start_end(embed[d](source))
    return linear[vocab](t + attention[1, causal = true](t) + attention[1](t, s) + attention[1](t, embed[d](source)))
}
"""


def program(body: str, extra: int | None) -> str:
    return HEAD.format("vocab" if extra is None else f"n + {extra}, vocab" if extra else "n, vocab", body)


@pytest.mark.parametrize("with_lengths", [True, False])
@pytest.mark.parametrize(("body", "extra"), BODIES.items())
def test_an_empty_sample_has_the_same_result_alone_and_beside_a_longer_sample(
    compiled: Compiled, body: str, extra: int | None, with_lengths: bool
) -> None:
    module = compiled(program(body, extra)).eval()
    beside = module(torch.arange(10).reshape(2, 5), lengths=[0, 5])[:1]
    alone = module(torch.zeros(1, 0, dtype=torch.int64), lengths=[0] if with_lengths else None)
    if extra is not None:
        assert alone.shape[1] == extra
        beside = beside[:, :extra]
    assert alone.isfinite().all()
    close(alone, beside)


@pytest.mark.parametrize(("body", "extra"), BODIES.items())
def test_padding_of_empty_samples_changes_no_gradient(compiled: Compiled, body: str, extra: int | None) -> None:
    module = compiled(program(body, extra))
    gradients: list[list[Tensor]] = []
    for width in (0, 3):
        module.zero_grad()
        result = module(torch.zeros(2, width, dtype=torch.int64), lengths=[0, 0])
        (result.square().sum() * 0 + result[:, :extra].square().sum() + module.ponder).backward()
        gradients.append(
            [
                torch.zeros_like(parameter) if parameter.grad is None else parameter.grad
                for parameter in module.parameters()
            ]
        )
    for actual, expected in zip(*gradients, strict=True):
        assert actual.isfinite().all()
        close(actual, expected)


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
