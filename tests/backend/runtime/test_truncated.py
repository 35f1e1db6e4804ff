"""Claims about truncated gradients: each equals a program with `detach`, or a loop written by hand."""

from collections.abc import Iterator

import pytest
import torch
from torch import Tensor, nn

from archlang.export.plain.file import plain_module, plain_text
from tests.conftest import Compiled

REPEAT = """
model m[d = 4, steps = 5, gradient_steps = 2](x: tokens[n]) -> logits[n, vocab] {
    let f = relative_attention[1]
    let g = linear[d]
    h = embed[d](x)
    s = g(h)
    repeat steps truncated gradient_steps {
        s <- h
        h <- tanh(s + f(h, g(h)))
    }
    return linear[vocab](h + s)
}
"""
DETACHED = """
model m[d = 4, first = 3, last = 2](x: tokens[n]) -> logits[n, vocab] {
    let f = relative_attention[1]
    let g = linear[d]
    e = embed[d](x)
    h = e
    s = g(h)
    repeat first {
        s <- h
        h <- tanh(s + f(h, g(h)))
    }
    if first > 0 { h1 = detach(h) } else { h1 = h }
    if first > 0 { s1 = detach(s) } else { s1 = s }
    repeat last {
        s1 <- h1
        h1 <- tanh(s1 + f(h1, g(h1)))
    }
    return linear[vocab](h1 + s1)
}
"""
SCAN = """
model m[d = 3](x: tokens[n]) -> logits[n, vocab] {
    let read = linear[d]
    let recur = linear[d]
    s = mean(learned[1, d, init = normal]())
    y = scan v in embed[d](x) carry s truncated 2 {
        s <- tanh(read(v) + recur(s))
        emit v
    }
    return linear[vocab](y + s)
}
"""


def gradients(result: Tensor, module: nn.Module) -> Iterator[Tensor]:
    """The gradients of a weighted sum of a result; zeros for a weight without a path to it."""
    weight = torch.linspace(-1, 1, result.numel(), dtype=result.dtype).view_as(result)
    weights = list(module.parameters())
    actual_gradients = torch.autograd.grad((result * weight).sum(), weights, allow_unused=True)
    for parameter, gradient in zip(weights, actual_gradients, strict=True):
        yield torch.zeros_like(parameter) if gradient is None else gradient


def assert_same(result: Tensor, module: nn.Module, expected: Tensor, expected_module: nn.Module) -> None:
    torch.testing.assert_close(result, expected, atol=1e-10, rtol=0)
    pairs = zip(gradients(result, module), gradients(expected, expected_module), strict=True)
    for gradient, expected_gradient in pairs:
        torch.testing.assert_close(gradient, expected_gradient, atol=1e-10, rtol=0)


@pytest.mark.parametrize(("gradient_steps", "first", "last"), [(0, 5, 0), (1, 4, 1), (2, 3, 2), (5, 0, 5), (9, 0, 5)])
@pytest.mark.parametrize("without", [(), ("common", "invariants", "dead")])
def test_a_truncated_loop_has_the_gradient_of_its_last_steps(
    compiled: Compiled, gradient_steps: int, first: int, last: int, without: tuple[str, ...]
) -> None:
    module = compiled(REPEAT, vocab=5, without_passes=without, gradient_steps=gradient_steps).double()
    expected_module = compiled(DETACHED, vocab=5, first=first, last=last).double()
    expected_module.load_state_dict(module.state_dict(), strict=first + last == 5)
    x = torch.randint(5, (2, 4))
    assert_same(module(x), module, expected_module(x), expected_module)


def test_the_second_derivative_is_that_of_the_last_steps(compiled: Compiled) -> None:
    def second(text: str) -> list[Tensor]:
        torch.manual_seed(0)
        module = compiled(text, vocab=5).double()
        with torch.random.fork_rng():
            torch.manual_seed(1)
            x = torch.randint(5, (2, 4))
        weights = [weight for name, weight in module.named_parameters() if name != "embed.weight"]
        first = torch.autograd.grad(module(x).square().sum(), weights, create_graph=True)
        squares = torch.stack([gradient.square().sum() for gradient in first])
        return list(torch.autograd.grad(squares.sum(), weights))

    for gradient, expected in zip(second(REPEAT), second(DETACHED), strict=True):
        torch.testing.assert_close(gradient, expected, atol=1e-9, rtol=1e-9)


def test_steps_without_gradient_keep_nothing_until_backward(compiled: Compiled) -> None:
    def kept_numbers(steps: int) -> int:
        module = compiled(REPEAT, vocab=5, steps=steps, gradient_steps=1)
        count = 0

        def pack(tensor: Tensor) -> Tensor:
            nonlocal count
            count += tensor.numel()
            return tensor

        with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
            module(torch.randint(5, (2, 4)))
        return count

    assert kept_numbers(20) == kept_numbers(2)


def test_a_truncated_scan_cuts_the_gradient_of_its_states_after_every_group_of_parts(compiled: Compiled) -> None:
    module = compiled(SCAN, vocab=5).double()
    x, lengths = torch.randint(5, (4, 5)), [5, 4, 2, 0]
    result = module(x, lengths=torch.tensor(lengths))
    vectors = module.get_submodule("embed")(x)
    rows = []
    for sample, length in enumerate(lengths):
        state = module.get_submodule("learned")(1)[0, 0]
        for position in range(length):
            state = state.detach() if position in (2, 4) else state
            read = module.get_submodule("read")(vectors[sample, position])
            state = torch.tanh(read + module.get_submodule("recur")(state))
        rows.append(module.get_submodule("linear")(vectors[sample] + state))
    real = (torch.arange(5) < torch.tensor(lengths)[:, None])[..., None]
    assert_same(result * real, module, torch.stack(rows) * real, module)


@pytest.mark.parametrize("text", [REPEAT, SCAN])
def test_an_exported_model_has_the_same_gradients(compiled: Compiled, text: str) -> None:
    module = compiled(text, vocab=5).double()
    exported = plain_module(module, plain_text(module))
    x, lengths = torch.randint(5, (3, 5)), torch.tensor([5, 3, 1])
    real = (torch.arange(5) < lengths[:, None])[..., None]
    assert_same(exported(x, lengths) * real, exported, module(x, lengths=lengths) * real, module)
