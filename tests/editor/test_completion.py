"""What an editor offers to write, also on half-written lines."""

import pytest

from archlang.editor.completion import completions, word_start
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


@pytest.mark.parametrize("line", ["c = ¦", "c = a + ¦", "c = linear[d](¦", "c = norm(h¦)"])
def test_names_in_scope_come_before_the_blocks_of_the_library(line: str) -> None:
    words = offered(BLOCK, line)
    assert {"a", "h", "k", "d"} <= set(words[:7])
    assert {"attention", "gradient"} <= set(words)
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
    assert offered("¦") == ["use", "block", "model", "task", "extern", "recipe", "table"]
    assert "archlang.models.panm" in offered("use ¦")


def test_a_comment_completes_nothing() -> None:
    assert offered(BLOCK, "# no¦") == []


TYPES = ("tokens", "seq", "vec", "data", "logits")


@pytest.mark.parametrize(
    "header",
    [
        "block b(x: ¦)", "block b(x: to¦", "block b[k = 2](h: seq[n, d], x: ¦) -> seq[n, d] {\n    return h\n}",
        "model m(x: tokens[n]) -> ¦", "model m(x: tokens[n]) -> log¦ {\n    return x\n}",
    ],
)  # fmt: skip
def test_types_are_offered_where_a_signature_has_one(header: str) -> None:
    words = offered(header)
    assert set(TYPES) <= set(words)
    assert "attention" not in words


def test_a_kind_of_a_static_is_no_type() -> None:
    assert "tokens" not in offered("block b[k: ¦](h: seq[n, d])")


def test_values_in_scope_are_offered_in_a_loop_on_one_line() -> None:
    assert {"a", "h", "d"} <= set(offered(BLOCK, "repeat 3 { a <- ¦ }")[:6])


@pytest.mark.parametrize("line", ["y = att¦", "y = norm(att¦", "y = repeat 2 {\n        a <- att¦\n    }"])
def test_a_statement_is_not_offered_the_name_that_it_binds(line: str) -> None:
    words = offered(BLOCK, line)
    assert "y" not in words
    assert "a" in words


def test_the_files_of_the_folder_are_offered_after_use() -> None:
    files = ("./parts/b.arch", "./used.arch")

    def words(line: str) -> list[str]:
        return [each.word for each in completions(*at_cursor(line), lambda: files)]

    assert words('use "./¦"') == words('use "¦') == words('use "./parts/¦"') == [*files]
    assert offered('use "./¦"') == []


def test_a_completed_path_replaces_what_is_written_of_it() -> None:
    document, offset = at_cursor('use "./parts/b¦"')
    assert document.text[word_start(document.text, offset) : offset] == "./parts/b"


@pytest.mark.parametrize("unclosed", ["train adamw[lr = 1e-3,", "train adamw[lr = 1e-3", "train adamw["])
def test_a_line_after_unclosed_statics_is_completed_as_a_line_of_its_own(unclosed: str) -> None:
    text = RECIPE.replace("train adamw[steps = 1]", unclosed)
    assert "model.d" in offered(text, "vary ¦")
    assert {"d"} <= set(offered(text, "vary model.¦")) or "model.d" in offered(text, "vary model.¦")


@pytest.mark.parametrize("unclosed", ["c = linear[d](a", "c = attention[heads = 2,", "c = norm("])
def test_a_statement_after_an_unclosed_call_is_completed_as_a_statement(unclosed: str) -> None:
    assert {"a", "h", "norm"} <= set(offered(BLOCK, f"{unclosed}\n    return ¦"))


def test_a_gradient_is_no_block_that_a_static_takes() -> None:
    text = "block f[g: block = norm](h: seq[n, d]) -> seq[n, d] { return g(h) }\n" + BLOCK
    words = offered(text, "c = f[g = ¦](a)")
    assert "norm" in words
    assert "gradient" not in words
