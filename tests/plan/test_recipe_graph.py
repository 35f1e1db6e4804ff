"""A mistake of a model names the values with which it has it, and the edit of a leak makes no other program."""

import pytest

from archlang.plan.check import check_text

MODEL = """model m[d = 32, heads = 4, mix: block = norm](x: tokens[n]) -> logits[classes] {
    return embed[d](x) |> attention[heads] |> mix |> last |> linear[classes]
}
"""
RECIPE = "recipe r {{\n    task  ctl\n    model m{}\n    train adamw[lr = 1e-3, steps = 2]\n    {}\n}}\n"
TABLE = 'table t {{\n    row    "A" r{}\n    column "B" test.accuracy{}\n}}\n'
NORM = RECIPE.format("", "")


@pytest.mark.parametrize(
    ("items", "place", "text"),
    [
        (RECIPE.format("", "vary model.heads in [2, 4, 6]"), "6", "with `model.heads = 6`"),
        (RECIPE.format("", "search model.heads in [2, 4, 6]"), "6", "with `model.heads = 6`"),
        (RECIPE.format("[heads = 6]", ""), "m[heads = 6]", "in the recipe `r`"),
        (NORM + RECIPE.replace(" r ", " s from r ").format("[heads = 6]", ""), "m[heads = 6]", "in the recipe `s`"),
        (NORM + TABLE.format(" at model.mix = linear", ""), "linear", "with `model.mix = linear`"),
        (NORM + TABLE.format("", " at model.heads = 6"), "6", "with `model.heads = 6`"),
    ],
)
def test_a_mistake_of_one_point_names_its_value(items: str, place: str, text: str) -> None:
    (mistake,) = check_text(MODEL + items)
    label = mistake.labels[-1]
    assert (label.span.text, label.text) == (place, text)
    assert mistake.span.line == 2


def test_a_mistake_of_every_point_names_none() -> None:
    (mistake,) = check_text(MODEL.replace("norm]", "linear]") + RECIPE.format("", "vary model.heads in [2, 4]"))
    assert not any("model." in label.text or "recipe" in label.text for label in mistake.labels)


MEMORY = """model m[d = 16](x: tokens[n]) -> logits[n, vocab] {
    h = embed[d](x)
    m = learned[4, d]()
    y = scan c in chunks[8](h) carry m {
        m <- m + attention[4](m, c)
        emit c + attention[4](c, m)
    }
    return linear[vocab](y)
}
"""


def test_a_memory_that_is_read_after_its_update_is_told_to_be_read_before() -> None:
    """With `causal = true`, a slot of the memory would read as many positions of the chunk as its number."""
    (mistake,) = check_text(MEMORY + RECIPE.replace("ctl", "flipflop").format("", ""))
    assert (mistake.code, mistake.edits) == ("E0501", ())
    assert mistake.remedy.startswith("read a carried state before its update")
    first, second = "m <- m + attention[4](m, c)", "emit c + attention[4](c, m)"
    text = MEMORY.replace(first, "…").replace(second, first).replace("…", second.replace("emit", "out ="))
    text = text.replace(first, f"{first}\n        emit out")
    assert check_text(text + RECIPE.replace("ctl", "flipflop").format("", "")) == ()


@pytest.mark.parametrize(
    ("attend", "remedy"),
    [
        ("masked_softmax_keys(s, lower_triangle(s))", "set `causal = true`, or read the `lower_triangle` of the map"),
        ("softmax_queries(s)", "read earlier positions only"),
        ("lower_triangle[1](softmax_keys[causal = true](s))", "read earlier positions only"),
    ],
)
def test_the_remedy_of_a_leak_names_only_a_static_that_its_block_has(attend: str, remedy: str) -> None:
    body = f"    h = embed[8](x)\n    s = scores(h, h)\n    return linear[vocab](weigh[causal = true]({attend}, h))\n"
    model = f"model m(x: tokens[n]) -> logits[n, vocab] {{\n{body}}}\n"
    (mistake,) = check_text(model + RECIPE.replace("ctl", "flipflop").format("", ""))
    assert (mistake.code, mistake.remedy, bool(mistake.edits)) == ("E0501", remedy, "set" in remedy)
