"""Grey pictures in the PNG format, as arrays of numbers; no more of the format than published data sets use."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

Pixels = npt.NDArray[np.uint8]

_SIGNATURE = b"\x89PNG\r\n\x1a\n"
_GREY = 0
# A bound on what is unpacked, whatever a file says.
_LARGEST = 1 << 24


class NotAPicture(ValueError):
    """Bytes that are no PNG picture, or one of a kind that is not read."""


def grey(data: bytes) -> Pixels:
    """The rows of a picture with one channel of 8 bits, not interlaced.

    Raises:
        NotAPicture: it is something else, or damaged."""
    if not data.startswith(_SIGNATURE):
        raise NotAPicture("it does not begin as a PNG picture does")
    packed, width, height = b"", 0, 0
    for kind, content in _chunks(data):
        if kind == b"IHDR":
            width, height = _size(content)
        elif kind == b"IDAT":
            packed += content
    if not width:
        raise NotAPicture("it has no header")
    try:
        # One more than there should be, so that too much shows as well.
        flat = zlib.decompressobj().decompress(packed, height * (width + 1) + 1)
    except zlib.error as error:
        raise NotAPicture("its pixels cannot be unpacked") from error
    if len(flat) != height * (width + 1):
        raise NotAPicture(f"it says that it has {height} rows of {width} pixels, and has another number")
    rows = np.frombuffer(flat, dtype=np.uint8).reshape(height, width + 1)
    return _unfiltered(rows[:, 0], rows[:, 1:])


def _chunks(data: bytes) -> Iterator[tuple[bytes, bytes]]:
    place = len(_SIGNATURE)
    while place < len(data):
        if place + 12 > len(data):
            raise NotAPicture("it ends within a chunk")
        length, kind = struct.unpack(">I4s", data[place : place + 8])
        content = data[place + 8 : place + 8 + length]
        check = data[place + 8 + length : place + 12 + length]
        if len(check) != 4 or zlib.crc32(kind + content) != struct.unpack(">I", check)[0]:
            raise NotAPicture("a chunk of it is damaged")
        yield kind, content
        if kind == b"IEND":
            return
        place += 12 + length
    raise NotAPicture("it has no end")


def _size(header: bytes) -> tuple[int, int]:
    if len(header) != 13:
        raise NotAPicture("its header has another length")
    width, height, depth, colours, _, _, interlaced = struct.unpack(">IIBBBBB", header)
    if (depth, colours, interlaced) != (8, _GREY, 0):
        raise NotAPicture("only pictures with one channel of 8 bits that are not interlaced are read")
    if not 0 < width * height <= _LARGEST:
        raise NotAPicture(f"it says that it has {height} rows of {width} pixels")
    return width, height


def _unfiltered(filters: Pixels, rows: Pixels) -> Pixels:
    """Each row is written as what is left of it when it is foretold from the pixels to the left and above."""
    found = np.zeros_like(rows)
    above = np.zeros(rows.shape[1], dtype=np.uint8)
    for number, (kind, row) in enumerate(zip(filters, rows, strict=True)):
        match int(kind):
            case 0:
                found[number] = row
            case 1:
                found[number] = np.cumsum(row, dtype=np.uint8)
            case 2:
                found[number] = row + above
            case 3 | 4:
                found[number] = _by_pixels(row.tolist(), above.tolist(), int(kind) == 4)
            case _:
                raise NotAPicture(f"no rule of the format has the number {kind}")
        above = found[number]
    return found


def _by_pixels(row: list[int], above: list[int], paeth: bool) -> list[int]:
    """Rows that are foretold from both sides, which goes pixel by pixel."""
    found: list[int] = []
    left = corner = 0
    for value, up in zip(row, above, strict=True):
        foretold = _paeth(left, up, corner) if paeth else (left + up) // 2
        left = (value + foretold) & 255
        corner = up
        found.append(left)
    return found


def _paeth(left: int, up: int, corner: int) -> int:
    """The neighbour that is nearest to left + up - corner; left before up before corner."""
    guess = left + up - corner
    return min((left, up, corner), key=lambda neighbour: abs(guess - neighbour))
