"""Programs as text, checked and compiled as a user's file would be."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path

from archlang.compile import compile_graph
from archlang.diagnostics import Diagnostic, ProgramError
from archlang.graph.graph import Graph
from archlang.plan.check import check_text

SIZES = {"vocab": 5, "classes": 3, "words": 4}
SEES_FUTURE = "E0501"
# Tasks that predict the last field of a model of one field and of two, with as many tokens as SIZES say.
RECIPES = {
    1: "recipe predicts {\n    task  flipflop\n    model m\n    train adamw[steps = 1]\n}\n",
    2: "recipe predicts {\n    task  copy[symbols = 3]\n    model m\n    train adamw[steps = 1]\n}\n",
}
PATH = "program.arch"


@dataclass(frozen=True)
class Compiled:
    """A program that `check` accepts. `causal` says that it is accepted for a task that asks to predict its input."""

    text: str
    graph: Graph
    causal: bool


@dataclass(frozen=True)
class Refused:
    """A program that `check` refuses."""

    text: str
    errors: tuple[Diagnostic, ...]


def errors_of(text: str) -> tuple[Diagnostic, ...]:
    """The errors that `check` reports for a program, without warnings."""
    return tuple(diagnostic for diagnostic in check_text(text, PATH) if diagnostic.is_error)


def compile_text(text: str) -> Compiled | Refused:
    """A program whose model is `m`; if it has no recipe, it is tried with one of a task that asks to predict."""
    errors = errors_of(text)
    if any(error.code != SEES_FUTURE for error in errors):
        return Refused(text, errors)
    try:
        graph = graph_of(text)
    except ProgramError as error:  # of the model with its statics, which no recipe of the program gives
        return Refused(text, error.diagnostics)
    if "\nrecipe " in text:
        return Refused(text, errors) if errors else Compiled(text, graph, causal=True)
    recipe = RECIPES[len(graph.region.inputs)]
    return Compiled(text, graph, causal=not errors_of(f"{text}{recipe}"))


def graph_of(text: str) -> Graph:
    """The graph of the model `m`, as elaborated."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / PATH
        file.write_text(text, encoding="utf-8")
        return compile_graph(file, "m", dict(SIZES))
