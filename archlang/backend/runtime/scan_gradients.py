"""Scans with a backward pass of their own: the runtime of the pass `scan_gradients`."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, repeat
from typing import Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from archlang.backend.kernels.lstm import lstm
from archlang.backend.runtime.bound import BoundModules, is_observed
from archlang.backend.runtime.loops import Body, resolve
from archlang.backend.runtime.result_check import ResultCheck
from archlang.backend.runtime.row_blocks import keep_freed_memory
from archlang.backend.runtime.stacking import plain_gradients

# The positions of all samples that are computed at once: this bounds the memory of what is not saved.
_MOST_POSITIONS = 1 << 11
# The length from which that takes less time than torch's own backward pass.
_LEAST_LENGTH = 8


@dataclass(frozen=True, eq=False)
class LstmScan:
    """A scan that is an LSTM. `weights` returns those of `kernels.lstm`, `states` are the indices of h and c, and
    `modules` has the classes of its modules."""

    weights: Body
    states: tuple[int, int]
    modules: Mapping[str, type[nn.Module]]

    def __call__(
        self,
        owner: nn.Module,
        sequence: Float[Tensor, "b n d"],
        states: Sequence[Tensor],
        mask: Bool[Tensor, "b n"] | None,
    ) -> tuple[list[Tensor], Tensor]:
        """Returns the last states, and all states h. Half precision is computed in float32."""
        h, c = self.states
        weights = self.weights(owner)
        wide = weights[0].dtype
        with torch.autocast(sequence.device.type, enabled=False):
            results = lstm(sequence.to(wide), (states[h].to(wide), states[c].to(wide)), weights, mask)
        y, *last = (result.to(states[h].dtype) for result in results)
        return last if h < c else last[::-1], y


@dataclass(frozen=True, eq=False)
class ScanGradient:
    """The functions that `lower/scan_gradients.py` writes of the body of a scan with so many states, by their names.

    `shared` takes the captured values of the indices `captured`; its first `fixed` results are those that a step takes,
    behind the results of `head` and before the states. `head` takes a part, and the results `of_shared` of `shared`. A
    step returns the states, what it emits, and what is saved. `sources` are what `factors` takes of the arguments of a
    step but for the states, and of what is saved. `looped` are the results of `factors` that `adjoint` takes behind the
    gradients, each with whether all positions have the same; `summed` is what `gradients` takes of the results of
    `factors`, and of those of `adjoint` behind the states. `modules` has the classes of the modules whose derivatives
    are known, `head_modules` are those that `head` calls, and `random` says that some draw in training. `lstm` runs all
    steps at once, if they are those of an LSTM."""

    functions: Mapping[str, Body]
    captured: tuple[int, ...]
    of_shared: tuple[int, ...]
    fixed: int
    sources: tuple[int, ...]
    looped: tuple[tuple[int, bool], ...]
    summed: tuple[int, ...]
    modules: Mapping[str, type[nn.Module]]
    head_modules: tuple[str, ...]
    random: bool
    states: int
    emits: bool
    lstm: LstmScan | None

    def fits(self, owner: nn.Module, sequence: Float[Tensor, "b n d"]) -> bool:
        """Returns whether this gains, the modules compute what their classes do, and nothing observes them."""
        if sequence.shape[1] < _LEAST_LENGTH:
            return False
        if torch.is_autocast_enabled(sequence.device.type) and not self._is_lstm(owner):
            return False
        return _do_as_classes(owner, self.modules)

    def _is_lstm(self, owner: nn.Module) -> bool:
        return self.lstm is not None and _do_as_classes(owner, self.lstm.modules)

    def __call__(
        self,
        owner: nn.Module,
        sequence: Float[Tensor, "b n d"],
        states: Sequence[Tensor],
        captured: Sequence[Any],
        mask: Bool[Tensor, "b n"] | None,
    ) -> tuple[Sequence[Tensor], list[Tensor]]:
        """Returns the last states, and what is emitted, [b n d], if anything is."""
        if self._is_lstm(owner):
            assert self.lstm is not None
            last, y = self.lstm(owner, sequence, states, mask)
            return last, [y] if self.emits else []
        keep_freed_memory()
        shared = self.functions["shared"](owner, *(captured[index] for index in self.captured))
        by_position = sequence.transpose(0, 1).contiguous()
        size = max(2, _MOST_POSITIONS // max(1, len(sequence)))
        emitted: list[Tensor] = []
        for first in range(0, len(by_position), size):
            steps = _ScanSteps(self, owner, None if mask is None else mask[:, first : first + size].unbind(1))
            results = steps.results(by_position[first : first + size], shared, states)
            states = results[: self.states]
            emitted += results[self.states :]
        return states, [torch.cat(emitted).transpose(0, 1)] if emitted else []


def _do_as_classes(owner: nn.Module, modules: Mapping[str, type[nn.Module]]) -> bool:
    """Returns whether modules compute what their classes do, and nothing observes them."""
    for path, kind in modules.items():
        module = resolve(owner, path.split("."))
        if is_observed(module, kind, ResultCheck):
            return False
        if getattr(kind, "acts_as", "") != "affine" and any(True for _ in module.parameters()):
            return False
    return True


@dataclass(frozen=True, eq=False)
class _ScanSteps:
    """Some steps of a scan. `reals` are the samples that have each position; None if all have all."""

    form: ScanGradient
    owner: nn.Module
    reals: Sequence[Bool[Tensor, " b"]] | None

    def results(self, part: Float[Tensor, "n b d"], shared: Sequence[Any], states: Sequence[Tensor]) -> Any:
        """Returns the states, and the stack of what is emitted."""
        of_head = [shared[index] for index in self.form.of_shared]
        taken = (*self.head(part, of_head), *shared[: self.form.fixed])
        if not torch.is_grad_enabled() or not any(value.requires_grad for value in (*taken, *states)):
            return self.forward(len(part), taken, states, None)
        results: tuple[Tensor, ...] = _WithGradient.apply(self, part, *of_head, *taken, *states)  # type: ignore[no-untyped-call]  # torch's own
        return results

    def head(self, part: Float[Tensor, "n b d"], of_shared: Sequence[Any]) -> list[Tensor]:
        values = self.form.functions["head"](self.owner, part.flatten(0, 1), *of_shared)
        return [value.unflatten(0, part.shape[:2]) for value in values]

    def weights(self) -> list[Tensor]:
        """Returns the weights that `head` reads."""
        modules = (resolve(self.owner, path.split(".")) for path in self.form.head_modules)
        return [weight for module in modules for weight in module.parameters()]

    def forward(
        self, count: int, taken: Sequence[Tensor], states: Sequence[Tensor], saved: list[Sequence[Tensor]] | None
    ) -> tuple[Tensor, ...]:
        """Takes the steps. Adds what is saved of each to `saved`, unless it is None."""
        form, step, bound = self.form, self.form.functions["step"], BoundModules(self.owner)
        carried, end = form.states, form.states + form.emits
        free = len(taken) - form.fixed
        fixed = taken[free:]
        parts = zip(*(value.unbind(0) for value in taken[:free]), strict=True) if free else repeat((), count)
        emitted: list[Tensor] = []
        for index, part in enumerate(parts):
            results = step(bound, *part, *fixed, *states)
            states = results[:carried] if self.reals is None else _where(self.reals[index], results[:carried], states)
            emitted += results[carried:end]
            if saved is not None:
                saved.append(results[end:])
        return (*states, *([torch.stack(emitted)] if form.emits else []))

    def backward(
        self, count: int, taken: Sequence[Any], saved: Sequence[Tensor], gradients: Sequence[Tensor]
    ) -> tuple[Tensor | None, ...]:
        """Returns the gradients of what steps take, and of the first states. `saved` has the values of all positions,
        [n b d]."""
        form, reals = self.form, self.reals
        sources = (*taken, *saved)
        factors = form.functions["factors"](self.owner, *(sources[index] for index in form.sources))
        own, emitted = gradients[: form.states], [gradient.contiguous() for gradient in gradients[form.states :]]
        columns = [gradient.unbind(0)[::-1] for gradient in emitted]
        for index, is_fixed in form.looped:
            columns.append((factors[index],) * count if is_fixed else factors[index].unbind(0)[::-1])
        values: list[Sequence[Tensor]] = []
        adjoint = form.functions["adjoint"]
        parts = zip(*columns, strict=True) if columns else repeat((), count)
        for index, part in enumerate(parts, start=1):
            if reals is None:
                results = adjoint(None, *own, *part)
                own = results[: form.states]
            else:
                real, zeros = reals[-index], [torch.zeros_like(gradient) for gradient in own]
                results = adjoint(None, *_where(real, own, zeros), *part)
                own = [
                    before + at_padding
                    for before, at_padding in zip(results[: form.states], _where(real, zeros, own), strict=True)
                ]
            values.append(results[form.states :])
        stacks = [torch.stack(column[::-1]) for column in zip(*values, strict=True)]
        sources = (*factors, *stacks)
        return (*form.functions["gradients"](None, *(sources[index] for index in form.summed)), *own)


class _WithGradient(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, steps: _ScanSteps, part: Tensor, *inputs: Any) -> tuple[Tensor, ...]:  # Any: torch's own
        form, saved = steps.form, list[Sequence[Tensor]]()
        of_head, taken, states = _split(form, inputs)
        results = steps.forward(len(part), taken, states, saved)
        free = len(taken) - form.fixed
        is_saved = (form.random or index in form.sources or index >= free for index in range(len(taken)))
        saved_sources = [value if saved else None for value, saved in zip(taken, is_saved, strict=True)]
        ctx.steps, ctx.weights = steps, steps.weights()
        ctx.save_for_backward(part, *of_head, *saved_sources, *states, *chain.from_iterable(zip(*saved, strict=True)))
        # The last states may be saved, or an input.
        return (*(state.clone() for state in results[: form.states]), *results[form.states :])

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Any:  # Any: torch's own
        steps: _ScanSteps = ctx.steps
        form = steps.form
        part, *tensors = ctx.saved_tensors
        count = len(ctx.needs_input_grad) - 2
        of_head, taken, states = _split(form, tensors[:count])
        none = (None,) * (2 + len(of_head))
        if not torch.is_grad_enabled():
            columns = zip(*[iter(tensors[count:])] * len(part), strict=True)
            return (*none, *steps.backward(len(part), taken, [torch.stack(column) for column in columns], gradients))
        if any(before is not now for before, now in zip(ctx.weights, steps.weights(), strict=True)):
            raise RuntimeError("a second derivative of a scan needs the weights that the model had before")
        computed = taken[: len(taken) - form.fixed] if form.random else steps.head(part, of_head)
        own = [*computed, *taken[len(taken) - form.fixed :], *states]

        def plain(*values: Tensor) -> tuple[Tensor, ...]:
            return steps.forward(len(part), values[: -form.states], values[-form.states :], None)

        return (*none, *plain_gradients(plain, own, ctx.needs_input_grad[len(none) :], gradients))


def _split(form: ScanGradient, inputs: Sequence[Any]) -> tuple[Sequence[Any], Sequence[Any], Sequence[Any]]:
    """Splits what `head` takes of `shared`, what steps take, and states."""
    begin, end = len(form.of_shared), len(inputs) - form.states
    return inputs[:begin], inputs[begin:end], inputs[end:]


def _where(real: Bool[Tensor, " b"], values: Sequence[Tensor], others: Sequence[Tensor]) -> tuple[Tensor, ...]:
    return tuple(torch.where(real[:, None], value, other) for value, other in zip(values, others, strict=True))


# What the functions call


def repeated(value: Float[Tensor, "b d"], positions: Float[Tensor, "p _"]) -> Float[Tensor, "p d"]:
    """Returns a value of each sample for all positions, of which those of a sample are `b` apart."""
    return value.repeat(len(positions) // max(1, len(value)), 1)


def transposed(weight: Float[Tensor, "k d"]) -> Float[Tensor, "d k"]:
    """Returns the transpose with memory of its own, which products take less time with."""
    return weight.t().contiguous()


def zeros(like: Float[Tensor, "b _"], width: int) -> Float[Tensor, "b width"]:
    return like.new_zeros(len(like), width)


def derivatives(module: nn.Module, *values: Tensor) -> tuple[Tensor, ...]:
    """Returns the derivatives of an elementwise module by each argument."""
    values = torch.broadcast_tensors(*values)  # type: ignore[no-untyped-call]  # torch's own
    with torch.enable_grad():
        own = [value.detach().flatten(0, -2).requires_grad_() for value in values]
        result = module(*own)
        if not result.requires_grad:
            return tuple(map(torch.zeros_like, values))
        slopes = torch.autograd.grad(result, own, torch.ones_like(result), allow_unused=True, materialize_grads=True)
    return tuple(slope.view_as(value) for slope, value in zip(slopes, values, strict=True))


def product(inputs: Float[Tensor, "n b d"], gradient: Float[Tensor, "n b k"]) -> Float[Tensor, "d k"]:
    """Returns the gradient of a transposed weight."""
    # `flatten` takes no gradients that `is_grads_batched` batches.
    return inputs.flatten(0, 1).t() @ gradient.reshape(-1, gradient.shape[-1])


def summed(gradient: Float[Tensor, "n b d"], like: Float[Tensor, "*b d"]) -> Float[Tensor, "*b d"]:
    """Returns the gradient of a value that is the same at all positions."""
    return gradient.sum_to_size(like.shape)
