"""One point of a recipe with everything resolved: what the runner needs, and nothing of the tree."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from archlang.graph.graph import Graph
from archlang.source import Source
from archlang.types.statics import StaticValue


@dataclass(frozen=True)
class BoundExtern:
    """A task or an optimizer that a recipe names: its Python class and all its statics, defaults filled in. `plugin` is
    the file of a user's own class, where the user has named it."""

    name: str
    python: str
    statics: Mapping[str, StaticValue]
    plugin: str = ""


@dataclass(frozen=True)
class PublishedResult:
    """A `claim`: `metric` is `split.metric` as in `test.accuracy`; `index` a group of the breakdown (a length, say)."""

    metric: str
    index: int | None
    value: float
    deviation: float | None
    at: Mapping[str, StaticValue]
    origin: str


@dataclass(frozen=True)
class Plan:
    """One point of a recipe. `gives` are the sizes that the task fixes (`vocab`, `classes`); `at_test` is the graph
    with the statics of `test …`, the same object as `graph` where there are none; `settings` is every static by its
    dotted path (`task.order`, `model.d`, `train.lr`); `vary` the values that each varied path takes."""

    recipe: str
    source: Source
    task: BoundExtern
    gives: Mapping[str, int]
    model: str
    graph: Graph
    at_test: Graph
    train: BoundExtern
    seed: int
    settings: Mapping[str, StaticValue]
    vary: Mapping[str, tuple[StaticValue, ...]]
    claims: tuple[PublishedResult, ...]
