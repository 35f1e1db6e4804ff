"""The state of an optimizer is that of its class and of its weights."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from lion_pytorch import Lion
from schedulefree import AdamWScheduleFree
from torch import nn
from torch.optim import SGD, Adam, AdamW, Optimizer, RMSprop

from archlang.train.muon import MuonWithAdamW
from archlang.train.optimizers import check_optimizer_state, restore_optimizer_state

Change = Callable[[dict[int, Any]], object]  # Any: torch's own state


def muon(weights: list[nn.Parameter]) -> MuonWithAdamW:
    matrices, others = (
        [weight for weight in weights if (weight.ndim == 2) is is_matrix] for is_matrix in (True, False)
    )
    return MuonWithAdamW(
        matrices, others, lr=0.1, weight_decay=0.1, momentum=0.9, ns_steps=5, betas=(0.9, 0.95), eps=1e-8
    )


def schedule_free(weights: Any) -> AdamWScheduleFree:  # Any: torch's parameters
    optimizer = AdamWScheduleFree(weights)
    optimizer.train()
    return optimizer


def trained(make: Callable[[Any], Optimizer]) -> Optimizer:  # Any: torch's parameters
    module = nn.Linear(4, 3)
    optimizer = make(module.parameters())
    module(torch.ones(1, 4)).sum().backward()
    optimizer.step()
    return optimizer


@pytest.mark.parametrize(
    "make",
    [
        AdamW,
        lambda weights: Adam(weights, fused=True),
        RMSprop,
        SGD,
        lambda weights: SGD(weights, momentum=0.9),
        Lion,
        lambda weights: muon(list(weights)),
        lambda weights: schedule_free(weights),
    ],
)
def test_the_state_of_an_optimizer_is_its_own(make: Callable[[Any], Optimizer]) -> None:
    optimizer = trained(make)
    check_optimizer_state(optimizer, optimizer.state_dict()["state"])
    check_optimizer_state(optimizer, {})


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda state: state.update({7: state[0]}), "2 weights"),
        (lambda state: state.update({0: []}), "not keep the same of weight 0"),
        (lambda state: state[0].pop("step"), "not keep the same of weight 1"),
        (lambda state: state[0].update(exp_avg=torch.zeros(4, 3)), r"has the shape \[4, 3\], not \[3, 4\]"),
        (lambda state: state[0].update(exp_avg=torch.zeros(3, 4, dtype=torch.int64)), "not a tensor of numbers"),
        (lambda state: state[0].update(exp_avg=1.0), "not a tensor of numbers"),
        (lambda state: state[0].update(step=torch.tensor(-1.0)), "is -1.0"),
        (lambda state: state[0].update(step=torch.tensor(torch.nan)), "is nan"),
    ],
)
def test_another_state_is_refused_with_the_reason(change: Change, reason: str) -> None:
    optimizer = trained(AdamW)
    state = optimizer.state_dict()["state"]
    change(state)
    with pytest.raises(ValueError, match=reason):
        check_optimizer_state(optimizer, state)


def test_a_state_that_is_no_dictionary_is_refused() -> None:
    with pytest.raises(ValueError, match="not a dictionary"):
        check_optimizer_state(trained(AdamW), [])


def test_the_counts_of_an_optimizer_are_restored_and_its_options_are_not() -> None:
    before, after = trained(schedule_free), trained(schedule_free)
    state = before.state_dict()
    state["param_groups"][0].update(k=7, weight_sum=0.5, lr=3.0)
    restore_optimizer_state(after, state)
    assert {name: after.param_groups[0][name] for name in ("k", "weight_sum", "lr")} == {
        "k": 7, "weight_sum": 0.5, "lr": before.defaults["lr"]
    }  # fmt: skip


@pytest.mark.parametrize("count", [None, "7", 7.0, torch.inf])
def test_counts_of_another_kind_are_refused(count: object) -> None:
    optimizer = trained(schedule_free)
    state = optimizer.state_dict()
    state["param_groups"][0].update(k=count)
    with pytest.raises(ValueError, match="`k` of the optimizer is"):
        restore_optimizer_state(optimizer, state)


def test_muon_and_adamw_keep_their_own_moments_of_their_weights() -> None:
    optimizer = trained(lambda weights: muon(list(weights)))
    state = optimizer.state_dict()
    assert [set(state["state"][index]) for index in (0, 1)] == [{"momentum_buffer"}, {"step", "exp_avg", "exp_avg_sq"}]
