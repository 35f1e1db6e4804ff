"""Text of the Long Range Arena: archives of the published format."""

import io
import tarfile
from collections.abc import Mapping

import numpy as np
import pytest

from archlang.errors import ArchlangError
from archlang.tasks import lra_text
from archlang.tasks.kit.mistakes import TaskError
from archlang.tasks.lra_text import LraText, reviews
from tests.tasks.conftest import Offer


def archive(files: Mapping[str, bytes]) -> bytes:
    """Returns a tar file, compressed with gzip, of these files and a folder."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as tar:
        folder = tarfile.TarInfo("folder")
        folder.type = tarfile.DIRTYPE
        tar.addfile(folder)
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
    return packed.getvalue()


FILES = {
    "aclImdb/README": b"words", "aclImdb/test/pos/0_10.txt": b"Wonderful, really.", "aclImdb/test/neg/0_2.txt": b"No.",
    "aclImdb/train/pos/10_9.txt": b"Ten.", "aclImdb/train/pos/9_7.txt": "Größe".encode(),
    "aclImdb/train/neg/0_3.txt": b"Zero.", "aclImdb/train/unsup/0_0.txt": b"Unknown.",
    "aclImdb/train/urls_pos.txt": b"http://",
}  # fmt: skip


def test_reviews_come_in_the_order_of_their_numbers() -> None:
    backwards = reversed(list(FILES.items()))
    assert reviews(backwards, "train", 99) == ([b"Zero.", "Größe".encode(), b"Ten."], [0, 1, 1])


def test_an_archive_is_read_and_reviews_are_truncated(offer: Offer, monkeypatch: pytest.MonkeyPatch) -> None:
    offer({"imdb/aclImdb_v1.tar.gz": archive(FILES)})
    monkeypatch.setattr(lra_text, "PUBLISHED_SIZE", 2)
    test = LraText(length=9).generate("test", 0)
    assert [test.inputs["x"][index].tobytes() for index in range(2)] == [b"No.", b"Wonderful"]
    assert np.asarray(test.targets).tolist() == [0, 1]


def test_an_incomplete_archive_is_refused(offer: Offer) -> None:
    offer({"imdb/aclImdb_v1.tar.gz": archive(FILES)})
    with pytest.raises(TaskError, match="it has 3 reviews of train, expected 25000"):
        LraText().generate("train", 0)


@pytest.mark.parametrize(
    "content",
    [b"", b"no archive", archive(FILES)[:200], archive(FILES)[:10] + b"????"],
    ids=["empty", "text", "cut off", "damaged"],
)
def test_other_files_are_refused(content: bytes, offer: Offer) -> None:
    offer({"imdb/aclImdb_v1.tar.gz": content})
    with pytest.raises(ArchlangError, match=r"aclImdb_v1.tar.gz.* cannot be decompressed|it has \d reviews"):
        LraText().generate("train", 0)
