"""Compares the results of a user's own blocks with their signatures, at each call.

Without it, a result of a wrong shape fails in a later block, or nowhere."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from archlang.backend import mistakes
from archlang.graph.graph import Instance, Region
from archlang.graph.operations import Call
from archlang.types import Dim, Type


@dataclass(frozen=True)
class CallTypes:
    """The types of a call: those of its arguments, and that of its result."""

    arguments: tuple[Type, ...]
    result: Type


def calls_of(region: Region) -> Iterator[tuple[str, CallTypes]]:
    """Yields the instance and the types of each call in a region, except in inner regions."""
    types = region.types()
    for node in region.nodes:
        if isinstance(node.operation, Call):
            yield node.operation.instance, CallTypes(tuple(types[source] for source in node.arguments), node.type)


def calls_by_instance(region: Region) -> Mapping[str, list[CallTypes]]:
    """Returns the types of every call in a region and in its loops, by the path of its instance."""
    calls: dict[str, list[CallTypes]] = defaultdict(list)
    for inner in region.regions():
        for path, call in calls_of(inner):
            calls[path].append(call)
    return calls


@dataclass(frozen=True)
class ResultCheck:
    """A hook after each call of a block. A class, because modules with their hooks can be pickled."""

    instance: Instance
    calls: Sequence[CallTypes]

    def __call__(self, block: nn.Module, arguments: tuple[object, ...], result: object) -> None:
        """Raises:
        BlockError: the shape or the type of the result is not that of the signature."""
        if not self.calls or torch.compiler.is_compiling():  # shapes may be symbols
            return
        if self.instance.grows and isinstance(result, tuple) and len(result) == 2:
            result = result[0]
        shapes = [(call.result, _expected_shape(call, arguments)) for call in self.calls]
        wrong = [(kind, shape) for kind, shape in shapes if shape is not None and not _has_type(result, kind, shape)]
        if wrong and len(wrong) == len(shapes):
            raise mistakes.wrong_result(self.instance, *wrong[0], result)


def _expected_shape(call: CallTypes, arguments: Sequence[object]) -> list[int | None] | None:
    """The shape of the result for these arguments, None for an unknown size; None if they are not those of the call."""
    sizes: dict[str, Dim] = {}
    batch: int | None = None
    if call.result.name in ("chunks", "number") or len(arguments) < len(call.arguments):
        return None
    for kind, value in zip(call.arguments, arguments, strict=False):
        if not isinstance(value, Tensor) or kind.name in ("chunks", "number"):
            continue
        axes = kind.tensor_dims
        if value.dim() != 1 + len(axes):
            return None
        batch = value.shape[0]
        for dim, size in zip(axes, value.shape[1:], strict=True):
            if dim.symbol is not None and sizes.setdefault(dim.symbol, Dim.of(size)) != Dim.of(size):
                return None  # some rows of a map
    return [batch, *(_size(dim, sizes) for dim in call.result.tensor_dims)]


def _size(dim: Dim, sizes: Mapping[str, Dim]) -> int | None:
    size = dim.substitute(sizes).constant
    return None if size is None else max(0, size)


def _has_type(result: object, kind: Type, shape: Sequence[int | None]) -> bool:
    if not isinstance(result, Tensor) or result.dim() != len(shape):
        return False
    if result.is_floating_point() is (kind.name == "tokens"):
        return False
    return all(size is None or size == actual for size, actual in zip(shape, result.shape, strict=True))
