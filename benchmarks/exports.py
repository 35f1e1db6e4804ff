"""Exports the shipped models at small sizes in each format, and compares the files with the modules.

    python -m benchmarks.exports [MODEL …] [--formats .py,.pt2,.onnx] [--results FILE] [--write-page]

Each file runs batches of 1 and 3 at lengths 1, 7, 64 and 257; tracing has seen a batch of 3 at length 7. `.pt2` and
`.onnx` take the batches of length 1 padded to 2. Rows that the JSON lines of `--results` have are not measured again.
`--write-page` writes the table into docs/export.md; it needs all rows."""

from __future__ import annotations

import argparse
import copy
import importlib.util
import json
import re
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import torch
from torch import Tensor
from torch.nn.functional import pad

from archlang.backend.architecture import Architecture
from archlang.export.formats import FORMATS, export, fields_with_lengths, input_names
from archlang.export.mistakes import ExportError
from benchmarks.results_text import machine
from tests.shipped_models import SHIPPED, shipped_batch, shipped_model

PAGE = Path(__file__).parent.parent / "docs" / "export.md"
SUFFIXES = (".py", ".pt2", ".onnx")
SIZES = [(batch, length) for length in (1, 7, 64, 257) for batch in (1, 3)]
"""batches and their lengths"""
_SHORTEST = {".pt2": 2, ".onnx": 2}
_HEAD = """| model | file | largest difference | rounding | halting steps | kB | export, s | 8 batches, s |
| --- | --- | --- | --- | --- | --- | --- | --- |
"""
_TABLE = re.compile(rf"{re.escape(_HEAD)}(?:\|.*\n)*(?:\n_Measured .*_\n)?")

# Takes the fields and the lengths of each; returns the result, and the steps of a model that halts.
Runner = Callable[[Sequence[Tensor], dict[str, Tensor]], list[Tensor]]


@dataclass(frozen=True)
class Row:
    """A file of a model: its largest difference from the module, the module's own largest difference from itself in
    double precision, its halting steps, its size in kB and, in seconds, the times of the export and of all batches; or
    why the export is refused."""

    model: str
    suffix: str
    difference: float = 0.0
    rounding: float = 0.0
    steps: str = ""
    size: float = 0.0
    export_time: float = 0.0
    run_time: float = 0.0
    refusal: str = ""

    def __str__(self) -> str:
        start = f"| `{self.model}` | `{self.suffix}` |"
        if self.refusal:
            return f"{start} refused: {self.refusal} | | | | | |"
        times = f"{self.size:.0f} | {self.export_time:.1f} | {self.run_time:.2f}"
        return f"{start} {self.difference:.1e} | {self.rounding:.1e} | {self.steps} | {times} |"

    @property
    def bound(self) -> float:
        """The largest difference that rounding explains: sums of other orders differ by as much as both round."""
        return 1e-6 + 10 * self.rounding

    @staticmethod
    def parse(line: str) -> Row:
        """Returns the row that a line of the table shows."""
        model, suffix, *cells = (cell.strip() for cell in re.split(r"(?<!\\)\|", line.strip()[1:-1]))
        model, suffix = model.strip("`"), suffix.strip("`")
        if cells[0].startswith("refused: "):
            return Row(model, suffix, refusal=cells[0].removeprefix("refused: "))
        difference, rounding, steps, *numbers = cells
        size, export_time, run_time = map(float, numbers)
        return Row(model, suffix, float(difference), float(rounding), steps, size, export_time, run_time)


def measure(name: str, suffix: str, folder: Path, sizes: Sequence[tuple[int, int]] = SIZES) -> Row:
    """Exports a shipped model to a folder, and runs the file on batches of some sizes and lengths."""
    module = shipped_model(name)
    path = folder / f"{name}{suffix}"
    start = time.perf_counter()
    try:
        files = export(module, path, overwrite=True)
    except ExportError as error:
        return Row(name, suffix, refusal=error.message.replace("|", "\\|"))
    export_time = time.perf_counter() - start
    run = RUNNERS[suffix](path, module)
    exact = copy.deepcopy(module).double()
    difference, rounding, run_time, most_steps, is_equal = 0.0, 0.0, 0.0, 0.0, True
    with torch.no_grad():
        for batch, length in sizes:
            fields, lengths = shipped_batch(module, batch, length)
            expected = module(*fields, lengths=lengths)
            missing = [max(0, _SHORTEST.get(suffix, 1) - field.shape[1]) for field in fields]
            padded = [pad(field, (0, count)) for field, count in zip(fields, missing, strict=True)]
            start = time.perf_counter()
            result, *steps = run(padded, lengths)
            run_time += time.perf_counter() - start
            result = result[tuple(map(slice, expected.shape))]
            difference = max(difference, float((result - expected).abs().max()))
            rounding = max(rounding, float((exact(*fields, lengths=lengths) - expected).abs().max()))
            if module.sample_depth is not None:
                is_equal &= torch.equal(steps[0], module.sample_depth)
                most_steps = max(most_steps, float(module.sample_depth.max()))
    steps_cell = "" if not most_steps else f"equal, at most {most_steps:.0f}" if is_equal else "different"
    size = sum(file.stat().st_size for file in files) / 1000
    return Row(name, suffix, difference, rounding, steps_cell, size, export_time, run_time)


