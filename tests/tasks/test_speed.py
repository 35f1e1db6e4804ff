"""Generating a published set takes seconds, at most minutes."""

import time

import pytest

from tests.tasks.every import task_of

# Seconds of the processor, where they are not 20.
LIMITS = {
    "listops": 180, "listops[source = lra]": 180, "arithmetic": 30, "priority_sort": 30, "id_sort": 30,
    "stack_manipulation": 30,
}  # fmt: skip
TASKS = (
    *LIMITS, "flipflop", "ctl", "dyck", "copy", "mqar", "parity", "modular_arithmetic", "bucket_sort", "argsort",
    "automaton", "word_problem", "sudoku", "maze", "graph_distance", "shapes",
    "in_context_regression[train_size = 20_000]",
)  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("text", TASKS)
def test_a_published_train_set_is_generated_in_time(text: str) -> None:
    task = task_of(text)
    begun = time.process_time()
    assert len(task.generate("train", 0)) >= 5_000
    assert time.process_time() - begun < LIMITS.get(text, 20)
