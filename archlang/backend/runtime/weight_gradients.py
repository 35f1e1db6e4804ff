"""The gradients of weights that loops use many times, as few products of many rows.

Each use of a weight adds the product of its output gradients and its inputs to the weight's gradient. With the few rows
of a chunk, writing a product of the weight's size and adding it takes as long as a third of the multiplications. Here
the factors are kept until they have enough rows, and their product is added to the gradient in place."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from archlang.backend.runtime.loops import Attached
from archlang.backend.runtime.transforms import is_transformed

LEAST = 1 << 17
"""The number of elements of a weight from which this is faster."""
# The number of rows from which a product is as fast alone. It also bounds the rows that are kept.
_MOST_ROWS = 128
# Subclasses of these, such as distributed tensors, need torch's own operation.
_PLAIN = (Tensor, nn.Parameter)
# The hooks on saved tensors that are active; torch before 2.8 cannot say which are.
_top_hooks = getattr(torch._C._autograd, "_top_saved_tensors_default_hooks", None)


class _Sums:
    """The sum of the products of factors [r k] and [r d], and that of the rows of the former. Factors are added to the
    sums when they have enough rows."""

    def __init__(self) -> None:
        self._weight: Tensor | None = None
        self._bias: Tensor | None = None
        self._by: list[Tensor] = []
        self._x: list[Tensor] = []
        self._rows = 0

    def add(self, by: Float[Tensor, "r k"], x: Float[Tensor, "r d"]) -> None:
        self._by.append(by)
        self._x.append(x)
        self._rows += len(x)
        if self._rows >= _MOST_ROWS:
            self._multiply()

    def _multiply(self) -> None:
        by, x = torch.cat(self._by), torch.cat(self._x)
        if self._weight is None or self._bias is None:
            self._weight, self._bias = by.t() @ x, by.sum(0)
        else:
            self._weight.addmm_(by.t(), x)
            self._bias += by.sum(0)
        self._by, self._x, self._rows = [], [], 0

    def totals(self) -> tuple[Tensor | None, Tensor | None]:
        """Returns the gradients of the weight [k d] and of the bias [k]."""
        if self._by:
            self._multiply()
        return self._weight, self._bias


# The sums of a weight in each backward that is running, by its number: a hook may start one within another.
_Gradient = defaultdict[int, _Sums]

# Of the weights and biases that a call of a model has used so far: aliases, and the gradient of both.
_Aliases = dict[tuple[Tensor, Tensor | None], tuple[Tensor, Tensor | None, _Gradient]]
_ALIASES: ContextVar[_Aliases | None] = ContextVar("weight_aliases", default=None)


class LinearMaps(Attached):
    """The linear maps of a model whose loops share weights; none for other models."""

    def __init__(self, maps: list[nn.Linear]) -> None:
        # torch.compile would trace a map again if its forward were another object in each call.
        self._forwards = [(linear, partial(_forward, linear)) for linear in maps]

    def gathering(self) -> AbstractContextManager[None]:
        """Makes the maps gather the factors of their gradients in one call of the model."""
        if torch.compiler.is_compiling() or not self._forwards or not torch.is_grad_enabled() or is_transformed():
            return nullcontext()
        return self._gathering()

    @contextmanager
    def _gathering(self) -> Iterator[None]:
        token = _ALIASES.set({})
        # A wrapper, such as a parametrization, changes the class of a map.
        maps = [(linear, forward) for linear, forward in self._forwards if type(linear) is nn.Linear]
        for linear, forward in maps:
            linear.__dict__.setdefault("forward", forward)
        try:
            yield
        finally:
            for linear, forward in maps:
                if linear.__dict__.get("forward") is forward:
                    del linear.__dict__["forward"]
            _ALIASES.reset(token)


def shared_linear(
    x: Float[Tensor, "*b d"], weight: Float[Tensor, "k d"], bias: Float[Tensor, " k"] | None
) -> Float[Tensor, "*b k"]:
    """Returns x Wᵀ + b, as `torch.nn.functional.linear` does. In a call of a model that gathers the factors of
    gradients, the weight's gradient is computed from those of all uses, if that is faster."""
    # torch.compile cannot trace a context variable.
    aliases = None if torch.compiler.is_compiling() else _ALIASES.get()
    if aliases is None or not _is_gathered(x, weight):
        return F.linear(x, weight, bias)
    key = weight, bias
    if key not in aliases:
        gradient = _Gradient(_Sums)
        aliases[key] = (*_Alias.apply(weight, bias, gradient), gradient)  # type: ignore[no-untyped-call]
    result: Tensor = _Linear.apply(x, *aliases[key])  # type: ignore[no-untyped-call]
    return result


def _forward(linear: nn.Linear, input: Float[Tensor, "*b d"]) -> Float[Tensor, "*b k"]:
    return shared_linear(input, linear.weight, linear.bias)


def _is_gathered(x: Tensor, weight: Tensor) -> bool:
    return (
        weight.numel() >= LEAST
        and x.numel() < _MOST_ROWS * weight.shape[1]
        and weight.requires_grad
        and torch.is_grad_enabled()
        and x.device.type == weight.device.type == "cpu"
        and x.dtype == weight.dtype
        and type(x) in _PLAIN
        and type(weight) in _PLAIN
        and not torch.is_autocast_enabled("cpu")
        and not is_transformed()
        # Checkpointing computes values again outside of the call, and expects the same saved tensors.
        and _top_hooks is not None
        and _top_hooks(True) is None
    )


class _Alias(torch.autograd.Function):
    """The weight and the bias as they are. Backward, which runs after that of all uses, returns their gradients."""

    @staticmethod
    def forward(
        ctx: Any, weight: Tensor, bias: Tensor | None, gradient: _Gradient
    ) -> tuple[Tensor, Tensor | None]:  # Any: torch's context
        ctx.gradient = gradient
        ctx.set_materialize_grads(False)
        return weight.view_as(weight), None if bias is None else bias.view_as(bias)

    @staticmethod
    def backward(ctx: Any, *direct: Tensor | None) -> tuple[Tensor | None, ...]:  # Any: as above
        """`direct` are gradients that uses returned themselves."""
        gathered = ctx.gradient.pop(torch._C._current_graph_task_id(), _Sums()).totals()
        weight, bias = (_sum(*gradients) for gradients in zip(gathered, direct, strict=True))
        return weight, bias if ctx.needs_input_grad[1] else None, None


def _sum(gathered: Tensor | None, direct: Tensor | None) -> Tensor | None:
    if gathered is None or direct is None:
        return direct if gathered is None else gathered
    return gathered + direct


class _Linear(torch.autograd.Function):
    """x Wᵀ + b. Backward keeps the factors of the gradients of W and b."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor | None, gradient: _Gradient) -> Tensor:
        ctx.save_for_backward(x, weight)
        ctx.gradient = gradient
        return F.linear(x, weight, bias)

    @staticmethod
    def backward(ctx: Any, by: Tensor) -> tuple[Tensor | None, ...]:  # Any: as above
        x, weight = ctx.saved_tensors
        of_x = by @ weight if ctx.needs_input_grad[0] else None
        by, x = by.reshape(-1, by.shape[-1]), x.reshape(-1, x.shape[-1])
        if torch.is_grad_enabled():  # a second derivative needs a gradient of which autograd knows the operations
            return of_x, by.t() @ x, by.sum(0) if ctx.needs_input_grad[2] else None, None
        if torch._C._will_engine_execute_node(weight.grad_fn):  # else the weight's gradient is not asked for
            ctx.gradient[torch._C._current_graph_task_id()].add(by, x)
        return of_x, None, None, None
