"""Reading a run folder: its files through their schemas, its graphs, and the plan of its run."""

import json
import os.path
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from math import prod
from pathlib import Path
from typing import Annotated, TypeVar

from pydantic import BaseModel, Discriminator, Field, Tag, TypeAdapter, ValidationError

from archlang.disk.folder import Folder
from archlang.disk.limits import LARGEST_GRAPH, LARGEST_JSON, LARGEST_LINES
from archlang.elaborate.binding import LARGEST_SIZE, LARGEST_VOCABULARY
from archlang.elaborate.library_facts import with_library_facts
from archlang.elaborate.region_builder import MOST_LOOP_STEPS, MOST_OPERATIONS
from archlang.errors import ProgramError, Source
from archlang.graph.graph import Graph, Region, scope_of
from archlang.graph.operations import OwnWeights, step_limit
from archlang.graph.text import parse_graph
from archlang.graph.verifier import MalformedGraph, verify
from archlang.plan.from_file import rebind
from archlang.plan.plan import BoundExtern, Plan
from archlang.plugins import COPIES, Plugins
from archlang.resolve import library
from archlang.syntax.reading import LARGEST as LARGEST_PROGRAM
from archlang.syntax.tree import PAGE
from archlang.train.record import mistakes, schemas
from archlang.train.record.mistakes import disk_errors_as
from archlang.types import Dim
from archlang.types.statics import Symbol

_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_STEP = re.compile(r"[0-9]+")  # of a stack with an index


def parse_stored_graph(text: str) -> Graph:
    """Returns the graph of a text, with the facts of the library's blocks.

    Raises:
        ValueError: the text is not that of a graph, the graph breaks a rule, or the model is too large."""
    graph = parse_graph(text)
    try:
        verify(graph)
    except MalformedGraph as error:
        raise ValueError(str(error)) from error
    _check_names(graph)
    _check_sizes(graph)
    _check_loops(graph.region, 1)
    _check_modules(graph)
    return with_library_facts(graph)


def _check_names(graph: Graph) -> None:
    nodes = list(graph.region.walk())
    inputs = [value for region in (graph.region, *(body for node in nodes for body in node.regions))
              for value in region.inputs]  # fmt: skip
    for word in filter(None, (graph.name, *(value.name for value in inputs), *(node.name for node in nodes))):
        if not _WORD.fullmatch(word):
            raise ValueError(f"{word!r} is no name")
    symbols = [str(value) for instance in graph.instances.values() for value in _leaves(instance.statics.values())
               if isinstance(value, Symbol)]  # fmt: skip
    facts = [value for node in nodes for value in _leaves(vars(node.operation).values()) if isinstance(value, str)]
    for path in (*graph.instances, *symbols, *filter(None, facts)):
        if not all(_WORD.fullmatch(word) or word == "*" or _STEP.fullmatch(word) for word in path.split(".")):
            raise ValueError(f"{path!r} is no path of names")


def _leaves(values: Iterable[object]) -> Iterator[object]:
    for value in values:
        yield from _leaves(value) if isinstance(value, tuple) else (value,)


def _check_sizes(graph: Graph) -> None:
    for path, instance in graph.instances.items():
        for name, size in instance.features.items():
            # A pure block has no weights.
            _check_size(f"`{name}` of @{path}", size, LARGEST_VOCABULARY if instance.pure else LARGEST_SIZE)
    for node in graph.region.walk():
        for kind in node.types:
            for size in kind.dims:
                _check_size(node.id, size, LARGEST_VOCABULARY if kind.name == "tokens" else LARGEST_SIZE)


def _check_size(what: str, size: Dim, largest: int) -> None:
    if size.is_unwieldy or (size.constant is not None and not 0 <= size.constant <= largest):
        raise ValueError(f"{what} has the size {size}, which is not between 0 and {largest:,}")


def _check_loops(region: Region, steps: int) -> None:
    for node in region.nodes:
        inner = steps * max(1, step_limit(node.operation) or 1)
        if inner > MOST_LOOP_STEPS:
            raise ValueError(f"the loop {node.id} and those around it take more than {MOST_LOOP_STEPS:,} steps")
        for body in node.regions:
            _check_loops(body, inner)


