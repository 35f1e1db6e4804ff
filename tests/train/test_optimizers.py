"""What `optimizers.arch` declares is what torch gets."""

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
from archlang.train.settings import Settings

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


@pytest.mark.parametrize("written", WRITTEN)
def test_an_optimizer_gets_the_statics_of_its_recipe(written: str, program: Path) -> None:
    text = program.read_text()
    program.write_text(text[: text.index("train adamw")] + f"train {written}\n}}\n")
    chosen = plan_recipe(program).train
    kind, expected = WRITTEN[written]
    made = make_optimizer(chosen, Settings.of(chosen.statics), nn.Linear(2, 2))
    assert type(made) is kind
    assert {name: made.param_groups[0][name] for name in expected} == expected


def test_every_declared_optimizer_can_be_made() -> None:
    settings = Settings(lr=1.0, batch=1, steps=1, epochs=0)
    for name in library.optimizer_names():
        item = library.optimizer(name)
        assert item is not None
        make_optimizer(BoundExtern(name, item.python, {}), settings, nn.Linear(2, 2))


def test_weights_that_do_not_learn_are_left_alone() -> None:
    layer = nn.Linear(2, 2)
    layer.bias.requires_grad_(False)
    made = make_optimizer(
        BoundExtern("adam", "torch.optim:Adam", {}), Settings(lr=1.0, batch=1, steps=1, epochs=0), layer
    )
    assert [id(weight) for weight in made.param_groups[0]["params"]] == [id(layer.weight)]


def test_a_model_without_weights_is_not_trained() -> None:
    with pytest.raises(RunError, match="no weights to train"):
        make_optimizer(
            BoundExtern("adam", "torch.optim:Adam", {}), Settings(lr=1.0, batch=1, steps=1, epochs=0), nn.Identity()
        )


def test_an_optimizer_of_someone_else_is_refused() -> None:
    with pytest.raises(RunError, match="archlang has no optimizer `lion`"):
        make_optimizer(
            BoundExtern("lion", "os:system", {}), Settings(lr=1.0, batch=1, steps=1, epochs=0), nn.Linear(2, 2)
        )


@pytest.mark.parametrize("name", ["adamw", "adam", "sgd"])
def test_one_pass_over_all_weights_moves_them_as_one_after_another(name: str) -> None:
    statics = dict(adamw="torch.optim:AdamW", adam="torch.optim:Adam", sgd="torch.optim:SGD")
    settings = Settings(lr=0.1, batch=1, steps=1, epochs=0, weight_decay=0.01)
    torch.manual_seed(0)
    layers = [nn.Linear(5, 7, dtype=torch.float64) for _ in range(2)]
    layers[1].load_state_dict(layers[0].state_dict())
    # Scaled gradients, those of 16 bits, must be seen before the step, so that it is not one pass.
    made = [
        make_optimizer(BoundExtern(name, statics[name], {}), settings, layer, precision)
        for layer, precision in zip(layers, ("32", "16"), strict=True)
    ]
    assert [one.defaults["fused"] for one in made] == [True, False]
    for _ in range(20):
        for layer, optimizer in zip(layers, made, strict=True):
            optimizer.zero_grad()
            layer(torch.linspace(-1, 1, 5, dtype=torch.float64)).pow(2).sum().backward()
            optimizer.step()
    for one, other in zip(layers[0].parameters(), layers[1].parameters(), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("moves", [False, True], ids=["beta1 stays", "beta1 moves"])
def test_what_a_schedule_moves_is_a_tensor_where_graphs_read_it(moves: bool) -> None:
    settings = Settings(lr=0.1, batch=1, steps=1, epochs=0)
    for name in library.optimizer_names():
        item = library.optimizer(name)
        assert item is not None
        made = make_optimizer(BoundExtern(name, item.python, {}), settings, nn.Linear(2, 2))
        make_capturable(made, torch.device("cpu"), moves)
        (group,) = made.param_groups
        assert group["lr"].dtype == torch.float32
        assert group["lr"].item() == pytest.approx(0.1)
        # SGD keeps nothing that would have to be on the device.
        assert group.get("capturable", name == "sgd")
        if "betas" in group:
            assert isinstance(group["betas"][0], torch.Tensor) is moves
            assert group["fused"] is not moves
