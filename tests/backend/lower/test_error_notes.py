"""Claims about errors inside torch: they name the line of the program."""

import pytest
import torch
from torch import Tensor, nn

from tests.conftest import Compiled


class Fragile(nn.Module):
    """Raises an error after some calls."""

    def __init__(self, *, d: int) -> None:
        super().__init__()
        self.left = 3

    def forward(self, x: Tensor) -> Tensor:
        self.left -= 1
        if not self.left:
            raise RuntimeError("broken")
        return x


PROGRAM = f"""\
extern block fragile(x: data[d]) -> data[d] python "{__name__}:Fragile"

block inner(h: seq[n, d]) -> seq[n, d] {{
    return fragile(h)
}}

model m(x: tokens[n]) -> logits[n, 4] {{
    h = embed[4](x)
    stack 2 {{
        k = h
        repeat 5 {{
            k <- k + inner(k)
        }}
        h <- k
    }}
    return h
}}
"""


def test_an_error_names_the_expression_and_the_loops_around_it(compiled: Compiled) -> None:
    module = compiled(PROGRAM, plugins=True)
    with pytest.raises(RuntimeError, match="broken") as error:
        module(torch.zeros(1, 1, dtype=torch.int64))
    assert [note.rpartition("/")[2] for note in error.value.__notes__] == [
        "program.arch:4:12: fragile(h)",
        "program.arch:11:9: repeat 5",
        "program.arch:9:5: stack 2",
    ]


def test_an_error_of_torch_in_arithmetic_has_a_note(compiled: Compiled) -> None:
    module = compiled("model m(x: tokens[n]) -> logits[n, 4] {\n    h = embed[4](x)\n    return h + norm(h)\n}")
    module.get_submodule("norm").register_forward_hook(lambda module, inputs, result: result[..., :3])
    with pytest.raises(RuntimeError, match="must match the size") as error:
        module(torch.zeros(1, 1, dtype=torch.int64))
    assert [note.rpartition("/")[2] for note in error.value.__notes__] == ["program.arch:3:12: h + norm(h)"]


def test_a_traceback_shows_the_compiled_line(compiled: Compiled) -> None:
    module = compiled(PROGRAM, plugins=True)
    with pytest.raises(RuntimeError, match="broken") as error:
        module(torch.zeros(1, 1, dtype=torch.int64))
    assert "fragile = self.inner.fragile(k)" in str(error.getrepr(style="long"))
