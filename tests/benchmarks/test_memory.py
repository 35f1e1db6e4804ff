"""What a step needs at most, and what a forward pass keeps."""

from __future__ import annotations

import pytest
import torch

from benchmarks import processes
from benchmarks.memory import HEADS, saved_matrices

# 64 MiB are held, then 192 MiB more at once, of which nothing is left.
STEP = """
import torch
from benchmarks.memory import above
held = torch.ones(16 << 20)
print(above(lambda: [torch.ones(16 << 20) for _ in range(3)]))
"""


def test_the_peak_of_a_step_is_told_above_what_was_held_before() -> None:
    assert float(processes.run("-c", STEP)) == pytest.approx(192, abs=8)


def test_a_process_that_fails_is_told_with_what_it_printed() -> None:
    with pytest.raises(SystemExit, match="ended with 3:\nwhy"):
        processes.run("-c", "import sys; print('why'); sys.exit(3)")


def test_what_is_kept_is_counted_in_score_matrices_and_once() -> None:
    n = 16
    logits = torch.randn(1, HEADS, n, n, requires_grad=True)

    def forward() -> torch.Tensor:
        weights = logits.softmax(-1)  # saved once, for itself and for its square
        return weights * weights

    assert saved_matrices(forward, n) == pytest.approx(1.0)
