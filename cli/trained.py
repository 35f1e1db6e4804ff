"""`archlang eval`, `predict`, `inspect` and `export`: what one does with a trained model."""

from __future__ import annotations

import io
import json
import os.path
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TextIO

import typer

from archlang.cli import arguments, console
from archlang.cli.arguments import flag, matching, output, parse_sets, program_argument, setting

if TYPE_CHECKING:
    from archlang.reports.inspection.inspect import Inspection
    from archlang.train.runs.prediction import Prediction

_MOST_ANSWERS = 12  # printed
# Between two lines of progress, and the largest number of batches in memory.
_BATCHES_AT_A_TIME = 16
_SHOWN = 60  # characters of an input in the table
# Files are decoded in blocks of lines: bytes that are not UTF-8 are kept as escapes until their line is read.
_ESCAPED = "surrogateescape"

# A place for errors, and an input as `Run.predict` takes it.
_PlacedInput = tuple[str, Any]  # Any: JSON


def evaluate(
    run: arguments.Run,
    split: arguments.Split = None,
    sets: Annotated[list[str] | None, setting("Another static of the task, as in `task.test=64..128`")] = None,
    checkpoint: arguments.Checkpoint = None,
    device: arguments.Device = "auto",
    decode: Annotated[
        int | None, typer.Option(min=0, help="The number of answers per split that the model generates.")
    ] = None,
    eager: arguments.Eager = False,
    plugin: arguments.Plugin = None,
    as_json: arguments.AsJson = False,
) -> None:
    """Evaluate the selected weights of a run on the splits of its task, or of the task with other statics.

    The run may still be training; its folder is not changed. If the answers of a task are sequences, the model also
    generates some token by token: 1,000 of each split, or the number after `--decode`.

    Example: archlang eval runs/gutlb/2026-01-31_12-00-00 --set "task.test_length=[2048]"
    """
    from archlang.cli.progress import ProgressDisplay
    from archlang.reports.run_results import result_notes, result_table
    from archlang.train.record.schemas import json_value
    from archlang.train.runs import evaluation
    from archlang.train.score import DEFAULT_ANSWERS
    from archlang.train.trainer import SILENT

    changes = parse_sets(sets)
    if fixed := next((path for path in changes if not path.startswith("task.")), None):
        console.fail(f"`{fixed}` cannot change after training", "set statics of the task, as `task.test`", code=2)
    with console.plain_warnings():
        outcome = evaluation.evaluate_run(
            run, split, checkpoint=checkpoint or "best", device=device,
            written=DEFAULT_ANSWERS if decode is None else decode, plugins=plugin or (), sets=changes,
            watcher=SILENT if as_json else ProgressDisplay(console.out), eager=eager,
        )  # fmt: skip
    results = outcome.results
    assert results is not None, "nothing has stopped it"
    if decode and not any(split.written for split in outcome.splits.values()):
        console.err.print("warning: `--decode` has no effect: the answers of this task are no sequences")
    if as_json:
        splits = json_value(results)["splits"]
        names = {"group_names": results.group_names} if results.group_names else {}
        settings = {"set": changes} if changes else {}
        console.out.write_json({"step": outcome.step, **settings, "splits": splits, **names})
        return
    settings_text = "".join(f", {path} = {value}" for path, value in changes.items())
    console.out.print(f"the weights of step {outcome.step}{settings_text}")
    console.out.print(result_table(results, outcome.trained).terminal(), soft_wrap=False)
    for note in result_notes(results):
        console.out.print(note)


