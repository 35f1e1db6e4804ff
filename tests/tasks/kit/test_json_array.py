"""JSON arrays parsed object by object: the objects, the refused files, and the memory used."""

import io
import json
import tracemalloc
from collections.abc import Iterator

import pytest

from archlang.tasks.kit.json_array import JsonArrayError, objects

ITEMS = [{"a": 1}, {"b": '} ] , { " \\ é 中 \n'}, {}, {"c": [{"d": [1, {}]}, "]"]}]


def read(text: str | bytes, chunk: int, largest: int = 1 << 20) -> list[dict[str, object]]:
    return list(objects(io.BytesIO(text.encode() if isinstance(text, str) else text), chunk, largest))


@pytest.mark.parametrize("chunk", [1, 2, 3, 7, 1 << 20])
@pytest.mark.parametrize("indent", [None, 1])
@pytest.mark.parametrize("ascii_only", [True, False])
def test_objects_do_not_depend_on_the_chunk_size(chunk: int, indent: int | None, ascii_only: bool) -> None:
    assert read(json.dumps(ITEMS, indent=indent, ensure_ascii=ascii_only), chunk) == ITEMS


@pytest.mark.parametrize("text", ["[]", " [ ] \n", "[{}]"])
def test_small_arrays(text: str) -> None:
    assert read(text, 1) == [{}] * text.count("{")


@pytest.mark.parametrize(
    "text",
    [
        *(
            "",
            "{}",
            '{"item": {}}',
            "[{}]   and more",
            "[",
            "[{}",
            "[{},",
            "[{}{}]",
            "[{} 1]",
            '[{"a": 1',
            "[1]",
            "[[{}]]",
            '[{"a": nope}]',
            "[{},]",
        ),
        *(b"[{}, \xff]", b"[{\xc3"),
    ],
)
def test_anything_but_an_array_of_objects_is_refused(text: str | bytes) -> None:
    with pytest.raises(JsonArrayError):
        read(text, 3)


def test_an_object_without_an_end_is_refused() -> None:
    with pytest.raises(JsonArrayError, match="longer than 1000 bytes"):
        read('[{"a": "' + "x" * 5_000, 100, largest=1_000)


class Endless(io.RawIOBase):
    """A file of many megabytes that is generated while it is read."""

    def __init__(self, items: int) -> None:
        self._parts = self._made(items)
        self._left = b""

    @staticmethod
    def _made(items: int) -> Iterator[bytes]:
        filling = json.dumps({"rule": "x" * 200, "tree": [{"node": number} for number in range(60)]})
        yield b"["
        for number in range(items):
            yield f'{"," if number else ""}\n {{"number": {number}, "complexityMeasures": {filling}}}'.encode()
        yield b"]"

    def read(self, size: int = -1) -> bytes:
        while len(self._left) < size and (part := next(self._parts, b"")):
            self._left += part
        chunk, self._left = self._left[:size], self._left[size:]
        return chunk


def test_memory_does_not_grow_with_the_file() -> None:
    """4 MB in chunks of 16 kB: a chunk and its objects are in memory at any time."""
    tracemalloc.start()
    try:
        numbers = sum(item["number"] for item in objects(Endless(3_000), chunk=1 << 14))  # type: ignore[arg-type] # enough of a file
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert numbers == 3_000 * 2_999 // 2
    assert peak < 500_000
