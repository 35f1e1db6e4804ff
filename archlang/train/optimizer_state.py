"""The state of an optimizer from a checkpoint, compared with what the optimizer keeps for its weights."""

import inspect
from collections.abc import Mapping

import torch
from torch import Tensor, nn
from torch.optim import Optimizer


def check_optimizer_state(optimizer: Optimizer, state: object) -> None:
    """Checks the moments of each weight, by the index of the weight.

    Raises:
        ValueError: they are not those of this optimizer and its weights."""
    weights = [weight for group in optimizer.param_groups for weight in group["params"]]
    example, like_weight = _example(optimizer)
    if not isinstance(state, Mapping):
        raise ValueError("the state of the optimizer is not a dictionary")
    for index, moments in state.items():
        if type(index) is not int or not 0 <= index < len(weights):
            raise ValueError(f"the optimizer has {len(weights)} weights, and its state names another")
        if not isinstance(moments, Mapping) or set(moments) != set(example):
            raise ValueError(
                f"the optimizer keeps {', '.join(example) or 'nothing'} of weight {index}, not other values"
            )
        for name, expected in example.items():
            shape = weights[index].shape if expected.shape == like_weight.shape else expected.shape
            _check_moment(f"`{name}` of weight {index}", moments[name], shape)


def _check_moment(what: str, moment: object, shape: torch.Size) -> None:
    if not isinstance(moment, Tensor) or not moment.is_floating_point():
        raise ValueError(f"{what} is not a tensor of numbers")
    if moment.shape != shape:
        raise ValueError(f"{what} has the shape {list(moment.shape)}, not {list(shape)}")
    if not shape and not (bool(moment.isfinite()) and float(moment) >= 0):
        raise ValueError(f"{what} is {float(moment)}")


def _example(optimizer: Optimizer) -> tuple[dict[str, Tensor], Tensor]:
    """Returns what an optimizer keeps of a weight after a step, and that weight."""
    weight = nn.Parameter(torch.zeros(2, 3))
    weight.grad = torch.zeros(2, 3)
    accepted = inspect.signature(type(optimizer)).parameters
    options = {
        name: value for name, value in optimizer.param_groups[0].items() if name in accepted and name != "params"
    }
    options = {name: _plain(value) for name, value in options.items()}
    options |= {name: False for name in ("fused", "foreach", "capturable") if name in accepted}
    copy = type(optimizer)([weight], **options)
    copy.step()
    return {name: value for name, value in copy.state[weight].items() if isinstance(value, Tensor)}, weight


def _plain(option: object) -> object:
    """Returns an option as a number: a captured step reads it from a tensor."""
    if isinstance(option, tuple):
        return tuple(map(_plain, option))
    return option.item() if isinstance(option, Tensor) else option
