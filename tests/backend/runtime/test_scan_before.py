"""Claims about the positions before a part of a scan: each equals a loop written by hand."""

import pytest
import torch
from torch import Tensor, nn

from archlang.backend.runtime.recording import recording
from archlang.export.plain.file import plain_module, plain_text
from tests.closeness import close
from tests.conftest import Compiled

CHUNKS = """
model m[d = 4, size = 3, reach = 2](x: tokens[n]) -> logits[n, vocab] {
    let attend = attention[2]
    h = embed[d](x)
    m = mean(learned[1, d, init = normal]())
    y = scan c after b[reach] in chunks[size](h) carry m {
        a = attend(c, append(b, c)) + m
        m <- m + mean(b)
        emit a
    }
    return linear[vocab](y)
}
"""
POSITIONS = """
model m[d = 4](x: tokens[n]) -> logits[n, vocab] {
    let read = linear[d]
    h = embed[d](x)
    y = scan v after past in h { emit read(v) + sum(past) }
    z = scan v after last[2] in y { emit v * mean(last) }
    return linear[vocab](z)
}
"""
LENGTHS = torch.tensor([8, 7, 3, 1, 0])


def by_hand(module: nn.Module, text: str, x: Tensor, size: int = 3, reach: int = 2) -> Tensor:
    """One sample of the models above, chunk by chunk or position by position."""
    h = module.get_submodule("embed")(x[None])[0]
    if text is CHUNKS:
        state, rows = module.get_submodule("learned")(1)[0, 0], []
        for start in range(0, len(x), size):
            chunk, before = h[start : start + size], h[max(0, start - reach) : start]
            keys = torch.cat((before, chunk))
            rows.append(module.get_submodule("attend")(chunk[None], keys[None])[0] + state)
            state = state + (before.mean(0) if len(before) else 0)
        result = torch.cat(rows)
    else:
        read = module.get_submodule("read")
        y = torch.stack([read(h[i]) + h[:i].sum(0) for i in range(len(x))])
        result = torch.stack([y[i] * (y[max(0, i - 2) : i].mean(0) if i else 0 * y[i]) for i in range(len(x))])
    logits: Tensor = module.get_submodule("linear")(result)
    return logits


def gradients(results: list[Tensor], module: nn.Module) -> list[Tensor]:
    loss = sum((result.sin().sum() for result in results), torch.zeros(()))
    return list(torch.autograd.grad(loss, list(module.parameters()), allow_unused=True, materialize_grads=True))


@pytest.mark.parametrize("without", [(), ("batch_chunks",)])
@pytest.mark.parametrize(
    ("text", "statics"),
    [(CHUNKS, {}), (CHUNKS, {"size": 2, "reach": 5}), (POSITIONS, {})],
    ids=["chunks", "reach of several chunks", "positions"],
)
def test_a_part_comes_with_the_positions_before_it(
    compiled: Compiled, text: str, statics: dict[str, int], without: tuple[str, ...]
) -> None:
    module = compiled(text, vocab=5, without_passes=without, **statics).double().eval()
    x = torch.randint(5, (5, 8))
    padded = module(x, lengths=LENGTHS)
    results, expected = [], []
    for row, own, length in zip(x, padded, LENGTHS.tolist(), strict=True):
        if length:
            results.append(own[:length])
            expected.append(by_hand(module, text, row[:length], **statics))
    for result, value in zip(results, expected, strict=True):
        torch.testing.assert_close(result, value, atol=1e-10, rtol=0)
    for gradient, value in zip(gradients(results, module), gradients(expected, module), strict=True):
        torch.testing.assert_close(gradient, value, atol=1e-10, rtol=0)


@pytest.mark.parametrize("text", [CHUNKS, POSITIONS])
def test_a_plain_file_gives_each_part_the_positions_before_it(compiled: Compiled, text: str) -> None:
    module = compiled(text, vocab=5).double().eval()
    plain = plain_module(module, plain_text(module))
    x = torch.randint(5, (5, 8))
    for lengths in (None, LENGTHS):
        real = torch.arange(8) < (torch.full((5, 1), 8) if lengths is None else lengths[:, None])
        close(plain(x, lengths=lengths)[real], module(x, lengths=lengths)[real])


def test_a_chunk_without_positions_changes_no_state(compiled: Compiled) -> None:
    """The first part has nothing before it, so a scan over that takes no step, with lengths and without."""
    module = compiled(
        "model m[d = 3](x: tokens[n]) -> logits[n, vocab] {\n"
        "    s = mean(learned[1, d, init = normal]())\n"
        "    y = scan v after b in embed[d](x) carry s {\n"
        "        scan c in chunks[2](b) carry s { s <- s + 1 + mean(c) }\n"
        "        emit v + s\n"
        "    }\n"
        "    return linear[vocab](y)\n"
        "}",
        vocab=5,
    ).double()
    x = torch.randint(5, (2, 4))
    close(module(x), module(x, lengths=torch.tensor([4, 4])))
    embedded, state = module.get_submodule("embed")(x[:, :1]), module.get_submodule("learned")(1)
    close(module(x[:, :1]), module.get_submodule("linear")(embedded + state))


def test_a_recording_has_the_states_behind_what_is_before_a_part(compiled: Compiled) -> None:
    module = compiled(
        "model m[d = 2](x: tokens[n]) -> logits[n, vocab] {\n"
        "    s = learned[3, d, init = normal]()\n"
        "    y = scan c after b[2] in chunks[2](embed[d](x)) carry s {\n"
        "        s <- 2 * s\n"
        "        emit c + mean(s) + mean(b)\n"
        "    }\n"
        "    return linear[vocab](y)\n"
        "}",
        vocab=5,
    )
    with recording(module) as record:
        module(torch.randint(5, (2, 6)))
    memories = [moment.values for moment in record.moments if moment.kind == "memory"]
    start = module.get_submodule("learned")(2)
    assert len(memories) == 3
    for turn, memory in enumerate(memories, 1):
        close(memory, 2**turn * start.detach())
