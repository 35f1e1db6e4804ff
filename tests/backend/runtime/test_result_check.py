"""A block of a user's own whose result violates its signature fails at its own line."""

import copy
import pickle
from pathlib import Path

import pytest
import torch

from archlang.backend.mistakes import BlockError
from tests.closeness import close
from tests.conftest import Compiled

PYTHON = """
import torch
from torch import nn

class Odd(nn.Module):
    def __init__(self, *, d):
        super().__init__()

    def forward(self, x, y=None, *, mask_n=None, mask_m=None):
        return RESULT
"""
ONE = """
extern block odd(x: seq[n, d]) -> seq[n, d] python "odd:Odd"
model m(x: tokens[n]) -> logits[n, 4] {
    h = embed[4](x)
    stack 2 { h <- norm(odd(h)) }
    return h
}
"""
X = torch.tensor([[1, 2, 3], [4, 5, 6]])


def block(tmp_path: Path, result: str) -> Path:
    file = tmp_path / "odd.py"
    file.write_text(PYTHON.replace("RESULT", result))
    return file


@pytest.mark.parametrize(
    ("result", "returned"),
    [
        ("x[..., :3]", r"a tensor \[2, 3, 3\] of float32"),
        ("x[:, 1:]", r"a tensor \[2, 2, 4\] of float32"),
        ("x[:1]", r"a tensor \[1, 3, 4\] of float32"),
        ("x.mean(1)", r"a tensor \[2, 4\] of float32"),
        ("x.long()", r"a tensor \[2, 3, 4\] of int64"),
        ("(x, x)", "a tuple"),
        ("None", "a NoneType"),
    ],
)
def test_a_wrong_result_is_refused_at_the_call(compiled: Compiled, tmp_path: Path, result: str, returned: str) -> None:
    module = compiled(ONE, plugins=[block(tmp_path, result)])
    complaint = rf"program\.arch:5:25: `odd` \(odd:Odd\) returns {returned}, but its signature says seq\[n, 4\], "
    with pytest.raises(BlockError, match=complaint + r"here a tensor \[2, 3, 4\] of floating-point numbers"):
        module(X)


def test_a_right_result_passes_also_in_a_copy(compiled: Compiled, tmp_path: Path) -> None:
    module = compiled(ONE, plugins=[block(tmp_path, "2 * x")])
    for same in (copy.deepcopy(module), pickle.loads(pickle.dumps(module))):
        close(same(X), module(X))
    assert module(X[:, :0]).shape == (2, 0, 4)


def test_a_length_that_the_block_computes_is_checked(compiled: Compiled, tmp_path: Path) -> None:
    text = """
    extern block twice(x: seq[n, d]) -> seq[2 * n, d] python "odd:Odd"
    model m(x: tokens[n]) -> logits[classes] { return embed[4](x) |> twice |> mean |> linear[classes] }
    """
    pair = "(torch.cat((x, x), 1), None)"
    assert compiled(text, plugins=[block(tmp_path, pair)])(X).shape == (2, 5)
    with pytest.raises(BlockError, match=r"signature says seq\[2 ?\*? ?n, 4\], here a tensor \[2, 6, 4\]"):
        compiled(text, plugins=[block(tmp_path, "(x, None)")])(X)
