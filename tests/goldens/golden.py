"""Shared parts of the golden tests: a file of arrays, and a program in archlang with its weights."""

import json
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

import archlang
from archlang.backend import halting_loops
from archlang.backend.architecture import Architecture
from archlang.backend.runtime.halting import HaltingBlock
from tests.shipped_models import library_page

TOLERANCE = 2e-5
Weights = dict[str, str | Tensor]
"""the name of an array or a tensor made of arrays, for each parameter"""


def page(name: str) -> str:
    """Returns the text of a page of the library's models."""
    return library_page(name).read_text(encoding="utf-8")


class Golden:
    """The arrays of one golden file as tensors; floating-point arrays are converted to `dtype`. A name has one tensor,
    so that gradients can be asked for by name; inputs (`in.`) and parameters (`p.`, `p_`) require them."""

    def __init__(self, path: Path, arrays: Mapping[str, np.ndarray], dtype: torch.dtype) -> None:
        self.path = path
        self.arrays = dict(arrays)
        self.dtype = dtype
        self._tensors: dict[str, Tensor] = {}

    @property
    def name(self) -> str:
        return self.path.stem

    def __contains__(self, name: str) -> bool:
        return name in self.arrays

    def __getitem__(self, name: str) -> Tensor:
        if name not in self._tensors:
            array = torch.from_numpy(self.arrays[name])
            if array.is_floating_point():
                array = array.to(self.dtype).requires_grad_(name.startswith(("in.", "p.", "p_")))
            self._tensors[name] = array
        return self._tensors[name]

    def number(self, name: str) -> int:
        return int(self.arrays[name])

    @property
    def settings(self) -> dict[str, Any]:
        """The settings of the case, stored as JSON."""
        settings: dict[str, Any] = json.loads(str(self.arrays["cfg"]))
        return settings

    def names(self, prefix: str) -> list[str]:
        """Returns the names that begin with `prefix`, without the prefix."""
        return [name.removeprefix(prefix) for name in self.arrays if name.startswith(prefix)]

    def gradients(self, objective: Tensor, names: Iterable[str], given: Mapping[str, Tensor] = {}) -> dict[str, Tensor]:
        """Returns the gradients in `given` tensors, or in arrays named without `p.` or `in.`; zeros where none is."""
        starts = ("p.", "in.", "")
        leaves = {
            name: given[name] if name in given else next(self[start + name] for start in starts if start + name in self)
            for name in names
        }
        gradients = torch.autograd.grad(
            objective, list(leaves.values()), retain_graph=True, allow_unused=True, materialize_grads=True
        )
        return dict(zip(leaves, gradients, strict=True))


def loaded(text: str, model: str | None = None, **statics: Any) -> Architecture:
    """Returns a model of a program."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "program.arch"
        path.write_text(text, encoding="utf-8")
        return archlang.load(path, model, **statics)


class Program:
    """A program compiled from its text, with weights that are functions of the arrays of a golden file.

    `weights` must name exactly the module's parameters (`ndr_layer.attention.query.weight`), so no parameter keeps its
    random initial value."""

    def __init__(
        self, text: str, golden: Golden, weights: Mapping[str, str | Tensor], model: str | None = None, **statics: Any
    ) -> None:
        self.module = loaded(text, model, **statics).to(golden.dtype).eval()
        set_weights(self.module, golden, weights)

    def __call__(self, *fields: Tensor, **lengths: Tensor) -> Tensor:
        """Runs the module; `lengths` by field name."""
        result: Tensor = self.module(*fields, lengths=lengths or None)
        return result


def set_weights(module: Architecture, golden: Golden, weights: Mapping[str, str | Tensor]) -> None:
    """Puts tensors into the places of a module's parameters, as `torch.func.functional_call` does for one call:
    gradients are those of the golden arrays."""
    parameters = dict(module.named_parameters())
    assert set(weights) == set(parameters), sorted(set(weights) ^ set(parameters))
    for name, parameter in parameters.items():
        source = weights[name]
        array = golden[source] if isinstance(source, str) else source
        assert array.numel() == parameter.numel(), f"{name}: {tuple(parameter.shape)} of {tuple(array.shape)}"
        owner, _, own = name.rpartition(".")
        module.get_submodule(owner)._parameters[own] = array.reshape(parameter.shape)  # type: ignore[assignment]


# The names of a file are patterns with a place for `w` or `b`.


def pair(ours: str, theirs: str, letters: Sequence[str] = "wb") -> Weights:
    """Returns the weight and the bias of a linear map or a norm."""
    return {f"{ours}.{kind}": theirs.format(letter) for kind, letter in zip(("weight", "bias"), letters, strict=True)}


def cell(ours: str, theirs: str) -> Weights:
    """Returns the weights of a step that maps its input by `linear` and its state by `linear_2`."""
    return pair(f"{ours}.linear", f"{theirs}_ih") | pair(f"{ours}.linear_2", f"{theirs}_hh")


def network(ours: str, theirs: str, ending: str = "_l0") -> Weights:
    """Returns the weights of a layer of torch's recurrent networks."""
    kinds = [(kind, way) for kind in ("weight", "bias") for way in ("ih", "hh")]
    return {f"{ours}.{kind}_{way}{ending}": f"{theirs.format(kind[0])}_{way}" for kind, way in kinds}