def predict(
    run: Annotated[
        Path, typer.Argument(help="A run folder or a saved model.", show_default=False)
    ],
    inputs: Annotated[
        list[str] | None,
        typer.Option(
            "--input", "-i",
            help="An input: tokens separated by spaces, or rows of numbers, as [[0.5, 1], [2, 3]]; may be repeated.",
        ),
    ] = None,
    prompt: Annotated[
        str | None, typer.Option(help="A text that a language model continues, printed as it is written.")
    ] = None,
    file: Annotated[
        str,
        typer.Option(
            "--file", "-f",
            help="A file with an input on each line: text, or JSON if it ends in .jsonl; or of images. - is stdin.",
        ),
    ] = "",
    batch: Annotated[int, typer.Option(min=1, help="The inputs that are read at a time.")] = 64,
    length: Annotated[
        int | None, typer.Option(min=1, help="Tokens to write: for answers without an end, or to continue a text.")
    ] = None,
    temperature: Annotated[
        float | None, typer.Option(min=0, help="Draw each token of an answer from softmax(logits / temperature).")
    ] = None,
    top_k: Annotated[int, typer.Option(min=0, help="Draw from the k likeliest tokens.")] = 0,
    top_p: Annotated[
        float, typer.Option(min=0, max=1, help="Draw from the likeliest tokens whose sum reaches p.")
    ] = 1.0,
    min_p: Annotated[
        float, typer.Option(min=0, max=1, help="Draw from the tokens with at least p times the greatest probability.")
    ] = 0.0,
    samples: Annotated[int, typer.Option(min=1, help="Answers for each input.")] = 1,
    seed: Annotated[int, typer.Option(min=0, help="The seed of the draws.")] = 0,
    stop: Annotated[str, typer.Option(help="Cut a written answer before this text.")] = "",
    checkpoint: arguments.Checkpoint = None,
    device: arguments.Device = "auto",
    plugin: arguments.Plugin = None,
    as_json: Annotated[bool, flag("--json", "Print a line of JSON for each answer.")] = False,
) -> None:  # fmt: skip
    """Print what a trained model answers to each input, with its probability.

    A line of a .jsonl file is a text, a list of token ids or of rows of numbers, or an object with a value for each
    field: {"source": "jump twice"}. Marks that the task declares may be omitted, and so may the answer that a model
    writes. Lines of stdin are texts, or JSON objects. Without a setting of sampling, the likeliest tokens are written.
    Files of images are those of the task `file_images`: IDX, such as t10k-images-idx3-ubyte.gz, and test_batch.bin.

    Example: archlang predict runs/ndr/2026-01-31_12-00-00 --input "10 a b" --input "11 b"
    """
    from archlang.api.run import explaining_input_format, load_run
    from archlang.backend.decode.sampling import Sampling
    from archlang.tasks.kit.image_files import is_image_file
    from archlang.train.runs.prediction import predict_inputs

    draws = temperature is not None or top_k or top_p < 1 or min_p or samples > 1 or seed
    sampling = Sampling(1.0 if temperature is None else temperature, top_k, top_p, min_p, seed) if draws else None
    ways = [bool(inputs), bool(file), prompt is not None]
    if sum(ways) != 1:
        amount = "not by several" if any(ways) else "and none are given"
        console.fail(f"give inputs by --input, --file or --prompt, {amount}", "see `archlang predict --help`", code=2)
    if prompt is not None:
        if samples > 1 or as_json:
            console.fail("--prompt prints one text", "give --input in its place, for --samples and --json", code=2)
        with console.plain_warnings():
            opened = load_run(run, checkpoint or "best", device=device, plugins=plugin or ())
            for piece in opened.stream(prompt, length=length, sampling=sampling, stop=stop):
                console.out.write_program(piece)
                console.out.file.flush()
        console.out.write_program("\n")
        return
    with ExitStack() as stack:
        stack.enter_context(console.plain_warnings())
        placed: Iterator[_PlacedInput]
        opened = load_run(run, checkpoint or "best", device=device, plugins=plugin or ())
        if inputs:
            placed = ((f"--input {index}", text) for index, text in enumerate(inputs, 1))
            total: int | None = len(inputs)
        elif is_image_file(file) and "task.columns" in opened.settings:
            placed, total = _images(file, opened.settings), None
        else:
            stream = stack.enter_context(_opened(file))
            total = None
            placed = _lines(stream, file)
        # With or without a length, a field that the model can write is not typed.
        fields = opened.input_format.typed_fields(length or 1)
        if inputs and len(fields) > 1:
            # As `inspect` takes them: an option for each field of one input.
            placed, total = iter([("", inputs)]), 1
        progress = stack.enter_context(console.progress(console.err))
        counter = progress.add_task("predicting", total=total)
        rows: list[Prediction] = []
        read = 0
        while part := list(islice(placed, batch * _BATCHES_AT_A_TIME)):
            places, values = [place for place, _ in part], [value for _, value in part]
            with explaining_input_format(opened):
                predictions = predict_inputs(
                    opened.module, opened.input_format, values, opened.device, batch=batch, length=length,
                    places=places, sampling=sampling, samples=samples, first=read, stop=stop,
                )  # fmt: skip
            read += len(part)
            if as_json:
                for prediction in predictions:
                    console.out.write_json_line(prediction.to_json())
                console.out.file.flush()
            else:
                rows += predictions
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


