"""Operations for models of one architecture that `torch.func.vmap` computes together, over their stacked weights; and
whether a transform acts on a call, and what then computes it.

Blocks and kernels call these where vmap cannot batch an operation, or where Python control flow reads a value."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import torch
from jaxtyping import Bool
from torch import Tensor
from torch.autograd import forward_ad

_STACKED: ContextVar[bool] = ContextVar("stacked_models", default=False)
_ANSWER: ContextVar[Callable[[Tensor], bool] | None] = ContextVar("answer", default=None)


@contextmanager
def stacked_models() -> Iterator[None]:
    """Makes the functions of this file expect the vmap over models; enter it around that vmap."""
    token = _STACKED.set(True)
    try:
        yield
    finally:
        _STACKED.reset(token)


def is_stacked() -> bool:
    """Returns whether `vmap` computes several models together; False while torch.compile traces."""
    # torch.compile cannot trace a context variable.
    return not torch.compiler.is_compiling() and _STACKED.get()


def in_any_model(mark: Bool[Tensor, "*_"]) -> Bool[Tensor, "*_"]:
    """Returns where any of the models has a mark, with a value that Python control flow may read."""
    if not is_stacked():
        return mark
    any_mark: Tensor = _InAnyModel.apply(mark)  # type: ignore[no-untyped-call]
    return any_mark


def in_one_batch(function: Callable[..., Any], *values: Tensor) -> Any:  # Any: a tensor or several
    """Returns `function(*values)`, where every tensor has the batch as its first axis. With stacked models, calls the
    function once, on the concatenated batches of all models."""
    return _InOneBatch.apply(function, *values) if is_stacked() else function(*values)  # type: ignore[no-untyped-call]


def model_by_model(function: Callable[..., Tensor], *values: Tensor) -> Tensor:
    """Returns `function(*values)`. With stacked models, calls the function once for each model: for operations of torch
    that take one set of weights."""
    if not is_stacked():
        return function(*values)
    result: Tensor = _ModelByModel.apply(function, *values)  # type: ignore[no-untyped-call]
    return result


# The autograd functions of fast forms have no rules for the transforms of torch.func and forward-mode differentiation,
# and under vmap Python control flow cannot read a value.


def is_transformed() -> bool:
    """Returns whether a transform acts on the call."""
    return torch._C._are_functorch_transforms_active() or forward_ad._current_level >= 0


def is_plain() -> bool:
    """Returns whether Python runs the call, and nothing traces or transforms it."""
    return not torch.compiler.is_compiling() and not is_transformed()


def is_large_on_cpu(x: Tensor, count: int | torch.SymInt, least: int) -> bool:
    """Returns whether x is on a CPU, `count` is at least `least`, and the call is plain: then forms that only gain on
    many elements, and have no rules for transforms, may compute it."""
    # Comparing a traced size would be a guard on it.
    return not torch.compiler.is_compiling() and count >= least and x.device.type == "cpu" and not is_transformed()


@contextmanager
def answering(answer: Callable[[Bool[Tensor, ""]], bool]) -> Iterator[None]:
    """Inside, a function answers `holds`, given whether the mark holds everywhere, a value that it need not read."""
    token = _ANSWER.set(answer)
    try:
        yield
    finally:
        _ANSWER.reset(token)


def holds(mark: Bool[Tensor, "*_"]) -> bool:
    """Returns whether a mark holds everywhere; False while a CUDA graph is captured without an answer, as no value can
    be read then; True on the device `meta`, which has none."""
    if mark.is_meta:
        return True
    # torch.compile cannot trace a context variable.
    answer = None if torch.compiler.is_compiling() else _ANSWER.get()
    if answer is not None:
        return answer(mark.all())
    if mark.is_cuda and torch.cuda.is_current_stream_capturing():
        return False
    return bool(mark.all())


def needs_plain_form() -> bool:
    """Returns whether only a plain form can compute the call. Stacked models are transformed too, but their fast forms
    run outside of vmap."""
    return is_transformed() and not is_stacked()


def plain_gradients(
    plain: Callable[..., Tensor | tuple[Tensor, ...]],
    inputs: Sequence[Tensor],
    required: Sequence[bool],
    gradients: Sequence[Tensor],
) -> list[Tensor | None]:
    """Returns the gradients of `plain(*inputs)`, which can be differentiated again.

    Autograd calls the backward of a fast form with gradients enabled if the caller passes `create_graph=True`. The fast
    backward computes no graph, so the plain form then gives the gradients. torch's `once_differentiable` is no remedy:
    `torch.autograd.grad` silently omits what it guards.

    Args:
        plain: the plain form
        inputs: its differentiable arguments
        required: for each input whether its gradient is required; None is returned for the others
        gradients: the gradient of each result"""
    with torch.enable_grad(), torch.autocast(inputs[0].device.type, enabled=False):
        # One tensor may be several inputs, each with a gradient of its own.
        copies = [tensor.view_as(tensor) for tensor in inputs]
        results = plain(*copies)
        wanted = [copy for copy, is_required in zip(copies, required, strict=True) if is_required]
        computed = iter(
            torch.autograd.grad(
                results, wanted, gradients, create_graph=True, allow_unused=True, materialize_grads=True
            )
        )
    return [next(computed) if is_required else None for is_required in required]


class _InAnyModel(torch.autograd.Function):
    """The identity; under vmap, the disjunction over the models. Only a vmap rule sees the values of all models."""

    @staticmethod
    def forward(mark: Tensor) -> Tensor:
        return mark.clone()

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:  # Any: torch's own
        pass

    @staticmethod
    def vmap(info: Any, in_dims: tuple[int | None, ...], mark: Tensor) -> tuple[Tensor, None]:  # Any: torch's own
        (axis,) = in_dims
        return (mark if axis is None else mark.any(axis)), None


class _OutsideVmap(torch.autograd.Function):
    """Calls a function outside of vmap, with the function's own gradients."""

    @staticmethod
    def forward(function: Callable[..., Any], *values: Tensor) -> Any:
        raise AssertionError("models are stacked, but there is no vmap")

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        pass


class _InOneBatch(_OutsideVmap):
    @staticmethod
    def vmap(
        info: Any, in_dims: tuple[int | None, ...], function: Callable[..., Any], *values: Tensor
    ) -> tuple[Any, Any]:  # Any: torch's own, and as the function
        stacked = [
            value[None].expand(info.batch_size, *value.shape) if axis is None else value.movedim(axis, 0)
            for value, axis in zip(values, in_dims[1:], strict=True)
        ]
        sizes = stacked[0].shape[:2]  # models, samples
        results = function(*(value.flatten(0, 1) for value in stacked))
        if isinstance(results, tuple):
            return tuple(result.unflatten(0, sizes) for result in results), (0,) * len(results)
        return results.unflatten(0, sizes), 0


class _ModelByModel(_OutsideVmap):
    @staticmethod
    def vmap(
        info: Any, in_dims: tuple[int | None, ...], function: Callable[..., Tensor], *values: Tensor
    ) -> tuple[Tensor, int]:  # Any: torch's own
        arguments = [
            [
                value if axis is None else value.select(axis, model)
                for value, axis in zip(values, in_dims[1:], strict=True)
            ]
            for model in range(info.batch_size)
        ]
        return torch.stack([function(*own) for own in arguments]), 0
