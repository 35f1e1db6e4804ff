"""Pathfinder: generated pictures, and the published files."""

import struct
import zlib

import numpy as np
import pytest

from archlang.tasks import lra_pathfinder
from archlang.tasks.kit.drawing import RandomStream
from archlang.tasks.lra_pathfinder import LraPathfinder, grey_pixels, listed, pictures
from tests.tasks.every import generated

SMALL = LraPathfinder(train_size=300, valid_size=60, test_size=60)


def pieces(light: np.ndarray, reach: int) -> list[set[tuple[int, int]]]:
    """The pixels that hang together, where a gap of fewer than `reach` pixels does not count."""
    left = {(int(row), int(column)) for row, column in np.argwhere(light)}
    complete = []
    while left:
        piece, waiting = set(), [left.pop()]
        while waiting:
            row, column = waiting.pop()
            piece.add((row, column))
            near = {(r, c) for r, c in left if abs(r - row) <= reach and abs(c - column) <= reach}
            left -= near
            waiting += near
        complete.append(piece)
    return complete


def test_marks_are_at_the_ends_of_one_path_or_of_two(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two paths that keep clear of each other by more than the gaps of a path are two pieces. The marks, which are only
    noted here and not drawn, are in one of them or in both."""
    once, noted = lra_pathfinder._with_neighbours, []

    def note(places: np.ndarray) -> np.ndarray:
        noted.append(places // 256)
        return np.zeros((len(places), 32, 32), dtype=np.bool_)

    monkeypatch.setattr(lra_pathfinder, "_with_neighbours", lambda canvas: once(once(canvas)))
    monkeypatch.setattr(lra_pathfinder, "_round_marks", note)
    monkeypatch.setattr(lra_pathfinder, "_ATTEMPTS", 1_000)
    drawn = lra_pathfinder.draw(RandomStream("test"), 200, dashes=8, distractors=0)
    assert len(drawn.pixels) == 200
    for pixels, joined, *marks in zip(drawn.pixels > 0, drawn.joined, *noted, strict=True):
        parts = pieces(pixels, 2)
        assert len(parts) == 2
        owners = [next(number for number, part in enumerate(parts) if tuple(mark.tolist()) in part) for mark in marks]
        assert (owners[0] == owners[1]) == bool(joined)
        # Marks of one path stand at different ends of it.
        assert marks[0].tolist() != marks[1].tolist()


def test_pictures_are_black_and_white_rows_of_1024_pixels() -> None:
    train = generated(SMALL, "train")
    assert len(train) == 300
    assert set(train.inputs["x"].lengths.tolist()) == {1_024}
    assert set(np.unique(train.inputs["x"].values).tolist()) == {0, 255}
    light = (train.inputs["x"].values.reshape(300, 1_024) > 0).mean(axis=1)
    assert 0.03 < light.min() <= light.max() < 0.2


def test_both_classes_are_equally_likely() -> None:
    assert abs(generated(SMALL, "train").targets.mean() - 0.5) < 0.09  # type: ignore[union-attr] # classes


def test_published_pictures_are_read_from_their_lists() -> None:
    lines = ["imgs/0 sample_0.png 0 1 2.0 3", "imgs/0 sample_1.png 1 0 2.0 3", "imgs/0 sample_172.png 2 1 2.0 3"]
    names = listed(lines)
    assert names == [("imgs/0/sample_0.png", 1), ("imgs/0/sample_1.png", 0), ("imgs/0/sample_172.png", 1)]
    shades = np.random.RandomState(0).randint(0, 256, (2, 32, 32))
    # One of the published pictures is an empty file.
    content = {name: png(picture) for (name, _), picture in zip(names, shades, strict=False)}
    pixels, joined = pictures(names, lambda name: content.get(name, b""))
    assert pixels.tolist() == shades.reshape(2, 1_024).tolist()
    assert joined.tolist() == [1, 0]


@pytest.mark.parametrize("line", ["", "imgs/0 sample_0.png", "imgs/0 sample_0.png 0 2 3"])
def test_a_malformed_line_is_refused(line: str) -> None:
    with pytest.raises(ValueError, match="expected a picture and its label"):
        listed([line])


SIGNATURE = b"\x89PNG\r\n\x1a\n"


def chunk(kind: bytes, content: bytes) -> bytes:
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))


def png(rows: np.ndarray, header: bytes | None = None) -> bytes:
    height, width = rows.shape
    data = chunk(b"IDAT", zlib.compress(b"".join(b"\0" + bytes(row) for row in rows.tolist())))
    header = header or struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    return b"".join([SIGNATURE, chunk(b"IHDR", header), chunk(b"tEXt", b"a comment"), data, chunk(b"IEND", b"")])


PICTURE = np.random.RandomState(0).randint(0, 256, (32, 32))
WHOLE = png(PICTURE)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"GIF89a" + WHOLE,
        WHOLE[:-100],
        SIGNATURE + chunk(b"IHDR", b"short"),
        png(PICTURE[:31]),
        png(PICTURE, struct.pack(">IIBBBBB", 32, 32, 8, 2, 0, 0, 0)),
        png(PICTURE, struct.pack(">IIBBBBB", 1 << 30, 1 << 30, 8, 0, 0, 0, 0)),
        WHOLE.replace(WHOLE[WHOLE.index(b"IDAT") + 4 :], b"no" + chunk(b"IEND", b"")),
    ],
)
def test_other_and_damaged_pictures_are_refused(data: bytes) -> None:
    with pytest.raises(ValueError, match="expected 32 x 32 shades|is damaged"):
        grey_pixels(data)
