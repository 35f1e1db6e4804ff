"""A block of a user's own has a row with as many weights as the first of the field."""

from pathlib import Path

import pytest

from archlang.plan.check import check_text
from archlang.plan.from_file import plan_table
from archlang.plan.own_row import TOLERANCE, OwnRow, blocks_of, own_row
from archlang.resolve.library import recipe_files

BLOCKS = """
## Has the name of a block that the field uses, too.
block delta_net[width: int = 8, rounds = 1](h: seq[n, d]) -> seq[n, d] {
    stack rounds { h <- h + linear[d](relu(linear[width](cumulative_sum(h)))) }
    return h
}
"""


@pytest.fixture
def own(tmp_path: Path) -> Path:
    (tmp_path / "own.arch").write_text(BLOCKS)
    return tmp_path / "own.arch"


def row(own: Path, call: str, whole: bool = False) -> OwnRow:
    return own_row(recipe_files()["field/table"], own, call, whole, own.with_name("field.arch"))


@pytest.mark.parametrize("call", ["delta_net", "delta_net[32]", "delta_net[width = 16, rounds = 2]"])
def test_the_hidden_features_behind_a_mixer_make_up_the_difference(own: Path, call: str) -> None:
    made = row(own, call)
    assert made.fits
    assert abs(made.weights - made.expected) <= TOLERANCE * made.expected
    assert made.body.startswith(f"layers[own.{call}, ")


def test_the_row_is_of_the_users_own_block_and_the_others_stay(own: Path) -> None:
    text = row(own, "delta_net").text
    (own.with_name("field.arch")).write_text(text)
    assert not check_text(text, str(own.with_name("field.arch")))
    plan = plan_table(own.with_name("field.arch"), only=["delta_net", "DeltaNet, rates up to 1"])
    first, other = (next(cell.plans[0].graph for cell in plan.cells if cell.row is each) for each in plan.rows)
    assert {"linear", "relu"} <= {instance.block for instance in first.instances.values()}
    assert "delta_rule" in {instance.block for instance in other.instances.values()}


@pytest.mark.parametrize(
    ("call", "whole", "fitting"),
    [
        ("delta_net", True, "delta_net[width = 368]"),
        ("delta_net[rounds = 9, width = 99]", False, "delta_net[rounds = 9, width = 20]"),
    ],
)
def test_a_block_that_fits_no_number_has_a_static_that_fits(own: Path, call: str, whole: bool, fitting: str) -> None:
    made = row(own, call, whole)
    assert (made.fits, made.fitting) == (False, fitting)
    assert row(own, fitting, whole).fits


def test_the_blocks_of_a_program_are_its_own(own: Path) -> None:
    assert blocks_of(own) == ("delta_net",)
    assert blocks_of(recipe_files()["s3"]) == ("correct", "delta_product")
