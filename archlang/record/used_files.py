"""The files that a program uses, apart from the library."""

from __future__ import annotations

import os.path
from collections.abc import Iterator
from pathlib import Path

import archlang
from archlang.graph.graph import Graph
from archlang.plan.plan import Plan
from archlang.source import Span

_LIBRARY = Path(archlang.__file__).resolve().parent
# Where files go that do not stand below the program's own folder.
_ELSEWHERE = "elsewhere"


def used_files(plan: Plan) -> dict[str, str]:
    """The texts of the files whose blocks are in a plan's graphs, by their places beside the program, and that of
    the class of a user's own task: with them the program can be trained again where it is written to."""
    beside = os.path.dirname(os.path.abspath(plan.source.path))
    found: dict[str, str] = {}
    for span in (*_spans(plan.graph), *_spans(plan.at_test)):
        place = os.path.abspath(span.source.path)
        if span.source.path == plan.source.path or _is_library(Path(place)):
            continue
        name = os.path.relpath(place, beside).replace(os.sep, "/")
        if name.startswith("../") or name == "recipe.arch":
            name = f"{_ELSEWHERE}/{name.replace('../', '')}"
        found[name] = span.source.text
    if plan.task.plugin:
        own = Path(plan.task.plugin)
        found[own.name] = own.read_text(encoding="utf-8")
    return found


def _is_library(place: Path) -> bool:
    # `blocks`, `cli` and `recipes` are links in a checkout: both ways to them count.
    inside = {_LIBRARY / "blocks", (_LIBRARY / "blocks").resolve()}
    return any(place.is_relative_to(one) for one in inside)


def _spans(graph: Graph) -> Iterator[Span]:
    spans = [instance.span for instance in graph.instances.values()]
    spans += [node.span for node in graph.region.walk()]
    yield from (span for span in spans if span is not None)
