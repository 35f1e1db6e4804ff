"""Runs that differ by their seeds alone, trained as one model whose weights are stacked.

Each run keeps what is its own: how it was initialized, the order of its items, its losses and how they are clipped, its
record and its checkpoints. What is shared is the work: one forward and one backward for all, by `torch.func.vmap`, and
one step of an optimizer that treats each number by itself. The weights of a run's module are a view of the stacked
ones, so that it is measured and saved as if it were alone."""

from __future__ import annotations

import re
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.func import functional_call, vmap
from torch.optim import Optimizer

from archlang.backend.architecture import Architecture
from archlang.backend.runtime.loops import halting_loops
from archlang.backend.runtime.stacking import as_one
from archlang.record.mistakes import RunError
from archlang.train.devices import is_out_of_memory
from archlang.train.generators import always_the_same, random_state
from archlang.train.loop import MemoryWarning, Trained, Training
from archlang.train.score import Interrupted, forward, loss
from archlang.train.stop import Stop

# So many items of each run show whether the stacked model computes what each model computes alone.
_TRIED = 2
# Of the norm of a run's gradient: rounding is far below it.
_ROUNDING = 1e-3
# What torch says of an operation that it computes for one model after another, and of their weights.
_ONE_BY_ONE = "There is a performance drop because we have not yet implemented|RNN module weights are not part of"

_DRAWS = (
    "random numbers are drawn in training, as for dropout: seeds that train together draw others than each would "
    "alone, so they equal their lone runs in distribution only"
)


class TogetherWarning(UserWarning):
    """What is to be known of seeds that were to be trained together."""


class NotTogether(Exception):
    """Why models cannot be computed as one."""


@dataclass
class Member:
    """A run that may be trained together with others. `random` are its own generators, from which nothing is drawn
    meanwhile."""

    training: Training
    module: Architecture
    taken_up: bool
    """whether its folder was there before"""
    random: dict[str, Any]  # Any: as random_state

    def resume(self, step: int) -> None:
        """Goes back to the checkpoint of a step, or begins."""
        if self.taken_up and self.training.resume(step):
            self.random = random_state(self.training.fabric.device)


def at_one_step(members: Mapping[int, Member]) -> list[tuple[int, list[int]]]:
    """Steps, and which runs can go on from each together: all from the last one of which every run has a checkpoint;
    where there is none, those whose newest checkpoints are of one step. What has no whole checkpoint is left out."""
    checkpoints = {index: member.training.checkpoints for index, member in members.items()}
    steps = {index: set(one.steps()) or {0} for index, one in checkpoints.items()}
    for step in sorted(set.intersection(*steps.values()) if steps else (), reverse=True):
        if all(not one.steps() or one.first_intact([step]) for one in checkpoints.values()):
            return [(step, list(members))] if len(members) > 1 else []
    newest: dict[int, list[int]] = {}
    for index, one in checkpoints.items():
        saved = one.latest()
        if saved or not one.steps():
            newest.setdefault(saved.step if saved else 0, []).append(index)
    return [(step, indices) for step, indices in newest.items() if len(indices) > 1]


