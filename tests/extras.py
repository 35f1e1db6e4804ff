"""Skips tests of what needs a package of an extra that is not installed."""

import pytest


def skip_without_extra(block: str) -> None:
    """Skips the test if the block of the library needs a package that is not installed."""
    if block == "bert":
        pytest.importorskip("transformers", reason="the extra `bert` is not installed")
