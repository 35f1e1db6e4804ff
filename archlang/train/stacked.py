"""A step of several runs that differ in their seeds alone, as one model whose weights are stacked.

Each run keeps its initialization, its order of items, its losses and their clipping, its record and its checkpoints.
The work is shared: one forward and one backward for all runs, by `torch.func.vmap`, and one step of an optimizer that
treats each number separately. The weights of a run's module are views of the stacked ones, so the run is evaluated and
saved as if it were alone."""

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.func import functional_call, vmap
from torch.optim import Optimizer

from archlang.backend.runtime.loops import drawn_loops
from archlang.backend.runtime.stacking import stacked_models
from archlang.errors.machine import first_line, is_out_of_memory
from archlang.graph.operations import LOSSES
from archlang.tasks.kit.task import streamed_splits
from archlang.train.devices import fixed_randomness, random_state
from archlang.train.loss import add_costs, training_loss
from archlang.train.record.mistakes import RunWarning
from archlang.train.step import clip_gradients, compute_within_memory, halve_micro, set_rate
from archlang.train.trainer import CannotStack, StepResult, Trainer

# The items of each run on which the gradients of the stacked model are compared with those of each model alone.
_COMPARED_ITEMS = 2
# The largest relative difference of two gradients; rounding is far below it.
_TOLERANCE = 1e-3
WEIGHTS_APART = "RNN module weights are not part of"
"""torch's warning about a recurrent layer on a GPU, as the weights of stacked models are parts of common tensors"""
# torch's warning about operations that it computes for one model after another.
_ONE_BY_ONE = "There is a performance drop because we have not yet implemented"

_DRAWS_RANDOM_NUMBERS = (
    "training draws random numbers, as for dropout: seeds that train together draw other numbers than each would "
    "alone, so they equal their solo runs in distribution only"
)


