"""Families of tests of which the suite runs a sample: the other members are marked `slow`."""

from collections.abc import Iterable
from typing import Any

import pytest


def one_in(step: int, values: Iterable[Any]) -> list[Any]:  # Any: parameters of every type
    """Returns parameters of which each `step`-th, beginning with the first, run in the suite."""
    return [value if index % step == 0 else _slow(value) for index, value in enumerate(values)]


def _slow(value: Any) -> Any:  # Any: as above
    if hasattr(value, "marks"):
        return pytest.param(*value.values, marks=[*value.marks, pytest.mark.slow], id=value.id)
    arguments = value if isinstance(value, tuple) else (value,)
    return pytest.param(*arguments, marks=pytest.mark.slow)
