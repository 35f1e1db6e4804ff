"""Any bytes are read or refused with an error of archlang: programs, graphs, data, run folders and saved models.

The default run takes a small sample; `pytest -m slow tests/test_fuzz.py` takes a large one."""

import ast
import builtins
import gzip
import hashlib
import json
import keyword
import lzma
import re
import shutil
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import cache
from html.parser import HTMLParser
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from xml.etree import ElementTree

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import archlang
from archlang.backend.architecture import Architecture
from archlang.backend.lower.text import print_torch
from archlang.compile import load_named
from archlang.errors import ArchlangError, ProgramError, Source
from archlang.errors.exchange import to_json
from archlang.errors.render import plain
from archlang.export.plain.file import plain_text
from archlang.graph.text import parse_graph, print_graph
from archlang.plan.check import check_text
from archlang.plan.from_file import plan_recipe
from archlang.plan.plan import PublishedResult, TableCell, TableColumn, TableRow
from archlang.reports.pictures.formats import print_mermaid, print_page, print_svg
from archlang.reports.pictures.picture import draw
from archlang.reports.result_table import ResultTable, latex, markdown
from archlang.syntax.parser import parse
from archlang.syntax.printer import format_program
from archlang.syntax.reading import decode
from archlang.tasks.file import File
from archlang.tasks.file_images import FileImages
from archlang.tasks.file_language_model import FileLanguageModel
from archlang.tasks.file_seq2seq import FileSeq2Seq
from archlang.tasks.file_tagging import FileTagging
from archlang.train.record.checkpoint import Checkpoints
from archlang.train.record.reading import read_graph, read_metrics, read_plan, read_record, read_results
from archlang.train.record.schemas import DataRecord, VersionsRecord
from archlang.train.record.summaries import find_runs
from archlang.train.runs.inputs import InputFormat
from archlang.train.runs.table import CellResult
from archlang.types.statics import Symbol
from tests.tiny_run import TINY

