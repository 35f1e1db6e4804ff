"""The state of an optimizer is that of its class and of its weights."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn
from torch.optim import SGD, Adam, AdamW, Optimizer, RMSprop

from archlang.train.optimizer_state import check_optimizer_state

Change = Callable[[dict[int, Any]], object]  # Any: torch's own state


def trained(make: Callable[[Any], Optimizer]) -> Optimizer:  # Any: torch's parameters
    module = nn.Linear(4, 3)
    optimizer = make(module.parameters())
    module(torch.ones(1, 4)).sum().backward()
    optimizer.step()
    return optimizer


@pytest.mark.parametrize(
    "make", [AdamW, lambda weights: Adam(weights, fused=True), RMSprop, SGD, lambda weights: SGD(weights, momentum=0.9)]
)
def test_the_state_of_an_optimizer_is_its_own(make: Callable[[Any], Optimizer]) -> None:
    optimizer = trained(make)
    check_optimizer_state(optimizer, optimizer.state_dict()["state"])
    check_optimizer_state(optimizer, {})


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda state: state.update({7: state[0]}), "2 weights"),
        (lambda state: state.update({0: []}), "keeps step, exp_avg"),
        (lambda state: state[0].pop("step"), "keeps step, exp_avg"),
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