def _images(file: str, settings: Mapping[str, object]) -> Iterator[_PlacedInput]:
    from archlang.tasks.kit.image_files import images_of

    columns, label_bytes = (settings.get(f"task.{name}", 1) for name in ("columns", "label_bytes"))
    assert isinstance(columns, int)
    assert isinstance(label_bytes, int)
    pieces = images_of("file_images", file, columns, label_bytes)
    for number, image in enumerate(chain.from_iterable(images for images, _ in pieces), 1):
        yield f"image {number} of {file}", image


def _lines(stream: TextIO, name: str) -> Iterator[_PlacedInput]:
    for number, line in enumerate(stream, 1):
        place = f"{'stdin' if name == '-' else name}:{number}"
        try:
            line.encode()
        except UnicodeEncodeError:  # an escaped byte
            remedy = (
                "convert the file to UTF-8; images are in files such as t10k-images-idx3-ubyte.gz and test_batch.bin"
            )
            console.fail(f"{place} is not UTF-8", remedy)
        is_json = name.endswith(".jsonl") or (name == "-" and line.startswith('{"'))
        yield place, _parsed(line, place) if is_json else line.rstrip("\r\n")


def _parsed(line: str, place: str) -> Any:  # Any: JSON
    try:
        return json.loads(line)
    except (ValueError, RecursionError) as error:
        console.fail(f"{place} is not JSON: {error}", 'write a text in quotes, or an object such as {"x": "1 2"}')


def _print_table(predictions: Sequence[Prediction]) -> None:
    from rich import box
    from rich.table import Table
    from rich.text import Text

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
        table.add_row(*map(Text, (shown, prediction.answer, *probability, *steps)))
    console.out.print(table, soft_wrap=False)


def inspect(
    run: arguments.Run,
    inputs: Annotated[
        list[str] | None,
        typer.Option(
            "--input", "-i",
            help="Tokens separated by spaces, or rows of numbers, as [[0.5, 1], [2, 3]]; repeat for each field.",
        ),
    ] = None,
    split: Annotated[str, typer.Option(help="Without --input, the split to take an item from.")] = "",
    index: Annotated[int, typer.Option(min=0, help="The index of the item in the split.")] = 0,
    out: Annotated[Path | None, output("The page. Default: inspect.html in the run folder.")] = None,
    png: Annotated[Path | None, typer.Option(help="A folder for a PNG of each panel.")] = None,
    device: arguments.Device = "auto",
    plugin: arguments.Plugin = None,
    as_json: Annotated[bool, flag("--json", "Print JSON, and write no page.")] = False,
) -> None:  # fmt: skip
    """Run a trained model on one input and show its attention, gates, halting, pointers and memories.

    The page shows each of them at every step. It is one file that needs no network.

    Example: archlang inspect runs/ndr/2026-01-31_12-00-00 --split test --index 7 -o seven.html
    """
    from archlang.reports.inspection.inspect import inspect as inspect_batch
    from archlang.reports.inspection.inspect import source_lines, split_item, typed_input
    from archlang.train.record.reading import RECIPE
    from archlang.train.runs.evaluation import explaining_stored_model, open_run

    with console.plain_warnings():
        opened = open_run(run, device=device, plugins=plugin or ())
        if inputs:
            if split:
                console.fail("--input and --split are both given", "choose one of them")
            batch, title = typed_input(opened.module, opened.input_format, inputs), " ".join(inputs)
        else:
            split = split or ("test" if "test" in opened.task.split_names() else opened.task.split_names()[-1])
            batch, title = split_item(opened, split, index), f"{split} {index}"
        lines = source_lines(run / RECIPE, opened.record.recipe or "")
        with explaining_stored_model(run):
            inspection = inspect_batch(opened.module, opened.input_format, batch, title, lines)
    if as_json:
        console.out.write_json(inspection.to_json())
        return
    _print_inspection(inspection)
    if png is not None:
        from archlang.reports.inspection.heatmap import save_panels

        for file in save_panels(inspection.panels, png):
            console.out.print(f"wrote {file}")
    console.write_page(inspection.html(), out, run, "inspect.html")