class Together:
    """Runs that go on from the same step as one model."""

    def __init__(self, members: Sequence[Member], make: Callable[[nn.Module], Optimizer]) -> None:
        """`make` makes the optimizer of a module. The runs are where they begin.

        Raises:
            NotTogether: they cannot be computed as one; nothing is changed of what they have kept."""
        first = members[0].training
        if first.settings.batch_of == "tokens":
            raise NotTogether("its batches hold so many tokens, and not the same number of items for every seed")
        if first.fabric.strategy.precision.precision == "16-mixed":
            raise NotTogether("in precision 16 an overflow in one of its seeds would undo a step of all")
        self._members, self._first = members, first
        self._trainings = [member.training for member in members]
        self._modules = [member.module for member in members]
        try:
            self._weights = _stacked([dict(module.named_parameters()) for module in self._modules])
            self._buffers = _stacked([dict(module.named_buffers()) for module in self._modules])
        except (RuntimeError, MemoryError) as error:
            if not is_out_of_memory(error):
                raise
            raise NotTogether("the memory does not hold the weights of all its seeds") from error
        self._optimizer = make(nn.ParameterList(self._weights.values()))
        self._loops = [list(halting_loops(module)) for module in self._modules]
        self._ended: dict[int, Trained | RunError] = {}
        # How many runs go through the model at a time, and how many items of each: fewer once the memory has not
        # sufficed.
        self._at_once = len(members)
        self._micro = first.micro
        self._draws: bool | None = None
        # Whether the weights are those after a step, and not in the middle of one.
        self._sound = True
        self._compare()

    def resume(self, step: int) -> None:
        """Goes back to a step of which every run has a checkpoint, or begins."""
        for index, member in enumerate(self._members):
            member.resume(step)
            member.training.optimizer_state = partial(self._optimizer_state, index)
            member.training.random = partial(dict, member.random)
        self._micro = self._first.micro
        self._join_optimizers()

    # The optimizer

    def _join_optimizers(self) -> None:
        """Gives the optimizer of the stacked weights what those of the runs have kept."""
        parts = [run.optimizer.state_dict()["state"] for run in self._trainings]
        state = {
            weight: {
                # The number of steps is that of all of them.
                name: torch.stack([part[weight][name] for part in parts]) if _is_stacked(name, value) else value
                for name, value in kept.items()
            }
            for weight, kept in parts[0].items()
        }
        self._optimizer.load_state_dict({**self._optimizer.state_dict(), "state": state})

    def _optimizer_state(self, index: int) -> dict[str, Any]:  # Any: what torch's optimizers keep is theirs
        """What the optimizer of one run would keep, were it alone."""
        whole = self._optimizer.state_dict()
        state = {
            weight: {name: value[index].clone() if _is_stacked(name, value) else value for name, value in kept.items()}
            for weight, kept in whole["state"].items()
        }
        return {**whole, "state": state}

    # Training

    def run(self, stop: Stop) -> list[Trained | RunError]:
        """Trains all to the end, or until they are asked to stop: how each run ended, or what went wrong with it. One
        that fails leaves the others as they are.

        Raises:
            NotTogether: they cannot be computed as one. They go on from their checkpoints."""
        for module in self._modules:
            module.train()
        try:
            self._train(stop)
        except Interrupted:
            pass  # by the stop; what was not measured is measured when the run goes on
        except NotTogether:
            if self._sound:
                self._each(lambda index, run: run.leave())
            raise
        self._each(lambda index, run: run.leave())
        return [self._ended[index] for index in range(len(self._trainings))]

    def _train(self, stop: Stop) -> None:
        while not stop.asked and (going := self._going()):
            step = going[0].progress.step
            self._each(lambda index, run: run.look_if_due(stop))
            if step >= self._first.total:
                self._each(lambda index, run: Trained(run.progress.step, stopped=False))
            elif self._going():
                self._advance(step)

    def _going(self) -> list[Training]:
        return [run for index, run in enumerate(self._trainings) if index not in self._ended]

    def _each(self, act: Callable[[int, Training], Trained | None]) -> None:
        """Does something with every run that still goes on. It ends with what is given, or with what goes wrong."""
        for index, run in enumerate(self._trainings):
            if index not in self._ended:
                try:
                    found: Trained | RunError | None = act(index, run)
                except RunError as error:
                    found = error
                if found is not None:
                    self._ended[index] = found

    def _advance(self, step: int) -> None:
        begun = time.perf_counter()
        rate = self._first.set_rate(self._optimizer, step)
        if self._draws is not False:
            # Numbers are drawn for all at once, and no checkpoint has to keep them.
            torch.manual_seed(hash((self._first.sampler.seed, step)) % 2**63)
        values = self._gradients(np.stack([run.sampler.next() for run in self._trainings]))
        norms = self._clip()
        try:
            self._optimizer.step()
        except (RuntimeError, MemoryError) as error:
            if not is_out_of_memory(error):
                raise
            self._sound = False
            raise NotTogether("the memory does not hold what the optimizer keeps of all its seeds") from error
        for loops in self._loops[1:]:
            for mine, counted in zip(loops, self._loops[0], strict=True):
                mine.computed, mine.masked = counted.computed, counted.masked
        self._each(lambda index, run: run.advanced(begun, values[index], None if norms is None else norms[index], rate))

    def _gradients(self, items: np.ndarray) -> Tensor:
        """The gradients of all runs, each for its row of items, and their losses. Where the memory does not suffice,
        half as many runs go through the model at a time from then on, and then half as many items of one.

        Raises:
            NotTogether: the model cannot be computed for all; nothing has changed."""
        device = self._first.fabric.device
        while True:
            self._optimizer.zero_grad(set_to_none=True)
            before = None if self._draws is not None else random_state(device)
            try:
                values = self._in_parts(items)
            except Exception as error:
                size = min(self._micro or items.shape[1], items.shape[1])
                if not is_out_of_memory(error):
                    for run in self._trainings:
                        run.sampler.position -= 1
                    raise NotTogether(_reason(error)) from error
                if self._at_once == size == 1:
                    raise
                said = self._halve(size)
            else:
                if before is not None:
                    self._draws = _has_drawn(before, random_state(device))
                    if self._draws:
                        warnings.warn(_DRAWS, TogetherWarning, stacklevel=2)
                return values
            # Only here is nothing of the failed step held any more.
            if device.type == "cuda":
                torch.cuda.empty_cache()
            warnings.warn(f"the memory does not suffice for {said}, and with batches as before", MemoryWarning, 2)

    def _halve(self, size: int) -> str:
        if self._at_once > 1:
            before, self._at_once = self._at_once, (self._at_once + 1) // 2
            return f"{before} seeds at a time; going on with {self._at_once}"
        self._micro = (size + 1) // 2
        for run in self._trainings:
            run.micro = self._micro
        return f"{size} samples at a time; going on with {self._micro}"

    def _in_parts(self, items: np.ndarray) -> Tensor:
        count, size = items.shape
        micro, data = self._micro or size, self._first.trained_on
        found = []
        for start in range(0, count, self._at_once):
            runs = slice(start, start + self._at_once)
            whole = [max(data.weight(mine), 1) for mine in items[runs]]
            values = []
            for first in range(0, size, micro):
                part = items[runs, first : first + micro]
                shares = [data.weight(mine) / of for mine, of in zip(part, whole, strict=True)]
                values.append(self._backward(runs, part, shares, part.shape[1] / size))
            found.append(torch.stack(values).sum(0))
        return torch.cat(found)

    def _backward(self, runs: slice, items: np.ndarray, shares: Sequence[float], samples: float) -> Tensor:
        """Adds the gradients of some runs, each for its row of items, which have these shares of the losses and of the
        samples of their batches; gives their shares of the losses."""
        fabric, settings = self._first.fabric, self._first.settings
        with fabric.autocast():
            found = self._compute(runs, items, "different")
        value = found["loss"]
        if samples < 1:
            value = value * torch.tensor(shares, device=value.device)
        whole = value
        if settings.ponder:
            whole = value + settings.ponder * samples * found["ponder"]
        fabric.backward(whole.sum())
        if "depth" in found:
            for module, depth in zip(self._modules[runs], found["depth"], strict=True):
                module.mean_depth = depth
        return value.detach()

    def _compute(self, runs: slice, items: np.ndarray, randomness: str) -> dict[str, Tensor]:
        """The losses of some runs, each for its row of items, and what halting loops add to them; how deep these went.

        The batch of each run is padded to the widest of them."""
        module, training = self._modules[0], self._first
        batch = training.trained_on.batch(items.reshape(-1))

        def apart(value: Tensor) -> Tensor:
            return value.reshape(*items.shape, *value.shape[1:])

        rows = {
            "fields": tuple(apart(one) for one in batch.fields),
            "lengths": {name: apart(one) for name, one in batch.lengths.items()},
            "targets": apart(batch.targets),
        }
        if batch.scored is not None:
            rows["scored"] = apart(batch.scored)

        def one(weights: dict[str, Tensor], rows: dict[str, Any]) -> dict[str, Tensor]:  # Any: as the batch
            mine = replace(batch, **rows)

            def model(*fields: Tensor, lengths: Any) -> Tensor:  # Any: as the model's
                found: Tensor = functional_call(module, weights, fields, {"lengths": lengths})
                return found

            value = loss(forward(model, mine), mine, training.rule, training.settings.label_smoothing)
            if module.mean_depth is None:
                return {"loss": value, "ponder": torch.zeros_like(value)}
            return {"loss": value, "ponder": module.ponder, "depth": module.mean_depth}

        everything = {**self._weights, **self._buffers}
        every = runs == slice(0, len(self._trainings))
        weights = everything if every else {name: value[runs] for name, value in everything.items()}
        depth, module.mean_depth = module.mean_depth, None
        try:
            with as_one(), warnings.catch_warnings():
                warnings.filterwarnings("ignore", _ONE_BY_ONE)
                found: dict[str, Tensor] = vmap(one, randomness=randomness)(weights, rows)
        finally:
            # What the call has left on the module means nothing outside of it.
            module.ponder, module.mean_depth, module.sample_depth = torch.zeros(()), depth, None
        return found

    def _clip(self) -> Tensor | None:
        """Clips gradients by value, then those of each run by their norm, as far as the recipe asks for it; gives the
        norms."""
        settings = self._first.settings
        gradients = [weight.grad for weight in self._weights.values() if weight.grad is not None]
        if settings.clip_value:
            torch.nn.utils.clip_grad_value_(self._weights.values(), settings.clip_value)
        if not settings.clip:
            return None
        parts = [gradient.reshape(len(gradient), -1).norm(dim=1) for gradient in gradients]
        norms: Tensor = torch.stack(parts).norm(dim=0)
        by = (settings.clip / (norms + 1e-6)).clamp(max=1.0)
        for gradient in gradients:
            gradient.mul_(by.view(-1, *[1] * (gradient.dim() - 1)))
        return norms

    # Whether it can be

    def _compare(self) -> None:
        """Holds the gradients of a few items against those of each model alone.

        Raises:
            NotTogether: they differ by more than rounding, or cannot be computed."""
        lengths = self._first.trained_on.lengths
        order = np.argsort(lengths, kind="stable")
        short, long = order[:_TRIED], order[-_TRIED:]
        count = len(self._trainings)
        for module in self._modules:
            module.eval()
        try:
            if not self._agrees(np.stack([long] * count)):
                raise NotTogether("as one, its gradients are not those that it has alone")
            # Every other run has short items, padded to the long ones.
            if lengths[order[0]] < lengths[order[-1]] and not self._agrees(
                np.stack([(long, short)[index % 2] for index in range(count)])
            ):
                raise NotTogether("what it computes depends on how far a batch is padded")
        except NotTogether:
            raise
        except Exception as error:
            raise NotTogether(_reason(error)) from error
        finally:
            for module, loops in zip(self._modules, self._loops, strict=True):
                module.train()
                for loop in loops:
                    loop.computed = loop.masked = 0

    def _agrees(self, items: np.ndarray) -> bool:
        device = self._first.fabric.device
        names = [name for name, weight in self._weights.items() if weight.requires_grad]
        with always_the_same(device):
            found = self._compute(slice(0, len(items)), items, "same")
            whole = found["loss"] + self._first.settings.ponder * found["ponder"]
            together = _gradients(whole.sum(), [self._weights[name] for name in names])
        for index, (module, mine) in enumerate(zip(self._modules, items, strict=True)):
            with always_the_same(device):
                alone = self._alone(module, mine, names)
            differences = [one[index] - other for one, other in zip(together, alone, strict=True)]
            if not _norm(differences) <= _ROUNDING * _norm(alone):
                return False
        return True

    def _alone(self, module: Architecture, items: np.ndarray, names: Sequence[str]) -> list[Tensor]:
        training = self._first
        batch = training.trained_on.batch(items)
        value = loss(forward(module, batch), batch, training.rule, training.settings.label_smoothing)
        whole = value + training.settings.ponder * module.ponder.to(value.device)
        return _gradients(whole, [module.get_parameter(name) for name in names])


