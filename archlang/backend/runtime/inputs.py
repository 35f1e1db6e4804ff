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
"""The number of real positions of each sample."""

_INTEGER_DTYPES = (torch.int64, torch.int32)


@dataclass(frozen=True)
class InputField:
    """The expected form of a field of a model.

    `sizes` are those of the axes behind the batch: a number, the name of a length, or a sum of lengths. `length` is the
    first length. Tokens have a `vocabulary`. `is_tensor` is false for numbers and chunks, which no task has."""

    name: str
    type: Type
    sizes: tuple[int | str | Dim, ...]
    length: Dim | None
    vocabulary: int | None
    is_tensor: bool

    @staticmethod
    def of(value: Input) -> InputField:
        kind = value.type
        tokens = kind.name == "tokens"
        dims = kind.dims[:-1] if tokens else kind.dims
        vocabulary = kind.feature.constant if tokens and kind.feature is not None else None
        length = kind.lengths[0] if kind.lengths else None
        is_tensor = kind.name not in ("number", "chunks")
        return InputField(value.name, kind, tuple(map(_size, dims)), length, vocabulary, is_tensor)


def _size(dim: Dim) -> int | str | Dim:
    if dim.constant is not None:
        return dim.constant
    return dim if dim.symbol is None else dim.symbol


# Fields


def check_fields(model: str, fields: Sequence[InputField], values: Sequence[object]) -> None:
    """Checks the values of fields.

    Raises:
        TypeError: a field is no tensor, or has another dtype.
        ValueError: a shape or a token does not fit the type of a field."""
    sizes: dict[str, int] = {}  # the padded size of each length
    sums: list[tuple[InputField, Dim, int]] = []
    first: tuple[str, int, torch.device] | None = None
    for field, value in zip(fields, values, strict=True):
        if not field.is_tensor:
            continue
        batch, *counts = _tensor(model, field, value).shape
        assert isinstance(value, Tensor)
        if first is None:
            first = field.name, batch, value.device
        elif batch != first[1]:
            raise mistakes.different_batches(model, first[0], first[1], field.name, batch)
        elif value.device != first[2]:
            raise mistakes.different_devices(model, first[0], first[2], field.name, value.device)
        for index, (expected, size) in enumerate(zip(field.sizes, counts, strict=True)):
            if isinstance(expected, str):
                if sizes.setdefault(expected, size) != size:
                    origin = next(earlier.name for earlier in fields if expected in earlier.sizes)
                    raise mistakes.different_sizes(model, expected, origin, sizes[expected], field.name, size)
            elif isinstance(expected, Dim):
                sums.append((field, expected, size))
            elif expected != size:
                is_length = field.type.axes[index] is Axis.LENGTH
                raise mistakes.wrong_size(model, field.name, field.type, expected, size, is_length)
    for field, length, size in sums:
        # A sum of lengths can be checked only if each of them is the length of a field.
        if length.names <= sizes.keys() and (total := _evaluated(length, sizes)) != size:
            raise mistakes.wrong_size(model, field.name, field.type, total, size, is_length=True)


def _tensor(model: str, field: InputField, value: object) -> Tensor:
    """The value of a field, after checks of its dtype, its axes and its tokens."""
    if not isinstance(value, Tensor):
        raise mistakes.not_a_tensor(model, field.name, value)
    tokens = field.type.name == "tokens"
    if value.dtype not in _INTEGER_DTYPES if tokens else not value.is_floating_point():
        raise mistakes.wrong_dtype(model, field.name, field.type, tokens, value.dtype)
    if value.dim() != 1 + len(field.sizes):
        raise mistakes.wrong_axes(model, field.name, field.type, field.sizes, tuple(value.shape))
    if field.vocabulary is not None:
        check_range(value, 0, field.vocabulary - 1, mistakes.not_a_token, model, field.name, field.vocabulary)
    return value


def _evaluated(length: Dim, sizes: Mapping[str, int]) -> int:
    """The value of a length, at least 0, for the sizes of its names."""
    value = length.substitute({name: Dim.of(size) for name, size in sizes.items()}).constant
    assert value is not None
    return max(0, value)


