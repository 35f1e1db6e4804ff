"""`optimizers.arch` declares the training settings, and its signatures refuse wrong values."""

import re
from pathlib import Path

import pytest

import archlang
from archlang.names import library
from archlang.plan.check import check_text
from archlang.syntax.expression_text import expression_text
from archlang.train.settings import is_setting
from archlang.types.statics import Symbol
from tests.train.settings_of_a_run import SETTINGS


def recipe(training: str) -> str:
    return f"""
model tiny(x: tokens[n]) -> logits[classes] {{ return embed[8](x) |> mean |> linear[classes] }}
recipe tiny {{
    task  ctl
    model tiny
    train {training}
}}
"""


def test_settings_are_those_that_are_declared_with_their_defaults() -> None:
    for static in library.training_settings().signature.statics:
        value = getattr(SETTINGS, static.name)
        kind = {"bool": bool, "float": float, "int": int, "list": tuple}.get(str(static.kind), str)
        assert isinstance(value, kind), static.name
    with pytest.raises(AttributeError, match="no setting 'beauty'"):
        SETTINGS.beauty  # noqa: B018


def test_the_documentation_lists_every_setting_with_its_default() -> None:
    page = (Path(archlang.__file__).parent.parent / "docs" / "language.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(\w+)` \| `([\w.\[\]]+)` \|", page, flags=re.MULTILINE)
    statics = library.training_settings().signature.statics
    assert rows == [(static.name, expression_text(static.default)) for static in statics if static.default is not None]


@pytest.mark.parametrize("name", sorted(library.optimizer_names()))
def test_every_optimizer_has_all_training_settings_and_a_learning_rate(name: str) -> None:
    optimizer = library.optimizer(name)
    assert optimizer is not None
    declared = {static.name for static in library.training_settings().signature.statics}
    assert {"lr", *declared} <= {static.name for static in optimizer.signature.statics}


def test_symbols_arrive_as_words() -> None:
    assert SETTINGS.changed(select=Symbol("iid.accuracy")).selecting == ("iid", "accuracy")


def test_weights_of_charges_are_settings_and_integers_become_numbers() -> None:
    settings = SETTINGS.changed(**{"charges.balance": 1, "charges.entropy": 0.5})
    assert settings.charges == {"balance": 1.0, "entropy": 0.5}


def test_statics_of_the_optimizer_are_no_settings() -> None:
    assert not is_setting("weight_decay")
    assert all(map(is_setting, ("lr", "batch", "charges.balance")))


@pytest.mark.parametrize("optimizer", sorted(library.optimizer_names()))
@pytest.mark.parametrize(
    ("setting", "code"),
    [
        ("lr = 0.0", "E0304"),
        ("batch = 0", "E0304"),
        ("schedule = triangle", "E0304"),
        ("batch = 2.5", "E0303"),
        ("speed = 3", "E0301"),
        ("clip = -1.0", "E0304"),
        ("cooldown = 1.5", "E0304"),
    ],
)
def test_a_setting_that_means_nothing_is_named(optimizer: str, setting: str, code: str) -> None:
    (diagnostic,) = check_text(recipe(f"{optimizer}[{setting}, steps = 1]"))
    assert diagnostic.code == code
    assert setting.split(" ")[0] in diagnostic.message


@pytest.mark.parametrize("optimizer", sorted(library.optimizer_names()))
def test_onecycle_needs_an_optimizer_with_betas(optimizer: str) -> None:
    diagnostics = check_text(recipe(f"{optimizer}[schedule = onecycle, warmup = 1, steps = 10]"))
    assert bool(diagnostics) is (optimizer not in ("adam", "adamw"))


@pytest.mark.parametrize("decay", ["1.0", "-0.1"])
def test_the_decay_of_an_average_is_below_one(decay: str) -> None:
    (diagnostic,) = check_text(recipe(f"adamw[ema = {decay}, steps = 1]"))
    assert diagnostic.code == "E0304"


def test_a_schedule_free_optimizer_keeps_its_own_average() -> None:
    (diagnostic,) = check_text(recipe("schedule_free[ema = 0.9, steps = 10]"))
    assert "ema == 0" in diagnostic.message


def test_a_run_has_steps_or_epochs() -> None:
    (diagnostic,) = check_text(recipe("adamw"))
    assert "steps > 0 or epochs > 0" in diagnostic.message


def test_epochs_count_whole_batches() -> None:
    by_epochs = SETTINGS.changed(steps=0, epochs=3)
    assert by_epochs.total_steps(batches=3) == 9
    assert by_epochs.total_steps(batches=1) == 3
    assert SETTINGS.changed(epochs=3).total_steps(batches=3) == 100


def test_a_run_is_evaluated_ten_times_by_default() -> None:
    assert SETTINGS.evaluated_every(1000, 50) == 100
    assert SETTINGS.evaluated_every(3, 50) == 1
    assert SETTINGS.changed(every=7).evaluated_every(1000, 50) == 7


def test_a_run_of_epochs_with_patience_is_evaluated_after_each_epoch() -> None:
    by_epochs = SETTINGS.changed(steps=0, epochs=100, patience=10)
    assert by_epochs.evaluated_every(300, 3) == 3
    assert by_epochs.changed(every=7).evaluated_every(300, 3) == 7
    assert SETTINGS.changed(patience=10).evaluated_every(1000, 50) == 100


def test_a_long_run_logs_its_loss_as_often_as_a_short_one() -> None:
    assert [SETTINGS.logged_every(total) for total in (10, 500, 1_000_000)] == [1, 5, 100]
