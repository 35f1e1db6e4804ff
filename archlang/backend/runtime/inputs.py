"""Checks the tensors that a model is called with."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Int, Shaped
from torch import Tensor

from archlang.backend import mistakes
from archlang.graph.graph import Input
from archlang.types import Axis, Dim, Type

Lengths = Int[Tensor, " b"] | Sequence[int]
"""How many positions of each sample are real."""

_INTEGERS = (torch.int64, torch.int32)


@dataclass(frozen=True)
class Field:
    """What a field of a model must be. `sizes` are those of the axes behind the batch: a number, the name of a length,
    or a sum of lengths. `length` is the first length. Tokens have a `vocabulary`. `is_tensor` excludes numbers and
    chunks, which no task has."""

    name: str
    type: Type
    sizes: tuple[int | str | Dim, ...]
    length: Dim | None
    vocabulary: int | None
    is_tensor: bool

    @staticmethod
    def of(value: Input) -> Field:
        kind = value.type
        tokens = kind.name == "tokens"
        dims = kind.dims[:-1] if tokens else kind.dims
        vocabulary = kind.feature.constant if tokens and kind.feature is not None else None
        length = kind.lengths[0] if kind.lengths else None
        is_tensor = kind.name not in ("number", "chunks")
        return Field(value.name, kind, tuple(map(_size, dims)), length, vocabulary, is_tensor)


def _size(dim: Dim) -> int | str | Dim:
    if dim.constant is not None:
        return dim.constant
    return dim if dim.symbol is None else dim.symbol


# Fields


def check_fields(model: str, fields: Sequence[Field], values: Sequence[object]) -> dict[str, int]:
    """The sizes of lengths by their names, as padded.

    Raises:
        TypeError: a field is no tensor, or one of another dtype.
        ValueError: a shape or a token does not fit the type of a field."""
    sizes: dict[str, int] = {}
    sums: list[tuple[Field, Dim, int]] = []
    first: tuple[str, int, torch.device] | None = None
    for field, value in zip(fields, values, strict=True):
        if not field.is_tensor:
            continue
        batch, *counts = _tensor(model, field, value).shape
        assert isinstance(value, Tensor)
        if first is None:
            first = field.name, batch, value.device
        elif batch != first[1]:
            raise mistakes.other_batch(model, first[0], first[1], field.name, batch)
        elif value.device != first[2]:
            raise mistakes.other_device(model, first[0], first[2], field.name, value.device)
        for index, (wanted, size) in enumerate(zip(field.sizes, counts, strict=True)):
            if isinstance(wanted, str):
                if sizes.setdefault(wanted, size) != size:
                    origin = next(one.name for one in fields if wanted in one.sizes)
                    raise mistakes.other_length(model, wanted, origin, sizes[wanted], field.name, size)
            elif isinstance(wanted, Dim):
                sums.append((field, wanted, size))
            elif wanted != size:
                counted = field.type.axes[index] is Axis.LENGTH
                raise mistakes.wrong_size(model, field.name, field.type, wanted, size, counted)
    for field, length, size in sums:
        # A sum of lengths that no field has for itself says nothing.
        if length.names <= sizes.keys() and evaluated(length, sizes) != size:
            raise mistakes.wrong_size(model, field.name, field.type, evaluated(length, sizes), size, counted=True)
    return sizes


def _tensor(model: str, field: Field, value: object) -> Tensor:
    """A field whose dtype, axes and tokens are right."""
    if not isinstance(value, Tensor):
        raise mistakes.no_tensor(model, field.name, value)
    tokens = field.type.name == "tokens"
    if value.dtype not in _INTEGERS if tokens else not value.is_floating_point():
        raise mistakes.wrong_dtype(model, field.name, field.type, tokens, value.dtype)
    if value.dim() != 1 + len(field.sizes):
        raise mistakes.wrong_axes(model, field.name, field.type, field.sizes, tuple(value.shape))
    if field.vocabulary is not None:
        check_range(value, 0, field.vocabulary - 1, mistakes.no_token, model, field.name, field.vocabulary)
    return value


def evaluated(length: Dim, sizes: Mapping[str, int]) -> int:
    """The number that a length is."""
    value = length.substitute({name: Dim.of(size) for name, size in sizes.items()}).constant
    assert value is not None
    return max(0, value)


def check_range(
    values: Shaped[Tensor, "*_"], least: int, most: int, mistake: Callable[..., Exception], *facts: object
) -> None:
    """Raises the mistake, of a value outside of the range and of other facts. A GPU checks its values itself, and
    nothing waits for it. Values are not read while torch traces, transforms or records a call."""
    if (
        torch.compiler.is_compiling()
        or torch._C._len_torch_dispatch_stack()
        or torch._C._functorch.maybe_current_level() is not None
        or type(values) is not Tensor
    ):
        return
    if values.is_cuda:
        torch._assert_async(((values >= least) & (values <= most)).all(), str(mistake("a value", *facts)))
    elif values.is_cpu and values.numel():
        low, high = map(int, torch.aminmax(values))
        if low < least or high > most:
            raise mistake(low if low < least else high, *facts)


# Lengths


def check_lengths(
    model: str,
    fields: Sequence[Field],
    values: Sequence[Shaped[Tensor, "b *_"]],
    lengths: Lengths | Mapping[str, Lengths] | None,
) -> dict[str, Int[Tensor, " b"]]:
    """The lengths of fields by their names, on the device of the field.

    Raises:
        TypeError: lengths are no integers, or do not say of which field they are.
        ValueError: there are more or fewer of them than samples, or one is negative or beyond the padded length."""
    if lengths is None:
        return {}
    if isinstance(lengths, Tensor) or not isinstance(lengths, Mapping):
        if len(fields) != 1:
            raise mistakes.lengths_of_which(model, [field.name for field in fields])
        return {fields[0].name: _lengths(model, fields[0], values[0], lengths)}
    names = [field.name for field in fields]
    if unknown := lengths.keys() - set(names):
        raise mistakes.lengths_of_no_field(model, map(str, unknown), names)
    checked = {
        field.name: _lengths(model, field, value, lengths[field.name])
        for field, value in zip(fields, values, strict=True)
        if field.name in lengths
    }
    if len(checked) > 1:
        _check_shared(model, fields, checked)
    return checked


def _lengths(model: str, field: Field, value: Tensor, lengths: object) -> Tensor:
    if field.length is None:
        raise mistakes.lengths_of_no_positions(model, field.name, field.type)
    tensor = integers(lengths, mistakes.no_lengths, model, field.name)
    if tensor.shape != value.shape[:1]:
        raise mistakes.wrong_lengths(model, field.name, len(value), tuple(tensor.shape))
    padded = value.shape[1]
    least = padded if isinstance(field.sizes[0], int) else 0
    check_range(tensor, least, padded, mistakes.wrong_length, model, field.name, least, padded)
    return tensor.to(value.device)


def integers(value: object, mistake: Callable[..., Exception], *facts: object) -> Tensor:
    """A tensor of integers, of one or of a list of integers; for another value raises the mistake of it and of other
    facts."""
    if isinstance(value, Tensor):
        if value.is_floating_point() or value.is_complex() or value.dtype == torch.bool:
            raise mistake(value, *facts)
        return value
    if not isinstance(value, Sequence) or isinstance(value, str):
        raise mistake(value, *facts)
    try:
        if any(isinstance(one, bool) for one in value):
            raise mistake(value, *facts)
        return torch.tensor([operator.index(one) for one in value], dtype=torch.int64)
    except (TypeError, ValueError, RuntimeError):  # the last two: beyond 64 bits
        raise mistake(value, *facts) from None


def _check_shared(model: str, fields: Sequence[Field], lengths: Mapping[str, Tensor]) -> None:
    """Fields with one length have the same lengths."""
    owners: dict[Dim, str] = {}
    for field in fields:
        if field.name in lengths and field.length is not None:
            owner = owners.setdefault(field.length, field.name)
            if owner != field.name:
                apart = lengths[owner] - lengths[field.name]
                check_range(apart, 0, 0, mistakes.other_lengths, model, str(field.length), owner, field.name)