def _stacked(parts: Sequence[Mapping[str, Tensor]]) -> dict[str, Tensor]:
    """Tensors of the same names as one, of which the parts are views from now on."""
    found: dict[str, Tensor] = {}
    for name, first in parts[0].items():
        whole = torch.stack([part[name].detach() for part in parts])
        for index, part in enumerate(parts):
            part[name].data = whole[index]
        found[name] = nn.Parameter(whole, first.requires_grad) if isinstance(first, nn.Parameter) else whole
    return found


def _is_stacked(name: str, value: object) -> bool:
    """Whether what an optimizer keeps of a weight has a part for each run."""
    return name != "step" and isinstance(value, Tensor)


def _gradients(value: Tensor, weights: Sequence[Tensor]) -> list[Tensor]:
    found = torch.autograd.grad(value, weights, allow_unused=True)
    return [torch.zeros_like(one) if by is None else by for one, by in zip(weights, found, strict=True)]


def _norm(values: Sequence[Tensor]) -> float:
    return float(torch.stack([value.norm() for value in values]).norm())


def _has_drawn(before: Mapping[str, Any], after: Mapping[str, Any]) -> bool:  # Any: as random_state
    """Whether torch has drawn numbers."""
    return any(isinstance(one, Tensor) and not torch.equal(one, after[name]) for name, one in before.items())


def _reason(error: Exception) -> str:
    """What keeps a model from being computed as one with others, in a line."""
    said = str(error)
    if missing := re.search(r"(?:rule|implement\w*)\D*? aten::(\w+)", said):
        return f"torch computes no stacked models of `{missing[1]}`"
    if "data-dependent" in said or ("vmap" in said and ".item()" in said):
        return "its code asks a tensor how to go on, by `if`, `while` or `.item()`"
    return said.strip().partition("\n")[0] or type(error).__name__
