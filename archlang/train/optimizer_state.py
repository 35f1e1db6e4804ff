"""The state of an optimizer from a checkpoint, compared with what the optimizer keeps for its weights."""

import math
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor
from torch.optim import Optimizer

from archlang.plugins import failure_of
from archlang.train.record.divided import divided_like

# What optimizers count for all weights of a group: steps, and the weights of the average of a schedule-free one.
_COUNTS = ("k", "weight_sum", "lr_max")


def restore_optimizer_state(optimizer: Optimizer, state: Mapping[str, Any]) -> None:  # Any: torch's own
    """Restores what an optimizer keeps of its weights, and what it counts. Its options stay those of this process,
    which may use other kernels.

    Raises:
        ValueError: the state is not one of this optimizer and its weights."""
    current = optimizer.state_dict()
    check_optimizer_state(optimizer, state.get("state"))
    groups = [
        group | _counts(group, state.get("param_groups"), index) for index, group in enumerate(current["param_groups"])
    ]
    weights = [weight for group in optimizer.param_groups for weight in group["params"]]
    moments = {
        index: {name: divided_like(moment, weights[index]) for name, moment in stored.items()}
        for index, stored in state["state"].items()
    }
    optimizer.load_state_dict({"state": moments, "param_groups": groups})


def restore_own_optimizer_state(optimizer: Optimizer, state: Mapping[str, Any]) -> None:  # Any: torch's own
    """Restores everything that an optimizer of the user's own has saved.

    Raises:
        PluginError: the user's class fails.
        ValueError: the optimizer does not load it."""
    try:
        optimizer.load_state_dict(dict(state))
    except Exception as error:  # whatever the user's class does
        if (failure := failure_of(error)) is not None:
            raise failure from error
        raise ValueError(f"the optimizer does not load its state: {error}") from error


def _counts(group: Mapping[str, object], stored: object, index: int) -> dict[str, object]:
    names = [name for name in _COUNTS if name in group]
    if not names:
        return {}
    stored_group = stored[index] if isinstance(stored, list) and index < len(stored) else None
    counts = {name: stored_group.get(name) for name in names} if isinstance(stored_group, Mapping) else {}
    for name in names:
        value = counts.get(name)
        if type(value) is not type(group[name]) or not math.isfinite(value):  # type: ignore[arg-type]  # a number
            raise ValueError(f"`{name}` of the optimizer is {value}")
    return counts


def check_optimizer_state(optimizer: Optimizer, state: object) -> None:
    """Checks the moments of each weight, by the index of the weight.

    Raises:
        ValueError: they are not those of the optimizer's weights, or not the same ones for all weights of a group."""
    groups = [group["params"] for group in optimizer.param_groups]
    weights = [(weight, number) for number, group in enumerate(groups) for weight in group]
    if not isinstance(state, Mapping):
        raise ValueError("the state of the optimizer is not a dictionary")
    kept: dict[int, set[str]] = {}  # the names of the moments, by group
    for index, moments in state.items():
        if type(index) is not int or not 0 <= index < len(weights):
            raise ValueError(f"the optimizer has {len(weights)} weights, and its state names another")
        weight, group = weights[index]
        if moments == {}:
            continue  # A weight that has not been moved yet.
        if not isinstance(moments, Mapping) or set(moments) != kept.setdefault(group, set(moments)):
            raise ValueError(f"the optimizer does not keep the same of weight {index} as of others")
        for name, moment in moments.items():
            _check_moment(f"`{name}` of weight {index}", moment, weight.shape)


def _check_moment(what: str, moment: object, shape: torch.Size) -> None:
    if not isinstance(moment, Tensor) or not moment.is_floating_point():
        raise ValueError(f"{what} is not a tensor of numbers")
    if moment.shape not in (shape, ()):
        raise ValueError(f"{what} has the shape {list(moment.shape)}, not {list(shape)}")
    if not moment.dim() and not (bool(moment.isfinite()) and float(moment) >= 0):
        raise ValueError(f"{what} is {float(moment)}")
