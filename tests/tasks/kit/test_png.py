"""Grey PNG pictures: every rule by which a row may be written, and what is refused."""

from __future__ import annotations

import struct
import zlib

import numpy as np
import pytest

from archlang.tasks.kit.png import NotAPicture, grey

SIGNATURE = b"\x89PNG\r\n\x1a\n"


def chunk(kind: bytes, content: bytes) -> bytes:
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))


def foretold(rule: int, rows: np.ndarray, row: int, column: int) -> int:
    left = int(rows[row, column - 1]) if column else 0
    up = int(rows[row - 1, column]) if row else 0
    corner = int(rows[row - 1, column - 1]) if row and column else 0
    near = left + up - corner
    distances = [abs(near - one) for one in (left, up, corner)]
    paeth = (left, up, corner)[distances.index(min(distances))]
    return (0, left, up, (left + up) // 2, paeth)[rule]


def written(rows: np.ndarray, rules: list[int], header: bytes | None = None, parts: int = 1) -> bytes:
    height, width = rows.shape
    lines = [
        bytes([rule, *((int(rows[row, column]) - foretold(rule, rows, row, column)) % 256 for column in range(width))])
        for row, rule in enumerate(rules)
    ]
    packed = zlib.compress(b"".join(lines))
    size = -(-len(packed) // parts)
    data = [chunk(b"IDAT", packed[start : start + size]) for start in range(0, len(packed), size)]
    header = header or struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    return b"".join([SIGNATURE, chunk(b"IHDR", header), chunk(b"tEXt", b"a comment"), *data, chunk(b"IEND", b"")])


PICTURE = np.random.RandomState(0).randint(0, 256, (10, 7))


@pytest.mark.parametrize("rules", [[rule] * 10 for rule in range(5)] + [[0, 1, 2, 3, 4] * 2, [4, 3, 2, 1, 0] * 2])
@pytest.mark.parametrize("parts", [1, 3])
def test_a_picture_is_read_by_whatever_rule_it_is_written(rules: list[int], parts: int) -> None:
    assert grey(written(PICTURE, rules, parts=parts)).tolist() == PICTURE.tolist()


ONE = chunk(b"IHDR", struct.pack(">IIBBBBB", 1, 1, 8, 0, 0, 0, 0))
WHOLE = written(PICTURE, [0] * 10)


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "does not begin"),
        (b"GIF89a" + WHOLE, "does not begin"),
        (WHOLE[:-20], "within a chunk|is damaged|has no end"),
        (WHOLE[:-12], "has no end"),
        (WHOLE[:40] + b"?" + WHOLE[41:], "is damaged"),
        (SIGNATURE + chunk(b"IEND", b""), "no header"),
        (SIGNATURE + chunk(b"IHDR", b"short"), "another length"),
        (written(PICTURE, [0] * 10, struct.pack(">IIBBBBB", 7, 10, 8, 2, 0, 0, 0)), "only pictures with one channel"),
        (written(PICTURE, [0] * 10, struct.pack(">IIBBBBB", 7, 10, 8, 0, 0, 0, 1)), "only pictures with one channel"),
        (written(PICTURE, [0] * 10, struct.pack(">IIBBBBB", 7, 9, 8, 0, 0, 0, 0)), "another number"),
        (written(PICTURE, [0] * 10, struct.pack(">IIBBBBB", 1 << 30, 1 << 30, 8, 0, 0, 0, 0)), "it says that it has"),
        (SIGNATURE + ONE + chunk(b"IDAT", b"no") + chunk(b"IEND", b""), "cannot be unpacked"),
    ],
)
def test_what_is_no_such_picture_is_refused(data: bytes, reason: str) -> None:
    with pytest.raises(NotAPicture, match=reason):
        grey(data)


def test_a_rule_that_the_format_does_not_have_is_refused() -> None:
    data = ONE + chunk(b"IDAT", zlib.compress(b"\x07\x00"))
    with pytest.raises(NotAPicture, match="number 7"):
        grey(SIGNATURE + data + chunk(b"IEND", b""))
