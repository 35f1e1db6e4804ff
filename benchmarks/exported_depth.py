"""The time of an exported Gated Universal Transformer for a sample that halts early, and for one that halts late.

    python -m benchmarks.exported_depth

The calls of the two samples alternate, so that other load on the machine affects both."""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import torch
from torch import Tensor

from archlang.backend.architecture import Architecture
from archlang.export.formats import export
from benchmarks.exports import RUNNERS
from benchmarks.halting import MEAN, gut
from benchmarks.results_text import machine

_HEAD = """| file | steps | ms | steps | ms | time of the late sample / of the early one |
| --- | --- | --- | --- | --- | --- |"""
_ROUNDS = 15


def samples(module: Architecture, tokens: Tensor) -> tuple[Tensor, Tensor]:
    """Returns the samples of a batch that take the fewest and the most steps, as batches of one."""
    with torch.no_grad():
        module(tokens)
    steps = module.sample_depth
    assert steps is not None
    early, late = int(steps.argmin()), int(steps.argmax())
    return tokens[early : early + 1], tokens[late : late + 1]


def rows() -> Iterator[str]:
    """Yields a row of the table for each format."""
    module, batch = gut(MEAN)
    (name,) = module.program.fields
    pair = samples(module, batch)
    with TemporaryDirectory() as folder, torch.no_grad():
        for suffix, runner in RUNNERS.items():
            path = Path(folder, f"gut{suffix}")
            export(module, path)
            run = runner(path, module)
            times: list[list[float]] = [[], []]
            steps = [0.0, 0.0]
            for _ in range(_ROUNDS):
                for index, tokens in enumerate(pair):
                    start = time.perf_counter()
                    _, taken = run([tokens], {name: torch.tensor([tokens.shape[1]])})
                    times[index].append(1000 * (time.perf_counter() - start))
                    steps[index] = float(taken)
            early, late = map(statistics.median, times)
            yield (f"| `{suffix}` | {steps[0]:.0f} | {early:.1f} | {steps[1]:.0f} | {late:.1f} | {late / early:.2f} |")


def main() -> None:
    """Prints the table."""
    print(_HEAD)
    for row in rows():
        print(row, flush=True)
    print(f"\n_Measured with {machine()}._")


if __name__ == "__main__":
    main()