def _check_modules(graph: Graph) -> None:
    nodes = list(graph.region.walk())
    counts = {node.operation.path: node.operation.count for node in nodes if isinstance(node.operation, OwnWeights)}
    modules = sum(_copies(path, counts) for path in (*graph.instances, *counts))
    if max(len(nodes), modules) > MOST_OPERATIONS:
        raise ValueError(f"the model has more than {MOST_OPERATIONS:,} operations or modules")


def _copies(path: str, counts: Mapping[str, int]) -> int:
    """Returns how many modules a path stands for: one for each step of the stacks around it; a stack has its steps."""
    copies = counts.get(path, 1)
    while scope := scope_of(path):
        path = scope.removesuffix(".*")
        copies *= counts.get(path, 0)
    return copies


RECIPE, GRAPH, GRAPH_AT_TEST, LOCK = "recipe.arch", "graph.txt", "graph_at_test.txt", ".lock"
CHECKPOINTS, CURVES = "checkpoints", "tensorboard"
FORMAT = 2
"""that of saved models"""
_LARGEST_SAVED = 1 << 26
_SAVED_FILE = re.compile(
    r"(run|data|results|vocabulary|tokenizer)\.json|graph(_at_test)?\.txt|(checkpoints/step-[0-9]{8}/)?"
    r"(weights\.safetensors|manifest\.json)|([^/\\:\0-\x1f\x7f]+/)*[^/\\:\0-\x1f\x7f]+\.arch"
)
# What a run writes before `run.json`; one that was killed before it began may have left it.
FIRST = (
    RECIPE, GRAPH, GRAPH_AT_TEST, LOCK, schemas.START, schemas.DATA, schemas.VOCABULARY, schemas.VERSIONS,
)  # fmt: skip
# Names that archlang itself, its pages and its trackers use in a run folder.
RESERVED = frozenset({
    *FIRST, CHECKPOINTS, CURVES, schemas.RUN, schemas.RESULTS, schemas.METRICS, schemas.TIMINGS,
    schemas.MANIFEST, "wandb", "report.html", "inspect.html",
})  # fmt: skip

_LIMITS = {
    schemas.METRICS: LARGEST_LINES, schemas.TIMINGS: LARGEST_LINES, GRAPH: LARGEST_GRAPH, GRAPH_AT_TEST: LARGEST_GRAPH,
    RECIPE: LARGEST_PROGRAM,
}  # fmt: skip

# Only the line of an evaluation names a split.
_METRICS = TypeAdapter[schemas.StepMetrics | schemas.EvaluationMetrics](
    Annotated[
        Annotated[schemas.StepMetrics, Tag("step")] | Annotated[schemas.EvaluationMetrics, Tag("evaluation")],
        Discriminator(lambda line: "evaluation" if isinstance(line, dict) and "split" in line else "step"),
    ]
)

Timing = schemas.StepTiming | schemas.EvaluationTiming | schemas.SavingTiming
_TIMINGS = TypeAdapter[Timing](Timing)

Model = TypeVar("Model", bound=BaseModel)
Run = TypeVar("Run", bound=schemas.ModelRecord)
Line = TypeVar("Line")


def read_text(folder: Path, name: str) -> str:
    """Returns the text of a file of a run folder."""
    try:
        return read_bytes(folder, name, _LIMITS.get(name, LARGEST_JSON)).decode()
    except UnicodeDecodeError as error:
        raise mistakes.damaged(folder / name, str(error)) from error


def read_bytes(folder: Path, name: str, limit: int) -> bytes:
    """Returns the content of a file, also of one in a folder of the run folder."""
    with _holding(folder, name) as (home, own_name):
        return home.read(own_name, limit)


@contextmanager
def _holding(folder: Path, name: str) -> Iterator[tuple[Folder, str]]:
    with disk_errors_as(mistakes.not_read, folder / name):
        try:
            with Folder.open(folder) as opened, opened.holding(name) as found:
                yield found
        except (FileNotFoundError, NotADirectoryError):
            raise mistakes.not_a_run(folder, name) from None
        except IsADirectoryError as error:
            raise mistakes.damaged(folder / name, "it is a folder") from error


def has(folder: Path, name: str) -> bool:
    """Returns whether a run folder has something of this name; false if there is no such folder."""
    with disk_errors_as(mistakes.not_read, folder):
        try:
            with Folder.open(folder) as opened:
                return opened.has(name.partition("/")[0])
        except (FileNotFoundError, NotADirectoryError):
            return False


