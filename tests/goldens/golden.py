"""What the golden tests share: one file of arrays, and a program in archlang that has taken its weights."""

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

import archlang
from archlang.backend.architecture import Architecture


class Golden:
    """The arrays of one golden file as tensors; those with fractions in the precision that is asked for."""

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
        """What follows `prefix` in the names that begin with it."""
        return [name.removeprefix(prefix) for name in self.arrays if name.startswith(prefix)]


class Program:
    """A program compiled from its text, with the weights of a golden file.

    `weights` maps every parameter of the module (`ndr_layer.attention.query.weight`) to the array that holds it, or to
    a tensor made of several. A parameter without one, or a name without a parameter, is an error: nothing may keep the
    value that it was drawn with."""

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
        """An array of the file, and what was computed, to an absolute tolerance; only where `where` is true."""
        close(self.golden, actual, name, tolerance, where)

    def gradients(self, objective: Tensor, extra: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """The gradient of every array that is a parameter, and of the `extra` leaves; zeros where there is none. An
        array that several parameters were made of gets the sum."""
        leaves = {name: parameter for name, parameter in self.module.named_parameters() if name in self.arrays}
        tensors = [*leaves.values(), *extra.values()]
        found = torch.autograd.grad(objective, tensors, allow_unused=True, materialize_grads=True)
        result: dict[str, Tensor] = {}
        for name, gradient in zip([*(self.arrays[name] for name in leaves), *extra], found, strict=True):
            result[name] = result[name] + gradient.reshape(result[name].shape) if name in result else gradient
        return result


def close(golden: Golden, actual: Tensor, name: str, tolerance: float, where: Tensor | None = None) -> None:
    """An array of the file, and what was computed, to an absolute tolerance; only where `where` is true, and where the
    array is a number: padding that was added behind a case has results that nobody knows."""
    expected = golden[name]
    assert actual.numel() == expected.numel(), f"{name}: {tuple(actual.shape)} beside {tuple(expected.shape)}"
    actual = actual.detach().reshape(expected.shape)
    if where is not None:
        actual, expected = actual[where], expected[where]
    known = ~expected.isnan()
    actual, expected = actual[known], expected[known]
    said = partial("{}: {}".format, name)
    torch.testing.assert_close(actual, expected, atol=tolerance, rtol=0, check_dtype=False, msg=said)


def relatively_close(golden: Golden, actual: Tensor, name: str, tolerance: float) -> None:
    """The same, with a tolerance relative to the array's largest number: for gradients."""
    largest = float(golden[name].abs().max()) if golden[name].numel() else 0.0
    close(golden, actual, name, tolerance * max(largest, 1e-30))
