"""`archlang predict`: the answers of a trained model to inputs of the command line or of a file."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TextIO

import typer

from archlang.cli import completion, console
from archlang.cli.settings import Plugin
from archlang.cli.train import Device, plain_warnings
from archlang.diagnostics.terminal import text_column

if TYPE_CHECKING:
    from rich.progress import Progress

    from archlang.runs.prediction import Prediction

# Between two lines of progress, and the largest number of batches in memory.
_BATCHES_AT_A_TIME = 16
_SHOWN = 60  # characters of an input in the table
# Files are decoded in blocks of lines: bytes that are not UTF-8 are kept as escapes until their line is read.
_ESCAPED = "surrogateescape"

# A place for errors, and an input as `Run.predict` takes it.
_PlacedInput = tuple[str, Any]  # Any: JSON


def predict(
    run: Annotated[
        Path, typer.Argument(help="A run folder or a saved model.", show_default=False, autocompletion=completion.runs)
    ],
    inputs: Annotated[
        list[str] | None,
        typer.Option(
            "--input",
            "-i",
            help="An input: tokens separated by spaces, or rows of numbers, as [[0.5, 1], [2, 3]]; may be repeated.",
        ),
    ] = None,
    file: Annotated[
        str,
        typer.Option(
            "--file", "-f", help="A file with an input on each line: text, or JSON if it ends in .jsonl. - is stdin."
        ),
    ] = "",
    batch: Annotated[int, typer.Option("--batch", min=1, help="The inputs that are read at a time.")] = 64,
    length: Annotated[
        int | None,
        typer.Option("--length", min=1, help="Tokens to write: for answers without an end, or to continue a text."),
    ] = None,
    checkpoint: Annotated[str, typer.Option("--checkpoint", help="best, last or a step.")] = "best",
    device: Device = "auto",
    plugin: Plugin = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print a line of JSON for each input.")] = False,
) -> None:
    """Print what a trained model answers to each input, with its probability.

    A line of a .jsonl file is a text, a list of token ids or of rows of numbers, or an object with a value for each
    field: {"source": "jump twice"}. Marks that the task declares may be omitted, and so may the answer that a model
    writes. Lines of stdin are texts, or JSON objects.

    Example: archlang predict runs/ndr/2026-01-31_12-00-00 --input "10 a b" --input "11 b"
    """
    from archlang.api.run import explaining_input_format, load_run
    from archlang.runs.prediction import predict_inputs

    if bool(inputs) == bool(file):
        amount = "not both" if inputs else "and none are given"
        console.fail(f"give inputs by --input or by --file, {amount}", "see `archlang predict --help`", code=2)
    with ExitStack() as stack:
        stack.enter_context(plain_warnings())
        placed: Iterator[_PlacedInput]
        if inputs:
            placed = ((f"--input {index}", text) for index, text in enumerate(inputs, 1))
            total: int | None = len(inputs)
        else:
            stream = stack.enter_context(_opened(file))
            total = None
            placed = _lines(stream, file)
        opened = load_run(run, checkpoint, device=device, plugins=plugin or ())
        # With or without a length, a field that the model can write is not typed.
        fields = opened.input_format.typed_fields(length or 1)
        if inputs and len(fields) > 1:
            # As `inspect` takes them: an option for each field of one input.
            placed, total = iter([("", inputs)]), 1
        progress = None if inputs or not console.err.is_terminal else stack.enter_context(_progress())
        counter = None if progress is None else progress.add_task("predicting", total=total)
        rows: list[Prediction] = []
        while part := list(islice(placed, batch * _BATCHES_AT_A_TIME)):
            places, values = [place for place, _ in part], [value for _, value in part]
            with explaining_input_format(opened):
                predictions = predict_inputs(
                    opened.module, opened.input_format, values, opened.device, batch=batch, length=length, places=places
                )
            if as_json:
                for prediction in predictions:
                    console.out.write_json_line(prediction.to_json())
                console.out.file.flush()
            else:
                rows += predictions
            if progress is not None and counter is not None:
                progress.advance(counter, len(part))
    if not as_json:
        _print_table(rows)


def _opened(name: str) -> TextIO:
    if name == "-":
        return io.TextIOWrapper(sys.stdin.buffer, encoding="utf-8-sig", errors=_ESCAPED)
    try:
        return Path(name).open(encoding="utf-8-sig", errors=_ESCAPED)
    except OSError as error:
        console.fail(f"{name} cannot be read: {error.strerror}", "name a file with an input on each line")


def _lines(stream: TextIO, name: str) -> Iterator[_PlacedInput]:
    """Yields the input of each line, with the place of the line."""
    for number, line in enumerate(stream, 1):
        place = f"{'stdin' if name == '-' else name}:{number}"
        if not _is_utf8(line):
            console.fail(f"{place} is not UTF-8", "convert the file to UTF-8")
        is_json = name.endswith(".jsonl") or (name == "-" and line.startswith('{"'))
        yield place, _parsed(line, place) if is_json else line.rstrip("\r\n")


def _is_utf8(line: str) -> bool:
    try:
        line.encode()
    except UnicodeEncodeError:  # an escaped byte
        return False
    return True


def _parsed(line: str, place: str) -> Any:  # Any: JSON
    try:
        return json.loads(line)
    except (ValueError, RecursionError) as error:
        console.fail(f"{place} is not JSON: {error}", 'write a text in quotes, or an object such as {"x": "1 2"}')


def _progress() -> Progress:
    from rich.progress import MofNCompleteColumn, Progress, SpinnerColumn, TimeElapsedColumn

    columns = SpinnerColumn(), text_column("{task.description}"), MofNCompleteColumn(), TimeElapsedColumn()
    return Progress(*columns, console=console.err, transient=True)


def _print_table(predictions: Sequence[Prediction]) -> None:
    from rich import box
    from rich.table import Table

    has_steps = any(prediction.steps is not None for prediction in predictions)
    has_probabilities = any(prediction.probability is not None for prediction in predictions)
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for header in ("input", "answer"):
        table.add_column(header, overflow="fold")
    for header in (*(["probability"] * has_probabilities), *(["steps"] * has_steps)):
        table.add_column(header, justify="right")
    for prediction in predictions:
        text = " | ".join(prediction.fields.values())
        steps = [] if prediction.steps is None else [f"{prediction.steps:.1f}"]
        shown = text if len(text) <= _SHOWN else f"{text[: _SHOWN - 1]}…"
        probability = [] if prediction.probability is None else [f"{prediction.probability:.1%}"]
        table.add_row(*map(_plain, (shown, prediction.answer, *probability, *steps)))
    console.out.print(table, soft_wrap=False)


def _plain(text: str) -> Any:  # Any: a text of rich, imported late
    from rich.text import Text

    return Text(text)
