"""Fixtures of the backend's tests."""

import pytest
import torch


@pytest.fixture(autouse=True)
def seeded() -> None:
    torch.manual_seed(0)
