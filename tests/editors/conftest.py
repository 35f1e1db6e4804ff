"""The extension of VS Code, packed once for all tests."""

import shutil
import subprocess
from pathlib import Path

import pytest

from editors.code_server import packed_extension


@pytest.fixture(scope="session")
def extension(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The packed extension, in a folder with its sources and its packages."""
    if shutil.which("npm") is None:
        pytest.skip("npm is not installed")
    try:
        return packed_extension(tmp_path_factory.mktemp("vscode"))
    except subprocess.CalledProcessError as error:
        if error.cmd[:2] == ["npm", "ci"]:
            pytest.skip(f"npm cannot fetch the packages: {error.stderr[-300:]}")
        raise
