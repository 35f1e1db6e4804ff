"""A pass in pieces has the results and gradients of the same pass as a whole."""

from pathlib import Path

import pytest
import torch
from torch import nn

import archlang
from archlang.backend import Architecture
from archlang.blocks.halting import _Halt
from archlang.train.step_pieces import Pieces, chunked_loops

TOKENS = torch.tensor([[1, 2, 3, 4, 5, 6, 7], [3, 3, 1, 0, 0, 0, 0], [9, 8, 7, 6, 5, 0, 0], [4] * 7, [5] + [0] * 6])
LENGTHS = torch.tensor([7, 3, 5, 7, 1])
HEAD = "model m[d = 8](x: tokens[n]) -> logits[n, classes] {\n h = embed[d](x)\n"
LOOPS = {
    "samples": "repeat 13 halting h by global_halt[0.9] { h <- h + attention[2](norm(h)) + linear[d](h) }",
    "positions and two states": """m = linear[d](h)
        repeat 9 halting h by token_halt[0.95] {
            m <- tanh(m + linear[d](h))
            h <- norm(h + m)
        }""",
    "an emission and a value from outside": """g = sigmoid(linear[d](h))
        y = repeat 10 halting h by act {
            h <- norm(h + g * attention[2](h))
            emit g * linear[d](h)
        }
        z = h + y + g""",
    "one loop after another": """g = linear[d](h)
        repeat 9 halting h by token_halt[0.9] { h <- norm(h + g + linear[d](h)) }
        u = norm(h)
        repeat 6 halting u by global_halt[0.9] { u <- norm(u + h * g + linear[d](u)) }
        z = h + u + g""",
    "in a scan over chunks": """m = learned[2, d]()
        y = scan c in chunks[2](h) carry m {
            repeat 7 halting c by act { c <- norm(c + attention[2](c, m)) }
            m <- m + attention[2](norm(m), c)
            emit c
        }
        z = h + y""",
    "in a stack": "stack 2 { repeat 6 halting h by token_halt[0.9] { h <- norm(h + linear[d](h)) } }",
    "one in another": """repeat 6 halting h by token_halt[0.9] {
            u = h
            repeat 5 halting u by act { u <- norm(u + linear[d](u)) }
            h <- norm(h + u)
        }""",
}


def model(loop: str, folder: Path) -> Architecture:
    """Returns a model whose samples halt at different steps."""
    file = folder / "m.arch"
    result = "z" if "z = " in loop else "h"
    file.write_text(f"{HEAD} {loop}\n return linear[classes]({result})\n}}")
    torch.manual_seed(0)
    module = archlang.load(file, vocab=10, classes=4).double()
    for part in module.modules():
        if isinstance(part, _Halt):
            nn.init.normal_(part.hidden.weight, std=2.0)
            nn.init.normal_(part.output.weight, std=2.0)
    return module


def backward(module: Architecture, pieces: Pieces | None) -> list[torch.Tensor]:
    """Returns all results of a pass, and all gradients."""
    module.zero_grad()
    if pieces is None:
        logits = module(TOKENS, lengths=LENGTHS)
    else:
        with pieces.running(module):
            logits = module(TOKENS, lengths=LENGTHS)
    torch.manual_seed(2)
    ((logits * torch.randn_like(logits)).sum() + module.ponder).backward(retain_graph=pieces is not None)
    if pieces is not None:
        pieces.backward()
    assert module.sample_depth is not None
    gradients = [torch.zeros_like(w) if w.grad is None else w.grad.clone() for w in module.parameters()]
    return [logits.detach(), module.ponder.detach(), module.sample_depth, *gradients]


@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize("is_captured", [False, True], ids=["until all have halted", "all chunks"])
def test_pieces_have_the_results_and_gradients_of_the_whole(loop: str, is_captured: bool, tmp_path: Path) -> None:
    module = model(LOOPS[loop], tmp_path)
    assert chunked_loops(module)
    pieces = Pieces(list(module.parameters()), is_captured=is_captured)
    torch.testing.assert_close(backward(module, pieces), backward(module, None), rtol=0, atol=1e-10)


def test_pieces_without_gradients_have_the_results_of_the_whole(tmp_path: Path) -> None:
    module = model(LOOPS["one loop after another"], tmp_path)
    with torch.no_grad():
        plain = module(TOKENS, lengths=LENGTHS)
        with Pieces([]).running(module):
            torch.testing.assert_close(module(TOKENS, lengths=LENGTHS), plain, rtol=0, atol=1e-10)


@pytest.mark.parametrize(
    ("loop", "count"),
    [
        ("repeat 4 halting h by act { h <- norm(h) }", 0),
        ("repeat 5 halting h by act { h <- norm(h) }", 1),
        ("repeat 3 { repeat 5 halting h by act { h <- norm(h) } }", 1),
        ("repeat 3 truncated 1 { repeat 5 halting h by act { h <- norm(h) } }", 0),
    ],
)
def test_loops_of_few_steps_and_those_whose_gradients_stop_run_as_a_whole(
    loop: str, count: int, tmp_path: Path
) -> None:
    assert len(chunked_loops(model(loop, tmp_path))) == count
