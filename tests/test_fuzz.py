"""Any bytes are read or refused with an error of archlang: programs, graphs, data and run folders.

The default run takes a small sample; `pytest -m slow tests/test_fuzz.py` takes a large one."""

import gzip
import json
import lzma
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import archlang
from archlang.diagnostics import ArchlangError, ProgramError
from archlang.diagnostics.render import plain, to_json, to_sarif
from archlang.graph.text import parse_graph, print_graph
from archlang.plan.check import check_text
from archlang.plan.from_file import plan_recipe
from archlang.syntax.parser import parse
from archlang.syntax.printer import format_program
from archlang.syntax.reading import decode
from archlang.tasks.file import File
from archlang.tasks.file_language_model import FileLanguageModel
from archlang.tasks.file_seq2seq import FileSeq2Seq
from archlang.tasks.file_tagging import FileTagging
from tests.tiny_run import TINY

RECIPES = Path(archlang.__file__).parent / "recipes"
PROGRAM = (RECIPES / "ndr.arch").read_bytes()
SMALL = settings(max_examples=25, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
LARGE = settings(max_examples=2_000, deadline=None, suppress_health_check=list(HealthCheck))

# Bytes at which readers of text often differ.
STRANGE = [
    b"\0",
    b"\xff",
    b"\r",
    b"\r\n",
    b"\xef\xbb\xbf",
    b"\xe2\x80\xa8",
    b"\xed\xa0\x80",
    b"\x1b[2J",
    b"\t",
    b'"',
    b"\\",
]
TSV = b"text\tlabel\ttags\tsource\ttarget\tsplit\na b\tx\ty z\ta\tb\ttrain\nb\ty\tz\tb\ta\ttest\na\tx\tz\tb\ta\tvalid\n"
JSONL = b"".join(
    json.dumps({"text": "a b", "label": n, "tags": ["y", "z"], "source": "a", "target": "b", "split": split}).encode()
    + b"\n"
    for n, split in enumerate(("train", "train", "valid", "test"))
)


@cache
def graph_text() -> bytes:
    with TemporaryDirectory() as folder:
        (Path(folder) / "tiny.arch").write_text(TINY)
        return print_graph(plan_recipe(Path(folder) / "tiny.arch").graph).encode()


@st.composite
def damaged(draw: st.DrawFn, seed: bytes) -> bytes:
    """The seed with a few pieces removed, repeated or replaced."""
    data = seed
    for _ in range(draw(st.integers(1, 4))):
        start = draw(st.integers(0, len(data)))
        stop = min(start + draw(st.integers(0, 30)), len(data))
        other = draw(st.integers(0, len(data)))
        piece = draw(
            st.sampled_from([*STRANGE, data[start:stop] * 2, data[other : other + 20]]) | st.binary(max_size=6)
        )
        data = data[:start] + piece + data[stop:]
    return data


def any_bytes(seed: bytes) -> st.SearchStrategy[bytes]:
    return (
        damaged(seed)
        | st.binary(max_size=200)
        | st.lists(st.sampled_from([*STRANGE, *seed.split()]), max_size=40).map(b" ".join)
    )


def assert_program_is_read_or_reported(data: bytes) -> None:
    try:
        text = decode(data, "x.arch").text
        diagnostics = check_text(text, "nowhere/x.arch")
    except ProgramError as error:
        diagnostics = error.diagnostics
        text = ""
    for show in (plain, to_json, to_sarif):
        show(diagnostics).encode("utf-8")
    if not any(diagnostic.is_error for diagnostic in diagnostics):
        formatted = format_program(parse(decode(text.encode(), "x.arch")))
        assert format_program(parse(decode(formatted.encode(), "x.arch"))) == formatted


def assert_graph_is_read_or_refused(data: bytes) -> None:
    with suppress(ValueError):
        parse_graph(data.decode("utf-8", "replace"))


DATA_TASKS: tuple[Callable[..., File | FileTagging | FileSeq2Seq | FileLanguageModel], ...] = (
    File, FileTagging, FileSeq2Seq, FileLanguageModel,
)  # fmt: skip
COMPRESSED: dict[str, Callable[[bytes], bytes]] = {"": lambda data: data, ".gz": gzip.compress, ".xz": lzma.compress}


def assert_data_is_read_or_refused(data: bytes, suffix: str, is_compressed: bool) -> None:
    ending = "." + suffix.rpartition(".")[2] if suffix.count(".") > 1 else ""
    with TemporaryDirectory() as folder:
        path = Path(folder) / f"data{suffix}"
        path.write_bytes(COMPRESSED[ending](data) if is_compressed else data)
        for make in DATA_TASKS:
            with suppress(ArchlangError):
                task = make(path=str(path), words=5)
                for split in task.split_names():
                    task.generate(split, seed=0)


SUFFIXES = st.sampled_from([".tsv", ".jsonl", ".tsv.gz", ".jsonl.xz", ".csv", ".tsv.xz"])


@SMALL
@given(any_bytes(PROGRAM))
def test_any_bytes_are_a_program_or_are_reported(data: bytes) -> None:
    assert_program_is_read_or_reported(data)


@SMALL
@given(st.deferred(lambda: any_bytes(graph_text())))
def test_any_bytes_are_a_graph_or_are_refused(data: bytes) -> None:
    assert_graph_is_read_or_refused(data)


@SMALL
@given(any_bytes(TSV) | any_bytes(JSONL), SUFFIXES, st.booleans())
def test_any_bytes_are_data_or_are_refused(data: bytes, suffix: str, is_compressed: bool) -> None:
    assert_data_is_read_or_refused(data, suffix, is_compressed)


@pytest.mark.slow
@LARGE
@given(any_bytes(PROGRAM))
def test_many_bytes_are_a_program_or_are_reported(data: bytes) -> None:
    assert_program_is_read_or_reported(data)


@pytest.mark.slow
@LARGE
@given(st.deferred(lambda: any_bytes(graph_text())))
def test_many_bytes_are_a_graph_or_are_refused(data: bytes) -> None:
    assert_graph_is_read_or_refused(data)


@pytest.mark.slow
@LARGE
@given(any_bytes(TSV) | any_bytes(JSONL), SUFFIXES, st.booleans())
def test_many_bytes_are_data_or_are_refused(data: bytes, suffix: str, is_compressed: bool) -> None:
    assert_data_is_read_or_refused(data, suffix, is_compressed)
