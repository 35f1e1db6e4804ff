"""The same statics and seed generate the same items in every process and on every machine."""

import os
import subprocess
import sys

import numpy as np
import pytest

from archlang.tasks.kit.split import digest
from tests.tasks.every import task_of

# A change here means that runs of before cannot be repeated: raise the task's `version` with it.
DIGESTS: dict[str, dict[str, str]] = {
    "ctl": {
        "train": "c75461809fcb3464", "iid": "10fb057e015acc44", "valid": "07ab3f2181f81fe5",
        "test": "e5d9441cb2bff4e5",
    },
    "ctl[order = forward, balanced = true]": {"train": "7aad4afa58b81c82"},
    "listops[train_size = 50]": {"train": "7841015ba86b75f1", "iid": "050e959f2ce06e60", "valid": "2e77c1e8767d24a7"},
    "listops[source = original, pool = 1_000, test_lengths = [200..300], test_arguments = [10, 15], "
    "test_size = 5, lra = true]": {
        "train": "654354faf3f7dff8", "valid": "26cb2ef811b1f736", "iid": "dfb38a5106138d37",
        "test": "925bee14ff8155f7", "arguments": "a43d55ca533ec22b", "lra": "41f6ad0b71c77fdb",
    },
    "flipflop[length = 16, ignore = 0.5, test_length = [16, 18], test_ignore = [0.5, 0.9], train_size = 99, "
    "iid_size = 9, valid_size = 9, test_size = 9]": {
        "train": "693ba555b0746844", "iid": "b9647d493756638d", "valid": "b00f212ceca71713",
        "test": "96e7a866c69079c1",
    },
    "logical_inference[draws = 1_000]": {
        "train": "a20b6cefa1dcb2bd", "valid": "9432e680315302b0", "test": "2a56d4fd64282035",
    },
    "scan": {"test": "ecf76c936b4825bb"},
    "scan[split = length, cutoff = 26]": {"iid": "9a9e81cc8eb85cec"},
    "copy[train_size = 50]": {"train": "3aee5867a365a5d3", "valid": "3c1c22622cc7660d", "test": "0c886a2bc205c631"},
    "reverse[train_size = 50, eos = true]": {"train": "b24da7e856e3c006"},
    "listops[balanced = false, train_size = 50]": {"train": "db5f3275a220caf7"},
    "listops[source = lra, valid_size = 20]": {"valid": "57a7ab6faf7afd5b"},
    "arithmetic[train_size = 240]": {"train": "bc40e8b1d865c48e"},
    "arithmetic[iid_size = 20]": {"iid": "92c8d2866dc389e0"},
    "arithmetic[test_size = 20]": {"test": "a02ee3fee0cbefd7"},
    "mix[train_size = 50]": {"train": "0ef1ac8cc65e89dd"},
    "mix[test_size = 5, even = same]": {"test": "75bd06bc1af013bd"},
    "dynamic_recall[train_size = 50]": {"train": "8ae66246cdfe6ae2"},
    "dynamic_recall[valid_size = 50, answer = rest]": {"valid": "15461147ec0a644a"},
    "priority_sort[train_size = 50]": {"train": "a9a86444365cb27b"},
    "priority_sort[test_size = 5]": {"test": "4d471536b25acf44"},
    "id_sort[train_size = 50]": {"train": "97b3ae1346cb160f"},
    "id_sort[valid_size = 5, id_size = 2]": {"valid": "58927a6fc8ae28ac"},
    "dyck[train_size = 50]": {"train": "2016b50a6bd3ee19"},
    "dyck[pairs = 3, valid_size = 20]": {"valid": "345d2005f9597d4e"},
    "dyck[test_size = 20, distinct = false]": {"test": "71076b3920032937"},
    "mqar[train_size = 20]": {"train": "06af9a944e5f8dc2"},
    "mqar[test_size = 5]": {"test": "599b9e02e649fb67"},
    "mqar_variants[train_size = 20, more_size = 5]": {"train": "04aecd79abaf14a3"},
    "mqar_variants[valid_size = 20, updates = 2, compound = true, more_pairs = [4, 9, 16, 25], "
    "test_pairs = [4, 4, 9, 9, 9, 9, 9]]": {"valid": "dc8c29335b02133b"},
    "automaton[symbols = 3, labels = 5, table = [4, 0, 1, 0, 1, 2, 1, 2, 3, 2, 3, 4, 3, 4, 0], train_size = 50]": {
        "train": "a3242cc21c971426",
    },
    "word_problem[train_size = 50]": {"train": "ce7c340e18bd6c72"},
    "word_problem[group = a4_x_z5, test_length = [9], test_size = 20]": {"test": "f5de8333fd88be84"},
    "shapes[train_size = 50]": {"train": "ae20a850ecf7db69"},
    "shapes[channels = 3, shapes = 6, columns = 12, test_rows = [18], test_size = 20]": {
        "test": "06b8ae7d739465fe",
    },
    "even_pairs[train_size = 50]": {"train": "94bdb53096df0bfb"},
    "cycle_navigation[train_size = 50]": {"train": "fb8bd738f9966849"},
    "reverse_string[train_size = 50]": {"train": "478318f2327f7a90"},
    "duplicate_string[train_size = 50]": {"train": "a85a3cc78c486b16"},
    "odds_first[train_size = 50]": {"train": "2455137626d192a5"},
    "missing_duplicate_string[train_size = 50]": {"train": "042b90429075421f"},
    "binary_addition[train_size = 50]": {"train": "ea0d9648b9f596d8"},
    "binary_multiplication[train_size = 50]": {"train": "617343d5fe5de086"},
    "compute_sqrt[test_size = 50]": {"test": "7c5d006fce09c210"},
    "modular_arithmetic_brackets[train_size = 50]": {"train": "a0093b5fc2ed37ef"},
    "modular_arithmetic_brackets[train_size = 50, unknown = true]": {"train": "cce4d96d522c712c"},
    "in_context_recall[train_size = 50, noise = 20]": {"train": "098c65db531a4af7"},
    "fuzzy_in_context_recall[train_size = 50]": {"train": "af4dc74533930ecf"},
    "compression[train_size = 50]": {"train": "b93cf008de642a20"},
    "memorization[train_size = 50]": {"train": "5b0dcac82b0044aa"},
    "mano[train_size = 50]": {"train": "3d0d53fdb29336c6"},
    "depo[train_size = 50, size = 2]": {"train": "a085fb8f74320fee"},
    "brevo[train_size = 50]": {"train": "d6e29afa181a1618"},
    "regbench[train_size = 50]": {"train": "c8eb138d32b8c8cb"},
    "shortest_paths[train_size = 50]": {"train": "c8420bbc54b26dfb"},
    "countdown[train_size = 50]": {"train": "0feb2f1c65e9d584"},
    "countdown[test_size = 50]": {"test": "71586ba49f305489"},
    "coupled_addition[train_size = 50]": {"train": "b415007eb22ed7b9"},
    "addition[train_size = 50]": {"train": "677bcd001a9a4e16"},
    "addition[test_size = 50, padded = false]": {"test": "7db1db6f77dc86f4"},
    "set_complement[train_size = 50]": {"train": "3f5363b9a2a710da"},
    "selective_copying[train_size = 50]": {"train": "006f838249d2b925"},
    "phone_book[train_size = 50]": {"train": "7c9c8a7cf13fc52d"},
    "n_gram_lookup[train_size = 50]": {"train": "77b8213c22d70e09"},
    "multiplication[train_size = 50, second = 3]": {"train": "a456ee1089510724"},
    "lego[train_size = 50]": {"train": "ea4bad254d6c8a98"},
    "parity[train_size = 50]": {"train": "1c7280a8a902be03"},
    "modular_arithmetic[train_size = 50]": {"train": "e4c86d66d66d0495"},
    "bucket_sort[valid_size = 50]": {"valid": "7fed9ea8eb6394ef"},
    "argsort[train_size = 50]": {"train": "eaa75038032ad27d"},
    "argsort[test_size = 5]": {"test": "23b9a889a30730b2"},
    "sudoku[side = 4, train = 3..6, test = 7..9, puzzles = 20, train_size = 50]": {"train": "40605c947f7cb42e"},
    "sudoku[puzzles = 5, test_size = 5]": {"test": "a29624740f182936"},
    "maze[train_size = 50]": {"train": "40eba1ab67be9ae5"},
    "in_context_regression[train_size = 50]": {"train": "c7bfcf8e3949b2c5"},
    "in_context_regression[function = sparse_linear, valid_size = 5]": {"valid": "bfa12200b7f94330"},
    "in_context_regression[function = relu_network, valid_size = 5]": {"valid": "4ea6076f97c57cbf"},
    "in_context_regression[function = decision_tree, test_size = 5]": {"test": "6822313c213ee33f"},
    "graph_distance[train_size = 50]": {"train": "751a8dcbe085a4ca"},
    "stack_manipulation[train_size = 50]": {"train": "26f7c6ed003b02a6"},
}  # fmt: skip


