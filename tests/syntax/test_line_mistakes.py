"""Mistakes in a line of a recipe or a table that the line itself explains."""

import pytest

from archlang.diagnostics import Diagnostic
from archlang.diagnostics.edits import apply_edits
from archlang.source import Source
from archlang.syntax.parser import parse_tolerantly


def mistakes(text: str) -> tuple[Diagnostic, ...]:
    return parse_tolerantly(Source("x.arch", text))[1]


@pytest.mark.parametrize(
    ("line", "corrected"),
    [
        ("task ctl, order = forward", "task ctl[order = forward]"),
        ("model m d = 64, widths = [1, 2]  # so", "model m[d = 64, widths = [1, 2]]  # so"),
        ("train adamw lr: 0.001, steps: 10", "train adamw[lr = 0.001, steps = 10]"),
        ("task = ctl[order = forward]", "task ctl[order = forward]"),
        ("task: ctl", "task ctl"),
        ("train=adamw", "train adamw"),
        ("vary model.d in 8, 16", "vary model.d in [8, 16]"),
        ("vary task.order in forward, backward", "vary task.order in [forward, backward]"),
        ('vary task.order in "a", "b"  # so', 'vary task.order in ["a", "b"]  # so'),
        ("vary a in [1], model.d in 8, 16, model.k in 1..2", "vary a in [1], model.d in [8, 16], model.k in 1..2"),
    ],
)
@pytest.mark.parametrize("after", ["    test model.d = 3\n}", "}"])
def test_brackets_and_signs_in_a_line_of_a_recipe_are_corrected(line: str, corrected: str, after: str) -> None:
    text = f"recipe r {{\n    {line}\n{after}"
    (mistake,) = mistakes(text)
    assert mistake.span.line == 2
    assert apply_edits(text, mistake.edits) == f"recipe r {{\n    {corrected}\n{after}"
    assert mistakes(f"recipe r {{\n    {corrected}\n{after}") == ()


@pytest.mark.parametrize(
    ("line", "corrected"), [("row r", 'row "r" r'), ("column test.loss", 'column "test.loss" test.loss')]
)
def test_a_title_without_quotes_is_quoted_and_what_it_names_follows(line: str, corrected: str) -> None:
    (mistake,) = mistakes(f"table t {{\n    {line}\n}}")
    assert apply_edits(mistake.span.source.text, mistake.edits) == f"table t {{\n    {corrected}\n}}"
    assert mistakes(f"table t {{\n    {corrected}\n}}") == ()


def test_a_sign_without_a_name_says_what_follows() -> None:
    (mistake,) = mistakes("recipe r {\n    model =\n    task ctl\n}")
    assert (mistake.span.line, mistake.remedy) == (2, "write `model name`")
