"""Functions of many numbers that take less time than torch's on a CPU, and that may overwrite memory.

MKL's `exp` takes 10 to 50 times as long where results underflow, as those of sums of logarithms do; `exp2` does not.
oneDNN's `tanh` takes a third of the time of MKL's. torch's `masked_fill` with a mask of rows takes 6 to 12 times as
long as an operation on bits. Where the compiler knows that nothing else reads an argument, or the gradient of a result,
a function writes its result there: maps are larger than a processor's cache."""

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial
from typing import Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from archlang.backend.runtime.stacking import is_large_on_cpu, is_plain

Reuse = tuple[bool, bool]
"""Whether a function may overwrite its argument, and in backward the gradient of its result."""
NO_REUSE: Reuse = (False, False)
# Takes an argument, and the memory of the result or None.
_Compute = Callable[[Tensor, Tensor | None], Tensor]
# Takes the gradient of a result, the result or the argument, and the memory of the gradient of the argument or None.
_Derivative = Callable[[Tensor, Tensor, Tensor | None], Tensor]

# The numbers from which each form is faster.
_LEAST_FOR_EXP = 1 << 10
_LEAST_FOR_TANH = 1 << 14
LEAST_FOR_BITS = 1 << 15
INTEGERS = {1: torch.int8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
_HAS_ONEDNN: bool = torch.backends.mkldnn.is_available()  # type: ignore[no-untyped-call]  # torch's own
_KEEPS: ContextVar[bool] = ContextVar("keeps_arguments", default=False)


@contextmanager
def keeping_arguments() -> Iterator[None]:
    """Inside, functions overwrite nothing: something observes their arguments."""
    token = _KEEPS.set(True)
    try:
        yield
    finally:
        _KEEPS.reset(token)


def permitted(x: Tensor, reuse: Reuse) -> Reuse:
    """Returns which memory may be overwritten: none outside of plain calls with gradients on a CPU, and under autocast,
    where results have other types than arguments."""
    if reuse == NO_REUSE or not x.requires_grad or x.device.type != "cpu" or not is_plain() or _KEEPS.get():
        return NO_REUSE
    return NO_REUSE if torch.is_autocast_enabled("cpu") else reuse


def linear(x: Tensor, compute: _Compute, transposed: _Compute, reuse: Reuse = NO_REUSE) -> Tensor:
    """Returns a linear function of a tensor, whose derivative is `transposed`."""
    if not x.requires_grad or not is_plain():
        return compute(x, None)
    y: Tensor = _Linear.apply(x, compute, transposed, permitted(x, reuse))  # type: ignore[no-untyped-call]  # torch's own
    return y


def nonlinear(
    x: Tensor, compute: _Compute, derivative: _Derivative, reuse: Reuse = NO_REUSE, of_argument: bool = False
) -> Tensor:
    """Returns a function of a tensor with its derivative, which takes the argument instead of the result with
    `of_argument`. Call it only where Python runs the call."""
    if not x.requires_grad:
        return compute(x, None)
    y: Tensor = _Nonlinear.apply(x, compute, derivative, permitted(x, reuse), of_argument)  # type: ignore[no-untyped-call]  # torch's own
    return y


class _Linear(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, compute: _Compute, transposed: _Compute, reuse: Reuse) -> Tensor:  # Any: torch's
        ctx.functions, ctx.reuse = (transposed, compute), reuse[1]
        # With `data`, autograd records no change of a view, whose derivative would copy it.
        return compute(x, x.data if reuse[0] else None)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:  # Any: as above
        transposed, compute = ctx.functions
        if torch.is_grad_enabled():  # autograd keeps the gradient
            return linear(gradient, transposed, compute), None, None, None
        return transposed(gradient, gradient if ctx.reuse else None), None, None, None


class _Nonlinear(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, x: Tensor, compute: _Compute, derivative: _Derivative, reuse: Reuse, of_argument: bool
    ) -> Tensor:  # Any: as above
        y = compute(x, x.data if reuse[0] else None)
        ctx.save_for_backward(x if of_argument else y)
        ctx.derivative, ctx.reuse = derivative, reuse[1]
        return y

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:  # Any: as above
        (value,) = ctx.saved_tensors
        out = gradient if ctx.reuse and not torch.is_grad_enabled() else None
        return ctx.derivative(gradient, value, out), None, None, None, None


class _Added(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, y: Tensor) -> Tensor:  # Any: as above
        return x.data.add_(y)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, Tensor]:  # Any: as above
        return gradient, gradient


