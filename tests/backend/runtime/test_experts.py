"""Experts add up the results of the sets of weights that a position chooses; chosen rows equal all rows."""

import pytest
import torch
from torch import Tensor, nn

from archlang.backend.runtime.experts import ExpertLoop
from archlang.export.formats import trace
from archlang.export.plain.file import plain_module, plain_text
from tests.conftest import Compiled
from tests.unchecked_shapes import unchecked_shapes

PROGRAM = """
model m[e = 4](x: tokens[n]) -> logits[n, vocab] {
    let shared = linear[4]
    h = embed[4](x)
    s = softmax(linear[e](h))
    y = experts v in h by s * top_k[2](s) {
        emit linear[3](tanh(linear[8](v) + linear[1](shared(v)))) + mean(linear[3](h))
    }
    g = softmax(linear[3](last(y)))
    z = experts v in last(y) by g * top_k[1](g) {
        emit linear[4](v)
    }
    return linear[vocab](shared(h)) + linear[vocab](y) + linear[vocab](z)
}
"""


def loops(module: nn.Module) -> list[ExpertLoop]:
    return [value for part in module.modules() for value in vars(part).values() if isinstance(value, ExpertLoop)]


def test_each_expert_computes_only_the_positions_that_choose_it(compiled: Compiled) -> None:
    module = compiled(PROGRAM, vocab=5, classes=2)
    rows: list[int] = []
    for step in loops(module)[0].steps():
        step.get_submodule("linear_2").register_forward_hook(lambda _, values, result: rows.append(len(result)))
    with torch.no_grad():
        module(torch.randint(5, (3, 6)), lengths=torch.tensor([6, 3, 1]))
    assert sum(rows) == 2 * (6 + 3 + 1)


def test_an_expert_that_no_position_chooses_has_gradients_of_zero(compiled: Compiled) -> None:
    module = compiled(PROGRAM, vocab=5, classes=2)
    with torch.no_grad():
        module.get_parameter("linear.bias").copy_(torch.tensor([9.0, 9.0, 0.0, 0.0]))
    module(torch.randint(5, (3, 6))).sum().backward()
    unchosen = [weight.grad for weight in loops(module)[0].steps()[3].parameters()]
    assert all(gradient is not None and not gradient.any() for gradient in unchosen)


def test_a_weight_of_zero_has_no_gradient(compiled: Compiled) -> None:
    module = compiled(PROGRAM, vocab=5, classes=2)
    experts = loops(module)[1]
    values, weights = torch.randn(2, 3), torch.tensor([[0.0, 0.5, 0.0], [1.0, 0.0, 0.0]], requires_grad=True)
    (gradient,) = torch.autograd.grad(experts(values, weights).sum(), [weights])
    assert torch.equal(gradient != 0, weights != 0)


@pytest.mark.parametrize("form", ["eager", "torch.func", "plain file"])
def test_an_expert_that_is_not_chosen_has_no_gradient_where_it_would_compute_an_infinite_number(
    compiled: Compiled, form: str
) -> None:
    text = "model m(x: seq[n, 1]) -> seq[n, 1] {\n w = concat(0 * x, relu(5 - x))\n y = experts v in x by w {\n"
    module = compiled(f"{text} emit exp(linear[1](v) + linear[1](sum(x)))\n }}\n return y\n}}\n")
    run: nn.Module = plain_module(module, plain_text(module)) if form == "plain file" else module
    with torch.no_grad():
        for weight in run.parameters():
            weight.fill_(1.0)
    x = torch.tensor([[[100.0]], [[0.0]]])
    weights: dict[str, Tensor] = dict(run.named_parameters())

    def loss(weights: dict[str, Tensor], x: Tensor) -> Tensor:
        result: Tensor = torch.func.functional_call(run, weights, (x,))
        return result.sum()

    if form == "torch.func":
        of_weights, of_x = torch.func.grad(loss, argnums=(0, 1))(weights, x)
        gradients = [*of_weights.values(), of_x]
    else:
        x.requires_grad_()
        gradients = list(torch.autograd.grad(loss(weights, x), [*weights.values(), x]))
    assert all(gradient.isfinite().all() for gradient in gradients)
    assert gradients[-1].flatten().tolist()[0] == 0
    assert sum(bool(gradient.any()) for gradient in gradients[:-1]) == 2  # the biases of the chosen expert: its x is 0


def test_compiled_and_exported_models_compute_every_expert(compiled: Compiled) -> None:
    module = compiled(PROGRAM, vocab=5, classes=2).double().eval()
    x, lengths = torch.randint(5, (2, 5)), torch.tensor([5, 2])
    expected = module(x, lengths=lengths)
    real = torch.arange(5) < lengths[:, None]
    traced = trace(module).module()(x, lengths)
    torch.testing.assert_close(traced[real], expected[real], atol=1e-10, rtol=0)
    with unchecked_shapes():
        graphed = torch.compile(module, backend="eager", fullgraph=True)(x, lengths=lengths)
    torch.testing.assert_close(graphed[real], expected[real], atol=1e-10, rtol=0)


def test_decoding_computes_experts_for_new_positions_only(compiled: Compiled) -> None:
    text = "model m(x: tokens[n]) -> logits[n, vocab] {\n h = embed[4](x)\n y = experts v in h by linear[2](h) {\n"
    module = compiled(f"{text} emit linear[4](v)\n }}\n return linear[vocab](y)\n}}\n", vocab=5)
    rows: list[int] = []
    loops(module)[0].steps()[0].register_forward_hook(lambda _, values, result: rows.append(len(result[0])))
    written = module.decode(begin=torch.randint(5, (2, 3)), limit=3)
    assert rows == [2 * 3, 2, 2]
    assert written.tokens.shape == (2, 3)


def test_a_batch_without_samples_has_a_result_without_samples(compiled: Compiled) -> None:
    module = compiled(PROGRAM, vocab=5, classes=2)
    assert module(torch.zeros(0, 4, dtype=torch.long)).shape == (0, 4, 5)
