"""A step of one run, launched operation by operation."""

from collections.abc import Sequence
from contextlib import nullcontext
from functools import partial

import numpy as np
import torch
from torch import Tensor
from torch.nn.utils import clip_grad_norm_

from archlang.backend.runtime.loops import counts_drawn
from archlang.train.data import Batch
from archlang.train.generators import random_state
from archlang.train.loss import add_costs, training_loss
from archlang.train.step.memory import compute_within_memory, halve_micro
from archlang.train.step.protocol import StepResult, StepState
from archlang.train.step.update import clip_gradients, set_rate
from archlang.train.training_run import TrainingRun

# The loss of a step, and the norm of the gradient if it was clipped.
LossAndNorm = tuple[Tensor, Tensor | None]


class EagerStep:
    """A step of one run, in one process or in several that share each batch."""

    def __init__(self, run: TrainingRun) -> None:
        self.run = run

    def take(self, number: int, items: Sequence[np.ndarray]) -> StepResult:
        run, (batch_items,) = self.run, items
        rate = set_rate(run.optimizer, run.workload, number, run.total)
        if run.fabric.world_size > 1:
            # Each process draws other numbers, which checkpoints do not have to hold.
            torch.manual_seed(hash((run.sampler.seed, number, run.fabric.global_rank)) % 2**63)
        with (
            counts_drawn(run.module, run.sampler.seed, number),
            nullcontext(batch_items) if run.carried is None else run.carried.step(number, batch_items) as row_items,
        ):
            loss, norm = self._train_on(row_items)
        return StepResult([loss], [norm], rate)

    def state(self, index: int) -> StepState:
        return StepState(self.run.optimizer.state_dict(), random_state(self.run.fabric.device))

    def _train_on(self, items: np.ndarray) -> LossAndNorm:
        """Takes a step with these items."""
        loss = compute_within_memory(
            partial(self._compute_gradients, items), partial(self._shrink, len(items)), self.run.fabric.device
        )
        return loss, self._update()

    def _shrink(self, count: int) -> str | None:
        # Processes that wait for each other would not all retry, and carried states are those of a whole batch.
        is_divisible = self.run.fabric.world_size == 1 and self.run.carried is None
        return halve_micro([self.run], count) if is_divisible else None

    def _compute_gradients(self, items: np.ndarray) -> Tensor:
        """Computes the gradients of a batch, in parts of `micro` samples. Returns its loss."""
        run, fabric = self.run, self.run.fabric
        run.optimizer.zero_grad(set_to_none=True)
        # The gradients of the processes are averaged, so each loss is multiplied by the number of processes.
        rank, processes = fabric.global_rank, fabric.world_size
        # A batch, as the last of an epoch, may have fewer samples than there are processes: one computes for nothing.
        has_share = rank < len(items)
        own_items = items[rank::processes] if has_share else items[:1]
        size = run.micro or len(items)
        parts = [own_items[start : start + size] for start in range(0, len(own_items), size)]
        if processes == 1 and len(parts) == 1:
            return self._backward(run.data.batch(items))
        batch_weight = max(run.data.loss_count(items), 1)
        losses = []
        for index, part in enumerate(parts):
            loss_share = has_share * run.data.loss_count(part) / batch_weight
            sample_share = has_share * len(part) / len(items)
            with fabric.no_backward_sync(run.model, enabled=processes > 1 and index + 1 < len(parts)):
                batch = run.data.batch(part)
                losses.append(self._backward(batch, loss_share * processes, sample_share * processes))
        loss = torch.stack(losses).sum()
        if processes > 1:
            mean = fabric.all_reduce(loss, reduce_op="mean")
            assert isinstance(mean, Tensor)
            return mean
        return loss

    def _backward(self, batch: Batch, loss_share: float = 1.0, sample_share: float = 1.0) -> Tensor:
        """Adds the gradients of a part, which has these shares of its batch's losses and samples. Returns its share of
        the loss."""
        run = self.run
        loss = training_loss(run.model, batch, run.workload, run.module) * loss_share
        run.fabric.backward(add_costs(loss, run.module.ponder, run.module.charges, run.settings, sample_share))
        return loss.detach()

    def _update(self) -> Tensor | None:
        """Clips the gradients and moves the weights. Returns the gradient's norm if it was clipped."""
        run, settings = self.run, self.run.settings
        if settings.clip_value or settings.clip:
            run.fabric.strategy.precision.unscale_gradients(run.optimizer.optimizer)
        norm = clip_gradients(run.weights, settings, clip_grad_norm_)
        run.optimizer.step()
        return norm
