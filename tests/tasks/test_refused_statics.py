"""Impossible statics are refused before anything is generated: by `where` of the signature, or by the class."""

import pytest

from archlang.errors import ProgramError
from archlang.plan.from_file import bind_task
from archlang.tasks.kit.mistakes import TaskError
from tests.tasks.every import NAMES, build, task_of

# What the class says, which no condition of `where` can.
BY_CLASS = {
    "argsort[test = [5]]": "train = 4..12 and test = 5 of argsort overlap",
    "argsort[numbers = 3, train = 1..1, test = [2]]": "write train_size = 3, valid_size = 3 and test_size = 6 or",
    "arithmetic[valid = 5..6]": "train = 1..5 and valid = 5..6 of arithmetic overlap",
    "arithmetic[max_length = 20]": "train = 1..5 is out of bounds for arithmetic: choose a range inside 1..4",
    "arithmetic[train_size = 100]": "less than the 200 single applications",
    "copy[valid = 9..10]": "train = 1..9 and valid = 9..10 of copy overlap",
    "copy[test = [5, 20]]": "train = 1..9 and test = 5 of copy overlap",
    "copy[test = [20, 20]]": "test = 20 and test = 20 of copy overlap",
    "ctl[test = 5..9]": "train = 1..5 and test = 5..9 of ctl overlap",
    "ctl[valid = 8..9]": "valid = 8..9 and test = 9..10 of ctl overlap",
    "ctl[functions = 3, new_functions = 0, iid_size = 300]": (
        "train_size = 53704 and iid_size = 300 are more than the distinct items of ctl: "
        "write train_size = 1896 and iid_size = 272 or less"
    ),
    "ctl[iid_size = 1_000_000]": " distinct items of ctl",
    "ctl[train_size = 20]": "train_size = 20 is less than the 568 single applications",
    "dyck[test = [60]]": "test has 60, which is not a range such as 52..100",
    "dyck[test = [53..53]]": "test = 53..53 has no even number",
    "dyck[test = [40..60]]": "train = 2..50 and test = 40..60 of dyck overlap",
    "flipflop[test_length = [512, 7]]": "test_length has the odd length 7",
    "flipflop[length = 8]": (
        "train_size = 160000, iid_size = 10000 and valid_size = 1000 are more than the distinct items of flipflop: "
        "write train_size = 25, iid_size = 6 and valid_size = 6 or less, or choose longer sequences"
    ),
    "flipflop[length = 8, train_size = 25, iid_size = 6]": (
        "valid_size = 1000 is more than the 6 distinct items of flipflop: write valid_size = 6 or less"
    ),
    "flipflop[test_ignore = [0.985]]": "round it to two decimals",
    "flipflop[test_ignore = [often]]": "test_ignore has often, which is not a number",
    "flipflop[test_ignore = [1.5]]": "test_ignore = 1.5 is out of bounds for flipflop: choose a number between 0 and 1",
    "flipflop[test_length = [512, 512]]": "test_length names 512 twice",
    "in_context_regression[test = [5, 5]]": "test = 5 and test = 5 of in_context_regression overlap",
    "listops[test = 5..9]": "train = 1..5 and test = 5..9 of listops overlap",
    "listops[nominal_length = 20]": "train = 1..5 is out of bounds for listops: choose a range inside 1..4",
    "listops[source = original, max_length = 250]": "max_length = 250 and test_lengths = 200..300 of listops overlap",
    "listops[source = original, test_lengths = [300]]": "not a range such as 200..300",
    "maze[side = 7, train = 2..4, test = 40..40]": "test = 40..40 is out of bounds for maze",
    "maze[train = 3..3]": "train = 3..3 has no even number",
    # 10 is shortened to 9.
    "modular_arithmetic[train = 1..9, test = 10..12]": "train has items of length 9, and test of 9",
    "mqar[test_pairs = [8]]": "test_length of mqar has 3 values, and test_pairs has 1",
    "mqar[test_pairs = [8, 65, 64]]": "test_pairs = 65 is out of bounds for mqar: choose a number between 1 and 64",
    "mqar_variants[more_length = [128]]": "more_length of mqar_variants has 1 values, and more_pairs has 4",
    "mqar_variants[more_length = [64], more_pairs = [17]]": "more_pairs = 17 is out of bounds for mqar_variants",
    "mqar_variants[updates = 5]": "pairs = 4 is out of bounds for mqar_variants: choose a number between 5 and 13",
    "mqar_variants[compound = true, pairs = 11]": "pairs = 11 is out of bounds for mqar_variants",
    "mqar[words = 10]": "test_pairs = 8 is out of bounds",
    "parity[test = 40..50]": "train = 1..40 and test = 40..50 of parity overlap",
    "reverse[valid = 1..1]": "of reverse overlap",
    "shapes[test_rows = [16, 24]]": "rows = 16 and test_rows = 16 of shapes overlap",
    "shapes[width = 5..17]": "width = 5..17 is out of bounds for shapes: choose a range inside 5..16",
    'file[path = "a.tsv", test = "b.xls"]': "b.xls is neither CSV, TSV, JSONL, Parquet nor Arrow, from which",
    'file_images[path = "a.bin", channels = 3]': "a.bin: the images of CIFAR have other columns or channels",
    'file_images[path = "a.idx.gz"]': "a.idx.gz: it is named neither as an IDX file of images nor as one of the binary",
    'file_images[path = "data_batch_1"]': "pickles, such as data_batch_1, can run code and are not read",
    'file_images[path = "a-images-idx3-ubyte", channels = 3]': "the images of an IDX file have one channel",
    'file_maze[path = "a.txt"]': "a.txt is neither CSV, TSV, JSONL, Parquet nor Arrow",
}


