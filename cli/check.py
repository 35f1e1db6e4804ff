"""`archlang check`: every mistake of a program, before any GPU time is spent."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from archlang.cli import console
from archlang.cli.files import arch_files


def check(
    files: Annotated[list[Path], typer.Argument(help="Files or folders to check.", show_default=False)],
    as_json: Annotated[bool, typer.Option("--json", help="Print the mistakes as JSON.")] = False,
    plugin: Annotated[
        Path | None, typer.Option("--plugin", help="The Python file of a task of your own. It is run: read it first.")
    ] = None,
    as_sarif: Annotated[bool, typer.Option("--sarif", help="Print the mistakes as SARIF 2.1.0.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print mistakes only.")] = False,
) -> None:
    """Check programs: names, statics, shapes, lengths, causality, and that models fit their tasks.

    Nothing is run and torch is not needed. Ends with 1 if there are errors; warnings leave 0. With `--plugin`, the
    classes of tasks of your own are made too, and held against their signatures.

    Example: archlang check recipes/gutlb.arch
    """
    from archlang import compile as compiler

    if as_json and as_sarif:
        console.fail("`--json` and `--sarif` are two forms of the same output", "choose one of them", code=2)
    paths = arch_files(files)
    with _rare_collections():
        found = list({(str(d.span), d.code, d.message): d for path in paths for d in compiler.check(path)}.values())
    errors = [diagnostic for diagnostic in found if diagnostic.is_error]
    if as_json or as_sarif:
        from archlang.diagnostics import render

        print(render.to_json(found) if as_json else render.to_sarif(found))
    else:
        console.show(found)
        if not quiet:
            console.out.print(_summary(len(paths), len(errors), len(found) - len(errors)))
    if errors:
        raise typer.Exit(1)
    if plugin is not None:
        _make_tasks(paths, str(plugin))


@contextmanager
def _rare_collections() -> Iterator[None]:
    """Collects garbage rarely: most of what a check makes lives until its end, and to look through it again and again
    takes a third of the time of a large file."""
    thresholds = gc.get_threshold()
    gc.set_threshold(50_000, 20, 50)
    try:
        yield
    finally:
        gc.set_threshold(*thresholds)


def _make_tasks(paths: list[Path], plugin: str) -> None:
    """Makes the tasks whose classes are in a plugin.

    Raises:
        TaskError: a class does not do what its signature says."""
    from archlang import compile as compiler
    from archlang.tasks.kit.make_task import check_sizes, is_own, make_task

    for path in paths:
        for name in compiler.recipes(path):
            plan = compiler.plan(path, name)
            if not is_own(plan.task.python):
                task = make_task(plan.task.name, plan.task.python, plan.task.statics, plugin)
                check_sizes(task, plan.task.name, plan.gives)


def _summary(files: int, errors: int, warnings: int) -> str:
    def count(number: int, word: str) -> str:
        return f"{number} {word}" if number == 1 else f"{number} {word}s"

    parts = [count(number, word) for number, word in ((errors, "error"), (warnings, "warning")) if number]
    return f"{count(files, 'file')}, {', '.join(parts) or 'no mistakes'}"
