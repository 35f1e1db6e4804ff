"""Programs as text, checked and compiled like a user's file."""

import tempfile
from dataclasses import dataclass
from pathlib import Path

from archlang.compile import compile_graph
from archlang.errors import Diagnostic, ProgramError
from archlang.graph.graph import Graph
from archlang.plan.check import check_text

SIZES = {"vocab": 5, "classes": 3, "words": 4}
SEES_FUTURE = "E0501"
# Tasks that predict the last field of a model with one field and with two; their `vocab` is that of SIZES.
RECIPES = {
    1: "recipe predicts {\n    task  flipflop\n    model m\n    train adamw[steps = 1]\n}\n",
    2: "recipe predicts {\n    task  copy[symbols = 3]\n    model m\n    train adamw[steps = 1]\n}\n",
}
PATH = "program.arch"


@dataclass(frozen=True)
class Compiled:
    """A program that `check` accepts. `causal` says that a task which predicts its input accepts it too."""

    text: str
    graph: Graph
    causal: bool


@dataclass(frozen=True)
class Refused:
    """A program that `check` rejects."""

    text: str
    errors: tuple[Diagnostic, ...]


def errors_of(text: str) -> tuple[Diagnostic, ...]:
    """Returns the errors that `check` reports for a program, without warnings."""
    return tuple(diagnostic for diagnostic in check_text(text, PATH) if diagnostic.is_error)


def compile_text(text: str) -> Compiled | Refused:
    """Compiles a program whose model is `m`. If it has no recipe, it is checked with one that predicts its input."""
    errors = errors_of(text)
    if any(error.code != SEES_FUTURE for error in errors):
        return Refused(text, errors)
    try:
        graph = graph_of(text)
    except ProgramError as error:  # a mistake that depends on the sizes of SIZES
        return Refused(text, error.diagnostics)
    if "\nrecipe " in text:
        return Refused(text, errors) if errors else Compiled(text, graph, causal=True)
    recipe = RECIPES[len(graph.region.inputs)]
    return Compiled(text, graph, causal=not errors_of(f"{text}{recipe}"))


def graph_of(text: str) -> Graph:
    """Returns the elaborated graph of the model `m`, before any pass."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / PATH
        file.write_text(text, encoding="utf-8")
        return compile_graph(file, "m", dict(SIZES))
