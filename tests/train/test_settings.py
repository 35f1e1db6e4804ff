"""What `train` says of a run, and what may not be said."""

import pytest

from archlang.record.mistakes import RunError
from archlang.train.settings import Settings
from archlang.types.statics import StaticValue, Symbol

GIVEN: dict[str, StaticValue] = {"lr": 1e-3, "batch": 32, "steps": 100, "epochs": 0, "select": Symbol("iid.accuracy")}


def test_symbols_arrive_as_words() -> None:
    assert Settings.of(GIVEN).selecting == ("iid", "accuracy")


@pytest.mark.parametrize(
    ("name", "value"),
    [("lr", 0.0), ("batch", 0), ("schedule", Symbol("triangle")), ("batch", "many"), ("speed", 3), ("clip", -1.0)],
)
def test_a_setting_that_means_nothing_is_named(name: str, value: StaticValue) -> None:
    with pytest.raises(RunError, match=rf"train\.{name}"):
        Settings.of({**GIVEN, name: value})


def test_epochs_count_whole_batches() -> None:
    assert Settings.of({**GIVEN, "steps": 0, "epochs": 3}).total_steps(batches=3) == 9
    assert Settings.of({**GIVEN, "steps": 0, "epochs": 3}).total_steps(batches=1) == 3
    assert Settings.of({**GIVEN, "epochs": 3}).total_steps(batches=3) == 100


def test_a_run_is_looked_at_ten_times_unless_told_otherwise() -> None:
    assert Settings.of(GIVEN).evaluated_every(1000) == 100
    assert Settings.of(GIVEN).evaluated_every(3) == 1
    assert Settings.of({**GIVEN, "every": 7}).evaluated_every(1000) == 7


def test_a_long_run_shows_its_loss_as_often_as_a_short_one() -> None:
    assert [Settings.of(GIVEN).logged_every(total) for total in (10, 500, 1_000_000)] == [1, 5, 100]
