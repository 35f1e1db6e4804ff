"""Claims about linear maps that are computed as one product."""

import pytest
import torch
from torch import nn
from torch.nn.utils import parametrizations

from archlang.backend.runtime import joined_linear as joining
from archlang.backend.runtime.joined_linear import JoinedLinear, mapped
from tests.closeness import close
from tests.conftest import Compiled

PROGRAM = """
model gated[d = 4](x: tokens[n]) -> logits[classes] {
    h = embed[d](x)
    repeat 3 { h <- copy_gate(gate[6](h), feedforward[8](h), h) }
    return linear[classes](mean(h))
}
"""


def pair() -> tuple[nn.Module, JoinedLinear]:
    """Two maps, one of which has no bias."""
    owner = nn.Module()
    owner.one, owner.other = nn.Linear(4, 3), nn.Linear(4, 5, bias=False)
    return owner, JoinedLinear(owner, ("one", "other"), (3, 5))


def test_products_are_those_of_each_map() -> None:
    owner, join = pair()
    x = torch.randn(2, 7, 4)
    first, second = join(x, join.weights())
    assert first is not None
    assert second is not None
    close(first, owner.get_submodule("one")(x))
    close(second, owner.get_submodule("other")(x))


def test_weights_are_concatenated_once_a_call() -> None:
    owner, join = pair()
    x, weights = torch.randn(2, 4), join.weights()
    assert weights == {}
    join(x, weights)
    assert weights is not None
    weight, _ = weights[True]
    join(x, weights)
    assert weights[True][0] is weight
    with torch.no_grad():
        owner.get_parameter("one.weight").zero_()
        owner.get_parameter("one.bias").zero_()
    first, _ = join(x, join.weights())
    assert first is not None
    assert not first.any()


@pytest.mark.parametrize("change", ["heard", "parametrised", "replaced", "another precision"])
def test_a_replaced_map_or_one_with_hooks_is_called_itself(change: str) -> None:
    owner, join = pair()
    linear = owner.get_submodule("one")
    heard: list[object] = []
    if change == "heard":
        linear.register_forward_hook(lambda *_: heard.append(1))
    elif change == "parametrised":
        parametrizations.weight_norm(linear)
    elif change == "replaced":
        owner.one = nn.Sequential(nn.Linear(4, 3), nn.ReLU())
    else:
        linear.double()
    assert join.weights() is None
    assert join(torch.randn(2, 4), None) == (None, None)
    if change == "heard":
        x = torch.randn(2, 4)
        close(join.all_products(x, None)[0], linear(x))
        assert len(heard) == 2


def test_on_a_cpu_the_blocks_compute_large_products(monkeypatch: pytest.MonkeyPatch) -> None:
    owner, join = pair()
    x = torch.randn(2, 4)
    monkeypatch.setattr(joining, "_MOST_MULTIPLICATIONS", 2 * 4 * 8 - 1)
    assert join(x, join.weights()) == (None, None)
    close(join.all_products(x, join.weights())[1], owner.get_submodule("other")(x))
    monkeypatch.setattr(joining, "_MOST_MULTIPLICATIONS", 2 * 4 * 8)
    assert None not in join(x, join.weights())


def test_a_missing_product_is_computed() -> None:
    linear, x = nn.Linear(4, 3), torch.randn(2, 4)
    product = torch.randn(2, 3)
    assert mapped(linear, "hidden", x, {"hidden": product}) is product
    for products in ({}, {"hidden": None}):
        close(mapped(linear, "hidden", x, products), linear(x))


def test_blocks_receive_the_products_of_the_join(compiled: Compiled) -> None:
    module = compiled(PROGRAM).eval()
    x = torch.randint(0, 11, (2, 5))
    with_products: list[bool] = []
    for path in ("gate", "feedforward"):
        module.get_submodule(path).register_forward_pre_hook(
            lambda _, __, named: with_products.append(named["products"]["hidden"] is not None), with_kwargs=True
        )
    module(x)
    assert with_products == [True] * 6
    calls: list[int] = []
    module.get_submodule("gate.hidden").register_forward_hook(lambda *_: calls.append(1))
    module(x)
    assert with_products[6:] == [False] * 6
    assert len(calls) == 3


def test_a_frozen_map_stays_frozen_beside_another(compiled: Compiled) -> None:
    module = compiled(PROGRAM)
    module.get_submodule("gate").requires_grad_(False)
    module(torch.randint(0, 11, (2, 5))).sum().backward()
    assert module.get_parameter("gate.hidden.weight").grad is None
    assert module.get_parameter("feedforward.hidden.weight").grad is not None
