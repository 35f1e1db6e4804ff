"""Digests agree with sha256sum and git."""

import hashlib
import io
import shutil
import subprocess
from pathlib import Path

import pytest

from archlang.data.digests import Digest, DigestRule, take


@pytest.mark.parametrize("content", [b"", b"what\n", bytes(range(256)) * 10_000])
def test_a_sha256_is_that_of_hashlib(content: bytes) -> None:
    assert take(DigestRule.SHA256, io.BytesIO(content), 0).value == hashlib.sha256(content).hexdigest()


@pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
def test_a_blob_id_is_that_of_git(tmp_path: Path) -> None:
    content = bytes(range(256)) * 100
    (tmp_path / "file").write_bytes(content)
    done = subprocess.run(
        ["git", "hash-object", "--no-filters", "file"], cwd=tmp_path, check=True, capture_output=True, text=True
    )
    assert take(DigestRule.GITBLOB, io.BytesIO(content), len(content)).value == done.stdout.strip()


@pytest.mark.parametrize(
    "text", ["sha256:abc", "md5:" + "0" * 32, "sha256", "", f"sha256:{'G' * 64}", "gitblob:" + "0" * 64]
)
def test_a_malformed_digest_is_refused(text: str) -> None:
    with pytest.raises(ValueError):
        Digest.parse(text)


def test_str_is_the_inverse_of_parse() -> None:
    text = f"sha256:{'0a' * 32}"
    assert str(Digest.parse(text)) == text
