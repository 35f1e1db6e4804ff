"""Exports shipped models at small sizes, and compares the files with the modules. Prints the table of docs/export.md.

    python -m benchmarks.exports [MODEL …]

Each file runs batches of 1 and 3 at lengths 2, 7, 64 and 257; tracing has seen a batch of 3 at length 7."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import onnxruntime
import torch
from torch import Tensor

from archlang.backend.architecture import Architecture
from archlang.export.formats import export
from archlang.export.traced import fields_with_lengths, input_names
from tests.shipped_models import SHIPPED, shipped_batch, shipped_model

SIZES = [(batch, length) for length in (2, 7, 64, 257) for batch in (1, 3)]
"""batches and their lengths"""


@dataclass(frozen=True)
class Row:
    """A file of a model: its largest difference from the module, its halting steps, its size in kB and, in seconds, the
    times of the export and of all batches."""

    model: str
    suffix: str
    difference: float
    steps: str
    size: float
    export_time: float
    run_time: float

    def __str__(self) -> str:
        numbers = (
            f"{self.difference:.1e} | {self.steps} | {self.size:.0f} | {self.export_time:.0f} | {self.run_time:.2f}"
        )
        return f"| `{self.model}` | `{self.suffix}` | {numbers} |"


def measure(name: str, suffix: str, folder: Path) -> Row:
    """Exports a shipped model to a folder, and runs the file."""
    module = shipped_model(name)
    path = folder / f"{name}{suffix}"
    start = time.perf_counter()
    export(module, path)
    export_time = time.perf_counter() - start
    run = _program(path) if suffix == ".pt2" else _session(path, module)
    difference, run_time, steps, equal = 0.0, 0.0, 0.0, True
    with torch.no_grad():
        for batch, length in SIZES:
            # A second field is two positions shorter.
            fields, lengths = shipped_batch(module, batch, max(length, 4) if len(module.program.inputs) > 1 else length)
            expected = module(*fields, lengths=lengths)
            values = [*fields, *(lengths[field.name] for field in fields_with_lengths(module))]
            start = time.perf_counter()
            result, *depth = run(values)
            run_time += time.perf_counter() - start
            difference = max(difference, float((result - expected).abs().max()))
            if depth and module.sample_depth is not None:
                equal &= torch.equal(depth[0], module.sample_depth)
                steps = max(steps, float(depth[0].max()))
    halting = "" if not steps else f"equal, at most {steps:.0f}" if equal else "different"
    return Row(name, suffix, difference, halting, path.stat().st_size / 1000, export_time, run_time)


def _program(path: Path) -> Callable[[Sequence[Tensor]], list[Tensor]]:
    program = torch.export.load(path).module()

    def run(values: Sequence[Tensor]) -> list[Tensor]:
        outputs = program(*values)
        return list(outputs) if isinstance(outputs, tuple) else [outputs]

    return run


def _session(path: Path, module: Architecture) -> Callable[[Sequence[Tensor]], list[Tensor]]:
    session = onnxruntime.InferenceSession(str(path))

    def run(values: Sequence[Tensor]) -> list[Tensor]:
        inputs = {name: value.numpy() for name, value in zip(input_names(module), values, strict=True)}
        return [torch.from_numpy(output) for output in session.run(None, inputs)]

    return run


def main(names: Sequence[str]) -> None:
    """Prints the table of some models, or of all."""
    print("| model | file | largest difference | halting steps | kB | export, s | 8 batches, s |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    with TemporaryDirectory() as folder:
        for name in names or SHIPPED:
            for suffix in (".pt2", ".onnx"):
                print(measure(name, suffix, Path(folder)), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
