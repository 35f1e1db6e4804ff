"""Claims about truncated gradients; tests/semantics compares first derivatives with the interpreter's."""

import torch
from torch import Tensor

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


def test_the_second_derivative_is_that_of_the_last_steps(compiled: Compiled) -> None:
    def second(text: str) -> list[Tensor]:
        torch.manual_seed(0)
        module = compiled(text, vocab=5).double()
        weights = [weight for name, weight in module.named_parameters() if name != "embed.weight"]
        x = torch.tensor([[1, 4, 0, 2], [3, 3, 1, 0]])
        first = torch.autograd.grad(module(x).square().sum(), weights, create_graph=True)
        squares = torch.stack([gradient.square().sum() for gradient in first])
        return list(torch.autograd.grad(squares.sum(), weights))

    detached = REPEAT.replace("steps truncated gradient_steps", "3").replace(
        "    return linear[vocab](h + s)",
        "k = detach(h) t = detach(s) repeat 2 { t <- k k <- tanh(t + f(k, g(k))) } return linear[vocab](k + t)",
    )
    for gradient, expected in zip(second(REPEAT), second(detached), strict=True):
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
