"""What an editor offers in each place of a recipe and a table, whose names and keywords the grammar allows."""

from collections.abc import Sequence

import pytest

from archlang.editor.completion import completions
from tests.editor.conftest import at_cursor

PROGRAM = """model m[d = 8, mixer: block = attention[1], scaling: symbol = none](x: tokens[n]) -> logits[classes]
    where scaling in [none, depth] {
    return embed[d](x) |> mixer |> last |> linear[classes]
}

recipe base {
    task  ctl
    model m
    train adamw[steps = 1]
    vary  model.d in [8, 16], task.order in [forward, backward], seed in 1..3
    search train.lr in 1e-4..1e-2 log
    claim test.accuracy = 1.0 at model.d = 8 from "a paper"
    …recipe
}

recipe heir from base { train adamw[steps = 2] }

table results from "a paper" {
    row    "Base" base
    column "Ten" test.accuracy[10] at task.order = forward
    …table
}

…item
"""
RECIPE_WORDS = ("task", "model", "train", "test", "vary", "search", "where", "claim")
METRICS = ("valid.accuracy", "test.accuracy", "test.loss", "run.seconds", "run.memory", "run.flops", "run.state")
STATICS = ("task.order", "model.d", "model.scaling", "train.lr", "seed")
OF_MODEL, OTHER_STATICS = STATICS[1:3], (STATICS[0], *STATICS[3:])


def offered(place: str, line: str) -> list[str]:
    """Returns what is offered at the sign `¦` of a line of the recipe, of the table, or of the file."""
    text = PROGRAM.replace(f"…{place}", line)
    for other in ("recipe", "table", "item"):
        text = text.replace(f"…{other}", "")
    return [completion.word for completion in completions(*at_cursor(text))]


# The place, the line, some words that are offered there, and some that are not.
PLACES: tuple[tuple[str, str, Sequence[str], Sequence[str]], ...] = (
    ("recipe", "¦", RECIPE_WORDS, ("row", "column", "base", "let", "norm")),
    ("recipe", "where ¦", ("flops", "parameters", "state"), (*STATICS, "where")),
    ("recipe", "where flops[512] <= 1e9, ¦", ("parameters",), STATICS),
    ("recipe", "cl¦", RECIPE_WORDS, ("row",)),
    ("recipe", "task ¦", ("ctl", "listops"), ("m", "adamw", "test.accuracy")),
    ("recipe", "task ctl[¦", ("order = ",), ("d = ",)),
    ("recipe", "task ctl[order = ¦", ("forward", "backward"), ("order = ",)),
    ("recipe", "model ¦", ("m",), ("norm", "ctl")),
    ("recipe", "model m[¦", ("d = ", "mixer = "), ("order = ",)),
    ("recipe", "model m[d = 8, mixer = ¦", ("attention", "norm"), ("d = ", "ctl")),
    ("recipe", "model m[scaling = ¦", ("none", "depth"), ("d = ",)),
    ("recipe", "train ¦", ("adamw", "sgd"), ("ctl",)),
    ("recipe", "train adamw[steps = 1, ¦", ("lr = ", "select = "), ("steps = ",)),
    ("recipe", "train adamw[select = ¦", ("valid.accuracy",), ("run.seconds", "train.lr", "model.d")),
    ("recipe", "train adamw[loss = ¦", ("task",), METRICS),
    ("recipe", "test ¦", OF_MODEL, (*OTHER_STATICS, *METRICS)),
    ("recipe", "test model.scaling = ¦", ("none", "depth"), STATICS),
    ("recipe", "test model.d = 8, ¦", OF_MODEL, (*OTHER_STATICS, *METRICS)),
    ("recipe", "vary ¦", STATICS, METRICS),
    ("recipe", "vary model.¦", STATICS, METRICS),
    ("recipe", "vary model.d in ¦", (), (*STATICS, *METRICS, "attention")),
    ("recipe", "vary model.scaling in [¦", ("none", "depth"), STATICS),
    ("recipe", "vary model.mixer in [¦", ("attention", "norm"), STATICS),
    ("recipe", "vary model.mixer in [attention[¦", ("heads = ",), STATICS),
    ("recipe", "vary model.d in [1],\n        ¦", STATICS, (*METRICS, "claim")),
    ("recipe", "search ¦", STATICS, METRICS),
    ("recipe", "claim ¦", (*METRICS, "median"), STATICS),
    ("recipe", "claim test.¦", METRICS, STATICS),
    ("recipe", "claim median ¦", METRICS, (*STATICS, "median")),
    ("recipe", "claim test.accuracy[¦", ("9", "10"), ("8", *STATICS, *METRICS)),
    ("recipe", "claim test.accuracy[1¦] = 1.0", ("9", "10"), ("8", *STATICS, *METRICS)),
    ("recipe", "claim test.accuracy = ¦", (), (*STATICS, *METRICS)),
    ("recipe", "claim test.accuracy = 0.5 ¦", ("at", "from"), (*STATICS, *METRICS, "in")),
    ("recipe", "claim test.accuracy = 0.5 ± 0.1 at ¦", ("test.length", *STATICS), ("valid.length", *METRICS)),
    ("recipe", "claim test.accuracy = 0.5 at task.order = ¦", ("forward", "backward"), STATICS),
    ("recipe", "claim test.accuracy = 0.5 at task.order = forward, ¦", STATICS, METRICS),
    ("recipe", 'claim test.accuracy = 0.5 from "a ¦', (), (*STATICS, *METRICS, "at")),
    ("recipe", "vary model.d in [1] # ¦", (), (*STATICS, *RECIPE_WORDS)),
    ("item", "recipe new from ¦", ("base", "heir"), ("m", "results", "from")),
    ("item", "table new from ¦", (), ("base", "heir", "results")),
    ("recipe", "claim test.accuracy = 0.5 from ¦", (), ("base", "heir", "results")),
    ("item", "¦", ("use", "recipe", "table"), ("row", "claim", "base")),
    ("table", "¦", ("row", "column", "columns"), ("task", "claim", "let", "norm", "base")),
    ("table", "row ¦", (), ("base", "row")),
    ("table", 'row "A" ¦', ("base", "heir", "absent", "claims"), ("results", *METRICS)),
    ("table", 'row "A" heir ¦', ("at", "best of", "claims"), ("base", "row", "absent")),
    ("table", 'row "A" heir at ¦', STATICS, (*METRICS, "test.length")),
    ("table", 'row "A" heir at task.order = ¦', ("forward", "backward"), STATICS),
    ("table", 'row "A" heir at task.order = forward, ¦', STATICS, METRICS),
    ("table", 'row "A" heir best of ¦', ("model.d", "task.order"), ("seed", "train.lr", *METRICS)),
    ("table", 'row "A" heir\n        ¦', ("row", "claims"), METRICS),
    ("table", 'row "A" heir claims ¦', ("median",), (*STATICS, *METRICS)),
    ("table", 'row "A" heir at model.d = 8 claims 0.5, ¦', (), (*STATICS, *METRICS, "median")),
    ("table", 'row "A" heir claims 0.5 ¦', ("from",), (*STATICS, "at")),
    ("table", 'column "A" ¦', (*METRICS, "average of"), (*STATICS, "base")),
    ("table", 'column "A" test.¦', METRICS, STATICS),
    ("table", 'column "A" test.accuracy ¦', ("at", "best of"), METRICS),
    ("table", 'column "A" test.accuracy at ¦', ("test.length", *STATICS), METRICS),
    ("table", 'column "A" test.accuracy best of ¦', ("model.d", "task.order"), ("seed", *METRICS)),
    ("table", "columns ¦", METRICS, (*STATICS, "average of")),
    ("table", "columns test.accuracy at ¦", ("test.length", *STATICS), METRICS),
    ("item", 'table t {\n    column "A" average of ¦', ("results",), ("t", "base", *METRICS)),
    ("item", 'table t {\n    column "A" average of results at ¦', ("task.order",), ("model.d", *METRICS)),
)


