"""Downloads arrive complete and verified, or not at all."""

from __future__ import annotations

import errno
import gzip
import hashlib
import multiprocessing
import shutil
import socket
import threading
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from archlang.data import store
from archlang.data.fetch import DownloadWatcher, fetch
from archlang.data.mistakes import BrokenOffError, DataError
from archlang.data.registry import OfficialFile
from tests.data.conftest import Served
from tests.train.record.test_checkpoint import files_no_larger_than

CONTENT = bytes(range(256)) * 2_000
# What is written at once.
CHUNK = 1 << 16
DIGEST = f"sha256:{hashlib.sha256(CONTENT).hexdigest()}"
BLOB = f"gitblob:{hashlib.sha1(b'blob %d' % len(CONTENT) + bytes(1) + CONTENT).hexdigest()}"


class Seen(DownloadWatcher):
    """A watcher that records progress."""

    def __init__(self) -> None:
        self.waited = 0
        self.steps: list[tuple[int, int | None]] = []
        self.held = threading.Event()

    def waiting(self) -> None:
        self.waited += 1
        self.held.set()

    def moved(self, done: int, total: int | None) -> None:
        self.steps.append((done, total))


@pytest.fixture
def server(server: Served) -> Served:
    server.files["text"] = CONTENT
    return server


def at_once(seconds: float) -> None:
    """Replaces `sleep`."""


def left(folder: Path) -> list[str]:
    """Returns the files of a folder, except locks."""
    return sorted(path.name for path in folder.rglob("*") if path.is_file() and not path.name.endswith(".lock"))


@pytest.mark.parametrize("digest", [DIGEST, BLOB])
def test_a_file_is_fetched_to_its_path(server: Served, folder: Path, digest: str) -> None:
    server.files["a/text"] = CONTENT
    file = server.file("a/text", digest, len(CONTENT))
    seen = Seen()
    place, fetched_digest = fetch(file, seen)
    assert (place, str(fetched_digest)) == (folder / "words" / "a" / "text", digest)
    assert place.read_bytes() == CONTENT
    assert left(folder) == ["text"]
    assert seen.steps[-1] == (len(CONTENT), len(CONTENT))
    assert [done for done, _ in seen.steps] == sorted(done for done, _ in seen.steps)


def test_an_intact_file_is_not_fetched_again(server: Served) -> None:
    file = server.file("text", DIGEST)
    assert fetch(file) == fetch(file)
    assert len(server.asked) == 1


@pytest.mark.parametrize(("name", "content"), [("text", CONTENT[:-1]), (".text.part", CONTENT)])
def test_a_damaged_file_is_fetched_again_and_a_complete_partial_one_is_used(
    name: str, content: bytes, server: Served, folder: Path
) -> None:
    (folder / "words").mkdir(parents=True)
    (folder / "words" / name).write_bytes(content)
    place, _ = fetch(server.file("text", DIGEST), sleep=at_once)
    assert place.read_bytes() == CONTENT


def test_a_compressed_file_stays_compressed_and_its_content_is_verified(server: Served, folder: Path) -> None:
    server.files["text.gz"] = gzip.compress(CONTENT)
    place, digest = fetch(server.file("text.gz", DIGEST, len(CONTENT)))
    assert (place, str(digest)) == (folder / "words" / "text.gz", DIGEST)
    assert store.open_binary("words", "text").read() == CONTENT


def test_a_download_resumes_after_interruptions(server: Served, folder: Path) -> None:
    server.cuts = [2 * CHUNK, 3 * CHUNK]
    place, _ = fetch(server.file("text", DIGEST, len(CONTENT)), sleep=at_once)
    assert place.read_bytes() == CONTENT
    assert server.asked == ["", f"bytes={2 * CHUNK}-", f"bytes={5 * CHUNK}-"]


def test_the_next_command_resumes_an_interrupted_download(server: Served, folder: Path) -> None:
    server.cuts = [CHUNK, 0, 0, 0, 0]
    file = server.file("text", DIGEST, len(CONTENT))
    with pytest.raises(BrokenOffError, match="resume after 65,536 bytes"):
        fetch(file, sleep=at_once)
    assert left(folder) == [".text.part"]
    server.cuts, server.asked = [], []
    place, _ = fetch(file, sleep=at_once)
    assert (place.read_bytes(), server.asked, left(folder)) == (CONTENT, [f"bytes={CHUNK}-"], ["text"])


def test_a_server_without_ranges_sends_everything_again(server: Served) -> None:
    server.cuts, server.ranges = [CHUNK], False
    place, _ = fetch(server.file("text", DIGEST, len(CONTENT)), sleep=at_once)
    assert place.read_bytes() == CONTENT


def test_a_partial_download_of_another_content_is_deleted(server: Served, folder: Path) -> None:
    (folder / "words").mkdir(parents=True)
    (folder / "words" / ".text.part").write_bytes(b"x" * 1000)
    with pytest.raises(DataError, match="the download was deleted"):
        fetch(server.file("text", DIGEST, len(CONTENT)), sleep=at_once)
    assert (server.asked, left(folder)) == (["bytes=1000-"], [])


