"""The public names of the package are listed, and torch is imported only when one of them needs it."""

import subprocess
import sys

import pytest

import archlang


def test_the_package_lists_its_public_names() -> None:
    assert dir(archlang) == sorted(archlang.__all__)
    assert all(getattr(archlang, name) is not None for name in archlang.__all__)


def test_a_name_that_is_not_public_is_an_error() -> None:
    with pytest.raises(AttributeError, match="module 'archlang' has no attribute 'lod'"):
        _ = archlang.lod


def test_listing_the_names_imports_no_torch() -> None:
    program = "import archlang, sys; dir(archlang); archlang.check; assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", program], check=True)
