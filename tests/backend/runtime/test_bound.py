"""Claims about the modules that the body of a loop calls."""

import torch
from torch import nn

from tests.closeness import close
from tests.conftest import Compiled

LOOP = """
model m[d = 4](x: tokens[n]) -> logits[n, 2] {
    let step = linear[d]
    h = embed[d](x)
    repeat 3 { h <- tanh(step(h)) }
    return linear[2](h)
}
"""


def test_a_hook_on_a_module_is_called_in_each_step_and_only_while_it_is_there(compiled: Compiled) -> None:
    module, calls = compiled(LOOP), list[int]()
    tokens = torch.tensor([[1, 0, 1]])
    expected = module(tokens)
    handle = module.get_submodule("step").register_forward_hook(lambda *_: calls.append(1))
    close(module(tokens), expected)
    assert len(calls) == 3
    handle.remove()
    close(module(tokens), expected)
    assert len(calls) == 3


def test_a_module_that_takes_the_place_of_another_is_called(compiled: Compiled) -> None:
    module, tokens = compiled(LOOP), torch.tensor([[1, 0, 1]])
    before = module(tokens)
    module.set_submodule("step", nn.Identity())
    other = module(tokens)
    assert not torch.equal(before, other)
    embedded = module.get_submodule("embed")(tokens)
    close(other, module.get_submodule("linear")(embedded.tanh().tanh().tanh()))
