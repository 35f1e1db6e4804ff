"""Greyscale PNG pictures: every filter of the format, and the refused files."""

import struct
import zlib

import numpy as np
import pytest

from archlang.tasks.kit.grey_png import PictureError, grey_pixels

SIGNATURE = b"\x89PNG\r\n\x1a\n"


def chunk(kind: bytes, content: bytes) -> bytes:
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))


def prediction(kind: int, rows: np.ndarray, row: int, column: int) -> int:
    left = int(rows[row, column - 1]) if column else 0
    up = int(rows[row - 1, column]) if row else 0
    corner = int(rows[row - 1, column - 1]) if row and column else 0
    near = left + up - corner
    distances = [abs(near - neighbour) for neighbour in (left, up, corner)]
    paeth = (left, up, corner)[distances.index(min(distances))]
    return (0, left, up, (left + up) // 2, paeth)[kind]


def png(rows: np.ndarray, filters: list[int], header: bytes | None = None, parts: int = 1) -> bytes:
    height, width = rows.shape
    lines = [
        bytes(
            [kind, *((int(rows[row, column]) - prediction(kind, rows, row, column)) % 256 for column in range(width))]
        )
        for row, kind in enumerate(filters)
    ]
    packed = zlib.compress(b"".join(lines))
    size = -(-len(packed) // parts)
    data = [chunk(b"IDAT", packed[start : start + size]) for start in range(0, len(packed), size)]
    header = header or struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    return b"".join([SIGNATURE, chunk(b"IHDR", header), chunk(b"tEXt", b"a comment"), *data, chunk(b"IEND", b"")])


PICTURE = np.random.RandomState(0).randint(0, 256, (10, 7))


@pytest.mark.parametrize("filters", [[kind] * 10 for kind in range(5)] + [[0, 1, 2, 3, 4] * 2, [4, 3, 2, 1, 0] * 2])
@pytest.mark.parametrize("parts", [1, 3])
def test_pixels_do_not_depend_on_the_filters(filters: list[int], parts: int) -> None:
    assert grey_pixels(png(PICTURE, filters, parts=parts)).tolist() == PICTURE.tolist()


ONE = chunk(b"IHDR", struct.pack(">IIBBBBB", 1, 1, 8, 0, 0, 0, 0))
WHOLE = png(PICTURE, [0] * 10)


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "not a PNG picture"),
        (b"GIF89a" + WHOLE, "not a PNG picture"),
        (WHOLE[:-20], "is damaged"),
        (WHOLE[:-12], "is damaged: truncated"),
        (WHOLE[:40] + b"?" + WHOLE[41:], "is damaged"),
        (SIGNATURE + chunk(b"IEND", b""), "header is damaged"),
        (SIGNATURE + chunk(b"IHDR", b"short"), "IHDR"),
        (png(PICTURE, [0] * 10, struct.pack(">IIBBBBB", 7, 10, 8, 2, 0, 0, 0)), "expected one channel of 8 bits"),
        (png(PICTURE, [0] * 10, struct.pack(">IIBBBBB", 7, 10, 8, 0, 0, 0, 1)), "expected one channel of 8 bits"),
        (png(PICTURE, [0] * 10, struct.pack(">IIBBBBB", 1 << 12, (1 << 12) + 1, 8, 0, 0, 0, 0)), "more than 16777216"),
        (png(PICTURE, [0] * 10, struct.pack(">IIBBBBB", 1 << 30, 1 << 30, 8, 0, 0, 0, 0)), "exceeds limit"),
        (SIGNATURE + ONE + chunk(b"IDAT", b"no") + chunk(b"IEND", b""), "is damaged: broken data stream"),
    ],
)
def test_other_and_damaged_pictures_are_refused(data: bytes, reason: str) -> None:
    with pytest.raises(PictureError, match=reason):
        grey_pixels(data)


def test_an_unknown_filter_is_refused() -> None:
    data = ONE + chunk(b"IDAT", zlib.compress(b"\x07\x00"))
    with pytest.raises(PictureError, match="unrecognized data stream"):
        grey_pixels(SIGNATURE + data + chunk(b"IEND", b""))
