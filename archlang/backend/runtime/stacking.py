"""Models of one architecture that are computed as one, by `torch.func.vmap` over their stacked weights: what code that
vmap cannot see through must do then."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from jaxtyping import Bool
from torch import Tensor

_together = False


@contextmanager
def as_one() -> Iterator[None]:
    """Inside, models are computed together."""
    global _together
    before, _together = _together, True
    try:
        yield
    finally:
        _together = before


def is_together() -> bool:
    return _together


def anywhere(mark: Bool[Tensor, "*_"]) -> Bool[Tensor, "*_"]:
    """What is marked in any of the models, as a value of them all: code may depend on it."""
    if not _together:
        return mark
    found: Tensor = _Anywhere.apply(mark)  # type: ignore[no-untyped-call]
    return found


def in_one_batch(function: Callable[..., Any], *values: Tensor) -> Any:  # Any: a tensor or several
    """`function(*values)`, whose tensors all have the batch as their first axis; together, it is called once, with the
    batches of all models behind each other."""
    return _InOneBatch.apply(function, *values) if _together else function(*values)  # type: ignore[no-untyped-call]


def one_by_one(function: Callable[..., Tensor], *values: Tensor) -> Tensor:
    """`function(*values)`; together, it is called for one model after another, as torch computes no stacked ones."""
    if not _together:
        return function(*values)
    found: Tensor = _OneByOne.apply(function, *values)  # type: ignore[no-untyped-call]
    return found


class _Anywhere(torch.autograd.Function):
    """As vmap rules see the values of all models, it is one; alone, a mark is as it is."""

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


class _Outside(torch.autograd.Function):
    """Calls a function outside of vmap; its gradients are those of the function itself."""

    @staticmethod
    def forward(function: Callable[..., Any], *values: Tensor) -> Any:
        raise AssertionError("models are together, but not in vmap")

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        pass


class _InOneBatch(_Outside):
    @staticmethod
    def vmap(
        info: Any, in_dims: tuple[int | None, ...], function: Callable[..., Any], *values: Tensor
    ) -> tuple[Any, Any]:  # Any: torch's own, and as the function
        whole = [
            value[None].expand(info.batch_size, *value.shape) if axis is None else value.movedim(axis, 0)
            for value, axis in zip(values, in_dims[1:], strict=True)
        ]
        found = function(*(value.flatten(0, 1) for value in whole))
        if isinstance(found, tuple):
            return tuple(one.unflatten(0, whole[0].shape[:2]) for one in found), (0,) * len(found)
        return found.unflatten(0, whole[0].shape[:2]), 0


class _OneByOne(_Outside):
    @staticmethod
    def vmap(
        info: Any, in_dims: tuple[int | None, ...], function: Callable[..., Tensor], *values: Tensor
    ) -> tuple[Tensor, int]:  # Any: torch's own
        each = [
            [
                value if axis is None else value.select(axis, model)
                for value, axis in zip(values, in_dims[1:], strict=True)
            ]
            for model in range(info.batch_size)
        ]
        return torch.stack([function(*own) for own in each]), 0
