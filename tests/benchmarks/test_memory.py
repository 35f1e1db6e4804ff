"""Peak memory of a step, and tensors that a forward pass saves for backward."""

import pytest
import torch

from benchmarks import processes
from benchmarks.memory import HEADS, saved_matrices

# Holds 64 MiB, then allocates and frees another 192 MiB.
STEP = """
import torch
from benchmarks.memory import above
held = torch.ones(16 << 20)
print(above(lambda: [torch.ones(16 << 20) for _ in range(3)]))
"""


def test_the_peak_of_a_step_excludes_memory_held_before() -> None:
    assert float(processes.run("-c", STEP)) == pytest.approx(192, abs=8)


def test_a_failed_process_is_reported_with_its_output() -> None:
    with pytest.raises(SystemExit, match="ended with 3:\nwhy"):
        processes.run("-c", "import sys; print('why'); sys.exit(3)")


def test_saved_tensors_are_counted_once_in_units_of_score_matrices() -> None:
    n = 16
    logits = torch.randn(1, HEADS, n, n, requires_grad=True)

    def forward() -> torch.Tensor:
        weights = logits.softmax(-1)  # saved once, for itself and for its square
        return weights * weights

    assert saved_matrices(forward, n) == pytest.approx(1.0)
