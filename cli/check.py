"""`archlang check`: checks programs without running them."""

from __future__ import annotations

import gc
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from archlang.cli import completion, console
from archlang.cli.files import arch_files
from archlang.cli.internal_errors import InternalErrors
from archlang.cli.settings import Allow, Plugin
from archlang.cli.shipped import programs
from archlang.cli.standard_input import STANDARD_INPUT, read_standard_input
from archlang.diagnostics.names import plural

if TYPE_CHECKING:
    from archlang.diagnostics import Diagnostic
    from archlang.plan.plan import Plan


def check(
    files: Annotated[
        list[Path],
        typer.Argument(
            help="Files or folders to check; `-` for standard input.",
            show_default=False,
            callback=programs,
            autocompletion=completion.programs,
        ),
    ],
    as_json: Annotated[bool, typer.Option("--json", help="Print errors and warnings as JSON.")] = False,
    plugin: Plugin = None,
    allow: Allow = None,
    as_sarif: Annotated[bool, typer.Option("--sarif", help="Print errors and warnings as SARIF 2.1.0.")] = False,
    fix: Annotated[bool, typer.Option("--fix", help="Correct mistakes that have one safe correction first.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print errors and warnings only, no summary.")] = False,
) -> None:
    """Check programs: names, statics, shapes, lengths, causality, and whether models fit their tasks.

    Runs nothing and does not need torch. Exits with 1 if there are errors; warnings do not count. With `--plugin`, also
    constructs the tasks and the models of recipes that use Python of your own; `archlang test` runs their blocks.

    With `--fix`, changes the named files: corrects words with one typing error, adds missing `use` lines, and makes
    the other edits that JSON output calls safe. Lists what it has corrected.

    Example: archlang check recipes/gutlb.arch
    """
    from archlang.plan.check import check as check_file

    if as_json and as_sarif:
        console.fail("`--json` and `--sarif` exclude each other", "use one of them", code=2)
    piped = files == [STANDARD_INPUT]
    if STANDARD_INPUT in files and not piped:
        console.fail("`-` cannot be combined with files", "check the files in a separate call", code=2)
    if piped and (fix or plugin):
        console.fail(f"`-` cannot be combined with `{'--fix' if fix else '--plugin'}`", "name a file", code=2)
    paths = files if piped else arch_files(files)
    # The programs of a named folder may use each other.
    allowed = (*(allow or ()), *(path for path in files if os.path.isdir(path)))
    internal_errors = InternalErrors()
    corrected = 0
    for path in paths if fix else ():
        with internal_errors.reported(path):
            corrected += _correct(path, allowed, as_json or as_sarif or quiet)
    unique: dict[tuple[str, str, str], Diagnostic] = {}
    with _rare_collections():
        for path in paths:
            with internal_errors.reported(path):
                # Files that are used by several of the paths report their errors once.
                unique |= {
                    (str(d.span), d.code, d.message): d
                    for d in (_check_standard_input(allowed) if piped else check_file(path, allowed))
                }
    diagnostics = list(unique.values())
    errors = [diagnostic for diagnostic in diagnostics if diagnostic.is_error]
    if as_json or as_sarif:
        from archlang.diagnostics import render

        console.out.write(render.to_json(diagnostics) if as_json else render.to_sarif(diagnostics))
    else:
        console.show(diagnostics)
        if not quiet:
            failed = len(internal_errors.paths)
            console.out.print(_summary(len(paths), corrected, len(errors), len(diagnostics) - len(errors), failed))
    internal_errors.exit()
    if errors:
        raise typer.Exit(1)
    if plugin:
        _construct(paths, plugin, allowed)


def _check_standard_input(allow: Iterable[Path]) -> tuple[Diagnostic, ...]:
    from archlang.diagnostics import ProgramError
    from archlang.plan.check import check_text

    try:
        source = read_standard_input()
    except ProgramError as error:
        return error.diagnostics
    return check_text(source.text, source.path, allow=allow)


def _correct(path: Path, allow: Iterable[Path], quiet: bool) -> int:
    """Makes the safe edits of a file. Returns how many mistakes are corrected."""
    from archlang.diagnostics import ErrorWithRemedy, ProgramError
    from archlang.files.atomic import write_atomically
    from archlang.plan.corrections import correct
    from archlang.syntax.reading import byte_order_mark, read

    try:
        source = read(path)
    except ProgramError:
        return 0  # the check reports it
    correction = correct(source.text, str(path), allow)
    if correction.text == source.text:
        return 0
    try:
        target = path.resolve(strict=True)  # a link stays a link
        write_atomically(target, byte_order_mark(target) + correction.text)
    except OSError as error:
        raise ErrorWithRemedy(f"`{path}` cannot be written: {error.strerror}", "the file was not changed") from error
    for diagnostic in correction.corrected if not quiet else ():
        console.out.print(f"corrected {diagnostic.span}: {diagnostic.message}", markup=False)
    return len(correction.corrected)


@contextmanager
def _rare_collections() -> Iterator[None]:
    """Raises the thresholds of the garbage collector: nearly all objects of a check live until its end, and tracing
    them repeatedly takes a third of the time of a large file."""
    thresholds = gc.get_threshold()
    gc.set_threshold(50_000, 20, 50)
    try:
        yield
    finally:
        gc.set_threshold(*thresholds)


def _construct(paths: list[Path], plugins: list[Path], allow: Iterable[Path]) -> None:
    """Constructs the tasks of the user's own that recipes name, and the models with blocks of the user's own.

    Raises:
        PluginError: a class is in no plugin, or its plugin cannot be imported.
        TaskError, BuildError: a class contradicts its signature."""
    from archlang.plan.from_file import plan_recipe, recipe_names
    from archlang.tasks.kit.make_task import check_vocabulary, is_own, make_task

    for path in paths:
        for name in recipe_names(path):
            plan = plan_recipe(path, name, allow=allow, plugins=plugins)
            if not is_own(plan.task.python):
                task = make_task(plan.task.name, plan.task.python, plan.task.statics, plan.plugins)
                check_vocabulary(task, plan.task.name, plan.gives)
            if any(not instance.python.startswith("archlang.") for instance in plan.graph.instances.values()):
                _build(plan)


def _build(plan: Plan) -> None:
    """Builds the model of a plan without memory for its weights."""
    import torch

    from archlang.compile import build

    with torch.device("meta"):
        build(plan.graph, plan.plugins)


def _summary(files: int, corrected: int, errors: int, warnings: int, failed: int) -> str:
    """`failed` is the number of files with an internal error."""
    parts = [f"{plural(corrected, 'mistake')} corrected"] if corrected else []
    counts = ((errors, "error"), (warnings, "warning"), (failed, "internal error"))
    mistakes = [plural(number, word) for number, word in counts if number]
    return ", ".join([plural(files, "file"), *parts, *(mistakes or ["no mistakes" + " left" * bool(corrected)])])
