"""`optimizers.arch` declares the training settings, and its signatures refuse wrong values."""

import re
from dataclasses import fields, replace
from pathlib import Path

import pytest

import archlang
from archlang.names import library
from archlang.plan.check import check_text
from archlang.syntax.expression_text import expression_text
from archlang.train.settings import Settings
from archlang.types.statics import StaticValue, Symbol
from tests.train.settings_of_a_run import SETTINGS

NAMES = [field.name for field in fields(Settings) if field.name != "charges"]
STATICS: dict[str, StaticValue] = {name: getattr(SETTINGS, name) for name in NAMES}
KINDS = {"bool": "bool", "float": "float", "int": "int", "str": "symbol", "tuple[str, ...]": "list"}


def recipe(training: str) -> str:
    return f"""
model tiny(x: tokens[n]) -> logits[classes] {{ return embed[8](x) |> mean |> linear[classes] }}
recipe tiny {{
    task  ctl
    model tiny
    train {training}
}}
"""


def test_settings_have_the_names_and_kinds_that_are_declared() -> None:
    declared = {static.name: static.kind for static in library.training_settings().signature.statics}
    # Dotted words, which only the language tells from bare ones.
    dotted = {"select", "rate", "loss"}
    assert {declared.pop(name) for name in dotted} == {"path"}
    of_names = [field for field in fields(Settings) if field.name in NAMES]
    kinds = {field.name: KINDS[str(field.type)] for field in of_names if field.name not in dotted}
    assert kinds == {"lr": "float", **declared}


def test_the_documentation_lists_every_setting_with_its_default() -> None:
    page = (Path(archlang.__file__).parent.parent / "docs" / "language.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(\w+)` \| `([\w.\[\]]+)` \|", page, flags=re.MULTILINE)
    statics = library.training_settings().signature.statics
    assert rows == [(static.name, expression_text(static.default)) for static in statics if static.default is not None]


@pytest.mark.parametrize("name", sorted(library.optimizer_names()))
def test_every_optimizer_has_all_training_settings_and_a_learning_rate(name: str) -> None:
    optimizer = library.optimizer(name)
    assert optimizer is not None
    assert {*NAMES} <= {static.name for static in optimizer.signature.statics}


def test_symbols_arrive_as_words() -> None:
    assert Settings.of({**STATICS, "select": Symbol("iid.accuracy")}).selecting == ("iid", "accuracy")


def test_weights_of_charges_are_settings_and_integers_become_numbers() -> None:
    settings = Settings.of({**STATICS, "charges.balance": 1, "charges.entropy": 0.5})
    assert settings.charges == {"balance": 1.0, "entropy": 0.5}


def test_statics_of_the_optimizer_are_no_settings() -> None:
    assert Settings.of({**STATICS, "weight_decay": 0.1}) == SETTINGS


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
    by_epochs = replace(SETTINGS, steps=0, epochs=3)
    assert by_epochs.total_steps(batches=3) == 9
    assert by_epochs.total_steps(batches=1) == 3
    assert replace(SETTINGS, epochs=3).total_steps(batches=3) == 100


def test_a_run_is_evaluated_ten_times_by_default() -> None:
    assert SETTINGS.evaluated_every(1000, 50) == 100
    assert SETTINGS.evaluated_every(3, 50) == 1
    assert replace(SETTINGS, every=7).evaluated_every(1000, 50) == 7


def test_a_run_of_epochs_with_patience_is_evaluated_after_each_epoch() -> None:
    by_epochs = replace(SETTINGS, steps=0, epochs=100, patience=10)
    assert by_epochs.evaluated_every(300, 3) == 3
    assert replace(by_epochs, every=7).evaluated_every(300, 3) == 7
    assert replace(SETTINGS, patience=10).evaluated_every(1000, 50) == 100


def test_a_long_run_logs_its_loss_as_often_as_a_short_one() -> None:
    assert [SETTINGS.logged_every(total) for total in (10, 500, 1_000_000)] == [1, 5, 100]
