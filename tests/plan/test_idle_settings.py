"""A setting of training that changes nothing is warned of."""

import pytest

from archlang.plan.check import check_text

MODELS = """model small[d = 8](x: tokens[n]) -> logits[classes] { return linear[classes](last(embed[d](x))) }
model halting[steps = 3](x: tokens[n]) -> logits[classes] {
    h = embed[8](x)
    repeat steps halting h by global_halt { h <- norm(h) }
    return linear[classes](last(h))
}
"""


def recipe(settings: str, lines: str = "", model: str = "small") -> str:
    return f"{MODELS}recipe r {{ task ctl model {model} train adamw[steps = 100, {settings}] {lines} }}"


@pytest.mark.parametrize(
    ("settings", "idle"),
    [
        ("warmup = 10", "warmup"),
        ("warmup = 0", ""),
        ("warmup = 10, schedule = cosine", ""),
        ("cooldown = 0.1, schedule = cosine", "cooldown"),
        ("cooldown = 0.1, schedule = wsd", ""),
        ("beta1 = 0.8, schedule = onecycle", "beta1"),
        ("beta1 = 0.8", ""),
        ("sign_lr = 0.1", "sign_lr"),
        ("sign_decay = 0.1", "sign_decay"),
        ("epochs = 2", "epochs"),
        ("epochs = 0", ""),
        ("every = 101", "every"),
        ("every = 100", ""),
        ("schedule = warmup", "schedule"),
        ("schedule = root", ""),
        ("micro = 33", "micro"),
        ("micro = 32", ""),
        ("micro = 33, batch_of = tokens", ""),
        ("ponder = 0.1", "ponder"),
        ("ponder = 0.0", ""),
    ],
)
def test_a_setting_that_changes_nothing_is_warned_of_at_its_place(settings: str, idle: str) -> None:
    diagnostics = check_text(recipe(settings))
    assert [diagnostic.code for diagnostic in diagnostics] == ["W0208"] * bool(idle)
    for diagnostic in diagnostics:
        assert diagnostic.message.startswith(f"`{idle}` has no effect")
        assert f"{idle} = {diagnostic.span.text}" in settings
        (edit,) = diagnostic.edits
        assert edit.span.text.strip(", ") == f"{idle} = {diagnostic.span.text}"


@pytest.mark.parametrize(
    ("settings", "line", "idle"),
    [
        ("", "vary train.warmup in [10, 20]", True),
        ("", "search train.cooldown in 0.1..0.5", True),
        ("", "vary train.ponder in [0.1, 0.2]", True),
        ("batch = 8", "vary train.micro in [16, 32]", True),
        ("batch = 8", "vary train.micro in [4, 32]", False),
        ("schedule = cosine", "vary train.warmup in [10, 20]", False),
        ("", "vary train.warmup in [10, 20], train.schedule in [constant, cosine]", False),
        ("", "vary train.every in [50, 200]", False),
    ],
)
def test_a_static_that_is_varied_or_searched_without_effect_is_warned_of(settings: str, line: str, idle: bool) -> None:
    diagnostics = check_text(recipe(settings or "batch = 32", line))
    path = line.split()[1]
    assert [(each.code, each.span.text) for each in diagnostics] == [("W0208", path)] * idle


@pytest.mark.parametrize(
    ("settings", "lines", "is_endless"),
    [
        ("schedule = cosine, warmup = 101", "", True),
        ("schedule = root, warmup = 101", "", True),
        ("schedule = cosine, warmup = 100", "", False),
        ("schedule = cosine, warmup = 101", "vary train.steps in [100, 200]", False),
    ],
)
def test_a_warmup_that_a_run_does_not_complete_is_warned_of(settings: str, lines: str, is_endless: bool) -> None:
    diagnostics = check_text(recipe(settings, lines))
    assert [(each.code, each.span.text) for each in diagnostics] == [("W0209", "101")] * is_endless


@pytest.mark.parametrize(
    "text",
    [
        recipe("warmup = 10", "vary train.schedule in [constant, cosine]"),
        recipe("warmup = 10", "search train.schedule in [constant, cosine]"),
        recipe("every = 200", "vary train.steps in [100, 400]"),
        recipe("ponder = 0.1", model="halting"),
        recipe("warmup = 10") + " recipe child from r { train adamw[schedule = cosine] }",
        recipe("warmup = 10")
        + ' table t { row "a" r at train.schedule = cosine column "b" test.accuracy column "c" test.loss }',
        # The base is right; the recipe that takes it over only turns the schedule off.
        recipe("schedule = cosine, warmup = 10")
        + " recipe same from r { train adamw[steps = 100, schedule = constant] }",
    ],
)
def test_a_setting_that_has_an_effect_at_some_point_or_in_its_base_is_not(text: str) -> None:
    assert not check_text(text)
