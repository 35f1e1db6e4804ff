"""Every optimizer moves weights as its paper says, and sign SGD the rows that a batch has read."""

import re
import sys
from pathlib import Path

import lion_pytorch
import pytest
import schedulefree
import torch
from torch import nn
from torch.optim import Optimizer

from archlang.compile import build
from archlang.errors import MachineError, ProgramError
from archlang.plan.from_file import plan_recipe
from archlang.plan.plan import BoundExtern
from archlang.plugins import PluginError
from archlang.train.muon import MuonWithAdamW
from archlang.train.optimizers import SignSGD, make_capturable, make_optimizer
from archlang.train.record.mistakes import RunError
from archlang.train.refusals import is_elementwise, why_eager
from archlang.train.settings import Settings
from archlang.train.step import EagerStep, set_rate
from tests.closeness import close
from tests.train.runs.test_training import assert_killed_equals_uninterrupted

# As the recipes of the papers write them.
WRITTEN: dict[str, tuple[type[Optimizer], dict[str, object]]] = {
    "adamw[lr = 1.5e-4, weight_decay = 0.01, clip = 5.0, batch = 512, steps = 30_000, select = valid.accuracy]":
        (torch.optim.AdamW, {"lr": 1.5e-4, "weight_decay": 0.01, "betas": (0.9, 0.999), "eps": 1e-8}),
    "adamw[lr = 0.05, schedule = root, warmup = 1000, clip = 1.0, batch = 32, ponder = 0.1, epochs = 100]":
        (torch.optim.AdamW, {"lr": 0.05}),
    "adamw[lr = 3e-4, schedule = onecycle, warmup = 50, weight_decay = 0.1, batch = 16, epochs = 1, ponder = 0.1]":
        (torch.optim.AdamW, {"weight_decay": 0.1}),
    "adamw[lr = 7e-4, schedule = warmup, warmup = 4000, beta1 = 0.8, beta2 = 0.95, epsilon = 1e-6, epochs = 150]":
        (torch.optim.AdamW, {"betas": (0.8, 0.95), "eps": 1e-6}),
    "adam[lr = 1e-3, batch = 256, steps = 50_000]": (torch.optim.Adam, {"lr": 1e-3, "weight_decay": 0.0}),
    "rmsprop[lr = 1e-4, alpha = 0.95, momentum = 0.9, clip_value = 10.0, batch = 128, steps = 50_000]":
        (torch.optim.RMSprop, {"lr": 1e-4, "alpha": 0.95, "momentum": 0.9}),
    "lion[lr = 1e-4, weight_decay = 0.1, beta2 = 0.95, schedule = wsd, steps = 10]":
        (lion_pytorch.Lion, {"lr": 1e-4, "weight_decay": 0.1, "betas": (0.9, 0.95)}),
    "muon[lr = 1e-3, momentum = 0.9, newton_schulz = 3, steps = 10]":
        (MuonWithAdamW, {"lr": 1e-3, "weight_decay": 0.1, "momentum": 0.9, "ns_steps": 3}),
    "schedule_free[lr = 0.01, beta1 = 0.95, steps = 10]":
        (schedulefree.AdamWScheduleFree, {"lr": 0.01, "betas": (0.95, 0.999), "eps": 1e-8, "train_mode": True}),
    "sgd[lr = 0.5, momentum = 0.9, weight_decay = 1e-4, steps = 10]":
        (torch.optim.SGD, {"lr": 0.5, "momentum": 0.9, "weight_decay": 1e-4}),
}  # fmt: skip


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


def test_frozen_weights_are_not_in_the_optimizer(program: Path) -> None:
    layer = nn.Linear(2, 2)
    layer.bias.requires_grad_(False)
    optimizer = make_optimizer(bound("adam[steps = 1]", program), layer)
    assert [id(weight) for weight in optimizer.param_groups[0]["params"]] == [id(layer.weight)]


def test_a_model_without_weights_is_not_trained(program: Path) -> None:
    with pytest.raises(RunError, match="no weights to train"):
        make_optimizer(bound("adam[steps = 1]", program), nn.Identity())


@pytest.mark.parametrize("name", ["adafactor", "adam"])
def test_an_optimizer_of_the_users_own_needs_its_file(name: str) -> None:
    with pytest.raises(PluginError, match=f"the optimizer `{name}` is Python of its own, `os:system`"):
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
@pytest.mark.parametrize("name", ["adamw", "adam", "rmsprop", "sgd"])
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


# Against the papers