def is_in_use(folder: Path) -> bool:
    """Returns whether a process trains in a folder, or searches in it; false if there is no such folder."""
    if not has(folder, LOCK):
        return False
    with disk_errors_as(mistakes.not_read, folder), Folder.open(folder) as opened:
        return opened.is_locked(LOCK)


def is_saved(folder: Path) -> bool:
    """Returns whether a folder has a model that was saved, complete or not."""
    return os.path.lexists(folder / schemas.MANIFEST)


def require_intact(folder: Path) -> tuple[str, ...]:
    """Compares every file of a saved model with its manifest, before it is used. Returns their names; none for the
    folder of a run, which has no manifest."""
    if not is_saved(folder):
        return ()
    manifest = _validated(
        folder, schemas.MANIFEST, schemas.SavedRecord, read_bytes(folder, schemas.MANIFEST, _LARGEST_SAVED)
    )
    if manifest.format != FORMAT:
        raise mistakes.other_format(folder, manifest.format, FORMAT, manifest.archlang)
    for name, file in manifest.files.items():
        if not _SAVED_FILE.fullmatch(name) or {"..", "."} & set(name.split("/")):
            raise mistakes.damaged(folder / schemas.MANIFEST, f"a saved model has no file {name!r}")
        with _holding(folder, name) as (home, own_name):
            is_intact = home.size(own_name) == file.size and home.sha256(own_name) == file.sha256
        if not is_intact:
            raise mistakes.damaged(folder / name, f"it is not the file that {schemas.MANIFEST} describes")
    return tuple(manifest.files)


def read_record(folder: Path, name: str, model: type[Model]) -> Model:
    """Returns a JSON file of a run folder as its model."""
    return _validated(folder, name, model, read_text(folder, name))


def _validated(folder: Path, name: str, model: type[Model], content: str | bytes) -> Model:
    try:
        return model.model_validate_json(content)
    except ValidationError as error:
        raise mistakes.damaged(folder / name, explain(error)) from error


def read_results(folder: Path) -> schemas.Results | None:
    """Returns the results of a run; None if it has not finished."""
    return read_record(folder, schemas.RESULTS, schemas.Results) if has(folder, schemas.RESULTS) else None


def parse_metrics(line: str | bytes) -> schemas.StepMetrics | schemas.EvaluationMetrics:
    """Returns a line of `metrics.jsonl`.

    Raises:
        ValidationError: The line fits neither model."""
    return _METRICS.validate_json(line)


def read_metrics(folder: Path) -> tuple[schemas.StepMetrics | schemas.EvaluationMetrics, ...]:
    """Returns the logged steps and evaluations of a run so far."""
    return tuple(_parsed(folder, schemas.METRICS, parse_metrics))


def read_timings(folder: Path) -> tuple[Timing, ...]:
    """Returns the speeds and the durations of the evaluations and checkpoints of a run so far."""
    return tuple(_parsed(folder, schemas.TIMINGS, _TIMINGS.validate_json))


def read_recorded_runs(file: Path) -> dict[str, schemas.RecordedRun]:
    """Returns the runs of the records of a table, by the names of their folders."""
    runs = _parsed(file.parent, file.name, schemas.RecordedRun.model_validate_json, is_written_at_once=True)
    return {run.run: run for run in runs}


def _parsed(folder: Path, name: str, parse: Callable[[str], Line], is_written_at_once: bool = False) -> Iterator[Line]:
    text = read_text(folder, name) if has(folder, name) else ""
    # A running or killed process may have written half of the last line.
    end = None if is_written_at_once else text.rfind("\n") + 1
    for number, line in enumerate(text[:end].splitlines(), 1):
        try:
            yield parse(line)
        except ValidationError as error:
            raise mistakes.damaged(folder / name, f"line {number}: {explain(error)}") from error


def read_graph(folder: Path, name: str = GRAPH_AT_TEST) -> Graph:
    """Returns a graph of a run folder, by default that of test time."""
    try:
        return parse_stored_graph(read_text(folder, name))
    except ValueError as error:
        raise mistakes.damaged(folder / name, str(error)) from error


def read_run(folder: Path, kind: type[Run]) -> Run:
    """Returns what a run is. Statics of a shipped task and optimizer are checked like those of a recipe."""
    run = read_record(folder, schemas.RUN, kind)
    externs = {word: getattr(run, word) for word in ("task", "train")}
    checked = {word: _checked(folder, word, extern) for word, extern in externs.items() if extern is not None}
    return run.model_copy(update=checked)


