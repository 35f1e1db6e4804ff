"""The torch optimizers have the statics that `optimizers.arch` declares."""

from pathlib import Path

import pytest
import torch
from torch import nn
from torch.optim import Optimizer

from archlang.names import library
from archlang.plan.from_file import plan_recipe
from archlang.plan.plan import BoundExtern
from archlang.record.mistakes import RunError
from archlang.train.optimizers import make_capturable, make_optimizer

# As the recipes of the papers write them.
WRITTEN: dict[str, tuple[type[Optimizer], dict[str, object]]] = {
    "adamw[lr = 1.5e-4, weight_decay = 0.01, clip = 5.0, batch = 512, steps = 30_000, select = valid.accuracy]": (
        torch.optim.AdamW,
        {"lr": 1.5e-4, "weight_decay": 0.01, "betas": (0.9, 0.999), "eps": 1e-8},
    ),
    "adamw[lr = 0.05, schedule = root, warmup = 1000, clip = 1.0, batch = 32, ponder = 0.1, epochs = 100]": (
        torch.optim.AdamW,
        {"lr": 0.05},
    ),
    "adamw[lr = 3e-4, schedule = onecycle, warmup = 50, weight_decay = 0.1, batch = 16, epochs = 1, ponder = 0.1]": (
        torch.optim.AdamW,
        {"weight_decay": 0.1},
    ),
    "adamw[lr = 7e-4, schedule = warmup, warmup = 4000, beta1 = 0.8, beta2 = 0.95, epsilon = 1e-6, epochs = 150]": (
        torch.optim.AdamW,
        {"betas": (0.8, 0.95), "eps": 1e-6},
    ),
    "adam[lr = 1e-3, batch = 256, steps = 50_000]": (torch.optim.Adam, {"lr": 1e-3, "weight_decay": 0.0}),
    "rmsprop[lr = 1e-4, alpha = 0.95, momentum = 0.9, clip_value = 10.0, batch = 128, steps = 50_000]": (
        torch.optim.RMSprop,
        {"lr": 1e-4, "alpha": 0.95, "momentum": 0.9},
    ),
    "sgd[lr = 0.5, momentum = 0.9, weight_decay = 1e-4, steps = 10]": (
        torch.optim.SGD,
        {"lr": 0.5, "momentum": 0.9, "weight_decay": 1e-4},
    ),
}


OPTIMIZERS = sorted(library.optimizer_names())


def bound(written: str, program: Path) -> BoundExtern:
    """The optimizer of a recipe's line `train`."""
    text = program.read_text()
    program.write_text(text[: text.index("train adamw")] + f"train {written}\n}}\n")
    return plan_recipe(program).train


@pytest.mark.parametrize("written", WRITTEN)
def test_an_optimizer_gets_the_statics_of_its_recipe(written: str, program: Path) -> None:
    kind, expected = WRITTEN[written]
    optimizer = make_optimizer(bound(written, program), nn.Linear(2, 2))
    assert type(optimizer) is kind
    assert {name: optimizer.param_groups[0][name] for name in expected} == expected


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_every_declared_optimizer_can_be_made(name: str, program: Path) -> None:
    make_optimizer(bound(f"{name}[steps = 1]", program), nn.Linear(2, 2))


def test_frozen_weights_are_not_in_the_optimizer(program: Path) -> None:
    layer = nn.Linear(2, 2)
    layer.bias.requires_grad_(False)
    optimizer = make_optimizer(bound("adam[steps = 1]", program), layer)
    assert [id(weight) for weight in optimizer.param_groups[0]["params"]] == [id(layer.weight)]


def test_a_model_without_weights_is_not_trained(program: Path) -> None:
    with pytest.raises(RunError, match="no weights to train"):
        make_optimizer(bound("adam[steps = 1]", program), nn.Identity())


@pytest.mark.parametrize("name", ["lion", "adam"])
def test_an_unknown_optimizer_is_refused(name: str) -> None:
    with pytest.raises(RunError, match=f"`{name}` with this Python class is no optimizer"):
        make_optimizer(BoundExtern(name, "os:system", {"lr": 0.1}), nn.Linear(2, 2))


@pytest.mark.parametrize("name", ["adamw", "adam", "sgd"])
def test_the_fused_optimizer_moves_weights_as_the_unfused_one(name: str, program: Path) -> None:
    train = bound(f"{name}[lr = 0.1, weight_decay = 0.01, steps = 1]", program)
    torch.manual_seed(0)
    layers = [nn.Linear(5, 7, dtype=torch.float64) for _ in range(2)]
    layers[1].load_state_dict(layers[0].state_dict())
    # Scaled gradients, those of 16 bits, are clipped before the step, so the optimizer is not fused.
    optimizers = [
        make_optimizer(train, layer, precision) for layer, precision in zip(layers, ("32", "16"), strict=True)
    ]
    assert [optimizer.defaults["fused"] for optimizer in optimizers] == [True, False]
    for _ in range(20):
        for layer, optimizer in zip(layers, optimizers, strict=True):
            optimizer.zero_grad()
            layer(torch.linspace(-1, 1, 5, dtype=torch.float64)).pow(2).sum().backward()
            optimizer.step()
    for fused, unfused in zip(layers[0].parameters(), layers[1].parameters(), strict=True):
        torch.testing.assert_close(fused, unfused, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("moves", [False, True], ids=["beta1 stays", "beta1 moves"])
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_scheduled_numbers_are_tensors_for_cuda_graphs(name: str, moves: bool, program: Path) -> None:
    optimizer = make_optimizer(bound(f"{name}[lr = 0.1, steps = 1]", program), nn.Linear(2, 2))
    make_capturable(optimizer, torch.device("cpu"), moves)
    (group,) = optimizer.param_groups
    assert group["lr"].dtype == torch.float32
    assert group["lr"].item() == pytest.approx(0.1)
    # SGD has no state that would have to be on the device.
    assert group.get("capturable", name == "sgd")
    if "betas" in group:
        assert isinstance(group["betas"][0], torch.Tensor) is moves
        assert group["fused"] is not moves
