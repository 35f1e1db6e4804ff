"""A step of several runs that differ in their seeds alone, as one model whose weights are stacked.

Each run keeps its initialization, its order of items, its losses and their clipping, its record and its checkpoints.
The work is shared: one forward and one backward for all runs, by `torch.func.vmap`, and one step of an optimizer that
treats each number separately. The weights of a run's module are views of the stacked ones, so the run is evaluated and
saved as if it were alone."""

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.func import functional_call, vmap
from torch.optim import Optimizer

from archlang.backend.runtime.loops import drawn_loops, halting_loops
from archlang.backend.runtime.stacking import answering, stacked_models
from archlang.errors.machine import first_line, is_out_of_memory
from archlang.graph.operations import LOSSES
from archlang.tasks.kit.task import streamed_splits
from archlang.train.cuda_graph import Assumptions, Capture, CapturedPass, CudaGraphEvaluation, GraphsByShape, Shape
from archlang.train.data import Batch
from archlang.train.devices import fixed_randomness, random_state
from archlang.train.loss import add_costs, training_loss
from archlang.train.optimizers import make_capturable
from archlang.train.record.mistakes import RunWarning
from archlang.train.score import compute_eagerly
from archlang.train.step import clip_gradients, compute_within_memory, halve_micro, set_rate
from archlang.train.step_pieces import Cut, Launch
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


@dataclass(frozen=True, eq=False)
class _StackedResult:
    """The losses and norms of a captured step, and what it leaves on the modules."""

    losses: Float[Tensor, " runs"]
    norms: Float[Tensor, " runs"] | None
    depths: Sequence[Tensor | None]
    auxiliary: Sequence[Mapping[str, Tensor]]