def _print_inspection(inspection: Inspection) -> None:
    answers = inspection.answers
    for answer in answers[:_MOST_ANSWERS]:
        place = f"{answer.place}: " if answer.place else ""
        if answer.probability is None:
            console.out.print(f"{place}{answer.predicted}{'' if answer.target is None else f', it is {answer.target}'}")
            continue
        correctness = {True: "  right", False: f"  wrong, it is {answer.target}", None: ""}[answer.right]
        console.out.print(f"{place}{answer.predicted} ({answer.probability:.1%}){correctness}")
    if len(answers) > _MOST_ANSWERS:
        right = sum(answer.right is True for answer in answers)
        count = f", {right} right" if any(answer.right is not None for answer in answers) else ""
        console.out.print(f"… {len(answers)} in all{count}")
    for number, step in enumerate(inspection.steps, start=1):
        facts = [step.text, *([f"{step.right} right"] if step.right else [])]
        facts += [f"{name} {x:.3f}" for name, x in (("loss", step.loss), ("halts here", step.halting)) if x is not None]
        console.out.print(f"step {number}: {', '.join(facts)}")


def import_model(
    folder: Annotated[
        Path, typer.Argument(help="A folder with config.json and model.safetensors, or its shards.", show_default=False)
    ],
    out: Annotated[Path, typer.Option("--out", "-o", help="The folder to write.", show_default=False)],
    as_json: arguments.AsJson = False,
) -> None:
    """Read a model of Hugging Face: write its page, with its numbers, and its weights as a saved model.

    The page is `recipe.arch` in the folder. `archlang predict` and `archlang eval` take the folder, and so does
    `archlang.load` in Python. Nothing is fetched, and no code of the folder runs.

    Example: archlang import ~/models/gpt2 -o gpt2
    """
    from archlang.weights.huggingface import import_folder

    with console.plain_warnings():
        module = import_folder(folder, out)
    name, count = module.program.graph.name, sum(weight.numel() for weight in module.parameters())
    if as_json:
        console.out.write_json({"model": name, "folder": str(out), "parameters": count})
        return
    console.out.print(f"wrote {out}: the page `{name}`, with {count:,} weights")


def export(
    source: Annotated[Path, program_argument("A run folder, a saved model, or a program.", "RUN|FILE")],
    out: Annotated[
        Path, typer.Option("--out", "-o", help="The file: .py, .pt2 or .onnx; or a folder.", show_default=False)
    ],
    to: Annotated[
        str | None,
        typer.Option(
            "--to",
            help="`huggingface`: write a folder that `transformers` loads.",
            callback=matching("huggingface", "`huggingface`"),
        ),
    ] = None,
    model: arguments.Model = None,
    recipe: arguments.Recipe = None,
    sets: arguments.Sets = None,
    allow: arguments.Allow = None,
    checkpoint: arguments.Checkpoint = None,
    force: Annotated[bool, flag("--force", "Overwrite existing files.")] = False,
    plugin: arguments.Plugin = None,
    as_json: arguments.AsJson = False,
) -> None:
    """Write a model as a file that runs without archlang: a run with its selected weights, a program with new weights.

    The suffix of the file is its format. `.py` is plain torch code, with the weights in a `.pt` file beside it;
    `.pt2` is a program of torch.export, and `.onnx` runs in onnxruntime. With `--to huggingface`, a page of a family
    that `archlang import` knows becomes a folder in the format of the family; any other language model brings its code.

    Example: archlang export runs/ndr/2026-01-31_12-00-00 -o ndr.py
    """
    from archlang.api.run import load_module
    from archlang.compile import load_named
    from archlang.export.formats import check_target
    from archlang.export.formats import export as write
    from archlang.weights.huggingface import export_folder

    if source.is_dir() and (model is not None or recipe is not None or sets):
        console.fail("a run folder has its own model, recipe and statics", "omit --model, --recipe and --set", code=2)
    if not source.is_dir() and checkpoint is not None:
        console.fail("a program has no checkpoints", "omit --checkpoint, or name a run folder", code=2)
    if source.suffix != ".arch" and not os.path.lexists(source):
        remedy = "check the path; `archlang runs list` lists the runs"
        console.fail(f"there is no run, saved model or program {source}", remedy)
    if to is None:
        check_target(out, overwrite=force)
    with console.plain_warnings():
        module = (
            load_module(source, checkpoint or "best", plugin or ())
            if source.is_dir()
            else load_named(source, model, recipe, parse_sets(sets), plugins=plugin or (), allow=allow or ())
        )
        if to is None:
            files = write(module.eval(), out, overwrite=force, is_stored=source.is_dir())
        else:
            files = export_folder(module.eval(), out, source if source.is_dir() else None, overwrite=force)
    if as_json:
        sizes = [{"path": str(file), "bytes": file.stat().st_size} for file in files]
        console.out.write_json({"model": module.program.graph.name, "files": sizes})
        return
    for file in files:
        console.out.print(f"wrote {file}")
