"""A settled loop has the gradient of the fixed point of its step, and keeps what one step keeps."""

import pytest
import torch
from torch import Tensor, nn

from tests.closeness import same_gradients
from tests.conftest import Compiled

LOOP = """
model m[d = 4, steps = 60](x: seq[n, d]) -> logits[n, d] {
    let f = linear[d, bias = false]
    let g = linear[d]
    s = 0 * x
    y = repeat steps settled {
        s <- tanh(f(s) + g(x) + mean(s))
        emit s * s
    }
    return s + y
}
"""
X = torch.tensor([[[0.3, -0.1, 0.8, 0.2], [-0.5, 0.9, 0.1, -0.2], [0.4, 0.4, -0.7, 0.6]]], dtype=torch.float64)


def loop(compiled: Compiled, text: str = LOOP, **statics: object) -> nn.Module:
    torch.manual_seed(1)
    module = compiled(text, **statics).double()
    with torch.no_grad():
        module.get_parameter("f.weight").mul_(0.3)
    return module


def test_the_gradient_is_that_of_the_implicit_function_theorem(compiled: Compiled) -> None:
    module = loop(compiled, LOOP.replace("mean(s)", "0.2 * mean(s)"), steps=80)
    x = X.clone().requires_grad_()
    f, g, bias = (module.get_parameter(name) for name in ("f.weight", "g.weight", "g.bias"))

    def step(s: Tensor) -> Tensor:
        return torch.tanh(s @ f.T + x[0] @ g.T + bias + 0.2 * s.mean(0))

    s = torch.zeros_like(x[0])
    with torch.no_grad():
        for _ in range(200):
            s = step(s)
    jacobian = torch.func.jacrev(step)(s).reshape(s.numel(), s.numel())
    moved = torch.linalg.solve(torch.eye(s.numel(), dtype=s.dtype) - jacobian.detach(), (step(s) - s).flatten())
    s = s + moved.reshape(s.shape)
    same_gradients(module(x), (s + s * s)[None], [*module.parameters(), x])


@pytest.mark.parametrize("terms", [1, 2, 3])
def test_truncated_terms_are_those_of_the_series(compiled: Compiled, terms: int) -> None:
    text = LOOP.replace("steps settled", f"steps truncated {terms} settled")
    module, x = loop(compiled, text, steps=5), X.clone().requires_grad_()
    f, g, bias = (module.get_parameter(name) for name in ("f.weight", "g.weight", "g.bias"))
    s = torch.zeros_like(x[0])
    with torch.no_grad():
        for _ in range(4):
            s = torch.tanh(s @ f.T + x[0] @ g.T + bias + s.mean(0))
    result = torch.tanh(s @ f.T + x[0] @ g.T + bias + s.mean(0))
    for _ in range(1, terms):
        moved = s + (result - result.detach())
        result = torch.tanh(moved @ f.T + x[0] @ g.T + bias + moved.mean(0))
    same_gradients(module(x), (result + result * result)[None], [*module.parameters(), x])


def test_a_second_derivative_is_refused(compiled: Compiled) -> None:
    x = X.clone().requires_grad_()
    (gradient,) = torch.autograd.grad(loop(compiled)(x).sum(), x, create_graph=True)
    with pytest.raises(RuntimeError, match="a settled loop has no second derivative"):
        gradient.square().sum().backward()  # type: ignore[no-untyped-call]


def test_a_transform_gets_the_same_gradient(compiled: Compiled) -> None:
    module = loop(compiled, steps=4)
    weights: dict[str, Tensor] = dict(module.named_parameters())

    def total(of: dict[str, Tensor]) -> Tensor:
        result: Tensor = torch.func.functional_call(module, of, (X,))
        return result.square().sum()

    expected = torch.autograd.grad(total(weights), list(weights.values()))
    for gradient, other in zip(torch.func.grad(total)(weights).values(), expected, strict=True):
        torch.testing.assert_close(gradient, other, atol=1e-12, rtol=1e-12)


def test_backward_needs_what_one_step_keeps(compiled: Compiled) -> None:
    def kept_numbers(steps: int) -> int:
        module, count, seen = loop(compiled, steps=steps), 0, set[int]()
        pending = [module(X).grad_fn]
        while pending:
            node = pending.pop()
            if node is None or id(node) in seen:
                continue
            seen.add(id(node))
            count += 1
            pending += [following for following, _ in node.next_functions]
        return count

    assert kept_numbers(40) == kept_numbers(2)