class StackedStep:
    """A step of runs that begin at the same step.

    With `capture`, steps of frequent shapes are CUDA graphs, as those of `CudaGraphStep`; halting loops then compute
    all their steps."""

    def __init__(
        self, runs: Sequence[Trainer], make_optimizer: Callable[..., Optimizer], capture: Capture | None = None
    ) -> None:
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
        self._graphs = None if capture is None else GraphsByShape[_StackedResult]("steps")
        if capture is not None:
            self._capture = capture
            make_capturable(self._optimizer, first.fabric.device, first.settings.moves_first_beta)
            for run in runs:
                run.compute = CudaGraphEvaluation(run.test_model, capture)
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
        losses, norms = self._launch(stacked_items) or self._take_eagerly(stacked_items)
        return StepResult(losses.unbind(), [None] * len(losses) if norms is None else norms.unbind(), rate)

    def _take_eagerly(self, items: np.ndarray) -> tuple[Tensor, Tensor | None]:
        first, shape = self._first, self._shape(items)
        graphs = nullcontext() if self._graphs is None or shape is None else self._graphs.eagerly(shape)
        with graphs, self._all_steps():
            losses = compute_within_memory(
                partial(self._compute_gradients, items), partial(self._shrink, items.shape[1]), first.fabric.device
            )
        norms = self._clip()
        try:
            self._optimizer.step()
        except (RuntimeError, MemoryError) as error:
            if not is_out_of_memory(error):
                raise
            reason = "there is not enough memory for the optimizer state of all seeds"
            raise CannotStack(reason, weights_are_intact=False) from error
        return losses, norms

    def _clip(self) -> Float[Tensor, " runs"] | None:
        return clip_gradients(list(self._weights.values()), self._first.settings, _clip_norm_of_each)

    def _shrink(self, count: int) -> str | None:
        if self._graphs is not None:
            self._graphs.close()
            for run in self._runs:
                run.compute = compute_eagerly
        return halve_micro(self._runs, count)

    # As CUDA graphs

    def _shape(self, items: np.ndarray) -> Shape | None:
        """Returns what the graph of a batch depends on; None if it cannot be one."""
        data, is_part = self._first.data, self._first.micro is not None
        return None if is_part or not data.is_resident else (*items.shape, *data.widths(items.reshape(-1)))

    @contextmanager
    def _all_steps(self) -> Iterator[None]:
        """Inside, halting loops compute all their steps if steps are graphs, as those do."""
        loops = list(halting_loops(self._modules[0])) if self._graphs is not None else []
        for loop in loops:
            loop.all_steps = True
        try:
            yield
        finally:
            for loop in loops:
                loop.all_steps = False

    def _launch(self, items: np.ndarray) -> tuple[Tensor, Tensor | None] | None:
        """Takes a step as a graph. Returns the losses and norms; None if it has to run eagerly."""
        shape = self._shape(items)
        if self._graphs is None or shape is None or self._draws is None:
            return None
        result = self._graphs.launch(shape, [self._first.data.place(items.reshape(-1))], partial(self._record, items))
        if result is None:
            return None
        for module, depth, losses in zip(self._modules, result.depths, result.auxiliary, strict=True):
            module.mean_depth = None if depth is None else depth.clone()
            module.losses = {name: loss.clone() for name, loss in losses.items()}
        return result.losses.clone(), None if result.norms is None else result.norms.clone()

    def _record(self, items: np.ndarray, answers: Assumptions) -> CapturedPass[_StackedResult]:
        data, launches, batch = self._first.data, list[Launch](), items.reshape(-1)
        graph_items, widths = data.place(batch).clone(), data.widths(batch)

        def step(cut: Cut) -> tuple[_StackedResult, Tensor | None]:
            self._optimizer.zero_grad(set_to_none=True)
            with answering(answers.assume), self._all_steps():
                losses = self._backward(data.gather(graph_items, widths), items.shape)
            is_right = answers.are_right()
            if is_right is not None:
                launches.append(cut())
            norms = self._clip()
            self._optimizer.step()
            depths, auxiliary = zip(*((module.mean_depth, module.losses) for module in self._modules), strict=True)
            return _StackedResult(losses, norms, depths, auxiliary), is_right

        (result, is_right), last = self._capture(step)
        return CapturedPass([graph_items], launches, is_right, last, result)

    # One operation at a time

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
            batch = data.batch(part.reshape(-1))
            losses.append(self._backward(batch, part.shape, loss_shares, part.shape[1] / size))
        return torch.stack(losses).sum(0)

    def _backward(
        self, batch: Batch, shape: tuple[int, ...], loss_shares: Sequence[float] = (), sample_share: float = 1.0
    ) -> Float[Tensor, " runs"]:
        """Adds the gradients of a part of the runs' batches, whose items have a shape [runs, b], which has these shares
        of the losses and of the samples of its batch. Returns the shares of the losses."""
        fabric = self._first.fabric
        with fabric.autocast():
            results = self._compute(batch, shape, "different")
        losses = results["loss"]
        if sample_share < 1:
            losses = losses * torch.tensor(loss_shares, device=losses.device)
        auxiliary = _losses_of(results)
        fabric.backward(add_costs(losses, results["ponder"], auxiliary, self._first.settings, sample_share).sum())
        if "depth" in results:
            for module, depth in zip(self._modules, results["depth"], strict=True):
                module.mean_depth = depth
        for index, module in enumerate(self._modules):
            # Without the tape, whose nodes hold the stream of an eager step.
            module.losses = {name: value[index].detach() for name, value in auxiliary.items()}
        return losses.detach()

    def _compute(self, batch: Batch, shape: tuple[int, ...], randomness: str) -> dict[str, Float[Tensor, " runs"]]:
        """Returns `loss`, `ponder` and `losses.NAME` of the runs, each for its row of items of a shape [runs, b], and
        `depth` if the model has halting loops. `batch` has the items of all runs: vmap needs rows that are padded to
        the same width."""
        module, first = self._modules[0], self._first

        def by_run(value: Tensor) -> Tensor:
            return value.reshape(*shape, *value.shape[1:])

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
            zero = torch.zeros((), device=batch.targets.device)
            module.ponder, module.mean_depth, module.sample_depth = zero, depth, None
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
            results = self._compute(run.data.batch(items.reshape(-1)), items.shape, "same")
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
