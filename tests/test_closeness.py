"""Tests of floating point pass on every CPU: `close` compares them, or their tolerance is in the test."""

import ast
from pathlib import Path

import pytest
import torch

from tests.closeness import close

TESTS = Path(__file__).parent
COMPARISONS = ("assert_close", "allclose", "assert_allclose")


def test_the_tolerance_is_in_units_of_the_largest_value() -> None:
    expected = torch.tensor([1e4, 1e-4])
    close(expected + 0.05, expected)
    with pytest.raises(AssertionError):
        close(expected + 0.2, expected)


def test_integers_are_compared_exactly() -> None:
    with pytest.raises(AssertionError):
        close((torch.tensor([1_000_000]),), (torch.tensor([1_000_001]),))


def test_no_comparison_relies_on_a_default_tolerance() -> None:
    bare = [
        f"{path.relative_to(TESTS)}:{node.lineno}"
        for path in sorted(TESTS.rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call)
        and getattr(node.func, "attr", getattr(node.func, "id", "")) in COMPARISONS
        and not {"rtol", "atol"} & {keyword.arg for keyword in node.keywords}
    ]
    assert bare == [], "use tests.closeness.close, or give rtol and atol"
