"""Optimizers that are composed of several: Muon for the matrices inside a model, and AdamW for its other weights."""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import AdamW, Optimizer

from archlang.backend.architecture import Architecture
from archlang.graph.operations import Call
from archlang.train import mistakes


class OptimizerParts(Optimizer):
    """Optimizers with a group of weights each, as one optimizer."""

    parts: tuple[Optimizer, ...]
    """the optimizers of `param_groups`, in order"""

    def __init__(self, parts: Sequence[Optimizer]) -> None:
        """`parts` may have parts of their own."""
        flat = [inner for part in parts for inner in (part.parts if isinstance(part, OptimizerParts) else (part,))]
        super().__init__([group for part in flat for group in part.param_groups], {})
        self.parts = tuple(flat)

    def step(self, closure: Callable[[], Any] | None = None) -> None:  # type: ignore[override]  # without a closure
        assert closure is None
        for part, group in zip(self.parts, self.param_groups, strict=True):
            # `load_state_dict` replaces the groups and the state.
            part.param_groups, part.state = [group], self.state
            part.step()


class MuonWithAdamW(OptimizerParts):
    """torch's Muon for matrices and torch's AdamW for other weights, as one optimizer with a group for each.

    Jordan et al., "Muon: an optimizer for hidden layers in neural networks", 2024. The updates of matrices have the
    size of AdamW's: Liu et al., "Muon is scalable for LLM training", 2025, equation 4."""

    def __init__(
        self,
        matrices: Sequence[Tensor],
        others: Sequence[Tensor],
        *,
        lr: float,
        weight_decay: float,
        momentum: float,
        ns_steps: int,
        betas: tuple[float, float],
        eps: float,
    ) -> None:
        """
        Raises:
            RunError: torch has no Muon."""
        parts: list[Optimizer] = []
        if matrices:
            if not hasattr(torch.optim, "Muon"):
                raise mistakes.no_muon(str(torch.__version__))
            parts.append(
                torch.optim.Muon(
                    matrices, lr=lr, weight_decay=weight_decay, momentum=momentum, ns_steps=ns_steps,
                    adjust_lr_fn="match_rms_adamw",
                )
            )  # fmt: skip
        if others:
            parts.append(AdamW(others, lr=lr, betas=betas, eps=eps, weight_decay=weight_decay))
        super().__init__(parts)


def hidden_matrices(module: nn.Module) -> list[nn.Parameter]:
    """Returns the weights that Muon moves: the trained matrices, except those of blocks that read a field of the task,
    as embeddings do, and of the block that computes the result."""
    outer = tuple(f"{path}." for path in _outer_instances(module))
    return [
        weight
        for name, weight in module.named_parameters()
        if weight.requires_grad and weight.ndim == 2 and not name.startswith(outer)
    ]


def _outer_instances(module: nn.Module) -> list[str]:
    if not isinstance(module, Architecture):
        return []
    region = module.program.graph.region
    fields = {value.id for value in region.inputs}
    return [
        node.operation.instance
        for node in region.nodes
        if isinstance(node.operation, Call) and (node.id in region.results or not fields.isdisjoint(node.inputs))
    ]
