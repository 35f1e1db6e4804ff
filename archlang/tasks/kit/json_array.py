"""The objects of a JSON array that is too large for memory, one after another, parsed by ijson."""

from collections.abc import Iterator
from typing import Any, BinaryIO

from archlang.diagnostics.machine import needs_extra

_CHUNK = 1 << 16
# Larger than any object of a published data set. The bound keeps a damaged file from filling the memory.
_LARGEST = 1 << 26


class JsonArrayError(ValueError):
    """A file that does not hold an array of objects, or ends within it."""


def objects(stream: BinaryIO, chunk: int = _CHUNK, largest: int = _LARGEST) -> Iterator[dict[str, Any]]:
    """Yields the objects of the array in a stream of UTF-8, which is read in chunks of `chunk` bytes.

    Any: JSON.

    Raises:
        JsonArrayError: the stream holds something else, or an object of more than about `largest` bytes."""
    with needs_extra("data"):
        import ijson

    source = _Source(stream, largest)
    try:
        for item in ijson.items(source, "item", use_float=True, buf_size=chunk):
            if not isinstance(item, dict):
                raise JsonArrayError(f"expected an object in the array, found {str(item)[:20]!r}")
            source.unfinished = 0
            yield item
    except ijson.JSONError as error:
        reason = error.args[0].decode("utf-8", "replace") if isinstance(error.args[0], bytes) else str(error)
        raise JsonArrayError(reason.partition("\n")[0]) from error


class _Source:
    """A stream that checks that an array begins, and how many bytes have been read since the last whole object."""

    def __init__(self, stream: BinaryIO, largest: int) -> None:
        self._stream = stream
        self._largest = largest
        self._begun = False
        self.unfinished = 0

    def read(self, size: int) -> bytes:
        if self.unfinished > self._largest:
            raise JsonArrayError(f"an object is longer than {self._largest} bytes, or never ends")
        data = self._stream.read(size)
        self.unfinished += len(data)
        if not self._begun and (start := data.lstrip(b" \t\r\n")):
            self._begun = True
            if not start.startswith(b"["):
                raise JsonArrayError(f"expected `[`, found {start[:20].decode('utf-8', 'replace')!r}")
        return data