@pytest.mark.parametrize(
    ("place", "line", "words", "others"), PLACES, ids=lambda each: each if isinstance(each, str) else ""
)
def test_a_place_of_a_recipe_or_a_table_is_offered_what_can_stand_there(
    place: str, line: str, words: Sequence[str], others: Sequence[str]
) -> None:
    found = offered(place, line)
    assert [word for word in words if word not in found] == []
    assert [word for word in others if word in found] == []
    assert words or not found


UNFINISHED = """model m(x: tokens[n]) -> logits[classes] {
    loss balance = mean(embed[1](x))
    return embed[8](x) |> last |> linear[classes]
}

recipe r {
    task  ctl
    model m
    train adamw[…]
}
"""


@pytest.mark.parametrize(
    "written", ["select = ¦", "steps = 1, select = valid.¦", "select = va¦", "select = ¦, steps = 1"]
)
def test_the_metrics_that_select_are_offered_in_the_only_train_line(written: str) -> None:
    words = [each.word for each in completions(*at_cursor(UNFINISHED.replace("…", written)))]
    assert words[:2] == ["train.loss", "train.accuracy"]
    assert "valid.accuracy" in words


def test_the_losses_of_the_model_are_offered_as_weights() -> None:
    for written, is_offered in (("¦", True), ("steps = 1, losses.¦", True), ("losses.balance = 0.1, ¦", False)):
        words = [each.word for each in completions(*at_cursor(UNFINISHED.replace("…", written)))]
        assert ("losses.balance = " in words) is is_offered


def test_an_optimizer_of_the_program_offers_the_training_settings() -> None:
    text = UNFINISHED.replace("adamw[…]", "mine[lr = 1.0, ¦]")
    text += 'extern optimizer mine[lr: float = 1.0]\n    with training\n    python "mine:Mine"\n'
    words = [each.word for each in completions(*at_cursor(text))]
    assert {"steps = ", "batch = "} <= set(words)
    assert "lr = " not in words


def test_the_words_with_which_a_model_compares_a_static_are_offered() -> None:
    text = UNFINISHED.replace("m(x", "m[pool: symbol = mean](x").replace("adamw[…]", "adamw[steps = 1]")
    text = text.replace("    return", "    z = embed[1](x) when pool == newest else embed[2](x)\n    return")
    text = text.replace("model m\n", "model m[pool = ¦]\n")
    assert [each.word for each in completions(*at_cursor(text))][:2] == ["mean", "newest"]
