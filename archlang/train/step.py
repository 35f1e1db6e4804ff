"""A step of one run, launched operation by operation, and what every step has in common."""

import warnings
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from functools import partial

import numpy as np
import torch
from torch import Tensor
from torch.nn.utils import clip_grad_norm_, clip_grad_value_
from torch.optim import Optimizer

from archlang.backend.runtime.loops import counts_drawn
from archlang.errors.machine import is_out_of_memory
from archlang.train.data import Batch
from archlang.train.devices import random_state
from archlang.train.loss import add_costs, training_loss
from archlang.train.record.mistakes import RunWarning
from archlang.train.settings import Settings
from archlang.train.trainer import StepResult, Trainer

# The loss of a step, and the norm of the gradient if it was clipped.
LossAndNorm = tuple[Tensor, Tensor | None]


class EagerStep:
    """A step of one run, in one process or in several that share each batch."""

    def __init__(self, run: Trainer) -> None:
        self.run = run
        run.get_state = lambda: {
            "optimizer": run.optimizer.state_dict(), "random": random_state(run.fabric.device),
        }  # fmt: skip

    def take(self, number: int, items: Sequence[np.ndarray]) -> StepResult:
        run, (batch_items,) = self.run, items
        rate = set_rate(run.optimizer, run.settings, number, run.total)
        if run.fabric.world_size > 1:
            # Each process draws other numbers, which checkpoints do not have to hold.
            torch.manual_seed(hash((run.sampler.seed, number, run.fabric.global_rank)) % 2**63)
        with (
            counts_drawn(run.module, run.sampler.seed, number),
            nullcontext(batch_items) if run.deep is None else run.deep.step(number, batch_items) as row_items,
        ):
            loss, norm = self._train_on(row_items)
        return StepResult([loss], [norm], rate)

    def _train_on(self, items: np.ndarray) -> LossAndNorm:
        loss = compute_within_memory(
            partial(self._compute_gradients, items), partial(self._shrink, len(items)), self.run.fabric.device
        )
        return loss, self._update()

    def _shrink(self, count: int) -> str | None:
        # Processes that wait for each other would not all retry, and deep supervision keeps states of a whole batch.
        is_divisible = self.run.fabric.world_size == 1 and self.run.deep is None
        return halve_micro([self.run], count) if is_divisible else None

    def _compute_gradients(self, items: np.ndarray) -> Tensor:
        """Computes the gradients of a batch, in parts of `micro` samples. Returns its loss."""
        run, fabric = self.run, self.run.fabric
        run.optimizer.zero_grad(set_to_none=True)
        # The gradients of the processes are averaged, so each loss is multiplied by the number of processes.
        rank, processes = fabric.global_rank, fabric.world_size
        own_items, size = items[rank::processes], run.micro or len(items)
        # All processes compute as many parts, as sharded weights are gathered in each. A process may have no samples
        # for its last part: it computes for nothing.
        parts = [own_items[start : start + size] for start in range(0, -(-len(items) // processes), size)]
        if processes == 1 and len(parts) == 1:
            return self._backward(run.batch(items))
        batch_weight = max(run.data.loss_count(items), 1)
        losses = []
        for index, part in enumerate(parts):
            loss_share, sample_share = run.data.loss_count(part) / batch_weight, len(part) / len(items)
            waits = processes > 1 and not run.is_sharded and index + 1 < len(parts)
            with fabric.no_backward_sync(run.model, enabled=waits):
                batch = run.batch(part if len(part) else items[:1])
                losses.append(self._backward(batch, loss_share * processes, sample_share * processes))
        loss = torch.stack(losses).sum()
        return run.mean_over_processes(loss) if processes > 1 else loss

    def _backward(
        self, batch: Batch, loss_share: float = 1.0, sample_share: float = 1.0, *, retain_graph: bool = False
    ) -> Tensor:
        """Adds the gradients of a part, which has these shares of its batch's losses and samples. Returns its share of
        the loss."""
        run, module = self.run, self.run.module
        loss = training_loss(run.model, batch, module, run.settings, run.rule) * loss_share
        costs = add_costs(loss, module.ponder, module.losses, run.settings, sample_share)
        run.fabric.backward(costs, retain_graph=retain_graph)
        # A tape that outlived the step would hold the memory of a graph, and its nodes the stream of an eager step.
        module.ponder, module.losses = module.ponder.detach(), {k: loss.detach() for k, loss in module.losses.items()}
        return loss.detach()

    def _update(self) -> Tensor | None:
        """Clips the gradients and moves the weights. Returns the gradient's norm if it was clipped."""
        norm = self._clip()
        self.run.optimizer.step()
        return norm

    def _clip(self) -> Tensor | None:
        run, settings = self.run, self.run.settings
        if settings.clip_value or settings.clip:
            run.fabric.strategy.precision.unscale_gradients(run.optimizer.optimizer)
        norm = clip_gradients(run.weights, settings, clip_grad_norm_)
        return getattr(norm, "full_tensor", lambda: norm)()  # that of a sharded model is divided, too


def set_rate(optimizer: Optimizer, settings: Settings, number: int, total: int) -> float:
    """Sets an optimizer to the learning rate of step `number` of `total`, and to the beta1 where that is scheduled.
    Returns the rate."""
    rate = settings.learning_rate(number, total)
    for group in optimizer.param_groups:
        group["lr"] = _assigned(group["lr"], rate * group.get("lr_scale", 1.0))
        if settings.moves_first_beta and "betas" in group:  # sign SGD has none
            beta1, beta2 = group["betas"]
            group["betas"] = (_assigned(beta1, settings.first_beta(number, total)), beta2)
    return rate


def _assigned(current: float | Tensor, value: float) -> float | Tensor:
    return current.fill_(value) if isinstance(current, Tensor) else value


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


def compute_within_memory(
    compute: Callable[[], Tensor], shrink: Callable[[], str | None], device: torch.device
) -> Tensor:
    """Returns `compute()`. If that runs out of memory, calls `shrink` and tries again, with a warning.

    `shrink` makes the parts smaller and returns the change, for the warning; if it returns None, they cannot become
    smaller, and the error is raised."""
    while True:
        try:
            return compute()
        except (RuntimeError, MemoryError) as error:
            if not is_out_of_memory(error) or (change := shrink()) is None:
                raise
        # The error's traceback holds the tensors of the failed step; only here they are freed.
        if device.type == "cuda":
            torch.cuda.empty_cache()
        warnings.warn(f"not enough memory for {change}; the batch size is unchanged", RunWarning, stacklevel=2)


def halve_micro(runs: Sequence[Trainer], count: int) -> str | None:
    """Halves the samples that go through the model at a time, of batches of `count`. Returns the change, or None if it
    is one sample already."""
    size = min(runs[0].micro or count, count)
    if size == 1:
        return None
    for run in runs:
        run.micro = (size + 1) // 2
    return f"{size} samples at a time; continuing with {runs[0].micro}"
