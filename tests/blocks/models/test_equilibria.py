"""The pages of blocks/models/equilibria.arch equal their equations, and have the gradients of their fixed points."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from tests.closeness import close, same_gradients
from tests.conftest import Compiled
from tests.slow_pages import D, N, Weights, card_in_words, equals_slow, random_model


def phantom_equilibrium(w: Weights, x: Tensor) -> Tensor:
    z = torch.zeros_like(x)
    for _ in range(4):
        z = w.network("turn", z + x).detach()
    for _ in range(3):
        z = 0.75 * z + 0.25 * w.network("turn", z + x)
    return z


def test_a_phantom_gradient_is_that_of_the_last_damped_turns(compiled: Compiled) -> None:
    call = "phantom_equilibrium[feedforward[12], steps = 4, kept = 3, damping = 0.25](x)"
    equals_slow(compiled, "equilibria", call, phantom_equilibrium)
    assert card_in_words("equilibria", call) == ("", "TC0, regular")


def monotone(w: Weights, x: Tensor, z: Tensor) -> Tensor:
    a, b = w["learned"] / D, w["learned_2"] / D
    matrix = (1 - 0.6) * torch.eye(D) - a.T @ a + b - b.T
    return (z @ matrix.T + w.map("linear", x)).relu()


def implicit(w: Weights, x: Tensor, z: Tensor) -> Tensor:
    matrix = w["learned"] / D
    size = matrix.abs().sum(-1, keepdim=True)
    edges = torch.ones(N, N).tril() / torch.arange(1.0, N + 1)[:, None]
    return (edges @ z @ (matrix * torch.where(size > 0.8, 0.8 / size, 1.0)).T + w.map("linear", x)).relu()


EDGES = "softmax_keys[causal = true](0 * distances(x, x))"


@pytest.mark.parametrize(
    ("equation", "call", "theorems"),
    [
        (monotone, "monotone_equilibrium[8, 400, 0.6](x)", "TC0, regular"),
        (implicit, f"implicit_graph[8, 400, 0.8](x, {EDGES})", "TC0, turns"),
    ],
)
def test_the_result_solves_the_equation_and_its_gradient_is_that_of_the_solution(
    equation: Callable[[Weights, Tensor, Tensor], Tensor], call: str, theorems: str, compiled: Compiled
) -> None:
    module, x = random_model(compiled, "equilibria", call, std=1.0)
    actual = module(x, lengths=[N])
    torch.set_default_dtype(torch.float64)
    try:
        w = Weights(module.get_submodule(call.partition("[")[0]))
        z = actual[0].detach().requires_grad_()
        turn = equation(w, x[0], z)
        close(turn, z)
        # By the implicit function theorem: dz = (I - J)⁻¹ df.
        jacobian = torch.func.jacrev(lambda each: equation(w, x[0], each))(z).detach().reshape(N * D, N * D)
        solved = torch.linalg.solve(torch.eye(N * D) - jacobian, turn.flatten())
        expected = (z.flatten() - solved).detach() + solved
    finally:
        torch.set_default_dtype(torch.float32)
    same_gradients(actual, expected.reshape(1, N, D), [*module.parameters(), x])
    assert card_in_words("equilibria", call) == ("", theorems)
