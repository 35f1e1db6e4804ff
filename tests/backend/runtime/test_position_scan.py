"""Claims about scans over positions: each equals a loop over the positions written by hand."""

import torch

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
    assert "for v, mask_v in positions(" in text
    result = plain_module(module, text)(x, lengths=lengths)
    real = torch.arange(6) < lengths[:, None]
    torch.testing.assert_close(result[real], module(x, lengths=lengths)[real], atol=1e-10, rtol=0)