# Files


def _plain(path: Path, module: Architecture) -> Runner:
    spec = importlib.util.spec_from_file_location(f"plain_{path.stem}", path)
    assert spec is not None
    assert spec.loader is not None
    plain = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = plain  # dataclasses look their module up
    spec.loader.exec_module(plain)
    model = plain.load()

    def run(fields: Sequence[Tensor], lengths: dict[str, Tensor]) -> list[Tensor]:
        result = model(*fields, lengths=lengths if len(fields) > 1 else lengths[module.program.fields[0]])
        return [result] if module.sample_depth is None else [result, model.sample_depth]

    return run


def _program(path: Path, module: Architecture) -> Runner:
    program = torch.export.load(path).module()

    def run(fields: Sequence[Tensor], lengths: dict[str, Tensor]) -> list[Tensor]:
        outputs = program(*fields, *(lengths[field.name] for field in fields_with_lengths(module)))
        return list(outputs) if isinstance(outputs, tuple) else [outputs]

    return run


def _session(path: Path, module: Architecture) -> Runner:
    import onnxruntime

    session = onnxruntime.InferenceSession(str(path))

    def run(fields: Sequence[Tensor], lengths: dict[str, Tensor]) -> list[Tensor]:
        values = [*fields, *(lengths[field.name] for field in fields_with_lengths(module))]
        inputs = {name: value.numpy() for name, value in zip(input_names(module), values, strict=True)}
        return [torch.from_numpy(output) for output in session.run(None, inputs)]

    return run


RUNNERS: dict[str, Callable[[Path, Architecture], Runner]] = {".py": _plain, ".pt2": _program, ".onnx": _session}
assert set(RUNNERS) == set(FORMATS)


# The page


def rows_of_page() -> list[Row]:
    """Returns the rows of the table in docs/export.md."""
    table = _TABLE.search(PAGE.read_text(encoding="utf-8"))
    assert table is not None, PAGE
    lines = table[0].splitlines()[2:]
    return [Row.parse(line) for line in lines if line.startswith("|")]


def write_page(rows: Iterable[Row]) -> None:
    """Replaces the table in docs/export.md."""
    lines = "".join(f"{row}\n" for row in rows)
    table = f"{_HEAD}{lines}\n_Measured with {machine()}._\n"
    PAGE.write_text(_TABLE.sub(lambda _: table, PAGE.read_text(encoding="utf-8")), encoding="utf-8")


# Command line


def main(arguments: Sequence[str] | None = None) -> None:
    """Prints the rows of some models, or of all."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.exports", description=__doc__)
    parser.add_argument("models", nargs="*", metavar="MODEL", help="shipped models; all by default")
    parser.add_argument("--formats", default=",".join(SUFFIXES), help="suffixes, separated by commas")
    parser.add_argument("--results", type=Path, help="a file of JSON lines, which is resumed")
    parser.add_argument("--write-page", action="store_true", help="write the table into docs/export.md")
    options = parser.parse_args(arguments)
    names, suffixes = options.models or list(SHIPPED), options.formats.split(",")
    if options.write_page and (names != list(SHIPPED) or tuple(suffixes) != SUFFIXES):
        parser.error("--write-page needs all models and all formats")
    print(_HEAD, end="")
    rows = []
    for row in _measured(names, suffixes, options.results):
        rows.append(row)
        print(row, flush=True)
    if options.write_page:
        write_page(rows)


def _measured(names: Sequence[str], suffixes: Sequence[str], results: Path | None) -> Iterator[Row]:
    earlier: dict[tuple[str, str], Row] = {}
    if results is not None and results.exists():
        stored = (Row(**json.loads(line)) for line in results.read_text(encoding="utf-8").splitlines())
        earlier = {(row.model, row.suffix): row for row in stored}
    with TemporaryDirectory() as folder:
        for name in names:
            for suffix in suffixes:
                row = earlier.get((name, suffix)) or measure(name, suffix, Path(folder))
                if results is not None and (name, suffix) not in earlier:
                    with results.open("a", encoding="utf-8") as file:
                        file.write(f"{json.dumps(asdict(row))}\n")
                yield row


if __name__ == "__main__":
    main()
