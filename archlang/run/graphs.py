"""Passes through a module as CUDA graphs: one launch each way, in place of one for every operation."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from jaxtyping import Int, Shaped
from torch import Tensor, nn

from archlang.backend.loops import halting_loops
from archlang.run import mistakes

Call = Callable[..., Tensor]
Capture = Callable[[nn.Module, tuple[Tensor, ...]], Call]
# A shape of batches that has come so often gets a graph; so many shapes do.
_OFTEN = 3
_MOST = 32


def capture(module: nn.Module, samples: tuple[Tensor, ...]) -> Call:
    """The module for inputs of these shapes, with its gradients."""
    # Of some weights, as of a column that is dropped, there may be no gradient.
    # Any: in torch a module or one of several callables
    graphed: Any = torch.cuda.make_graphed_callables(module, samples, allow_unused_input=True)
    found: Call = graphed
    return found


def make_graphs(module: nn.Module, device: torch.device, precision: str, processes: int = 1) -> Graphs:
    """The module as graphs.

    Raises:
        RunError: the device has none, or the module cannot become one."""
    if device.type != "cuda":
        raise mistakes.no_graphs(f"`{device.type}` has none")
    if precision != "32" or processes > 1:
        raise mistakes.no_graphs("they are of one device, and of precision 32")
    if next(halting_loops(module), None) is not None:
        raise mistakes.no_graphs("a halting loop ends by what it computes, and a graph goes on as it began")
    return Graphs(module)


class Graphs:
    """A module in training, called as ever; for each shape of its batches that comes often it becomes a graph of its
    own. Batches of sorted lengths have few shapes."""

    def __init__(self, module: nn.Module, capture: Capture = capture) -> None:
        self._module = module
        self._capture = capture
        self._seen: Counter[tuple[object, ...]] = Counter()
        self._graphs: dict[tuple[object, ...], Call] = {}

    def __call__(
        self, *fields: Shaped[Tensor, "b _n *_d"], lengths: Int[Tensor, " b"] | Mapping[str, Int[Tensor, " b"]]
    ) -> Tensor:
        names = tuple(lengths) if isinstance(lengths, Mapping) else ()
        given = (*fields, *(lengths.values() if isinstance(lengths, Mapping) else (lengths,)))
        key = (names, *(one.shape for one in given))
        self._seen[key] += 1
        if key not in self._graphs:
            if self._seen[key] < _OFTEN or len(self._graphs) == _MOST:
                result: Tensor = self._module(*fields, lengths=lengths)
                return result
            # A graph reads its inputs where those of its samples were.
            samples = tuple(one.clone() for one in given)
            self._graphs[key] = self._capture(_Positional(self._module, len(fields), names), samples)
        return self._graphs[key](*given)


class _Positional(nn.Module):
    """The module as graphs are taken of it: its inputs are tensors alone."""

    def __init__(self, module: nn.Module, fields: int, names: Sequence[str]) -> None:
        super().__init__()
        self.module = module
        self._fields = fields
        self._names = names

    def forward(self, *given: Tensor) -> Tensor:
        fields, lengths = given[: self._fields], given[self._fields :]
        of: Tensor | dict[str, Tensor] = dict(zip(self._names, lengths, strict=True)) if self._names else lengths[0]
        result: Tensor = self.module(*fields, lengths=of)
        return result