def moved(train: BoundExtern, gradients: list[torch.Tensor], start: torch.Tensor) -> tuple[torch.Tensor, Optimizer]:
    """Moves a weight by an optimizer with these gradients."""
    module = nn.ParameterList([start.clone()])
    optimizer = make_optimizer(train, module)
    (weight,) = module.parameters()
    for gradient in gradients:
        weight.grad = gradient.clone()
        optimizer.step()
    return weight, optimizer


@pytest.fixture
def gradients() -> list[torch.Tensor]:
    generator = torch.Generator().manual_seed(0)
    return [torch.randn(3, 4, dtype=torch.float64, generator=generator) for _ in range(5)]


def test_lion_is_algorithm_2_of_its_paper(gradients: list[torch.Tensor], program: Path) -> None:
    train = bound("lion[lr = 0.1, weight_decay = 0.5, beta1 = 0.8, beta2 = 0.6, steps = 1]", program)
    start = torch.ones(3, 4, dtype=torch.float64)
    expected, momentum = start.clone(), torch.zeros_like(start)
    for gradient in gradients:
        update = torch.sign(0.8 * momentum + 0.2 * gradient)
        expected = expected - 0.1 * (update + 0.5 * expected)
        momentum = 0.6 * momentum + 0.4 * gradient
    close(moved(train, gradients, start)[0].detach(), expected)


def test_schedule_free_is_the_averaging_of_its_paper(gradients: list[torch.Tensor], program: Path) -> None:
    train = bound(
        "schedule_free[lr = 0.1, weight_decay = 0.5, beta1 = 0.8, beta2 = 0.6, epsilon = 1e-3, steps = 1]", program
    )
    start = torch.ones(3, 4, dtype=torch.float64)
    z, x, squares = start.clone(), start.clone(), torch.zeros_like(start)
    for step, gradient in enumerate(gradients, 1):
        y = 0.2 * z + 0.8 * x
        squares = 0.6 * squares + 0.4 * gradient**2
        scale = (squares / (1 - 0.6**step)).sqrt() + 1e-3
        z = z - 0.1 * (gradient / scale + 0.5 * y)
        x = (1 - 1 / step) * x + z / step
    weight, optimizer = moved(train, gradients, start)
    close(weight.detach(), 0.2 * z + 0.8 * x)
    optimizer.eval()  # type: ignore[attr-defined]  # of schedule-free optimizers
    close(weight.detach(), x)


