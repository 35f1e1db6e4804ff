"""Each program of the adversarial benchmark has its declared size, and `check` reports diagnostics for it."""

import time
from collections.abc import Mapping
from pathlib import Path

import pytest

from archlang.errors.render import plain
from archlang.plan.check import check
from archlang.syntax.reading import LARGEST
from archlang.syntax.tokens import MOST_WORDS, pieces
from benchmarks.adversarial import PROGRAMS, largest, write
from tests.sampling import one_in

SMALL = 3_000


@pytest.mark.parametrize("name", one_in(3, PROGRAMS))
def test_check_returns_diagnostics_for_every_program(name: str, tmp_path: Path) -> None:
    file = write(PROGRAMS[name](SMALL), tmp_path)
    for diagnostic in check(file):
        assert diagnostic.message
        assert plain([diagnostic])


@pytest.mark.parametrize(
    ("name", "codes"),
    [
        ("unknown conditionals", {"W0201", "W0203"}),
        ("nested statics", {"E0115", "E0303"}),
        ("states in nested scans", set()),
        ("a long path after a leak", {"E0501"}),
        pytest.param("recipes in a chain", {"E0228", "W0203", "W0208"}, marks=pytest.mark.slow),
    ],
)
def test_the_time_of_a_check_is_linear_in_the_file(name: str, codes: set[str], tmp_path: Path) -> None:
    file = write(largest(PROGRAMS[name]), tmp_path)
    before = time.process_time()
    assert {diagnostic.code for diagnostic in check(file)} == codes
    # Each takes up to 2 s; a quadratic part took 5 to 100.
    assert time.process_time() - before < 4


@pytest.mark.parametrize("name", ["comments", "statements", "one comment"])
def test_the_largest_program_is_just_below_the_limit_of_words_or_bytes(name: str) -> None:
    content = largest(PROGRAMS[name])
    assert isinstance(content, str)
    assert len(content.encode()) <= LARGEST
    assert len([*pieces(content)]) <= MOST_WORDS
    assert len([*pieces(content)]) > MOST_WORDS * 0.95 or len(content.encode()) > LARGEST * 0.85


def test_files_that_use_each_other_are_in_one_folder(tmp_path: Path) -> None:
    content = PROGRAMS["files in a chain"](SMALL)
    assert isinstance(content, Mapping)
    assert write(content, tmp_path) == tmp_path / "main.arch"
    assert {file.name for file in tmp_path.iterdir()} == set(content)