def check_range(
    values: Shaped[Tensor, "*_"], least: int, most: int, mistake: Callable[..., Exception], *facts: object
) -> None:
    """Raises `mistake(value, *facts)` for a value outside of the range. On a GPU, the device asserts the range, so that
    the call does not wait. Values are not checked while torch traces or transforms a call, or dispatches it to a mode.

    Raises:
        Exception: the mistake."""
    # torch has no public way to ask for active dispatch modes and functorch transforms.
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
    fields: Sequence[InputField],
    values: Sequence[Shaped[Tensor, "b *_"]],
    lengths: Lengths | Mapping[str, Lengths] | None,
) -> dict[str, Int[Tensor, " b"]]:
    """Checks the lengths of fields. Returns them by the names of the fields, [b] each, on the device of the field.

    Raises:
        TypeError: lengths are no integers, or do not name their field.
        ValueError: the number of lengths is not the batch size, or a length is below 0 or above the padded size."""
    if lengths is None:
        return {}
    if isinstance(lengths, Tensor) or not isinstance(lengths, Mapping):
        shared = [index for index, field in enumerate(fields) if field.length is not None] or range(len(fields))
        if len({fields[index].length for index in shared}) != 1:
            raise mistakes.unnamed_lengths(model, [fields[index].name for index in shared])
        first = shared[0]
        return dict.fromkeys(
            (fields[index].name for index in shared), _lengths(model, fields[first], values[first], lengths)
        )
    names = [field.name for field in fields]
    if unknown := lengths.keys() - set(names):
        raise mistakes.unknown_fields(model, map(str, unknown), names)
    checked = {
        field.name: _lengths(model, field, value, lengths[field.name])
        for field, value in zip(fields, values, strict=True)
        if field.name in lengths
    }
    if len(checked) > 1:
        _check_shared(model, fields, checked)
    return checked


def _lengths(model: str, field: InputField, value: Tensor, lengths: object) -> Tensor:
    if field.length is None:
        raise mistakes.field_without_positions(model, field.name, field.type)
    padded = value.shape[1]
    least = padded if isinstance(field.sizes[0], int) else 0
    return sample_lengths(model, f"the lengths of `{field.name}`", lengths, value, least, padded)


def sample_lengths(
    model: str, argument: str, lengths: object, samples: Shaped[Tensor, "b *_"], least: int = 0, most: int | None = None
) -> Int[Tensor, " b"]:
    """Checks a length for each sample, from `least` to `most`. Returns them on the device of the samples.

    Raises:
        TypeError: they are no integers.
        ValueError: there is another number of them, or one is too small or too large."""
    tensor = _integer_tensor(lengths)
    if tensor is None:
        raise mistakes.not_lengths(lengths, model, argument)
    if tensor.shape != samples.shape[:1]:
        raise mistakes.wrong_lengths(model, argument, len(samples), [*tensor.shape])
    largest = torch.iinfo(tensor.dtype).max if most is None else most
    check_range(tensor, least, largest, mistakes.wrong_length, model, argument, least, most)
    return tensor.to(samples.device)


def _integer_tensor(value: object) -> Tensor | None:
    if isinstance(value, Tensor):
        return None if value.is_floating_point() or value.is_complex() or value.dtype == torch.bool else value
    if not isinstance(value, Sequence) or isinstance(value, str) or any(isinstance(item, bool) for item in value):
        return None
    try:
        return torch.tensor([operator.index(item) for item in value], dtype=torch.int64)
    except (TypeError, ValueError, RuntimeError):  # the last two: beyond 64 bits
        return None


def _check_shared(model: str, fields: Sequence[InputField], lengths: Mapping[str, Tensor]) -> None:
    """Checks that fields which share a length have equal lengths."""
    owners: dict[Dim, str] = {}
    for field in fields:
        if field.name in lengths and field.length is not None:
            owner = owners.setdefault(field.length, field.name)
            if owner != field.name:
                difference = lengths[owner] - lengths[field.name]
                check_range(difference, 0, 0, mistakes.different_lengths, model, str(field.length), owner, field.name)
