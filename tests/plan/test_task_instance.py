"""What the class of a task refuses, `check` refuses."""

import pytest

from archlang.names import library
from archlang.plan.check import check_text

VALUES = {
    "int": ("0", "16_777_216"),
    "float": ("inf", "0.5"),
    "bool": ("true", "false"),
    "symbol": ("other",),
    "range": ("0..0", "-5..3", "40..2", "1..16_777_216"),
    "list": ("[]", "[1]", "[word]", "[1..2, [1], true]", "[-1, inf]"),
    "file": ('"absent.tsv"',),
}


def test_a_static_that_the_class_of_a_task_refuses_is_reported() -> None:
    text = "model m(x: tokens[n]) -> logits[n, vocab] { return embed[4](x) |> linear[vocab] }"
    (diagnostic,) = check_text(text + "recipe r { task flipflop[test_length = [7]] model m train adamw[steps = 1] }")
    assert (diagnostic.code, diagnostic.span.text) == ("E0618", "flipflop[test_length = [7]]")


@pytest.mark.parametrize("name", sorted(library.task_names()))
def test_a_mistake_in_any_static_has_a_remedy(name: str) -> None:
    item = library.task(name)
    assert item is not None
    for static in item.signature.statics:
        for value in VALUES.get(static.kind or "", ()):
            text = f"recipe r {{ task {name}[{static.name} = {value}] model m train adamw[steps = 1] }}"
            diagnostics = check_text(text)  # at least the missing model
            assert diagnostics
            assert all(diagnostic.remedy for diagnostic in diagnostics), text