RECIPES = Path(archlang.__file__).parent / "recipes"
PROGRAM = (RECIPES / "ndr.arch").read_bytes()
SMALL = settings(max_examples=25, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
# In seconds, far above the time on a slow machine: a hang takes hours.
SLOWEST = 60.0
LARGE = settings(max_examples=2_000, deadline=None, suppress_health_check=list(HealthCheck))

# Bytes at which readers of text often differ.
STRANGE = [
    b"\0", b"\xff", b"\r", b"\r\n", b"\xef\xbb\xbf", b"\xe2\x80\xa8", b"\xed\xa0\x80", b"\x1b[2J", b"\t", b'"', b"\\",
]  # fmt: skip
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


def programs() -> list[str]:
    """Every shipped program, and those of the pages of errors."""
    files = [*RECIPES.rglob("*.arch"), *(RECIPES.parent / "blocks" / "models").glob("*.arch")]
    pages = (RECIPES.parent / "errors" / "pages").glob("*.md")
    texts = [re.findall(r"^```arch\n(.*?)^```", page.read_text(), re.MULTILINE | re.DOTALL) for page in sorted(pages)]
    return [*(file.read_text() for file in sorted(files)), *chain.from_iterable(texts)]


@cache
def pieces() -> tuple[list[list[str]], list[str], list[str]]:
    """The words, signs and spaces of the programs, then their different words, and all different ones."""
    texts = [re.findall(r"\s+|\w+|[^\w\s]", text) for text in programs()]
    every = sorted({piece for text in texts for piece in text})
    words = [piece for piece in every if re.match(r"\w", piece)]
    return texts, words, [*every, "", "999999999999999999999", "1e400", "\x00", "é"]


@st.composite
def mutated(draw: st.DrawFn) -> bytes:
    """A program with other pieces. Replacing a word by a word mostly parses and reaches the checker."""
    texts, words, every = pieces()
    text = list(draw(st.sampled_from(texts)))
    for _ in range(draw(st.integers(1, 4))):
        place, other = draw(st.integers(0, len(text) - 1)), draw(st.integers(0, len(text) - 1))
        if re.match(r"\w", text[place]):
            text[place] = draw(st.sampled_from(words))
        elif draw(st.booleans()):
            text[place] = draw(st.sampled_from(every))
        else:
            text[place], text[other] = text[other], text[place]
    return "".join(text).encode()


def assert_program_is_read_or_reported(data: bytes) -> None:
    start = time.perf_counter()
    try:
        text = decode(data, "x.arch").text
        diagnostics = check_text(text, "nowhere/x.arch")
    except ProgramError as error:
        diagnostics = error.diagnostics
        text = ""
    assert time.perf_counter() - start < SLOWEST
    for show in (plain, to_json):
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


IMAGES = {"images": bytes((0, 0, 8, 3, *(0, 0, 0, 2) * 3, *range(8))), "labels": bytes((0, 0, 8, 1, 0, 0, 0, 2, 1, 0))}


def assert_images_are_read_or_refused(data: bytes, name: str) -> None:
    sizes = {"columns": 32, "channels": 3} if name == "a.bin" else {"columns": 2}
    with TemporaryDirectory() as folder:
        for file, content in {**IMAGES, name: data}.items():
            (Path(folder) / file).write_bytes(content)
        with suppress(ArchlangError):
            FileImages(path=f"{folder}/{name.replace('labels', 'images')}", **sizes).generate("train", seed=0)


RECORD: Mapping[str, Callable[[Path], object]] = {
    "run.json": read_plan,
    "data.json": lambda run: read_record(run, "data.json", DataRecord),
    "versions.json": lambda run: read_record(run, "versions.json", VersionsRecord),
    "vocabulary.json": lambda run: read_record(run, "vocabulary.json", InputFormat),
    "results.json": read_results,
    "metrics.jsonl": read_metrics,
    "graph_at_test.txt": read_graph,
    "recipe.arch": read_plan,
}
CHECKPOINT = ("weights.safetensors", "state.pt", "manifest.json")
SAVED = (
    "run.json", "graph_at_test.txt", "vocabulary.json", "data.json", "recipe.arch", "manifest.json",
    "checkpoints/*/weights.safetensors", "checkpoints/*/manifest.json",
)  # fmt: skip


def assert_record_is_read_or_refused(data: st.DataObject, name: str, run: Path) -> None:
    """Damages a file of a copy of a run, and reads the file and the list of runs."""
    with copy_of(run) as folder:
        (folder / name).write_bytes(data.draw(any_bytes((folder / name).read_bytes())))
        with suppress(ArchlangError):
            RECORD[name](folder)
        assert len(list(find_runs(folder.parent))) == 1


def assert_checkpoint_is_read_or_refused(data: st.DataObject, name: str, run: Path) -> None:
    """Damages a file of the only checkpoint of a copy of a run, whose manifest then describes the damaged file."""
    with copy_of(run) as folder:
        step, *others = sorted((folder / "checkpoints").iterdir())
        for other in others:
            shutil.rmtree(other)
        content = data.draw(any_bytes((step / name).read_bytes()))
        (step / name).write_bytes(content)
        if name != "manifest.json":
            manifest = json.loads((step / "manifest.json").read_text())
            (step / "manifest.json").write_text(json.dumps({**manifest, name: hashlib.sha256(content).hexdigest()}))
        with suppress(ArchlangError):
            archlang.load_run(folder).predict(["10 a b"])
        with suppress(ArchlangError):
            Checkpoints(folder / "checkpoints").latest()


def assert_saved_model_is_read_or_refused(data: st.DataObject, name: str, saved: Path) -> None:
    """Damages a file of a copy of a saved model, whose manifest then describes the damaged file."""
    with copy_of(saved) as folder:
        path = next(folder.glob(name))
        content = data.draw(any_bytes(path.read_bytes()))
        path.write_bytes(content)
        if name != "manifest.json":
            name = path.relative_to(folder).as_posix()
            manifest = json.loads((folder / "manifest.json").read_text())
            manifest["files"][name] = {"size": len(content), "sha256": hashlib.sha256(content).hexdigest()}
            (folder / "manifest.json").write_text(json.dumps(manifest))
        with suppress(ArchlangError):
            archlang.load_run(folder).predict(["10 a b"])


@contextmanager
def copy_of(folder: Path) -> Iterator[Path]:
    with TemporaryDirectory() as temporary:
        yield Path(shutil.copytree(folder, Path(temporary, "copy")))


@pytest.fixture(scope="session")
def saved(finished_run: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("fuzz") / "saved"
    archlang.save(archlang.load_run(finished_run), folder)
    return folder


# Ends of what a writer puts around a text, with a planted call.
ENDS = [
    '"""', "\n", "\r", "\\", "\x0c", "\u2028", "\0", '"', "'", "#", "}", "]",
    ");", "-->", "</script>", "|", "\\\\", " & ",
]  # fmt: skip
PLANTED = st.lists(st.sampled_from([*ENDS, "planted()", "<b planted=1>", "\nplanted()\n"]) | st.text(max_size=3)).map(
    "".join
)
WORDS_OF_BOTH = {"and", "else", "if", "in", "not", "or", "return"}
# Names that a program may use, and Python or the plain file may not.
WORD = st.sampled_from([
    *sorted({*keyword.kwlist, *dir(builtins)} - WORDS_OF_BOTH), "_", "_1", "__x", "none", "path", "torch", "nn", "F",
    "load", "tensor", "self", "lengths", "real_positions", "embed_", "step", "functional",
])  # fmt: skip
MODEL = """model m[d = 4](x: tokens[n]) -> logits[classes] {
    h = embed[d](x)
    repeat 2 { h <- h + linear[d](norm(h)) }
    return h |> last |> linear[classes]
}
"""


@cache
def built(path: str, model: str, value: str, text: str) -> Architecture:
    """A model with a value of another name, whose file has a path, and in whose first instance a static is a text."""
    program = re.sub(r"\bh\b", value, MODEL).replace("model m", f"model {model}")
    module = load_named(Source(path, program), None, None, {"model.vocab": "5", "model.classes": "3"})
    graph = module.program.graph
    embed = graph.instances["embed"]
    statics = {**embed.statics, "init": Symbol(text), "scaling": text, "frozen_start": Symbol(text)}
    hostile = replace(graph, instances={**graph.instances, "embed": replace(embed, statics=statics)})
    module.program = replace(module.program, graph=hostile)
    return module


class Tags(HTMLParser):
    """The names of the elements of a page, with those of their attributes."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.names: set[str] = set()
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.names |= {tag, *(name for name, _ in attrs)}


def assert_no_text_is_code_or_markup(stem: str, model: str, value: str, text: str) -> None:
    module, harmless = built(f"{stem}.arch", model, value, text), built("m.arch", "m", "h", "normal")
    for code in (plain_text(module), print_torch(module)):
        assert not any(isinstance(node, ast.Name) and node.id == "planted" for node in ast.walk(ast.parse(code)))
    box, harmless_box = draw(module.program.graph), draw(harmless.program.graph)
    assert "planted" not in re.sub(r'"(?:[^"\\]|\\.)*"', "", print_mermaid(box), flags=re.DOTALL)
    assert Tags(print_page(box)).names == Tags(print_page(harmless_box)).names
    ElementTree.fromstring(str(print_svg(box)))
    row, column = TableRow(text, text), TableColumn(text, "test.accuracy")
    claim = PublishedResult("test.accuracy", None, 1.0, 0.01, {}, text)
    cell = CellResult(TableCell(row, column, (), claim), {1: 0.5}, ())
    table = ResultTable.of(text, [row], [column], [cell])
    assert len(latex(table).splitlines()) == 12
    assert re.findall(r"(?<!\\)[&#%_]", latex(table).splitlines()[8]) == ["&"]
    assert not re.findall(r"(?<!\\)[&#%_]", latex(table).splitlines()[3])
    assert [len(re.findall(r"(?<!\\)\|", line)) for line in markdown(table).splitlines()[:3]] == [3, 3, 3]


SUFFIXES = st.sampled_from([".tsv", ".jsonl", ".tsv.gz", ".jsonl.xz", ".csv", ".tsv.xz"])


Check = Callable[..., None]


def amounts(few: settings) -> pytest.MarkDecorator:
    """Runs a test with few examples, and by hand with many."""
    return pytest.mark.parametrize("amount", [few, pytest.param(LARGE, marks=pytest.mark.slow)], ids=["few", "many"])


def holds(check: Check, amount: settings, *strategies: st.SearchStrategy[Any]) -> None:  # Any: of every kind
    amount(given(*strategies)(check))()


@amounts(settings(SMALL, max_examples=100))
def test_any_bytes_are_a_program_or_are_reported(amount: settings) -> None:
    holds(assert_program_is_read_or_reported, amount, any_bytes(PROGRAM) | mutated())


@amounts(SMALL)
def test_any_bytes_are_a_graph_or_are_refused(amount: settings) -> None:
    holds(assert_graph_is_read_or_refused, amount, any_bytes(graph_text()))


@amounts(SMALL)
def test_any_bytes_are_data_or_are_refused(amount: settings) -> None:
    holds(assert_data_is_read_or_refused, amount, any_bytes(TSV) | any_bytes(JSONL), SUFFIXES, st.booleans())
    content = any_bytes(IMAGES["images"]) | any_bytes(IMAGES["labels"]) | any_bytes(bytes(3073))
    holds(assert_images_are_read_or_refused, amount, content, st.sampled_from([*IMAGES, "a.bin"]))


@amounts(SMALL)
def test_no_text_of_a_graph_is_code_or_markup(amount: settings) -> None:
    holds(assert_no_text_is_code_or_markup, amount, PLANTED, WORD, WORD, PLANTED)


@amounts(settings(SMALL, max_examples=10))
def test_any_bytes_are_a_record_or_are_refused(finished_run: Path, amount: settings) -> None:
    holds(assert_record_is_read_or_refused, amount, st.data(), st.sampled_from([*RECORD]), st.just(finished_run))


@pytest.mark.filterwarnings(
    "ignore::archlang.train.record.checkpoint.RunWarning", "ignore::archlang.train.record.run_folder.RunWarning"
)
@amounts(settings(SMALL, max_examples=5))
def test_any_bytes_are_a_checkpoint_or_are_refused(finished_run: Path, amount: settings) -> None:
    holds(assert_checkpoint_is_read_or_refused, amount, st.data(), st.sampled_from(CHECKPOINT), st.just(finished_run))


@amounts(settings(SMALL, max_examples=5))
def test_any_bytes_are_a_saved_model_or_are_refused(saved: Path, amount: settings) -> None:
    holds(assert_saved_model_is_read_or_refused, amount, st.data(), st.sampled_from(SAVED), st.just(saved))
