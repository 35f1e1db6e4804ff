"""The same statics and seed generate the same items in every process and on every machine."""

import os
import subprocess
import sys

import numpy as np
import pytest

from archlang.tasks.argsort import Argsort
from archlang.tasks.arithmetic import Arithmetic
from archlang.tasks.bucket_sort import BucketSort
from archlang.tasks.copy import Copy
from archlang.tasks.ctl import Ctl
from archlang.tasks.dyck import Dyck
from archlang.tasks.dynamic_recall import DynamicRecall
from archlang.tasks.flipflop import FlipFlop
from archlang.tasks.graph_distance import GraphDistance
from archlang.tasks.id_sort import IdSort
from archlang.tasks.in_context_regression import InContextRegression
from archlang.tasks.kit.split import digest
from archlang.tasks.kit.task import Task
from archlang.tasks.listops import ListOps
from archlang.tasks.logical_inference import LogicalInference
from archlang.tasks.maze import Maze
from archlang.tasks.mix import Mix
from archlang.tasks.modular_arithmetic import ModularArithmetic
from archlang.tasks.mqar import Mqar
from archlang.tasks.parity import Parity
from archlang.tasks.priority_sort import PrioritySort
from archlang.tasks.reverse import Reverse
from archlang.tasks.scan import Scan
from archlang.tasks.stack_manipulation import StackManipulation
from archlang.tasks.sudoku import Sudoku
from archlang.types.statics import Interval

# A change here means that runs of before cannot be repeated: raise the task's `version` with it.
FLIPFLOP = FlipFlop(
    length=16,
    ignore=0.5,
    test_length=(16, 18),
    test_ignore=(0.5, 0.9),
    train_size=99,
    iid_size=9,
    valid_size=9,
    test_size=9,
)
ORIGINAL = ListOps(
    source="original", pool=1_000, test_lengths=(Interval(200, 300),), test_arguments=(10, 15), test_size=5, lra=True
)
SUDOKU = Sudoku(side=4, train=Interval(3, 6), test=Interval(7, 9), puzzles=20, train_size=50)
DIGESTS: list[tuple[Task, str, str]] = [
    (Ctl(), "train", "c75461809fcb3464"),
    (Ctl(), "iid", "10fb057e015acc44"),
    (Ctl(), "valid", "07ab3f2181f81fe5"),
    (Ctl(), "test", "e5d9441cb2bff4e5"),
    (Ctl(order="forward", balanced=True), "train", "7aad4afa58b81c82"),
    (ListOps(train_size=50), "train", "7841015ba86b75f1"),
    (ListOps(train_size=50), "iid", "050e959f2ce06e60"),
    (ListOps(train_size=50), "valid", "2e77c1e8767d24a7"),
    (ORIGINAL, "train", "654354faf3f7dff8"),
    (ORIGINAL, "valid", "26cb2ef811b1f736"),
    (ORIGINAL, "iid", "dfb38a5106138d37"),
    (ORIGINAL, "test", "925bee14ff8155f7"),
    (ORIGINAL, "arguments", "a43d55ca533ec22b"),
    (ORIGINAL, "lra", "41f6ad0b71c77fdb"),
    (FLIPFLOP, "train", "693ba555b0746844"),
    (FLIPFLOP, "iid", "b9647d493756638d"),
    (FLIPFLOP, "valid", "b00f212ceca71713"),
    (FLIPFLOP, "test", "96e7a866c69079c1"),
    (LogicalInference(draws=1_000), "train", "a20b6cefa1dcb2bd"),
    (LogicalInference(draws=1_000), "valid", "9432e680315302b0"),
    (LogicalInference(draws=1_000), "test", "2a56d4fd64282035"),
    (Scan(), "test", "ecf76c936b4825bb"),
    (Scan(split="length", cutoff=26), "iid", "9a9e81cc8eb85cec"),
    (Copy(train_size=50), "train", "3aee5867a365a5d3"),
    (Copy(train_size=50), "valid", "3c1c22622cc7660d"),
    (Copy(train_size=50), "test", "0c886a2bc205c631"),
    (Reverse(train_size=50, eos=True), "train", "b24da7e856e3c006"),
    (ListOps(balanced=False, train_size=50), "train", "db5f3275a220caf7"),
    (ListOps(source="lra", valid_size=20), "valid", "57a7ab6faf7afd5b"),
    (Arithmetic(train_size=240), "train", "bc40e8b1d865c48e"),
    (Arithmetic(iid_size=20), "iid", "92c8d2866dc389e0"),
    (Arithmetic(test_size=20), "test", "a02ee3fee0cbefd7"),
    (Mix(train_size=50), "train", "0ef1ac8cc65e89dd"),
    (Mix(test_size=5, even="same"), "test", "75bd06bc1af013bd"),
    (DynamicRecall(train_size=50), "train", "8ae66246cdfe6ae2"),
    (DynamicRecall(valid_size=50, answer="rest"), "valid", "15461147ec0a644a"),
    (PrioritySort(train_size=50), "train", "a9a86444365cb27b"),
    (PrioritySort(test_size=5), "test", "4d471536b25acf44"),
    (IdSort(train_size=50), "train", "97b3ae1346cb160f"),
    (IdSort(valid_size=5, id_size=2), "valid", "58927a6fc8ae28ac"),
    (Dyck(train_size=50), "train", "2016b50a6bd3ee19"),
    (Dyck(pairs=3, valid_size=20), "valid", "345d2005f9597d4e"),
    (Dyck(test_size=20, distinct=False), "test", "71076b3920032937"),
    (Mqar(train_size=20), "train", "06af9a944e5f8dc2"),
    (Mqar(test_size=5), "test", "599b9e02e649fb67"),
    (Parity(train_size=50), "train", "1c7280a8a902be03"),
    (ModularArithmetic(train_size=50), "train", "e4c86d66d66d0495"),
    (BucketSort(valid_size=50), "valid", "7fed9ea8eb6394ef"),
    (Argsort(train_size=50), "train", "eaa75038032ad27d"),
    (Argsort(test_size=5), "test", "23b9a889a30730b2"),
    (SUDOKU, "train", "40605c947f7cb42e"),
    (Sudoku(puzzles=5, test_size=5), "test", "a29624740f182936"),
    (Maze(train_size=50), "train", "40eba1ab67be9ae5"),
    (InContextRegression(train_size=50), "train", "c7bfcf8e3949b2c5"),
    (InContextRegression(function="sparse_linear", valid_size=5), "valid", "bfa12200b7f94330"),
    (InContextRegression(function="relu_network", valid_size=5), "valid", "4ea6076f97c57cbf"),
    (InContextRegression(function="decision_tree", test_size=5), "test", "6822313c213ee33f"),
    (GraphDistance(train_size=50), "train", "751a8dcbe085a4ca"),
    (StackManipulation(train_size=50), "train", "26f7c6ed003b02a6"),
]


