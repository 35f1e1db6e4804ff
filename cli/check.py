"""`archlang check` and `fmt`: check programs without running them, correct and format them."""

from __future__ import annotations

import gc
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from archlang.cli import arguments, console
from archlang.cli.arguments import flag
from archlang.cli.internal_errors import each
from archlang.errors.names import plural

if TYPE_CHECKING:
    from archlang.errors import Diagnostic


def _programs(paths: list[Path]) -> list[Path]:
    return [arguments.program_or_input(path) or path for path in paths]


def check(
    files: Annotated[
        list[Path],
        typer.Argument(
            help="Files or folders to check; `-` for standard input.", show_default=False, callback=_programs,
        ),
    ],
    as_json: arguments.AsJson = False,
    plugin: arguments.Plugin = None,
    allow: arguments.Allow = None,
    fix: Annotated[bool, flag("--fix", "Correct errors that have one safe correction first.")] = False,
) -> None:  # fmt: skip
    """Check programs: names, statics, shapes, lengths, causality, and whether models fit their tasks.

    Runs nothing and does not need torch. Exits with 1 if there are errors; warnings do not count. With `--plugin`, also
    constructs the tasks and the models of recipes that use Python of your own; `archlang test` runs their blocks.

    With `--fix`, changes the named files: corrects words with one typing error, adds missing `use` lines, and makes
    the other edits that JSON output calls safe. Lists what it has corrected.

    Example: archlang check recipes/gutlb.arch
    """
    from archlang.plan.check import check as check_file

    piped = arguments.is_standard_input(files, "check")
    if piped and (fix or plugin):
        console.fail(f"`-` cannot be combined with `{'--fix' if fix else '--plugin'}`", "name a file", code=2)
    paths = files if piped else arguments.arch_files(files)
    # The programs of a named folder may use each other.
    allowed = (*(allow or ()), *(path for path in files if os.path.isdir(path)))
    corrected = sum(_correct(path, allowed, as_json) for path in each(paths)) if fix else 0
    unique: dict[tuple[str, str, str], Diagnostic] = {}
    with _rare_collections():
        for path in each(paths):
            # Files that are used by several of the paths report their errors once.
            unique |= {
                (str(d.span), d.code, d.message): d
                for d in (_check_standard_input(allowed) if piped else check_file(path, allowed))
            }
    diagnostics = list(unique.values())
    errors = sum(diagnostic.is_error for diagnostic in diagnostics)
    if as_json:
        from archlang.errors.exchange import to_json

        console.out.write(to_json(diagnostics))
    else:
        console.show(diagnostics)
        console.out.print(_summary(len(paths), corrected, errors, len(diagnostics) - errors))
    if errors:
        raise typer.Exit(1)
    if plugin:
        _construct(paths, plugin, allowed)


def _check_standard_input(allow: Iterable[Path]) -> tuple[Diagnostic, ...]:
    from archlang.errors import ProgramError
    from archlang.plan.check import check_text

    try:
        source, _ = arguments.read_standard_input()
    except ProgramError as error:
        return error.diagnostics
    return check_text(source.text, source.path, allow=allow)


def _correct(path: Path, allow: Iterable[Path], quiet: bool) -> int:
    """Makes the safe edits of a file. Returns how many mistakes are corrected."""
    from archlang.errors import ProgramError
    from archlang.plan.check import correct
    from archlang.syntax.reading import read

    try:
        source = read(path)
    except ProgramError:
        return 0  # the check reports it
    correction = correct(source.text, str(path), allow)
    if correction.text == source.text:
        return 0
    _replace(path, correction.text)
    for diagnostic in correction.corrected if not quiet else ():
        console.out.print(f"corrected {diagnostic.span}: {diagnostic.message}")
    return len(correction.corrected)


def _replace(path: Path, text: str) -> None:
    from archlang.disk.folder import write_atomically
    from archlang.errors import ErrorWithRemedy
    from archlang.syntax.reading import byte_order_mark

    try:
        target = path.resolve(strict=True)  # a link stays a link
        write_atomically(target, byte_order_mark(target) + text)
    except OSError as error:
        raise ErrorWithRemedy(f"`{path}` cannot be written: {error.strerror}", "the file was not changed") from error


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

    for plan in (
        plan_recipe(path, name, allow=allow, plugins=plugins) for path in paths for name in recipe_names(path)
    ):
        if not is_own(plan.task.python):
            task = make_task(plan.task.name, plan.task.python, plan.task.statics, plan.plugins)
            check_vocabulary(task, plan.task.name, plan.gives)
        if any(not instance.python.startswith("archlang.") for instance in plan.graph.instances.values()):
            import torch

            from archlang.compile import build

            with torch.device("meta"):  # without memory for the weights
                build(plan.graph, plan.plugins)


def _summary(files: int, corrected: int, errors: int, warnings: int) -> str:
    parts = [plural(corrected, "correction")] if corrected else []
    counts = {"error": errors, "warning": warnings}
    counted = [plural(number, word) for word, number in counts.items() if number]
    return ", ".join([plural(files, "file"), *parts, *(counted or ["no errors" + " left" * bool(corrected)])])


def fmt(
    files: Annotated[list[Path], typer.Argument(help="Files or folders; `-` for standard input.", show_default=False)],
    check: Annotated[bool, flag("--check", "Write nothing; exit with 1 if a file would change.")] = False,
) -> None:
    """Format programs in place. Comments and meaning stay the same.

    Each statement gets a line; a body of one statement on the line of its header stays there. Line ends become line
    feeds; a byte order mark stays. A file with syntax errors is not changed.

    Example: archlang fmt recipes/
    """
    from archlang.errors import ProgramError
    from archlang.syntax.parser import parse
    from archlang.syntax.printer import format_program
    from archlang.syntax.reading import read

    piped = arguments.is_standard_input(files, "format")
    paths = files if piped else arguments.arch_files(files)
    changed = failed = 0
    for path in paths:
        try:
            source, mark = arguments.read_standard_input() if piped else (read(path), "")
            text = format_program(parse(source))
        except ProgramError as error:
            console.show(error.diagnostics)
            failed += 1
            continue
        differs = text != source.text
        changed += differs
        if piped and not check:
            console.out.write_program(mark + text)
        elif differs and check:
            console.out.print(f"would format {source.path}")
        elif differs:
            _replace(path, text)
            console.out.print(f"formatted {path}")
    if not piped:
        counts = f"{changed} {'would change' if check else 'changed'}, {len(paths) - changed - failed} unchanged"
        console.out.print(counts + (f", {failed} not formatted" if failed else ""))
    if failed or (check and changed):
        raise typer.Exit(1)
