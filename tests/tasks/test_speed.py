"""Generating a published set takes seconds, at most minutes."""

import time

import pytest

from archlang.tasks.argsort import Argsort
from archlang.tasks.arithmetic import Arithmetic
from archlang.tasks.bucket_sort import BucketSort
from archlang.tasks.copy import Copy
from archlang.tasks.ctl import Ctl
from archlang.tasks.dyck import Dyck
from archlang.tasks.flipflop import FlipFlop
from archlang.tasks.graph_distance import GraphDistance
from archlang.tasks.id_sort import IdSort
from archlang.tasks.in_context_regression import InContextRegression
from archlang.tasks.kit.task import Task
from archlang.tasks.listops import ListOps
from archlang.tasks.maze import Maze
from archlang.tasks.modular_arithmetic import ModularArithmetic
from archlang.tasks.mqar import Mqar
from archlang.tasks.parity import Parity
from archlang.tasks.priority_sort import PrioritySort
from archlang.tasks.stack_manipulation import StackManipulation
from archlang.tasks.sudoku import Sudoku

LIMITS: list[tuple[Task, int]] = [
    (ListOps(), 180),
    (ListOps(source="lra"), 180),
    (FlipFlop(), 20),
    (Ctl(), 20),
    (Arithmetic(), 30),
    (Dyck(), 20),
    (Copy(), 20),
    (PrioritySort(), 30),
    (IdSort(), 30),
    (Mqar(), 20),
    (Parity(), 20),
    (ModularArithmetic(), 20),
    (BucketSort(), 20),
    (StackManipulation(), 30),
    (Argsort(), 20),
    (Sudoku(), 20),
    (Maze(), 20),
    (GraphDistance(), 20),
    (InContextRegression(train_size=20_000), 20),
]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("task", "seconds"), LIMITS, ids=[f"{type(task).__name__}-{index}" for index, (task, _) in enumerate(LIMITS)]
)
def test_a_published_train_set_is_generated_in_time(task: Task, seconds: int) -> None:
    begun = time.process_time()
    assert len(task.generate("train", 0)) >= 5_000
    assert time.process_time() - begun < seconds
