"""Claims about scans over positions: each equals a loop over the positions written by hand."""

import pytest
import torch
from jaxtyping import Float
from torch import Tensor, nn

from archlang.export.plain.file import plain_module, plain_text
from tests.closeness import close
from tests.conftest import Compiled

ELMAN = """
model m[d = 4, width = 3](x: tokens[n]) -> logits[n, vocab] {
    let read = linear[width]
    let recur = linear[width]
    s = mean(learned[1, width, init = normal]())
    y = scan v in embed[d](x) carry s {
        s <- tanh(read(v) + recur(s))
        emit s * 2.0
    }
    return linear[vocab](y)
}
"""
LAST = ELMAN.replace("logits[n, vocab]", "logits[classes]").replace("linear[vocab](y)", "linear[classes](s)")


def by_hand(module: nn.Module, x: Tensor, lengths: list[int]) -> tuple[Float[Tensor, "b n 3"], Float[Tensor, "b 3"]]:
    """Returns what the network emits, and its last states, one sample and position at a time."""
    embedded = module.get_submodule("embed")(x)
    outputs, last = torch.zeros(*x.shape, 3, dtype=embedded.dtype), []
    for sample, length in enumerate(lengths):
        state = module.get_submodule("learned")(1)[0, 0]
        for position in range(length):
            read = module.get_submodule("read")(embedded[sample, position])
            state = torch.tanh(read + module.get_submodule("recur")(state))
            outputs[sample, position] = 2 * state
        last.append(state)
    return outputs, torch.stack(last)


@pytest.mark.parametrize("batch_chunks", [True, False])
def test_a_scan_over_positions_is_a_recurrent_network(compiled: Compiled, batch_chunks: bool) -> None:
    passes = () if batch_chunks else ("batch_chunks",)
    module = compiled(ELMAN, vocab=5, without_passes=passes).double()
    x, lengths = torch.randint(5, (3, 6)), [6, 2, 0]
    result = module(x, lengths=torch.tensor(lengths))
    emitted, _ = by_hand(module, x, lengths)
    expected = module.get_submodule("linear")(emitted)
    real = torch.arange(6) < torch.tensor(lengths)[:, None]
    torch.testing.assert_close(result[real], expected[real], atol=1e-10, rtol=0)
    weight = torch.randn(int(real.sum()), 5, dtype=torch.float64)
    parameters = list(module.parameters())
    gradients = torch.autograd.grad((result[real] * weight).sum(), parameters)
    expected_gradients = torch.autograd.grad((expected[real] * weight).sum(), parameters)
    for gradient, expected_gradient in zip(gradients, expected_gradients, strict=True):
        torch.testing.assert_close(gradient, expected_gradient, atol=1e-10, rtol=0)


def test_the_last_state_of_a_sample_is_that_of_its_last_real_position(compiled: Compiled) -> None:
    module = compiled(LAST, vocab=5, classes=2).double()
    x, lengths = torch.randint(5, (3, 6)), [6, 2, 1]
    _, last = by_hand(module, x, lengths)
    expected = module.get_submodule("linear")(last)
    torch.testing.assert_close(module(x, lengths=torch.tensor(lengths)), expected, atol=1e-10, rtol=0)


def test_a_batch_without_positions_keeps_the_states(compiled: Compiled) -> None:
    module = compiled(LAST, vocab=5, classes=2)
    empty = torch.zeros(2, 0, dtype=torch.int64)
    first = module.get_submodule("linear")(module.get_submodule("learned")(2)[:, 0])
    close(module(empty), first)
    assert compiled(ELMAN, vocab=5)(empty).shape == (2, 0, 5)


def test_decoding_computes_only_new_positions(compiled: Compiled) -> None:
    module = compiled(ELMAN, vocab=5).double()
    steps = 0

    def count(*_: object) -> None:
        nonlocal steps
        steps += 1

    module.get_submodule("recur").register_forward_hook(count)
    prompt = torch.randint(5, (2, 3))
    written = module.decode(begin=prompt, limit=4)
    assert steps == 3 + 3  # the last token is not read
    assert torch.equal(written.tokens, module.decode(begin=prompt, limit=4, cache=False).tokens)


def test_a_plain_file_has_a_loop_over_the_positions(compiled: Compiled) -> None:
    module = compiled(ELMAN, vocab=5).double()
    x, lengths = torch.randint(5, (3, 6)), torch.tensor([6, 2, 1])
    text = plain_text(module)
    assert "for real_v, v, mask_v in filled_parts(positions(" in text
    result = plain_module(module, text)(x, lengths=lengths)
    real = torch.arange(6) < lengths[:, None]
    torch.testing.assert_close(result[real], module(x, lengths=lengths)[real], atol=1e-10, rtol=0)