@pytest.mark.parametrize("text", DIGESTS)
def test_digests_are_fixed_and_seeds_give_different_items(text: str) -> None:
    task = task_of(text)
    assert {split: digest(task.generate(split, 7))[:16] for split in DIGESTS[text]} == DIGESTS[text]
    split, expected_digest = next(iter(DIGESTS[text].items()))
    assert (digest(task.generate(split, 8))[:16] == expected_digest) is text.startswith("scan")


@pytest.mark.parametrize(
    ("text", "split", "resized"),
    [
        ("ctl", "iid", "ctl[train_size = 600, valid_size = 7]"),
        ("ctl", "test", "ctl[train_size = 600, valid_size = 7]"),
        ("flipflop[train_size = 50, test_size = 9]", "test", "flipflop[train_size = 5, iid_size = 1, test_size = 9]"),
        ("listops[train_size = 5_000, iid_size = 500]", "iid", "listops[train_size = 9, iid_size = 500]"),
        ("mqar[valid_size = 50]", "valid", "mqar[valid_size = 50, train_size = 1, test_size = 1]"),
        ("logical_inference[draws = 2_000]", "test", "logical_inference[draws = 2_000, train = 0..3]"),
    ],
)
def test_a_split_does_not_depend_on_the_size_of_another(text: str, split: str, resized: str) -> None:
    assert digest(task_of(text).generate(split, 3)) == digest(task_of(resized).generate(split, 3))


PROGRAM = """
from archlang.tasks import digest
from archlang.tasks.ctl import Ctl
from archlang.tasks.dyck import Dyck
from archlang.tasks.flipflop import FlipFlop
from archlang.tasks.kit.pages import page_class
from archlang.tasks.listops import ListOps
from archlang.tasks.mqar import Mqar
small = FlipFlop(length=32, train_size=100, iid_size=5, valid_size=5, test_size=5)
id_sort = page_class("id_sort")(train_size=200)
tasks = Ctl(), ListOps(train_size=99), small, id_sort, Mqar(train_size=50), Dyck(train_size=50)
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
        {"PYTHONHASHSEED": "random", "OMP_NUM_THREADS": "4"},
        {"PYTHONHASHSEED": "1", "NPY_DISABLE_CPU_FEATURES": vector_units()},
    ],
    ids=["hashes and threads", "processor"],
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