def added(x: Float[Tensor, "*b"], y: Float[Tensor, "*b"], reuse: Reuse = NO_REUSE) -> Float[Tensor, "*b"]:
    """Returns x + y of equal shapes."""
    if not permitted(x, reuse)[0]:
        return x + y
    result: Tensor = _Added.apply(x, y)  # type: ignore[no-untyped-call]  # torch's own
    return result


def scaled(x: Float[Tensor, "*b"], factor: float, reuse: Reuse = NO_REUSE) -> Float[Tensor, "*b"]:
    """Returns factor x."""

    def compute(x: Tensor, out: Tensor | None) -> Tensor:
        return torch.mul(x, factor, out=out)

    return linear(x, compute, compute, reuse)


def kept_where(x: Float[Tensor, "*b d"], real: Bool[Tensor, "*b 1"]) -> Float[Tensor, "*b d"]:
    """Returns x where a mark holds, else 0, also if x is not finite."""
    if not is_large_on_cpu(x, x.numel(), LEAST_FOR_BITS):
        return x.masked_fill(~real, 0)
    integer = INTEGERS[x.element_size()]
    bits = -real.to(integer)  # all are 1 where the mark holds

    def compute(x: Tensor, out: Tensor | None) -> Tensor:
        return (x.view(integer) & bits).view(x.dtype)

    return linear(x, compute, compute)


def exp(x: Float[Tensor, "*b"], reuse: Reuse = NO_REUSE) -> Float[Tensor, "*b"]:
    """Returns exp(x), to the rounding of x."""
    if x.dtype not in (torch.float32, torch.float64) or not is_large_on_cpu(x, x.numel(), _LEAST_FOR_EXP):
        return x.exp()
    return nonlinear(x, lambda x, out: torch.mul(x, math.log2(math.e), out=out).exp2_(), _times, reuse)


def tanh(x: Float[Tensor, "*b"], reuse: Reuse = NO_REUSE) -> Float[Tensor, "*b"]:
    """Returns tanh(x)."""
    is_fast = x.dtype == torch.float32 and is_large_on_cpu(x, x.numel(), _LEAST_FOR_TANH) and _HAS_ONEDNN
    is_fast = is_fast and type(x) is Tensor  # one without numbers, which oneDNN does not take, is of another type
    if not is_fast and permitted(x, reuse) == NO_REUSE:
        return x.tanh()
    compute: _Compute = _fast_tanh if is_fast else lambda x, out: torch.tanh(x, out=out)
    return nonlinear(x, compute, partial(_by, torch.ops.aten.tanh_backward), reuse)


def sigmoid(x: Float[Tensor, "*b"], reuse: Reuse = NO_REUSE) -> Float[Tensor, "*b"]:
    """Returns σ(x)."""
    if permitted(x, reuse) == NO_REUSE:
        return x.sigmoid()
    return nonlinear(x, lambda x, out: torch.sigmoid(x, out=out), partial(_by, torch.ops.aten.sigmoid_backward), reuse)


def softplus(x: Float[Tensor, "*b"], reuse: Reuse = NO_REUSE) -> Float[Tensor, "*b"]:
    """Returns ln(1 + exp(x))."""
    if not permitted(x, reuse)[1]:
        return torch.nn.functional.softplus(x)
    by_argument = partial(_by, torch.ops.aten.softplus_backward, more=(1.0, 20.0))
    return nonlinear(x, lambda x, _: torch.nn.functional.softplus(x), by_argument, (False, True), of_argument=True)


def _fast_tanh(x: Tensor, out: Tensor | None) -> Tensor:
    # oneDNN computes numbers in the order of the axes. Those of a map have another order in memory.
    order = sorted(range(x.dim()), key=x.stride, reverse=True)
    y = x.permute(order).to_mkldnn().tanh_().to_dense()
    return y.permute([order.index(axis) for axis in range(x.dim())])


def _times(gradient: Tensor, y: Tensor, out: Tensor | None) -> Tensor:
    return torch.mul(gradient, y, out=out)


def _by(
    operation: Any, gradient: Tensor, value: Tensor, out: Tensor | None, more: tuple[float, ...] = ()
) -> Tensor:  # Any: an operation of torch, which has no type
    if out is None:
        return operation(gradient, value, *more)  # type: ignore[no-any-return]
    return operation.grad_input(gradient, value, *more, grad_input=out)  # type: ignore[no-any-return]