class StackedStep:
    """A step of runs that begin at the same step."""

    def __init__(self, runs: Sequence[Trainer], make_optimizer: Callable[..., Optimizer]) -> None:
        """Stacks the weights of the runs; before they begin or resume. `make_optimizer` makes the optimizer of a
        module, whose weights are `named`.

        Raises:
            CannotStack: the runs cannot be computed together; their folders are unchanged."""
        first = runs[0]
        if first.settings.batch_of == "tokens":
            raise CannotStack("a batch is a number of tokens, so the seeds have batches of different sizes")
        if streamed_splits(first.task):
            raise CannotStack("each seed reads its own parts of a stream")
        if first.deep is not None:
            raise CannotStack("each seed carries the states of its own examples")
        if drawn_loops(first.module):
            raise CannotStack("each seed draws other numbers of steps of a loop")
        if first.fabric.strategy.precision.precision == "16-mixed":
            raise CannotStack("in precision 16 an overflow in one seed would undo the step of all seeds")
        self._runs, self._first = runs, first
        self._modules = [run.module for run in runs]
        try:
            self._weights = _stack_by_name([dict(module.named_parameters()) for module in self._modules])
            self._buffers = _stack_by_name([dict(module.named_buffers()) for module in self._modules])
        except (RuntimeError, MemoryError) as error:
            if not is_out_of_memory(error):
                raise
            raise CannotStack("there is not enough memory for the weights of all seeds") from error
        self._optimizer = make_optimizer(nn.ParameterList(self._weights.values()), named=self._weights)
        # Whether training draws random numbers; None before the first step.
        self._draws: bool | None = None
        # The comparison is without dropout, and cuDNN has no gradients of recurrent layers outside of training.
        with torch.backends.cudnn.flags(enabled=False):
            self._compare_with_solo()
        for index, run in enumerate(runs):
            run.get_state = partial(self._state, index)

    def resume(self, step: int) -> None:
        """Resumes all runs from their checkpoints of a step; without checkpoints they begin."""
        for run in self._runs:
            run.resume(step)
        self._stack_optimizer_states()

    # The optimizer

    def _stack_optimizer_states(self) -> None:
        run_states = [run.optimizer.state_dict()["state"] for run in self._runs]
        state = {
            weight: {
                # Other values, such as the number of steps, are the same for all runs.
                name: torch.stack([run_state[weight][name] for run_state in run_states])
                if _is_per_run(name, value)
                else value
                for name, value in weight_state.items()
            }
            for weight, weight_state in run_states[0].items()
        }
        self._optimizer.load_state_dict({**self._optimizer.state_dict(), "state": state})

    def _state(self, index: int) -> dict[str, Any]:  # Any: torch's own states
        stacked = self._optimizer.state_dict()
        state = {
            weight: {
                name: value[index].clone() if _is_per_run(name, value) else value
                for name, value in weight_state.items()
            }
            for weight, weight_state in stacked["state"].items()
        }
        return {"optimizer": {**stacked, "state": state}, "random": dict(self._runs[index].random_at_start)}

    # A step

    def take(self, number: int, items: Sequence[np.ndarray]) -> StepResult:
        first = self._first
        rate = set_rate(self._optimizer, first.settings, number, first.total)
        if self._draws is not False:
            # The runs share a generator, whose state checkpoints do not have to hold.
            torch.manual_seed(hash((first.sampler.seed, number)) % 2**63)
        stacked_items = np.stack(items)
        losses = compute_within_memory(
            partial(self._compute_gradients, stacked_items), partial(halve_micro, self._runs, len(items[0])),
            first.fabric.device,
        )  # fmt: skip
        norms = clip_gradients(list(self._weights.values()), first.settings, _clip_norm_of_each)
        try:
            self._optimizer.step()
        except (RuntimeError, MemoryError) as error:
            if not is_out_of_memory(error):
                raise
            reason = "there is not enough memory for the optimizer state of all seeds"
            raise CannotStack(reason, weights_are_intact=False) from error
        return StepResult(losses.unbind(), [None] * len(losses) if norms is None else norms.unbind(), rate)

    def _compute_gradients(self, items: np.ndarray) -> Float[Tensor, " runs"]:
        """Computes the gradients of all runs, each for its row of items. Returns their losses."""
        device = self._first.fabric.device
        self._optimizer.zero_grad(set_to_none=True)
        random_before = random_state(device) if self._draws is None else None
        try:
            losses = self._compute_parts(items)
        except Exception as error:
            if is_out_of_memory(error):
                raise
            raise CannotStack(first_line(error)) from error
        if random_before is not None:
            after = random_state(device)
            states = ((state, after[name]) for name, state in random_before.items() if isinstance(state, Tensor))
            self._draws = not all(torch.equal(*pair) for pair in states)
            if self._draws:
                warnings.warn(_DRAWS_RANDOM_NUMBERS, RunWarning, stacklevel=2)
        return losses

    def _compute_parts(self, items: np.ndarray) -> Float[Tensor, " runs"]:
        size, data = items.shape[1], self._first.data
        micro = self._first.micro or size
        batch_weights = [max(data.loss_count(run_items), 1) for run_items in items]
        losses = []
        for start in range(0, size, micro):
            part = items[:, start : start + micro]
            loss_shares = [
                data.loss_count(run_items) / weight for run_items, weight in zip(part, batch_weights, strict=True)
            ]
            losses.append(self._backward(part, loss_shares, part.shape[1] / size))
        return torch.stack(losses).sum(0)

    def _backward(self, items: np.ndarray, loss_shares: Sequence[float], sample_share: float) -> Float[Tensor, " runs"]:
        """Adds the gradients of a part of the runs' batches, each for its row of items, which has these shares of the
        losses and of the samples of its batch. Returns the shares of the losses."""
        fabric = self._first.fabric
        with fabric.autocast():
            results = self._compute(items, "different")
        losses = results["loss"]
        if sample_share < 1:
            losses = losses * torch.tensor(loss_shares, device=losses.device)
        auxiliary = _losses_of(results)
        fabric.backward(add_costs(losses, results["ponder"], auxiliary, self._first.settings, sample_share).sum())
        if "depth" in results:
            for module, depth in zip(self._modules, results["depth"], strict=True):
                module.mean_depth = depth
        for index, module in enumerate(self._modules):
            module.losses = {name: value[index] for name, value in auxiliary.items()}
        return losses.detach()

    def _compute(self, items: np.ndarray, randomness: str) -> dict[str, Float[Tensor, " runs"]]:
        """Returns `loss`, `ponder` and `losses.NAME` of the runs, each for its row of items, and `depth` if the model
        has halting loops."""
        module, first = self._modules[0], self._first
        # One batch of the items of all runs: vmap needs rows that are padded to the same width.
        batch = first.data.batch(items.reshape(-1))

        def by_run(value: Tensor) -> Tensor:
            return value.reshape(*items.shape, *value.shape[1:])

        rows = {
            "fields": {name: by_run(field) for name, field in batch.fields.items()},
            "lengths": {name: by_run(lengths) for name, lengths in batch.lengths.items()},
            "targets": by_run(batch.targets),
        }
        if batch.scored is not None:
            rows["scored"] = by_run(batch.scored)

        def compute(weights: dict[str, Tensor], rows: dict[str, Any]) -> dict[str, Tensor]:  # Any: fields of a batch
            def model(*fields: Tensor, lengths: Any) -> Tensor:  # Any: as the module's
                logits: Tensor = functional_call(module, weights, fields, {"lengths": lengths})
                return logits

            loss = training_loss(model, replace(batch, **rows), module, first.settings, first.rule)
            results = {"loss": loss, **{f"{LOSSES}{name}": value for name, value in module.losses.items()}}
            if module.mean_depth is None:
                return {**results, "ponder": torch.zeros_like(loss)}
            return {**results, "ponder": module.ponder, "depth": module.mean_depth}

        weights = {**self._weights, **self._buffers}
        depth, module.mean_depth = module.mean_depth, None
        try:
            with stacked_models(), warnings.catch_warnings():
                warnings.filterwarnings("ignore", f"{_ONE_BY_ONE}|{WEIGHTS_APART}")
                results: dict[str, Tensor] = vmap(compute, randomness=randomness)(weights, rows)
        finally:
            # The values that the call left on the module are valid inside vmap only.
            module.ponder, module.mean_depth, module.sample_depth = torch.zeros(()), depth, None
            module.losses = module.sample_losses = {}
        return results

    # Whether the runs can be computed together

    def _compare_with_solo(self) -> None:
        """Compares the gradients of a few items with those of each model alone."""
        lengths = self._first.data.lengths
        order = np.argsort(lengths, kind="stable")
        shortest, longest = order[:_COMPARED_ITEMS], order[-_COMPARED_ITEMS:]
        count = len(self._runs)
        for module in self._modules:
            module.eval()
        try:
            # Every second run has short items, which are padded to the long ones.
            if not self._agrees_with_solo(np.stack([(longest, shortest)[index % 2] for index in range(count)])):
                raise CannotStack("gradients differ from those of each alone, as where a result depends on padding")
        except CannotStack:
            raise
        except Exception as error:
            raise CannotStack(first_line(error)) from error
        finally:
            for module in self._modules:
                module.train()

    def _agrees_with_solo(self, items: np.ndarray) -> bool:
        run, device = self._first, self._first.fabric.device
        names = [name for name, weight in self._weights.items() if weight.requires_grad]
        with fixed_randomness(device):
            results = self._compute(items, "same")
            objective = add_costs(results["loss"], results["ponder"], _losses_of(results), run.settings).sum()
            stacked_gradients = _gradients(objective, [self._weights[name] for name in names])
        for index, (module, run_items) in enumerate(zip(self._modules, items, strict=True)):
            with fixed_randomness(device):
                loss = training_loss(module, run.data.batch(run_items), module, run.settings, run.rule)
                objective = add_costs(loss, module.ponder, module.losses, run.settings)
                solo_gradients = _gradients(objective, [module.get_parameter(name) for name in names])
            differences = [
                stacked[index] - solo for stacked, solo in zip(stacked_gradients, solo_gradients, strict=True)
            ]
            if not _norm(differences) <= _TOLERANCE * _norm(solo_gradients):
                return False
        return True


