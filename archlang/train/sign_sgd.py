"""Sign SGD, which moves the rows of a table that a batch has read."""

from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import Optimizer


class SignSGD(Optimizer):
    """w ← (1 - lr λ) w - lr sign(g), for the rows of a sparse gradient alone; g is the sum over all readings of a row.

    Bernstein et al., "signSGD: compressed optimisation for non-convex problems", 2018; the programs of HRM and TRM, for
    their embeddings of puzzles."""

    def __init__(self, params: Iterable[Tensor], lr: float, weight_decay: float = 0.0, lr_scale: float = 1.0) -> None:
        """`lr_scale` is the rate beside that of the other weights, which the schedule sets."""
        super().__init__(params, {"lr": lr, "weight_decay": weight_decay, "lr_scale": lr_scale})

    @torch.no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> None:  # type: ignore[override]  # without a closure
        assert closure is None
        for group in self.param_groups:
            rate, decay = group["lr"], 1 - group["lr"] * group["weight_decay"]
            for weight in group["params"]:
                if weight.grad is None:
                    continue
                if not weight.grad.is_sparse:
                    weight.mul_(decay).sub_(rate * weight.grad.sign())
                    continue
                gradient = weight.grad.coalesce()
                rows = gradient.indices()[0]
                weight[rows] = decay * weight[rows] - rate * gradient.values().sign()


def weights_named(module: nn.Module, names: Iterable[str]) -> list[nn.Parameter]:
    """Returns the trained weights of the instances with one of these names, and of those inside them. Of a table among
    them, a block that has `sparse_gradient`, the gradient has the rows that were read, also where it is zero."""
    chosen = set(names)
    weights = {
        id(weight): weight
        for path, weight in module.named_parameters()
        if weight.requires_grad and not chosen.isdisjoint(path.split(".")[:-1])
    }
    for block in module.modules():
        # Not a Protocol: since Python 3.12, `isinstance` of one finds no weights of a module.
        if hasattr(block, "sparse_gradient") and id(block.weight) in weights:
            block.sparse_gradient = True  # type: ignore[assignment]  # nn.Module types its attributes as modules
    return list(weights.values())
