"""Shared parts of the golden tests: a file of arrays, and a program in archlang with its weights."""

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

import archlang
from archlang.backend.architecture import Architecture
from archlang.names.library import library_file


def page(name: str) -> str:
    """Returns the text of a page of the library's models."""
    path = library_file(f"archlang.models.{name}")
    assert path is not None
    return path.read_text(encoding="utf-8")


class Golden:
    """The arrays of one golden file as tensors; floating-point arrays are converted to `dtype`."""

    def __init__(self, path: Path, arrays: Mapping[str, np.ndarray], dtype: torch.dtype) -> None:
        self.path = path
        self.arrays = dict(arrays)
        self.dtype = dtype

    @property
    def name(self) -> str:
        return self.path.stem

    def __contains__(self, name: str) -> bool:
        return name in self.arrays

    def __getitem__(self, name: str) -> Tensor:
        array = torch.from_numpy(self.arrays[name])
        return array.to(self.dtype) if array.is_floating_point() else array

    def number(self, name: str) -> int:
        return int(self.arrays[name])

    def names(self, prefix: str) -> list[str]:
        """Returns the names that begin with `prefix`, without the prefix."""
        return [name.removeprefix(prefix) for name in self.arrays if name.startswith(prefix)]


class Program:
    """A program compiled from its text, with the weights of a golden file.

    `weights` maps every parameter of the module (`ndr_layer.attention.query.weight`) to the name of its array, or to a
    tensor made of several arrays. It must name exactly the module's parameters, so no parameter keeps its random
    initial value."""

    def __init__(
        self,
        text: str,
        golden: Golden,
        weights: Mapping[str, str | Tensor],
        folder: Path,
        model: str | None = None,
        **statics: Any,
    ) -> None:
        path = folder / "program.arch"
        path.write_text(text, encoding="utf-8")
        self.golden = golden
        self.module: Architecture = archlang.load(path, model, **statics).to(golden.dtype).eval()
        parameters = dict(self.module.named_parameters())
        assert set(weights) == set(parameters), sorted(set(weights) ^ set(parameters))
        self.arrays: dict[str, str] = {}
        for name, source in weights.items():
            parameter = parameters[name]
            array = golden[source] if isinstance(source, str) else source
            assert array.numel() == parameter.numel(), f"{name}: {tuple(parameter.shape)} of {tuple(array.shape)}"
            parameter.data.copy_(array.reshape(parameter.shape))
            if isinstance(source, str):
                self.arrays[name] = source

    def __call__(self, *fields: Tensor, **lengths: Tensor) -> Tensor:
        """Runs the module; `lengths` by field name."""
        result: Tensor = self.module(*fields, lengths=lengths or None)
        return result

    def close(self, actual: Tensor, name: str, tolerance: float, where: Tensor | None = None) -> None:
        """Asserts that a result equals an array of the file; see the function `close`."""
        close(self.golden, actual, name, tolerance, where)

    def gradients(self, objective: Tensor, extra: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Returns the gradients by array name, and those of the `extra` leaves; zeros if a leaf has no gradient. An
        array that several parameters use gets the sum of their gradients."""
        leaves = {name: parameter for name, parameter in self.module.named_parameters() if name in self.arrays}
        tensors = [*leaves.values(), *extra.values()]
        gradients = torch.autograd.grad(objective, tensors, allow_unused=True, materialize_grads=True)
        result: dict[str, Tensor] = {}
        for name, gradient in zip([*(self.arrays[name] for name in leaves), *extra], gradients, strict=True):
            result[name] = result[name] + gradient.reshape(result[name].shape) if name in result else gradient
        return result


def close(golden: Golden, actual: Tensor, name: str, tolerance: float, where: Tensor | None = None) -> None:
    """Asserts that a result equals an array of the file to an absolute tolerance, at the positions where `where` is
    true. Positions where the array is NaN are skipped: the results at added padding are unknown."""
    expected = golden[name]
    assert actual.numel() == expected.numel(), f"{name}: {tuple(actual.shape)} instead of {tuple(expected.shape)}"
    actual = actual.detach().reshape(expected.shape)
    if where is not None:
        actual, expected = actual[where], expected[where]
    known = ~expected.isnan()
    actual, expected = actual[known], expected[known]
    message = partial("{}: {}".format, name)
    torch.testing.assert_close(actual, expected, atol=tolerance, rtol=0, check_dtype=False, msg=message)


def relatively_close(golden: Golden, actual: Tensor, name: str, tolerance: float) -> None:
    """As `close`, with a tolerance relative to the array's largest absolute value: for gradients."""
    largest = float(golden[name].abs().max()) if golden[name].numel() else 0.0
    close(golden, actual, name, tolerance * max(largest, 1e-30))


def gradients_close(
    golden: Golden, objective: Tensor, leaves: Mapping[str, Tensor], prefix: str = "grad.", tolerance: float = 2e-5
) -> None:
    """Asserts that the gradients of an objective in leaves equal the arrays of the file with their names."""
    names = [name for name in golden.names(prefix) if name in leaves]
    assert names
    sources = [leaves[name] for name in names]
    gradients = torch.autograd.grad(objective, sources, allow_unused=True, materialize_grads=True, retain_graph=True)
    for name, gradient in zip(names, gradients, strict=True):
        relatively_close(golden, gradient, f"{prefix}{name}", tolerance)
