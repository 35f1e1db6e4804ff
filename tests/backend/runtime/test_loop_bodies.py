"""Claims about bodies of loops that torch compiles, or that keep nothing: their results do not change."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from archlang.backend import Architecture
from archlang.backend.runtime.loop_bodies import compile_bodies, rematerialize_bodies
from tests.closeness import close, same_gradients
from tests.conftest import Compiled
from tests.shipped_models import SHIPPED, drawn_fields, shipped_model

pytestmark = pytest.mark.usefixtures("unchecked")

PROGRAM = """
model looping[d = 8](x: tokens[n]) -> logits[classes] {
    h = embed[d](x)
    repeat 3 { h <- copy_gate(gate[d](h), feedforward[8](norm(h + geometric_attention[2](h))), h) }
    repeat 4 halting h by token_halt { h <- h + feedforward[8](norm(h)) }
    stack 2 { h <- norm(h + attention[2](h)) }
    m = learned[2, d]()
    y = scan c in chunks[4](h) carry m {
        repeat 2 { c <- c + attention[2](norm(c), m) }
        m <- m + attention[2](norm(m), c)
        emit c
    }
    return linear[classes](mean(y))
}
"""


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_loop_bodies_have_the_same_outputs_and_gradients(compiled: Compiled) -> None:
    module = compiled(PROGRAM).double()
    x, lengths = torch.randint(0, 11, (3, 9)), torch.tensor([9, 4, 7])
    results = []
    for fast in (False, True):
        if fast:
            # Of each innermost loop; a stack's body is one for all of its steps.
            assert compile_bodies(module, "aot_eager") == 4
        results.append(module(x, lengths=lengths))
    same_gradients(results[0], results[1], module.parameters())


LINEAR = """
model linear_mixer[d = 4](x: tokens[n]) -> logits[n, 3] {
    h = embed[d](x)
    stack 2 {
        y = norm(h)
        h <- h + delta_rule[heads = 1](unit_norm(y), unit_norm(y), linear[d](y), sigmoid(linear[1](y)))
    }
    return linear[3](h)
}
"""


@pytest.mark.filterwarnings("ignore")
def test_a_linear_recurrence_divides_a_body_once_for_all_lengths(compiled: Compiled) -> None:
    module, graphs = compiled(LINEAR), list[int]()
    lengths = [torch.zeros(2, length, dtype=torch.int64) for length in (70, 130, 200)]
    expected = [module(x) for x in lengths]

    def backend(graph: torch.fx.GraphModule, inputs: list[torch.Tensor]) -> Callable[..., object]:
        graphs.append(len(inputs))
        return graph.forward

    compile_bodies(module, backend)  # type: ignore[arg-type]  # torch also takes a function
    counts = []
    for x, result in zip(lengths, expected, strict=True):
        close(module(x), result)
        counts.append(len(graphs))
    # Before and after the recurrence, in the block and in the body; then once more, with symbols for the sizes.
    assert 1 < counts[0] <= 4
    assert counts[1] <= 8
    assert counts[2] == counts[1]


def kept_and_gradients(module: Architecture, fields: list[Tensor]) -> tuple[int, list[Tensor]]:
    """Returns how many numbers a training step keeps until backward, and its results and gradients."""
    kept: dict[int, int] = {}

    def keep(value: Tensor) -> Tensor:
        kept[value.untyped_storage().data_ptr()] = value.untyped_storage().nbytes()
        return value

    module.zero_grad()
    torch.manual_seed(1)
    with torch.autograd.graph.saved_tensors_hooks(keep, lambda value: value):
        result = module(*fields)
    (result.square().sum() + module.ponder).backward()
    gradients = [weight.grad for weight in module.parameters() if weight.grad is not None]
    return sum(kept.values()), [result.detach(), *(gradient.clone() for gradient in gradients)]


@pytest.mark.parametrize("name", sorted(SHIPPED))
def test_bodies_that_keep_only_states_have_the_same_gradients_bit_for_bit(name: str) -> None:
    module = shipped_model(name).train()
    fields = drawn_fields(module)
    kept, expected = kept_and_gradients(module, fields)
    for together in (3, 1):
        again = shipped_model(name).train()
        again.load_state_dict(module.state_dict())
        count = rematerialize_bodies(again, together)
        less, results = kept_and_gradients(again, fields)
        assert all(map(torch.equal, results, expected))
        assert len(results) == len(expected)
        assert less < kept or not count
