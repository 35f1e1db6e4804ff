"""The tasks over a user's own puzzles: file_sudoku and file_maze."""

import gzip
import json
from pathlib import Path

import numpy as np
import pytest

from archlang.tasks.file_maze import FileMaze
from archlang.tasks.file_sudoku import FileSudoku
from archlang.tasks.kit.mistakes import TaskError
from archlang.tasks.sudoku import Sudoku
from archlang.types.statics import Interval
from tests.tasks.every import answers_of, rows_of
from tests.tasks.test_sudoku import solutions

SOLUTION = "123456789456789123789123456231564897564897231897231564312645978645978312978312645"
PUZZLE = ".2345678." + SOLUTION[9:]
HEADER = "source,question,answer,rating\n"
MAZE, SOLVED = "S ##  ##G", "So##oo##G"


def puzzles(count: int) -> str:
    """Returns the lines of different puzzles; each has its number as its rating."""
    items = Sudoku(train=Interval(5, 30), test=Interval(31, 40), puzzles=count, train_size=count).generate("train", 0)
    grids = zip((items.inputs["x"][i] for i in range(count)), (answers_of(items)[i] for i in range(count)), strict=True)
    return HEADER + "".join(
        f"mine,{''.join('.123456789'[cell] for cell in x)},{''.join(str(cell + 1) for cell in y)},{10 * number}\n"
        for number, (x, y) in enumerate(grids)
    )


def test_columns_are_found_by_their_names_in_every_form(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(f"level,solved,puzzle\n30,{SOLUTION},{PUZZLE}\n")
    (tmp_path / "b.jsonl").write_text(json.dumps({"puzzle": list(PUZZLE), "solved": SOLUTION, "level": 30}) + "\n")
    statics = {"puzzle": "puzzle", "solution": "solved", "rating": "level", "valid_size": 0, "shuffles": 0}
    for name in ("a.csv", "b.jsonl"):
        items = FileSudoku(path=str(tmp_path / name), **statics).generate("train", 0)
        assert items.inputs["x"][0].tolist() == [0 if cell == "." else int(cell) for cell in PUZZLE]
        assert items.groups["rating"].tolist() == [30]
    with pytest.raises(TaskError, match="line 1 of .*a.csv: there is no column `question`"):
        FileSudoku(path=str(tmp_path / "a.csv")).generate("train", 0)


def test_train_has_rows_and_their_shuffles_and_valid_has_other_rows(tmp_path: Path) -> None:
    path = tmp_path / "a.csv.gz"
    path.write_bytes(gzip.compress(puzzles(6).encode()))
    task = FileSudoku(path=str(path), train_size=3, valid_size=2, shuffles=4)
    assert task.split_names() == ("train", "valid")
    train, valid = task.generate("train", 1), task.generate("valid", 1)
    assert (len(train), len(valid)) == (3 * 5, 2)
    ratings = [set(split.groups["rating"].tolist()) for split in (train, valid)]
    assert (len(ratings[0]), len(ratings[1]), ratings[0] & ratings[1]) == (3, 2, set())
    assert len({tuple(row) for row in rows_of(train.inputs["x"])}) == 15
    for index, row in enumerate(rows_of(train.inputs["x"])):
        solution = (answers_of(train)[index] + 1).tolist()
        assert solution in list(solutions(row, 9))
        assert row.count(0) == train.groups["blanks"][index]
    assert set(task.generate("train", 2).groups["rating"].tolist()) != ratings[0], "the seed draws the rows"


def test_the_test_file_is_read_as_it_is(tmp_path: Path) -> None:
    for name in ("a.csv", "b.csv"):
        (tmp_path / name).write_text(puzzles(3))
    task = FileSudoku(path=str(tmp_path / "a.csv"), test=str(tmp_path / "b.csv"), valid_size=0, test_size=9)
    assert task.split_names() == ("train", "test")
    assert len(task.generate("test", 0)) == 3
    assert task.files() == (str(tmp_path / "a.csv"), str(tmp_path / "b.csv"))


def test_a_maze_has_eight_symmetries(tmp_path: Path) -> None:
    (tmp_path / "m.csv").write_text(f"{HEADER}mine,{MAZE},{SOLVED},4\n")
    train = FileMaze(path=str(tmp_path / "m.csv"), shuffles=True).generate("train", 0)
    assert len({tuple(row) for row in rows_of(train.inputs["x"])}) == len(train) == 8
    assert {answers_of(train)[index].tolist().count(4) for index in range(8)} == {3}
    assert np.array_equal(
        answers_of(train).values[answers_of(train).values != 4], train.inputs["x"].values[answers_of(train).values != 4]
    )


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (f"mine,{PUZZLE},{SOLUTION}", "expected 4 columns, found 3"),
        (f"mine,{PUZZLE[:-1]},{SOLUTION},1", "the puzzle has 80 cells and its solution 81, not 81"),
        (f"mine,{PUZZLE[:-1]}x,{SOLUTION},1", "a puzzle or its solution has a character other than"),
        (f"mine,{PUZZLE},{PUZZLE},1", "the solution has a blank cell"),
        (f"mine,.3{PUZZLE[2:]},{SOLUTION},1", "the solution changes a cell of the puzzle"),
        (f"mine,{PUZZLE},{SOLUTION},hard", "the rating is not a whole number"),
        (f"mi\rne,{PUZZLE},{SOLUTION},hard", "it is not a row of CSV"),
    ],
)
def test_a_malformed_sudoku_names_its_line_and_quotes_nothing(tmp_path: Path, line: str, reason: str) -> None:
    path = tmp_path / "a.csv"
    path.write_text(f"{HEADER}{line}\n")
    with pytest.raises(TaskError) as error:
        FileSudoku(path=str(path)).generate("train", 0)
    assert error.value.message.startswith(f"line 2 of {path}: {reason}")
    assert "mine" not in error.value.message


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (f"mine,{MAZE[:-1]},{SOLVED[:-1]},1", "the maze has 8 cells and its solution 8"),
        (f"mine,{SOLVED},{SOLVED},1", "the path is drawn in the maze"),
        (f"mine,{MAZE},G{SOLVED[1:]},1", "the solution changes a cell of the maze"),
    ],
)
def test_a_malformed_maze_names_its_line(tmp_path: Path, line: str, reason: str) -> None:
    (tmp_path / "m.csv").write_text(f"{HEADER}{line}\n")
    with pytest.raises(TaskError, match=f"line 2 of .*m.csv: {reason}"):
        FileMaze(path=str(tmp_path / "m.csv")).generate("train", 0)


def test_a_file_that_is_missing_empty_or_of_another_form_is_named(tmp_path: Path) -> None:
    (tmp_path / "empty.csv").write_text(HEADER)
    for path, reason in (("none.csv", "none.csv is missing"), ("empty.csv", "has no row for the split `train`")):
        with pytest.raises(TaskError, match=reason):
            FileMaze(path=str(tmp_path / path)).generate("train", 0)
