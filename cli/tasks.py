"""`archlang tasks`: list the tasks, or print one."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Annotated

import typer

from archlang.cli import completion

if TYPE_CHECKING:
    from archlang.syntax.tree import Definition, Extern
    from archlang.tasks.kit.task import Task


def tasks(
    name: Annotated[
        str | None,
        typer.Argument(help="The name of a task. Without a name, list all.", autocompletion=completion.tasks),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print as JSON.")] = False,
) -> None:
    """List the tasks, or print one: its statics, fields, splits and source.

    Example: archlang tasks ctl
    """
    from archlang.cli.signatures import list_or_show
    from archlang.names import library

    list_or_show("task", library.tasks(), name, as_json, declared_facts)


def declared_facts(item: Definition | Extern) -> dict[str, object]:
    """Returns the facts of a task with its default statics; empty for an item that is none."""
    from archlang.syntax.tree import Extern

    if not isinstance(item, Extern) or not item.python.startswith("archlang.tasks."):
        return {}
    module, _, attribute = item.python.partition(":")
    task: Task = getattr(importlib.import_module(module), attribute).unchecked()
    return {
        "kind": task.kind.value,
        "splits": list(task.split_names()),
        "in_distribution": list(task.in_distribution),
        "broken_down_by": task.breakdown,
        "metrics": list(task.metrics),
    }
