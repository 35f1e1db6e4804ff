"""What the settings of a recipe need of each other, of its model and of its task, and which have no effect."""

import pytest

from archlang.plan.check import check_text

MODELS = """model small[d = 8](x: tokens[n]) -> logits[classes] { return linear[classes](last(embed[d](x))) }
model halting[steps = 3](x: tokens[n]) -> logits[classes] {
    h = embed[8](x)
    repeat steps halting h by global_halt { h <- norm(h) }
    return linear[classes](last(h))
}
model kinds[d = 8, kind: symbol = relu](x: tokens[n]) -> logits[classes] where kind in [relu, gelu] {
    h = embed[d](x)
    if kind == relu { a = relu(h) } else { a = gelu(h) }
    return linear[classes](last(a))
}
"""


def recipe(settings: str, lines: str = "", model: str = "small", task: str = "ctl") -> str:
    return f"{MODELS}recipe r {{ task {task} model {model} train adamw[steps = 100, {settings}] {lines} }}"


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


@pytest.mark.parametrize(
    ("statics", "is_refused"), [("", True), (", beta1: float = 0.9", True), (", beta1 = 0.9, beta2 = 0.9", False)]
)
def test_one_cycle_needs_the_statics_that_it_moves(statics: str, is_refused: bool) -> None:
    text = f'extern optimizer own[lr: float = 0.1{statics}] with training python "mine:Own"\n{MODELS}'
    text += "recipe r { task ctl model small train own[steps = 3, schedule = onecycle, warmup = 1] }"
    assert [(each.code, each.span.text) for each in check_text(text)] == [("E0304", "onecycle")] * is_refused


@pytest.mark.parametrize(
    ("seeds", "wrong"),
    [
        ("[0, 4_294_967_295]", []),
        ("1..3", []),
        ("[-1, 1]", ["-1"]),
        ("[1, 4_294_967_296]", ["4_294_967_296"]),
        ("[1, -2, -3]", ["-2", "-3"]),
        ("-1..2", ["-1..2"]),
    ],
)
def test_a_seed_that_no_run_can_have_is_reported_at_its_place(seeds: str, wrong: list[str]) -> None:
    diagnostics = check_text(recipe("batch = 8", f"vary seed in {seeds}"))
    assert [(diagnostic.code, diagnostic.span.text) for diagnostic in diagnostics] == [("E0624", w) for w in wrong]


def test_a_claim_about_a_seed_out_of_bounds_is_reported() -> None:
    text = recipe("batch = 8", 'vary seed in [1] claim test.accuracy = 0.5 at seed = -1 from "p"')
    assert [(each.code, each.span.text) for each in check_text(text)][:1] == [("E0624", "-1")]


@pytest.mark.parametrize(
    ("setting", "is_refused"),
    [
        ("loss = mse", True),
        ("rate = zigzag", True),
        ("metrics = [accuracy]", True),
        ("metrics = [a.b, accuracy]", True),
        ("metrics = [1]", True),
        ("metrics = [norm]", True),
        ("loss = stablemax", False),
        ("loss = mine.mse", False),
        ("rate = none", False),
        ("metrics = [mine.a]", False),
    ],
)
def test_a_function_is_shipped_or_named_after_its_file(setting: str, is_refused: bool) -> None:
    assert [each.code for each in check_text(recipe(setting))] == ["E0623"] * is_refused


def test_a_misspelt_loss_is_corrected() -> None:
    (mistake,) = check_text(recipe("loss = stablmax"))
    assert mistake.remedy == "did you mean `stablemax`?"


VARIED = "vary task.order in [forward, backward], model.d in [8, 16], train.lr in [0.1, 1e-3]"


def claiming(at: str, lines: str = VARIED, task: str = "ctl") -> str:
    return recipe("batch = 8", f'{lines} claim test.accuracy = 0.5 at {at} from "p"', "kinds", task)


@pytest.mark.parametrize(
    ("text", "code", "place"),
    [
        (claiming("task.order = sideways"), "E0304", "sideways"),
        (claiming("train.schedule = sine"), "E0304", "sine"),
        (claiming("model.kind = rleu"), "E0304", "rleu"),
    ],
)
def test_a_value_that_no_point_has_is_a_mistake(text: str, code: str, place: str) -> None:
    (mistake,) = check_text(text)
    assert (mistake.code, mistake.span.text) == (code, place)


@pytest.mark.parametrize(
    "text",
    [
        claiming("task.order = backward, model.d = 16, train.lr = 0.001", task="ctl[order = forward]"),
        claiming("train.schedule = cosine, test.length = 9"),
    ],
)
def test_a_value_of_a_point_and_one_of_what_does_not_vary_are_accepted(text: str) -> None:
    assert check_text(text) == ()


@pytest.mark.parametrize(
    ("setting", "is_refused"),
    [
        ('frozen = ["stack.2"]', False),
        ('frozen = ["stack.0.mix.weight", "mix.bias", "head.weight"]', False),
        ('frozen = ["stack.3"]', True),
        ('frozen = ["stak.0"]', True),
        ('frozen = ["stack.0.head"]', True),
        ('no_decay = ["stack.0"]', True),
        ('sign_sgd = ["head.weight"]', True),
    ],
)
def test_a_path_leads_to_weights_of_the_model(setting: str, is_refused: bool) -> None:
    text = """model deep[d = 8](x: tokens[n]) -> logits[classes] {
        let head = linear[classes]
        h = embed[d](x)
        stack 3 { let mix = linear[d] h <- relu(mix(h)) }
        return head(last(h))
    }
    """
    text += recipe(setting, model="deep")
    assert [each.code for each in check_text(text)] == ["E0621"] * is_refused
