"""The objects of a JSON array that is too large for memory, one after another."""

from __future__ import annotations

import json
from codecs import getincrementaldecoder
from collections.abc import Iterator
from typing import Any, BinaryIO

_CHUNK = 1 << 20
# No object of a published data set comes near this; without a bound, a damaged file would be read whole.
_LARGEST = 1 << 26
_SPACE = " \t\r\n"


class NotAnArray(ValueError):
    """A file is not an array of objects, or ends before it does."""


def objects(stream: BinaryIO, chunk: int = _CHUNK, largest: int = _LARGEST) -> Iterator[dict[str, Any]]:
    """The objects of the array in a stream of UTF-8. No more than one of them is held, and what is read ahead.

    Any: what JSON holds.

    Raises:
        NotAnArray: at the place where it shows."""
    decode, parse = getincrementaldecoder("utf-8")().decode, json.JSONDecoder().raw_decode
    # What may come next: the array, its first object or its end, a comma or its end, another object.
    text, place, ended, expected = "", 0, False, "["
    while True:
        place = _after_space(text, place)
        if place < len(text):
            if expected in ("{]", "{") and text[place] == "{":
                found = _object(parse, text, place)
                if found is not None:
                    item, place = found
                    yield item
                    expected = ",]"
                    continue
                if len(text) - place > largest:
                    raise NotAnArray(f"an object is longer than {largest} characters, or never ends")
            elif text[place] not in expected:
                raise NotAnArray(f"`{expected[0]}` is expected, and there is {text[place : place + 20]!r}")
            elif text[place] == "]":
                return
            else:
                expected = "{]" if expected == "[" else "{"
                place += 1
                continue
        if ended:
            raise NotAnArray("it ends before the array does")
        more = stream.read(chunk)
        ended = not more
        try:
            text, place = text[place:] + decode(more, ended), 0
        except UnicodeDecodeError as error:
            raise NotAnArray("it is not UTF-8") from error


def _object(parse: Any, text: str, place: int) -> tuple[dict[str, Any], int] | None:  # Any: raw_decode has no type
    """The object that begins here and where it ends; None if the text ends before it does."""
    try:
        item, stop = parse(text, place)
    except json.JSONDecodeError:
        return None
    return item, stop


def _after_space(text: str, place: int) -> int:
    while place < len(text) and text[place] in _SPACE:
        place += 1
    return place