@pytest.mark.parametrize("text", BY_CLASS)
def test_a_class_refuses_what_where_cannot_state(text: str) -> None:
    with pytest.raises(TaskError) as raised:
        task_of(text)
    assert BY_CLASS[text] in str(raised.value)


@pytest.mark.parametrize(
    "text",
    [
        "argsort[numbers = 12, train = 2..6, test = [13]]", "arithmetic[iid_size = -1]", "babi[tasks = 0..3]",
        "babi[share = 1.0]", "bucket_sort[symbols = 1]", "cfq[split = mcd4]", "copy[test = []]", "copy[test = [0]]",
        "copy[train_size = -1]", "ctl[train = 0..5]", "ctl[symbols = 1]", "ctl[order = sideways]", "dyck[pairs = 8]",
        "dyck[p = 0.6, q = 0.4]", "dyck[p = 0.5, q = 0.3]", "dyck[loss = cubes]", "dynamic_recall[answer = all]",
        "flipflop[length = 511]", "flipflop[ignore = 1.5]", "flipflop[test_ignore = []]",
        "graph_distance[test = 11..40]", "id_sort[id_size = 0]", "in_context_regression[function = cubic]",
        "in_context_regression[points = 0]", "in_context_regression[function = sparse_linear, inputs = 2]",
        "listops[arguments = 2]", "listops[source = other]", "listops[source = original, test_arguments = [1]]",
        "listops[source = original, lra = true, arguments = 10]", "logical_inference[test = 7..13]",
        "logical_inference[draws = 0]", "lra_pathfinder[dashes = 2]", "lra_retrieval[length = 0]",
        "lra_text[length = 0]", "mathematics[module = mul]", "mathematics[draws = 0]", "mix[even = last]",
        "modular_arithmetic[modulus = 1]", "modular_arithmetic_brackets[unknown = true, products = true]",
         "mqar[pairs = 17]", "mqar[length = 2]", "mqar[power = 0.0]",
        "mqar[test_length = [128.5, 256, 512]]", "multi30k[share = 2]", "parity[train = 0..40]",
        "word_problem[group = s6]", "automaton[symbols = 0]", "automaton[table = [256]]",
        "shapes[shapes = 1]", "shapes[channels = 0]", "shapes[noise = 256]",
        "shapes[rows = 4]", "shapes[test_rows = []]",
        "pcfg[data = published]", "scan[cutoff = 48]", "squad[share = 0.0]", "squad[longest = 5]", "sudoku[side = 5]",
        "sudoku[side = 4, train = 5..13]", 'file[path = "a.tsv", by = letters]', "file",
        "file_images", 'file_images[path = "a-images", channels = 2]', 'file_images[path = "a.bin", valid_share = 1.0]',
        'file[path = "a.tsv", valid = "b.tsv", valid_share = 0.1]',
        'file[path = "a.tsv", valid_share = 0.7, test_share = 0.7]',
    ],
)  # fmt: skip
def test_where_states_the_bounds(text: str) -> None:
    with pytest.raises(ProgramError) as raised:
        bind_task(text)
    (mistake,) = raised.value.diagnostics
    assert mistake.code == "E0304"
    assert mistake.message.startswith(f"`{text.partition('[')[0]}` requires")


@pytest.mark.parametrize(
    ("text", "split", "message"),
    [
        # There are 200 operations on two digits.
        (
            "arithmetic[train = 2..2, valid = 3..3, test = 1..1, test_size = 300]", "test",
            r"test_size = 300 .* stopped at 200 distinct items",
        ),
        # There are 31,250 such sequences, but with so little else than `i` most are next to never drawn.
        (
            "flipflop[length = 14, ignore = 0.99, train_size = 3_000, iid_size = 0, valid_size = 0, test_size = 0]",
            "train", "it stopped at",
        ),
        # Five operators in 21 symbols have two arguments each, and where trees grow too low they are given three.
        (
            "listops[train = 1..3, valid = 4..4, test = 5..5, nominal_length = 21]", "test",
            r"test_size = 1000 .* it stopped at",
        ),
        ("listops[source = original, pool = 50, train_size = 100]", "train", "draw a larger `pool`"),
        # Of four words there is one key, and two values.
        (
            "mqar[words = 4, length = 4, pairs = 1, test_length = [], test_pairs = [], train_size = 1_000]", "train",
            "choose more `words`",
        ),
        (
            "sudoku[side = 4, train = 1..1, test = 5..5, puzzles = 1, train_size = 10_000]", "train",
            "it stopped at",
        ),
        ("dyck[train = 2..6, test = [8..8], train_size = 300]", "train", "`distinct = false`"),
    ],
)  # fmt: skip
def test_drawing_rare_items_ends_with_an_error(text: str, split: str, message: str) -> None:
    with pytest.raises(TaskError, match=message):
        task_of(text).generate(split, 0)


def test_a_task_made_in_python_is_checked_in_the_same_way() -> None:
    for statics, message in (
        ({"symbols": 1}, "`ctl` requires `symbols >= 2`, but symbols = 1: change one of these values"),
        ({"colour": 1}, "`ctl` has no static `colour`"),
        ({"symbols": "many"}, "`symbols`"),
    ):
        with pytest.raises(TaskError) as raised:
            build("ctl", **statics)
        assert message in str(raised.value)


@pytest.mark.parametrize("name", [name for name in NAMES if not name.startswith("file")])
def test_the_error_for_an_unknown_split_names_the_splits(name: str) -> None:
    task = build(name)
    with pytest.raises(TaskError, match=f"its splits are {', '.join(task.split_names())}"):
        task.generate("dev", 0)
