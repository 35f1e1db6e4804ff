"""The registry is well formed, tasks find each of its files, and digests agree with sha256sum and git."""

import hashlib
import io
import shutil
import subprocess
from pathlib import Path

import pytest

from archlang.data.registry import DATASETS, Digest, DigestRule, official, take
from archlang.resolve import library

FILES = [file for known in DATASETS.values() for file in known.files]


def test_every_line_is_unique_and_belongs_to_a_data_set() -> None:
    table = Path(__file__).parents[2] / "archlang" / "data" / "official.tsv"
    rows = [line.split("\t")[:2] for line in table.read_text(encoding="utf-8").splitlines()[1:]]
    assert sorted(rows) == sorted([file.dataset, file.member] for file in FILES)
    assert len({tuple(row) for row in rows}) == len(rows)


def test_every_data_set_has_files_tasks_and_a_licence() -> None:
    for known in DATASETS.values():
        assert known.files
        assert known.licence
        assert set(known.tasks) <= library.task_names()
        assert all(known.file(archive) is not None for archive in known.archives)


def test_files_of_github_are_pinned_to_a_commit() -> None:
    pages = [file.url for file in FILES if "githubusercontent" in file.url]
    assert pages
    assert not [url for url in pages if not any(len(part) == 40 and part.isalnum() for part in url.split("/"))]


def test_only_the_release_of_the_long_range_arena_has_no_digest() -> None:
    assert [file.member for file in FILES if file.digest is None] == ["lra_release.gz"]


def test_blob_ids_are_used_only_without_a_sha256() -> None:
    blobs = [(file.dataset, file.member) for file in FILES if file.digest and file.digest.rule is DigestRule.GITBLOB]
    assert blobs == [
        ("listops", "train_d20s.tsv"), *(("pcfg_set", f"{part}/train.src") for part in
                                         ("pcfgset", "productivity", "systematicity")),
    ]  # fmt: skip


def test_a_compressed_file_is_stored_under_the_name_of_its_content() -> None:
    file = official("multi30k", "train.en")
    assert file is not None
    assert (file.member, file.stored) == ("train.en", "train.en.gz")


@pytest.mark.parametrize(
    ("dataset", "member", "archive"),
    [
        ("cfq", "splits/mcd1.json", "cfq.tar.gz"),
        ("dm_math", "extrapolate__numbers__place_value_big.txt", "mathematics_dataset-v1.0.tar.gz"),
        ("babi", "qa1_single-supporting-fact_train.txt", "tasks_1-20_v1-2.tar.gz"),
        ("lra", "listops-1000/basic_test.tsv", "lra_release.gz"),
    ],
)
def test_members_of_archives_have_their_archive(dataset: str, member: str, archive: str) -> None:
    holder = DATASETS[dataset].archive_of(member)
    assert holder is not None
    assert holder.member == archive


def test_the_files_at_hand_have_the_digests_of_the_table() -> None:
    """Covers the published files that are available to the tests."""
    table = Path(__file__).parents[3] / "shared" / "data" / "CONTENT_SHA256.tsv"
    if not table.exists():
        pytest.skip(f"{table} is missing")
    known = {
        tuple(row[0].split("/", 1)): row[3:]
        for row in (line.split("\t") for line in table.read_text(encoding="utf-8").splitlines())
    }
    compared = 0
    for file in FILES:
        row = known.get((file.dataset, file.member))
        if row is not None and file.digest is not None:
            compared += 1
            assert file.digest.value in row
    assert compared > 50


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