def _stack_by_name(parts: Sequence[Mapping[str, Tensor]]) -> dict[str, Tensor]:
    stacked: dict[str, Tensor] = {}
    for name, first in parts[0].items():
        tensor = torch.stack([part[name].detach() for part in parts])
        for index, part in enumerate(parts):
            part[name].data = tensor[index]  # a view, so that a step of the stack also moves the model of each run
        stacked[name] = nn.Parameter(tensor, first.requires_grad) if isinstance(first, nn.Parameter) else tensor
    return stacked


def _losses_of(results: Mapping[str, Tensor]) -> dict[str, Tensor]:
    return {name.removeprefix(LOSSES): value for name, value in results.items() if name.startswith(LOSSES)}


def _is_per_run(name: str, value: object) -> bool:
    return name != "step" and isinstance(value, Tensor)


def _clip_norm_of_each(weights: Sequence[Tensor], limit: float) -> Float[Tensor, " runs"]:
    """Clips the gradients of each run by their norm. Returns the norms before clipping."""
    gradients = [weight.grad for weight in weights if weight.grad is not None]
    norms: Tensor = torch.stack([gradient.reshape(len(gradient), -1).norm(dim=1) for gradient in gradients]).norm(dim=0)
    # As torch's clip_grad_norm_ does.
    factors = (limit / (norms + 1e-6)).clamp(max=1.0)
    for gradient in gradients:
        gradient.mul_(factors.view(-1, *[1] * (gradient.dim() - 1)))
    return norms


def _gradients(value: Tensor, weights: Sequence[Tensor]) -> list[Tensor]:
    gradients = torch.autograd.grad(value, weights, allow_unused=True)
    return [
        torch.zeros_like(weight) if gradient is None else gradient
        for weight, gradient in zip(weights, gradients, strict=True)
    ]


def _norm(tensors: Sequence[Tensor]) -> float:
    return float(torch.stack([tensor.norm() for tensor in tensors]).norm())
