"""Claims about the models of loops: their steps, what they see, and where their gradients flow."""

import pytest
import torch
from torch import Tensor, nn

from archlang.backend.architecture import Architecture
from tests.closeness import close
from tests.shipped_models import load_page

HUGINN = {"vocab": 5, "d": 8, "heads": 2, "ff": 6, "steps": 3, "gradient_steps": 1, "core": 1}
REASONING = {"vocab": 5, "classes": 4, "d": 8, "heads": 2, "ff": 6, "layers": 1, "turns": 2}


def huginn(**statics: int) -> Architecture:
    return load_page("recurrent_depth", "huginn", **{**HUGINN, **statics})


def reasoning(model: str, **statics: int) -> Architecture:
    return load_page("recursive_reasoning", model, **{**REASONING, **statics})


def gradients(module: nn.Module, result: Tensor) -> dict[str, Tensor | None]:
    weights = dict(module.named_parameters())
    of_weights = torch.autograd.grad(result.square().sum(), list(weights.values()), allow_unused=True)
    return dict(zip(weights, of_weights, strict=True))


def test_huginn_has_the_same_weights_at_every_depth() -> None:
    module = huginn().eval()
    x = torch.randint(5, (2, 6))
    deeper = huginn(steps=7).eval()
    deeper.load_state_dict(module.state_dict())
    assert not torch.allclose(deeper(x), module(x), atol=1e-4)


def test_the_prelude_of_huginn_has_no_gradient_without_kept_steps() -> None:
    x = torch.randint(5, (2, 6))
    for gradient_steps in (0, 1):
        module = huginn(gradient_steps=gradient_steps)
        by_weight = gradients(module, module(x))
        prelude = [by_weight[name] for name in by_weight if name.startswith("recurrent_depth.stack.")]
        assert prelude
        assert all((gradient is None) is (gradient_steps == 0) for gradient in prelude)


@pytest.mark.parametrize("model", ["tiny_recursive_model", "hierarchical_reasoning_model"])
def test_a_turn_does_not_pass_its_gradient_to_the_turn_before(model: str) -> None:
    x = torch.randint(5, (2, 6))
    module = reasoning(model).eval()
    with module.keeping_steps() as steps:
        module(x)
    first, second = steps.values
    shorter = reasoning(model, turns=1).eval()
    shorter.load_state_dict(module.state_dict())
    close(shorter(x), first)
    # The first state is drawn once, and not trained; auxiliary losses alone train the judgement of an answer.
    assert [name for name, gradient in gradients(module, second).items() if gradient is None] == [
        name for name, _ in module.named_parameters() if "fixed_state" in name or "halt" in name or "judge." in name
    ]