def _checked(folder: Path, word: str, extern: BoundExtern) -> BoundExtern:
    shipped = library.task(extern.name) if word == "task" else library.optimizer(extern.name)
    if extern.python.startswith(PAGE):
        return _checked_shipped(folder, word, extern)
    if shipped is None or shipped.python != extern.python:
        # Of the user's own: `make_task` and `make_optimizer` look for it in the plugins.
        return _with_checked_settings(folder, extern) if word == "train" else extern
    return _checked_shipped(folder, word, extern)


def _with_checked_settings(folder: Path, extern: BoundExtern) -> BoundExtern:
    adamw = library.optimizer("adamw")
    assert adamw is not None
    names = [static.name for static in library.training_settings().signature.statics]
    settings = {name: extern.statics[name] for name in names if name in extern.statics}
    checked = _checked_shipped(folder, "train", BoundExtern("adamw", adamw.python, settings))
    if not isinstance(extern.statics.get("lr"), float):
        raise mistakes.damaged(folder / schemas.RUN, "train.statics.lr is not a number")
    return replace(extern, statics={**{name: checked.statics[name] for name in names}, **extern.statics})


def _checked_shipped(folder: Path, word: str, extern: BoundExtern) -> BoundExtern:
    try:
        checked = rebind(word, extern)[0]
    except (ProgramError, ValueError) as error:  # or a number of too many digits
        reason = error.diagnostics[0].message if isinstance(error, ProgramError) else error
        raise mistakes.damaged(folder / schemas.RUN, f"{word}: {reason}") from error
    for name, value in extern.statics.items():
        if checked.statics.get(name) != value:
            raise mistakes.damaged(folder / schemas.RUN, f"{word}.statics.{name} is not a value of this static")
    return checked


def read_plugins(folder: Path, run: schemas.ModelRecord, paths: Iterable[str | Path]) -> Plugins:
    """Returns the Python files that the user trusts for a run, which must be those that it was trained with."""
    copies = folder / COPIES
    plugins = Plugins.read(paths, folder if is_saved(folder) else copies)
    plugins.require_recorded(run.plugins, folder, None if is_saved(folder) else copies)
    return plugins


def read_plan(folder: Path, plugins: Iterable[str | Path] = ()) -> tuple[Plan, str]:
    """Returns the plan of a run and its precision. The plan has no `vary`, which the folder does not record. `plugins`
    are the Python files that the user trusts.

    Raises:
        RunError: The folder is not a run folder, or is damaged.
        PluginError: A plugin cannot be read, or the run was trained with others."""
    run = read_run(folder, schemas.RunRecord)
    graph, at_test = read_graph(folder, GRAPH), read_graph(folder, GRAPH_AT_TEST)
    source = Source(str(folder / RECIPE), read_text(folder, RECIPE))
    plan = Plan(
        run.recipe, source, run.task, run.gives, run.model, graph, graph if at_test == graph else at_test,
        run.train, run.seed, run.settings, {}, run.claims,
        read_plugins(folder, run, plugins),
    )  # fmt: skip
    return plan, run.precision


_SHAPES = TypeAdapter(dict[str, list[Annotated[int, Field(ge=0)]]])


def weight_counts(folder: Path) -> dict[str, int]:
    """Returns how many numbers each weight in the first checkpoint of a run or a saved model has, by its name; none if
    this cannot be read."""
    with suppress(OSError, ValueError, AttributeError, StopIteration, RecursionError):
        with Folder.open(folder) as run, run.folder(CHECKPOINTS) as checkpoints:
            first = next(name for name in sorted(checkpoints.names()) if name.startswith("step-"))
            with checkpoints.folder(first) as checkpoint, checkpoint.open_file(schemas.WEIGHTS) as file:
                header = json.loads(file.read(min(int.from_bytes(file.read(8), "little"), LARGEST_JSON)))
        shapes = {name: value.get("shape") for name, value in header.items() if name != "__metadata__"}
        return {name: prod(shape) for name, shape in _SHAPES.validate_python(shapes).items()}
    return {}


def explain(error: ValidationError) -> str:
    """Returns the first violation and the key that it is about."""
    first, *others = error.errors(include_url=False, include_context=False)
    place = ".".join(map(str, first["loc"]))
    more = f" (and {len(others)} more)" if others else ""
    message = first["msg"].removeprefix("Value error, ")
    return f"{place}: {message}{more}" if place else f"{message}{more}"
