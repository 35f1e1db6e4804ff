"""Claims about carried states that grow: each scan equals a loop written by hand."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

from archlang.backend.runtime.recording import recording
from archlang.export.plain.file import plain_module, plain_text
from tests.closeness import close
from tests.conftest import Compiled

SUMMARIES = """
model m[d = 4](x: tokens[n]) -> logits[n, vocab] {
    let read = attention[2]
    let summarize = attention[2]
    h = embed[d](x)
    memory = constant[0, d]()
    y = scan c in chunks[3](h) carry memory growing {
        a = c + read(c, memory)
        memory <- append(memory, summarize(learned[2, d, init = normal](), a))
        emit a
    }
    return linear[vocab](y + mean(memory))
}
"""
STATES = """
model m[d = 4](x: tokens[n]) -> logits[n, vocab] {
    let look = attention[2]
    let recur = linear[d]
    s = mean(learned[1, d, init = normal]())
    states = learned[1, d, init = normal]()
    y = scan v in embed[d](x) carry s, states growing truncated 3 {
        s <- tanh(v + recur(s) + first(look(expand(s), states)))
        states <- append(states, expand(s))
        emit s
    }
    return linear[vocab](y + look(y, states))
}
"""
CHUNKS = """
model m[d = 4](x: tokens[n]) -> logits[n, vocab] {
    let read = attention[2]
    h = embed[d](x)
    past = h
    y = scan c after b[2] in chunks[3](h) carry past growing {
        a = c + read(c, append(past, b))
        past <- append(append(expand(mean(a)), norm(past)), a)
        emit a
    }
    return linear[vocab](y + read(h, past))
}
"""
NESTED = """
model m[d = 4](x: tokens[n]) -> logits[n, vocab] {
    let read = attention[2]
    h = embed[d](x)
    past = learned[1, d, init = normal]()
    y = scan c in chunks[3](h) carry past growing {
        z = scan v in c carry past growing {
            a = v + first(read(expand(v), past))
            past <- append(past, expand(a))
            emit a
        }
        repeat 2 { z <- norm(z + read(z, past)) }
        emit z
    }
    repeat 2 { y <- norm(y + read(y, past)) }
    return linear[vocab](y)
}
"""
LENGTHS = torch.tensor([8, 7, 3, 1, 0])


def summaries(module: nn.Module, h: Tensor) -> Tensor:
    read, summarize = module.get_submodule("read"), module.get_submodule("summarize")
    slots, memory, rows = module.get_submodule("learned")(1), h[None, :0], []
    for start in range(0, len(h), 3):
        chunk = h[None, start : start + 3]
        rows.append(chunk + (read(chunk, memory) if start else 0))
        memory = torch.cat((memory, summarize(slots, rows[-1])), 1)
    return torch.cat(rows, 1)[0] + memory.mean(1)


def states(module: nn.Module, h: Tensor) -> Tensor:
    look, recur = module.get_submodule("look"), module.get_submodule("recur")
    s, seen, rows = module.get_submodule("learned")(1)[:, 0], module.get_submodule("learned_2")(1), []
    for index, v in enumerate(h):
        if index and index % 3 == 0:
            s, seen = s.detach(), seen.detach()
        s = torch.tanh(v + recur(s) + look(s[:, None], seen)[:, 0])
        seen = torch.cat((seen, s[:, None]), 1)
        rows.append(s)
    y = torch.stack(rows, 1)
    result: Tensor = (y + look(y, seen))[0]
    return result


def chunks(module: nn.Module, h: Tensor) -> Tensor:
    read, norm = module.get_submodule("read"), module.get_submodule("norm")
    past, rows = h[None], []
    for start in range(0, len(h), 3):
        chunk, before = h[None, start : start + 3], h[None, max(0, start - 2) : start]
        rows.append(chunk + read(chunk, torch.cat((past, before), 1)))
        past = torch.cat((rows[-1].mean(1, keepdim=True), norm(past), rows[-1]), 1)
    result: Tensor = (torch.cat(rows, 1) + read(h[None], past))[0]
    return result


def nested(module: nn.Module, h: Tensor) -> Tensor:
    read, norm, last_norm = (module.get_submodule(name) for name in ("read", "norm", "norm_2"))
    past, rows = module.get_submodule("learned")(1), []
    for start in range(0, len(h), 3):
        chunk = []
        for v in h[start : start + 3]:
            chunk.append((v + read(v[None, None], past)[0, 0])[None, None])
            past = torch.cat((past, chunk[-1]), 1)
        z = torch.cat(chunk, 1)
        for _ in range(2):
            z = norm(z + read(z, past))
        rows.append(z)
    y: Tensor = torch.cat(rows, 1)
    for _ in range(2):
        y = last_norm(y + read(y, past))
    return y[0]


PROGRAMS = {
    "summaries": (SUMMARIES, summaries),
    "states": (STATES, states),
    "chunks": (CHUNKS, chunks),
    "nested": (NESTED, nested),
}


def gradients(results: list[Tensor], module: nn.Module) -> list[Tensor]:
    loss = sum((result.sin().sum() for result in results), torch.zeros(()))
    return list(torch.autograd.grad(loss, list(module.parameters()), allow_unused=True, materialize_grads=True))


@pytest.mark.parametrize("without", [(), pytest.param(("batch_chunks",), marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    ("text", "by_hand"),
    [pytest.param(*case, marks=[] if name in ("summaries", "chunks") else pytest.mark.slow)
     for name, case in PROGRAMS.items()],
    ids=PROGRAMS,
)  # fmt: skip
def test_a_growing_state_has_what_each_step_has_appended(
    compiled: Compiled, text: str, by_hand: Callable[[nn.Module, Tensor], Tensor], without: tuple[str, ...]
) -> None:
    module = compiled(text, vocab=5, without_passes=without).double().eval()
    x = torch.randint(5, (5, 8))
    padded = module(x, lengths=LENGTHS)
    plain = plain_module(module, plain_text(module))(x, lengths=LENGTHS)
    results, expected = [], []
    for row, length in enumerate(LENGTHS.tolist()):
        close(plain[row, :length], padded[row, :length])
        if length:
            results.append(padded[row, :length])
            embedded = module.get_submodule("embed")(x[row : row + 1, :length])[0]
            expected.append(module.get_submodule("linear")(by_hand(module, embedded)))
    torch.testing.assert_close(module(x[:1]), results[0][None], atol=1e-10, rtol=0)
    for result, value in zip(results, expected, strict=True):
        torch.testing.assert_close(result, value, atol=1e-10, rtol=0)
    for gradient, value in zip(gradients(results, module), gradients(expected, module), strict=True):
        torch.testing.assert_close(gradient, value, atol=1e-10, rtol=0)


@pytest.mark.parametrize("text", [STATES, CHUNKS], ids=["states", "chunks"])
def test_an_empty_sequence_appends_nothing(compiled: Compiled, text: str) -> None:
    module = compiled(text, vocab=5)
    assert module(torch.zeros(2, 0, dtype=torch.long)).shape == (2, 0, 5)


def test_a_recording_leaves_out_states_that_grow(compiled: Compiled) -> None:
    module = compiled(STATES, vocab=5)
    with recording(module) as record:
        module(torch.randint(5, (2, 4)))
    assert not [moment for moment in record.moments if moment.kind == "memory"]