# Intermediate results


class Calls(NamedTuple):
    """The arguments and the results of a block's calls."""

    inputs: list[tuple[Any, ...]]  # Any: of every type
    words: list[dict[str, Any]]
    results: list[Any]


def watch(block: nn.Module) -> Calls:
    """Records all further calls of a block."""
    calls = Calls([], [], [])

    def record(block: nn.Module, inputs: tuple[Any, ...], words: dict[str, Any], result: Any) -> None:
        calls.inputs.append(inputs)
        calls.words.append(words)
        calls.results.append(result)

    block.register_forward_hook(record, with_kwargs=True)
    return calls


def halting_block(module: Architecture) -> HaltingBlock:
    (block,) = (child for child in module.modules() if isinstance(child, HaltingBlock))
    return block


def watch_halting(module: Architecture) -> list[list[Any]]:
    """Records the states of the only halting block: of each further run of its loop, at the start and by step."""
    block, runs = halting_block(module), list[list[Any]]()
    start, advance = block.start, block.advance
    for loop in halting_loops(module):
        loop.compact = False  # so that halting states contain all samples

    def recorded_start(*inputs: Any) -> Any:
        runs.append([start(*inputs)])
        return runs[-1][0]

    def recorded_advance(*inputs: Any) -> Any:
        runs[-1].append(advance(*inputs))
        return runs[-1][-1]

    block.start, block.advance = recorded_start, recorded_advance  # type: ignore[method-assign, assignment]
    return runs


def close(golden: Golden, actual: Tensor, name: str, tolerance: float = TOLERANCE, where: Tensor | None = None) -> None:
    """Asserts that a result equals an array of the file to an absolute tolerance, at the positions where `where` is
    true."""
    expected = golden[name].detach()
    assert actual.numel() == expected.numel(), f"{name}: {tuple(actual.shape)} instead of {tuple(expected.shape)}"
    actual = actual.detach().reshape(expected.shape)
    if where is not None:
        actual, expected = actual[where], expected[where]
    message = partial("{}: {}".format, name)
    torch.testing.assert_close(actual, expected, atol=tolerance, rtol=0, check_dtype=False, msg=message)


def relatively_close(golden: Golden, actual: Tensor, name: str, tolerance: float) -> None:
    """As `close`, with a tolerance relative to the array's largest absolute value: for gradients."""
    largest = float(golden[name].abs().max()) if golden[name].numel() else 0.0
    close(golden, actual, name, tolerance * max(largest, 1e-30))


def gradients_close(
    golden: Golden, objective: Tensor, prefix: str = "grad.", tolerance: float = 2e-5, given: Mapping[str, Tensor] = {}
) -> None:
    """Asserts that the gradients of an objective equal the arrays of the file with their names."""
    names = golden.names(prefix)
    assert names
    for name, gradient in golden.gradients(objective, names, given).items():
        relatively_close(golden, gradient, f"{prefix}{name}", tolerance)


def output_close(golden: Golden, output: Tensor) -> None:
    """Compares the output of a file, and all gradients of its sum with the file's weights."""
    close(golden, output, "out.o")
    gradients_close(golden, (output * golden["obj.r_o"]).sum())
