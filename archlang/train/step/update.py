"""How a step moves weights: the scheduled learning rate, and clipped gradients."""

from collections.abc import Callable, Sequence

from torch import Tensor
from torch.nn.utils import clip_grad_value_
from torch.optim import Optimizer

from archlang.train.schedules import first_beta, learning_rate, moves_first_beta
from archlang.train.settings import Settings
from archlang.train.setup import Workload


def set_rate(optimizer: Optimizer, workload: Workload, number: int, total: int) -> float:
    """Sets an optimizer to the learning rate of step `number` of `total`, and to the beta1 where that is scheduled.
    Returns the rate."""
    settings = workload.settings
    own_rate = workload.functions.learning_rate(settings, number, total)
    rate = learning_rate(settings, number, total) if own_rate is None else own_rate
    for group in optimizer.param_groups:
        group["lr"] = _assigned(group["lr"], rate * group.get("lr_scale", 1.0))
        if moves_first_beta(settings) and "betas" in group:  # sign SGD has none
            beta1, beta2 = group["betas"]
            group["betas"] = (_assigned(beta1, first_beta(settings, number, total)), beta2)
    return rate


def clip_gradients(
    weights: Sequence[Tensor], settings: Settings, clip_norm: Callable[[Sequence[Tensor], float], Tensor]
) -> Tensor | None:
    """Clips the gradients of weights by value and by norm, as the recipe says; not those that are sparse, of which only
    signs count. Returns what `clip_norm` returns: the norm before clipping; None if gradients are not clipped by
    norm."""
    weights = [weight for weight in weights if weight.grad is None or not weight.grad.is_sparse]
    if settings.clip_value:
        clip_grad_value_(weights, settings.clip_value)
    return clip_norm(weights, settings.clip) if settings.clip else None


def _assigned(current: float | Tensor, value: float) -> float | Tensor:
    """Returns the value; a tensor is filled in place, as a CUDA graph reads it where it is."""
    return current.fill_(value) if isinstance(current, Tensor) else value