@pytest.mark.parametrize(
    ("task", "split", "expected_digest"), DIGESTS, ids=[f"{type(task).__name__}-{split}" for task, split, _ in DIGESTS]
)
def test_digests_are_fixed(task: Task, split: str, expected_digest: str) -> None:
    assert digest(task.generate(split, 7))[:16] == expected_digest


def test_seeds_give_different_items() -> None:
    for task, split, expected_digest in DIGESTS:
        if not isinstance(task, Scan):
            assert digest(task.generate(split, 8))[:16] != expected_digest


PROGRAM = """
from archlang.tasks import digest
from archlang.tasks.ctl import Ctl
from archlang.tasks.dyck import Dyck
from archlang.tasks.flipflop import FlipFlop
from archlang.tasks.id_sort import IdSort
from archlang.tasks.listops import ListOps
from archlang.tasks.mqar import Mqar
small = FlipFlop(length=32, train_size=100, iid_size=5, valid_size=5, test_size=5)
tasks = Ctl(), ListOps(train_size=99), small, IdSort(train_size=200), Mqar(train_size=50), Dyck(train_size=50)
answer = [digest(task.generate("train", 7)) for task in tasks]
"""


def vector_units() -> str:
    """Returns the optional processor features that numpy uses."""
    config = np.show_config(mode="dicts")
    assert config is not None
    return " ".join(config["SIMD Extensions"].get("found", ()))


@pytest.mark.parametrize(
    "changes",
    [
        {"PYTHONHASHSEED": "1"},
        {"PYTHONHASHSEED": "random", "OMP_NUM_THREADS": "4"},
        {"NPY_DISABLE_CPU_FEATURES": vector_units()},
    ],
    ids=["hashes", "threads", "processor"],
)
def test_another_process_on_another_machine_gives_the_same_items(changes: dict[str, str]) -> None:
    here: dict[str, object] = {}
    exec(PROGRAM, here)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), **changes}
    answer = subprocess.run(
        [sys.executable, "-c", f"{PROGRAM}\nprint(answer)"],
        capture_output=True, text=True, env=environment, check=True,
    ).stdout  # fmt: skip
    assert answer == f"{here['answer']}\n"
