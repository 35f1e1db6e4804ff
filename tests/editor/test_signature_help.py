"""The signature of the call around the cursor, also on half-written lines."""

import pytest

from archlang.editor.signature_help import signature_help
from tests.editor.conftest import at_cursor

BLOCK = """block mix[k: int = 2, gated = true](h: seq[n, d], others: seq[n, d]...) -> seq[n, d] {
    return h
}
block b(h: seq[n, d]) -> seq[n, d] {
    let f = mix[3]
    a = norm(h)
    …
    return a
}
"""


@pytest.mark.parametrize(
    ("line", "active"),
    [
        ("c = mix[¦", "k: int = 2"),
        ("c = mix[1, ¦](h)", "gated = true"),
        ("c = mix[gated = ¦", "gated = true"),
        ("c = mix[¦gated = false](h)", "gated = true"),
        ("c = mix[ga¦ted = false](h)", "gated = true"),
        ("c = mix[2](¦", "h: seq[n, d]"),
        ("c = mix[k = 2](norm(h), ¦)", "others: seq[n, d]..."),
        ("c = mix(h, h, h, ¦)", "others: seq[n, d]..."),
        ("c = h |> mix[2](¦)", "others: seq[n, d]..."),
        ("c = f(¦", "h: seq[n, d]"),
        ("c = mix(h, (h + ¦", "others: seq[n, d]..."),
    ],
)
def test_the_parameter_at_the_cursor_is_active(line: str, active: str) -> None:
    help_ = signature_help(*at_cursor(BLOCK.replace("…", line)))
    assert help_ is not None
    assert help_.label == "mix[k: int = 2, gated = true](h: seq[n, d], others: seq[n, d]...) -> seq[n, d]"
    assert help_.active is not None
    start, end = help_.parameters[help_.active]
    assert help_.label[start:end] == active


@pytest.mark.parametrize("line", ["c = ¦", "c = mix(h)¦", "c = unknown(¦"])
def test_outside_of_calls_there_is_no_signature(line: str) -> None:
    assert signature_help(*at_cursor(BLOCK.replace("…", line))) is None


def test_more_arguments_than_parameters_have_no_active_one() -> None:
    help_ = signature_help(*at_cursor(BLOCK.replace("…", "c = norm(h, h, ¦")))
    assert help_ is not None
    assert help_.active is None


def test_a_setting_of_a_recipe_has_the_signature_of_its_task() -> None:
    help_ = signature_help(*at_cursor("recipe r {\n    task ctl[order = ¦]\n}\n"))
    assert help_ is not None
    assert help_.label.startswith("ctl[")


@pytest.mark.parametrize(
    "header", ["block mix(¦", "block mix[k: int = 2, ¦", "model m[k = 2](x: ¦", "extern block own(¦"]
)
def test_the_header_of_an_item_is_no_call(header: str) -> None:
    assert signature_help(*at_cursor(f"{BLOCK}\n{header}\n")) is None
    help_ = signature_help(*at_cursor(f"{BLOCK}\nblock own[f: block = mix[¦\n"))
    assert help_ is not None
    assert help_.label.startswith("mix[")