@pytest.mark.parametrize("size", [len(CONTENT), None])
@pytest.mark.parametrize("content", [CONTENT[:-1] + b"x", CONTENT[:-10]], ids=["another byte", "truncated"])
def test_wrong_content_is_refused_by_name_and_digest_and_deleted(
    server: Served, folder: Path, content: bytes, size: int | None
) -> None:
    server.files["text"] = content
    wrong = hashlib.sha256(server.files["text"]).hexdigest()
    with pytest.raises(DataError) as error:
        fetch(server.file("text", DIGEST, size), sleep=at_once)
    for part in (f"{server.url}/text", f"sha256:{wrong}", DIGEST, "the download was deleted", str(folder / "words")):
        assert part in str(error.value)
    assert left(folder) == []


@pytest.mark.parametrize("status", [403, 404])
def test_the_error_for_a_file_that_is_not_served_names_its_path(server: Served, folder: Path, status: int) -> None:
    server.failures = [status]
    with pytest.raises(DataError, match=f"the server answers {status} for {server.url}/text") as error:
        fetch(server.file("text", DIGEST), sleep=at_once)
    assert f"by other means to {folder / 'words' / 'text'}; its digest is {DIGEST}" in str(error.value)
    assert left(folder) == []


@pytest.mark.parametrize("status", [429, 503])
def test_a_busy_server_is_retried(server: Served, status: int) -> None:
    server.failures = [status]
    waits: list[float] = []
    place, _ = fetch(server.file("text", DIGEST), sleep=waits.append)
    assert (place.read_bytes(), waits) == (CONTENT, [1.0])


def test_the_offline_error_names_the_file_and_its_path(folder: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    file = Served(f"http://127.0.0.1:{port}").file("text", DIGEST)
    with pytest.raises(BrokenOffError, match=r"cannot be reached \(.*refused") as error:
        fetch(file, sleep=at_once)
    assert f"download {file.url} by other means to {folder / 'words' / 'text'}" in error.value.remedy
    assert DIGEST in error.value.remedy
    assert left(folder) == []


def test_a_file_without_a_published_digest_is_pinned(server: Served, folder: Path) -> None:
    file = server.file("text")
    place, digest = fetch(file)
    assert str(digest) == DIGEST
    assert (folder / "words" / "text.sha256").read_text() == f"{DIGEST.removeprefix('sha256:')}  text\n"
    place.write_bytes(CONTENT[1:])
    with pytest.raises(DataError, match="is not the published file"):
        store.open_binary("words", "text")


def test_a_full_disk_leaves_no_partial_file(server: Served, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("archlang.data.fetch._FULL", (errno.EFBIG,))
    with (
        files_no_larger_than(100_000),
        pytest.raises(DataError, match=r"the disk is full \(File too large\); the download of"),
    ):
        fetch(server.file("text", DIGEST, len(CONTENT)), sleep=at_once)
    assert left(folder) == []


def test_too_little_free_space_is_an_error_before_the_download(
    server: Served, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Usage(NamedTuple):
        free: int

    monkeypatch.setattr(shutil, "disk_usage", lambda place: Usage(1_000))
    with pytest.raises(DataError, match="512,000 more bytes are needed, and 1,000 are free"):
        fetch(server.file("text", DIGEST, len(CONTENT)), sleep=at_once)
    assert (server.asked, left(folder)) == ([], [])


def test_a_read_only_folder_is_an_error(server: Served, folder: Path) -> None:
    folder.write_text("a file, where the folder should be")
    with pytest.raises(DataError, match=r"text cannot be written .*: set ARCHLANG_DATA"):
        fetch(server.file("text", DIGEST), sleep=at_once)


def _fetch(file: OfficialFile, answers: Any) -> None:  # Any: a queue
    answers.put(str(fetch(file)[1]))


def test_two_processes_may_fetch_the_same_file(server: Served, folder: Path) -> None:
    server.pause.clear()
    file = server.file("text", DIGEST, len(CONTENT))
    context = multiprocessing.get_context("spawn")
    answers = context.Queue()
    second_process = context.Process(target=_fetch, args=(file, answers))
    second_process.start()
    while not server.asked:
        assert second_process.is_alive()
        second_process.join(0.05)
    seen = Seen()

    def answer_when_both_want_it() -> None:
        seen.held.wait(10)
        server.pause.set()

    opener = threading.Thread(target=answer_when_both_want_it)
    opener.start()
    place, digest = fetch(file, seen)
    opener.join()
    second_process.join(30)
    assert (str(digest), answers.get(timeout=5), second_process.exitcode) == (DIGEST, DIGEST, 0)
    assert (place.read_bytes(), seen.waited, len(server.asked)) == (CONTENT, 1, 1)
    assert left(folder) == ["text"]
