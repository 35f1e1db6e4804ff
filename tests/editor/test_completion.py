"""What an editor offers to write, also on half-written lines."""

import pytest

from archlang.editor.completion import completions
from tests.editor.conftest import at_cursor

BLOCK = "block b[k = 2](h: seq[n, d]) -> seq[n, d] {\n    a = norm(h)\n    …\n    return a\n}\n"
RECIPE = """model m[d = 8](x: tokens[n]) -> logits[classes] {
    return embed[d](x) |> last |> linear[classes]
}

recipe r {
    task  ctl
    model m
    train adamw[steps = 1]
    …
}
"""


def offered(text: str, line: str = "") -> list[str]:
    return [completion.word for completion in completions(*at_cursor(text.replace("…", line)))]


@pytest.mark.parametrize("line", ["¦", "c = ¦", "c = a + ¦", "c = linear[d](¦", "c = a |> ¦", "c = norm(h¦)"])
def test_names_in_scope_come_before_the_blocks_of_the_library(line: str) -> None:
    words = offered(BLOCK, line)
    assert {"a", "h", "k", "d"} <= set(words[:7])
    assert "attention" in words
    assert "m" not in words


def test_a_value_is_offered_with_its_type() -> None:
    by_word = {each.word: each for each in completions(*at_cursor(BLOCK.replace("…", "c = ¦")))}
    assert (by_word["a"].kind, by_word["a"].detail) == ("value", "seq[n, d]")


def test_statics_that_are_not_set_yet_are_offered() -> None:
    words = offered(BLOCK, "c = attention[heads = 2, ¦")
    assert words[0] == "position = "
    assert "heads = " not in words


def test_a_static_offers_the_values_that_its_signature_allows() -> None:
    assert offered(BLOCK, "c = attention[2, position = ¦")[:5] == ["none", "absolute", "rotary", "xpos", "alibi"]
    assert offered(BLOCK, "c = attention[2, causal = ¦](a)")[:2] == ["true", "false"]


def test_a_name_bound_later_is_not_offered() -> None:
    assert "later" not in offered(BLOCK, "c = ¦\n    later = norm(a)")


def test_recipes_are_completed() -> None:
    assert offered(RECIPE, "¦")[:3] == ["task", "model", "train"]
    assert "model.d" in offered(RECIPE, "vary model.¦")
    assert "train.lr" in offered(RECIPE, "search ¦")
    assert "listops" in offered(RECIPE.replace("ctl", "¦"))
    assert offered(RECIPE.replace("model m\n", "model ¦\n")) == ["m"]
    assert "adamw" in offered(RECIPE.replace("adamw", "¦"))
    assert offered(RECIPE.replace("ctl", "ctl[order = ¦]")) == ["forward", "backward"]
    assert offered(RECIPE.replace("m\n", "m[¦\n")) == ["d = "]


def test_items_and_library_files_are_completed() -> None:
    assert offered("¦") == ["use", "block", "model", "extern", "recipe", "table"]
    assert "archlang.models.panm" in offered("use ¦")


def test_a_comment_completes_nothing() -> None:
    assert offered(BLOCK, "# no¦") == []
