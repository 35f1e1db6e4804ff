"""A line with a form of another language, or a misplaced part, has the remedy that is meant."""

import pytest

from archlang.plan.check import check_text
from tests.plan.test_half_written_lines import BODY, RECIPE


def remedies(template: str, line: str) -> list[str]:
    """Returns the remedies of the mistakes in a line that stands where a template has `…`."""
    number = template[: template.index("…")].count("\n") + 1
    mistakes = check_text(template.replace("…", line), "program.arch")
    return [each.remedy for each in mistakes if each.span.line == number]


@pytest.mark.parametrize(
    ("line", "remedy"),
    [
        ("y = h.norm()", "a value has no methods: write `norm(h)`"),
        ("y = linear[d]", "apply the block: `linear[d](h)`, or `h |> linear[d]`"),
        ("let f = norm(h)", "bind the value without `let`: `f = norm(h)`"),
        ("let f = h", "bind the value without `let`: `f = h`"),
        ("let f = 3", "write `let f = linear[64]`, or bind a value without `let`: `f = …`"),
        ("let f = h |> norm", "write `let f = linear[64]`, or bind a value without `let`: `f = …`"),
    ],
)
def test_a_form_of_another_language_has_the_remedy_of_this_one(line: str, remedy: str) -> None:
    text = BODY.replace("…", line).replace("first", "h").replace("second", "h")
    mistakes = [each for each in check_text(text, "program.arch") if each.span.line == 3 and each.is_error]
    assert [each.remedy for each in mistakes] == [remedy]


PART = """block b[r: range](h: seq[n, d]) -> seq[n, d] { return linear[r.low](h) }
model m[d = 8](x: tokens[n]) -> logits[classes] { return embed[d](x) |> b[1..2] |> last |> linear[classes] }
"""
TRUNCATED = """model m[d = 8](x: tokens[n]) -> logits[classes] {
    h = embed[d](x)
    a = mean(h)
    s = mean(h)
    y = scan v in h carry s truncated 2, a { emit v }
    return y |> last |> linear[classes]
}
"""
TOKENS = """model m[d = 8](x: tokens[n]) -> logits[classes] {
    y = scan v in x { emit linear[d](v) }
    return y |> last |> linear[classes]
}
"""
SCAN = """model m[d = 8](x: tokens[n]) -> logits[classes] {
    h = embed[d](x)
    h <- scan v in h { emit v }
    return h |> last |> linear[classes]
}
"""
TWICE = """model m[d = 8](x: tokens[n]) -> logits[classes] { return embed[d](x) |> last |> linear[classes] }
recipe r {
    task  ctl
    model m
    train adamw[steps = 1]
}
recipe r { model m[d = 4] }
"""
SETTINGS = TWICE[: TWICE.rindex("recipe")]


@pytest.mark.parametrize(
    ("program", "remedy"),
    [
        (PART, "declare a static for each part of `r`: only Python reads its parts"),
        (TRUNCATED, "write `truncated 2` after the last name of `carry`"),
        (TOKENS, "turn tokens into vectors with `embed[d]`, and scan these"),
        (SCAN, "write the loop before this line, as in `y = scan v in h … { … emit v }`, and use its result here"),
        (TWICE, "or delete it; a recipe that changes parts of `r` is `recipe other from r { … }`"),
        (SETTINGS.replace("adamw[", "sgd[schedule = onecycle, "), "change one of these values"),
        (SETTINGS.replace("adamw[", "adamw[halt = foo, "), "change one of these values"),
    ],
)
def test_one_mistake_has_one_remedy(program: str, remedy: str) -> None:
    (mistake,) = [each for each in check_text(program, "program.arch") if each.is_error]
    assert mistake.remedy.endswith(remedy)


@pytest.mark.parametrize(
    ("line", "remedy"),
    [
        ("train adamw[learning_rate = 1e-3]", "here it is called `lr`"),
        ("train adamw[batch_size = 64]", "here it is called `batch`"),
    ],
)
def test_a_line_of_a_recipe_has_the_remedy_that_is_meant(line: str, remedy: str) -> None:
    assert remedy in remedies(RECIPE, line)


@pytest.mark.parametrize(
    ("header", "name"),
    [
        ("b[a = 1, a = 2](h: seq[n, d])", "a = 2"),
        ("b(h: seq[n, d], h: vec[d])", "h: vec[d]"),
        ("b[h = 1](h: seq[n, d])", "h: seq[n, d]"),
    ],
)
def test_a_name_that_a_signature_declares_twice_is_to_be_deleted_or_renamed(header: str, name: str) -> None:
    (mistake,) = check_text(f"block {header} -> seq[n, d] {{\n    return norm(h)\n}}\n", "program.arch")
    assert (mistake.code, mistake.span.text) == ("E0205", name)
    assert mistake.remedy == "delete one of the two, or choose another name"