def test_a_package_that_is_missing_is_named_with_its_extra(program: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    train = bound("lion[steps = 1]", program)
    monkeypatch.setitem(sys.modules, "lion_pytorch", None)
    with pytest.raises(MachineError, match="the packages of the extra `optimizers` are not installed"):
        make_optimizer(train, nn.Linear(2, 2))


PROGRAM = """
model m[d = 4](x: tokens[n]) -> logits[n, classes] {
    let table = embed[d]
    let head = linear[classes]
    return head(table(x))
}

recipe r {
    task  sudoku[
        side = 4, train = 1..3, test = 4..5, puzzles = 20, train_size = 60, valid_size = 8, test_size = 8]
    model m
    train adamw[
        lr = 1e-2, batch = 8, steps = 12, every = 4, clip = 1.0, schedule = warmup, warmup = 4, sign_sgd = [table],
        sign_lr = 0.5, sign_decay = 0.1]
}
"""


@pytest.fixture
def program(tmp_path: Path) -> Path:
    file = tmp_path / "program.arch"
    file.write_text(PROGRAM, encoding="utf-8")
    return file


def test_a_dense_weight_moves_by_the_signs_of_its_gradient() -> None:
    weight = nn.Parameter(torch.tensor([1.0, 2.0, 3.0]))
    weight.grad = torch.tensor([5.0, -0.1, 0.0])
    SignSGD([weight], lr=0.5, weight_decay=0.2).step()
    close(weight.detach(), torch.tensor([0.9 - 0.5, 1.8 + 0.5, 2.7]))


def test_the_optimizer_of_a_recipe_moves_the_rows_of_the_batch_by_signs_and_the_rest_itself(program: Path) -> None:
    plan = plan_recipe(program)
    module = build(plan.graph)
    table, head = module.get_parameter("table.weight"), module.get_parameter("head.weight")
    before, head_before = table.detach().clone(), head.detach().clone()
    optimizer = make_optimizer(plan.train, module)
    assert [group["lr"] for group in optimizer.param_groups] == [0.01, 0.5]
    module(torch.tensor([[0, 3, 3]])).square().sum().backward()
    optimizer.step()
    torch.testing.assert_close(table[[1, 2, 4]], before[[1, 2, 4]], rtol=0, atol=0)
    moved = table.detach()[[0, 3]] - (1 - 0.5 * 0.1) * before[[0, 3]]
    close(moved.abs(), torch.full((2, 4), 0.5))
    assert bool((head != head_before).any())
    assert not is_elementwise(plan.train)
    assert why_eager(plan, "cuda") == "`sign_sgd` moves the rows that the step has read"


def test_the_rate_follows_the_schedule_and_a_killed_run_resumes_bit_for_bit(program: Path, tmp_path: Path) -> None:
    assert_killed_equals_uninterrupted(plan_recipe(program), tmp_path, (EagerStep, "take", 7))


@pytest.mark.parametrize("optimizer", ["adamw", "sgd", "muon", "schedule_free"])
def test_named_instances_and_biases_do_not_decay(program: Path, optimizer: str) -> None:
    line = f"train {optimizer}[lr = 0.5, weight_decay = 0.5, no_decay = [table, bias], batch = 8, steps = 1]"
    text = PROGRAM.replace("return head(table(x))", "return linear[classes](norm(head(table(x))))")
    program.write_text(re.sub(r"train adamw\[.*?\]\n", f"{line}\n", text, flags=re.DOTALL), encoding="utf-8")
    plan = plan_recipe(program)
    module = build(plan.graph)
    before = {name: weight.detach().clone() for name, weight in module.named_parameters()}
    made = make_optimizer(plan.train, module)
    assert {group["weight_decay"] for group in made.param_groups} == {0.0, 0.5}
    for weight in module.parameters():
        weight.grad = torch.zeros_like(weight)
    made.step()
    fixed = {name for name, weight in module.named_parameters() if weight.equal(before[name])}
    assert fixed == {name for name in before if name.startswith("table.") or name.endswith(".bias")}
    assert len(fixed) == 4


@pytest.mark.parametrize("optimizer", ["adamw", "sgd", "muon", "schedule_free"])
def test_the_innermost_named_instance_gives_the_rate(program: Path, optimizer: str) -> None:
    line = f"train {optimizer}[lr = 0.5, no_decay = [bias], rates.feedforward = 0.1, rates.head = 0.05, steps = 4]"
    text = PROGRAM.replace("return head(table(x))", "return head(feedforward[8](norm(table(x))))")
    program.write_text(re.sub(r"train adamw\[.*?\]\n", f"{line}\n", text, flags=re.DOTALL), encoding="utf-8")
    plan = plan_recipe(program)
    module = build(plan.graph)
    named = dict(module.named_parameters())
    made = make_optimizer(plan.train, module, loaded=list(named))
    set_rate(made, Settings(plan.train.statics), 2, 4)
    rates = {id(weight): group["lr"] for group in made.param_groups for weight in group["params"]}
    expected = {"feedforward": 0.1, "head": 0.05}
    assert {name: rates[id(weight)] for name, weight in named.items()} == pytest.approx(
        {name: expected.get(name.split(".")[0], 0.5) for name in named}
    )


@pytest.mark.parametrize(
    ("name", "rate", "reason"),
    [
        ("tabel", "0.1", "no instance `tabel` for `rates.tabel`"),
        ("loaded", "0.1", "nothing is loaded"),
        ("head", "-0.1", "a learning rate is greater than 0"),
        ("head", "0.1", "`head` is in `frozen`"),
    ],
)
def test_a_rate_of_no_instance_of_a_frozen_one_or_below_0_is_refused(
    program: Path, name: str, rate: str, reason: str
) -> None:
    frozen = "[head]" if "frozen" in reason else "[]"
    with pytest.raises(ProgramError, match=reason):
        plan_recipe(program, sets={f"train.rates.{name}": rate, "train.frozen": frozen})


def test_biases_of_stacked_seeds_do_not_decay(program: Path) -> None:
    program.write_text(PROGRAM.replace("sign_sgd = [table],", "no_decay = [bias],"), encoding="utf-8")
    train, named = plan_recipe(program).train, dict(nn.Linear(2, 3).named_parameters())
    made = make_optimizer(train, nn.ParameterList(named.values()), named=named)
    assert [(group["params"], group["weight_decay"]) for group in made.param_groups] == [
        ([named["weight"]], 0.01), ([named["bias"]], 0.0),
    ]  # fmt: skip


def test_an_optimizer_that_moves_all_weights_is_refused(program: Path) -> None:
    text = PROGRAM.replace("adamw", "schedule_free").replace("clip = 1.0, ", "")
    program.write_text(text, encoding="utf-8")
    with pytest.raises(ProgramError, match="sign_sgd"):
        plan_recipe(program)
    own = 'extern optimizer mine[lr: float = 0.1]\n    with training\n    python "mine:Own"\n'
    program.write_text(own + PROGRAM.replace("adamw", "mine"), encoding="utf-8")
    with pytest.raises(ProgramError, match="moves every weight"):
        plan_recipe(program)
