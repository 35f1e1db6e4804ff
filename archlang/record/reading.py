"""Reading a run folder: its files through their schemas, its graphs, and the plan of its run."""

from pathlib import Path
from typing import Annotated, TypeVar

from pydantic import BaseModel, Discriminator, Tag, TypeAdapter, ValidationError

from archlang.elaborate.library_facts import with_library_facts
from archlang.graph.graph import Graph
from archlang.graph.text import parse_graph
from archlang.plan.plan import Plan
from archlang.record import mistakes
from archlang.record.schemas import METRICS, RESULTS, RUN, EvaluationMetrics, Results, RunRecord, StepMetrics
from archlang.source import Source

RECIPE, GRAPH, GRAPH_AT_TEST, LOCK = "recipe.arch", "graph.txt", "graph_at_test.txt", ".lock"

# Only the line of an evaluation names a split.
_METRICS = TypeAdapter[StepMetrics | EvaluationMetrics](
    Annotated[
        Annotated[StepMetrics, Tag("step")] | Annotated[EvaluationMetrics, Tag("evaluation")],
        Discriminator(lambda line: "evaluation" if isinstance(line, dict) and "split" in line else "step"),
    ]
)

Model = TypeVar("Model", bound=BaseModel)


def read_text(folder: Path, name: str) -> str:
    """Returns the text of a file of a run folder.

    Raises:
        RunError: The folder is not a run folder, or the file cannot be read."""
    try:
        return (folder / name).read_text(encoding="utf-8")
    except (FileNotFoundError, NotADirectoryError):
        raise mistakes.not_a_run(folder, name) from None
    except (OSError, UnicodeDecodeError) as error:
        raise mistakes.damaged(folder / name, str(error)) from error


def read_record(folder: Path, name: str, model: type[Model]) -> Model:
    """Returns a JSON file of a run folder as its model.

    Raises:
        RunError: The file is missing or does not fit the model."""
    try:
        return model.model_validate_json(read_text(folder, name))
    except ValidationError as error:
        raise mistakes.damaged(folder / name, explain(error)) from error


def read_results(folder: Path) -> Results | None:
    """Returns the results of a run; None if it has not finished.

    Raises:
        RunError: The file is damaged."""
    return read_record(folder, RESULTS, Results) if (folder / RESULTS).exists() else None


def parse_metrics(line: str) -> StepMetrics | EvaluationMetrics:
    """Returns a line of `metrics.jsonl`.

    Raises:
        ValidationError: The line fits neither model."""
    return _METRICS.validate_json(line)


def metrics_lines(folder: Path) -> list[str]:
    """Returns the complete lines of `metrics.jsonl`: a running or killed process may have written half of the last.

    Raises:
        RunError: The file cannot be read."""
    if not (folder / METRICS).exists():
        return []
    text = read_text(folder, METRICS)
    return text[: text.rfind("\n") + 1].splitlines()


def read_metrics(folder: Path) -> tuple[StepMetrics | EvaluationMetrics, ...]:
    """Returns the logged steps and evaluations of a run so far.

    Raises:
        RunError: A line is damaged."""
    lines = []
    for number, line in enumerate(metrics_lines(folder), 1):
        try:
            lines.append(parse_metrics(line))
        except ValidationError as error:
            raise mistakes.damaged(folder / METRICS, f"line {number}: {explain(error)}") from error
    return tuple(lines)


def read_graph(folder: Path, name: str = GRAPH_AT_TEST) -> Graph:
    """Returns a graph of a run folder, by default that of test time.

    Raises:
        RunError: The file is missing or is not a graph."""
    try:
        return with_library_facts(parse_graph(read_text(folder, name)))
    except ValueError as error:
        raise mistakes.damaged(folder / name, str(error)) from error


def read_plan(folder: Path) -> tuple[Plan, str]:
    """Returns the plan of a run and its precision. The plan has no `vary`, which the folder does not record.

    Raises:
        RunError: The folder is not a run folder, or is damaged."""
    run = read_record(folder, RUN, RunRecord)
    graph, at_test = read_graph(folder, GRAPH), read_graph(folder, GRAPH_AT_TEST)
    source = Source(str(folder / RECIPE), read_text(folder, RECIPE))
    plan = Plan(
        run.recipe, source, run.task.extern(), run.gives, run.model, graph, graph if at_test == graph else at_test,
        run.train.extern(), run.seed, run.settings, {}, tuple(record.claim() for record in run.claims),
    )  # fmt: skip
    return plan, run.precision


def explain(error: ValidationError) -> str:
    """Returns the first violation and the key that it is about."""
    first, *others = error.errors(include_url=False, include_context=False)
    place = ".".join(map(str, first["loc"]))
    more = f" (and {len(others)} more)" if others else ""
    return f"{place}: {first['msg']}{more}" if place else f"{first['msg']}{more}"
