"""`archlang test`: blocks held to their signatures, numerically."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from contextlib import redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from archlang.cli import console

if TYPE_CHECKING:
    from rich.text import Text

    from archlang.contracts import Verdict

# The width of a code, as of `E0703`.
_CODE = 5


def hold_blocks(
    targets: Annotated[
        list[str] | None,
        typer.Argument(metavar="[FILE] [BLOCK]...", help="A program, and blocks; without a program, of the library."),
    ] = None,
    plugin: Annotated[
        list[Path] | None,
        typer.Option("--plugin", help="A Python file of blocks of your own. It is run: read it first."),
    ] = None,
    seed: Annotated[int, typer.Option("--seed", min=0, max=2**31, help="Of the weights and of the samples.")] = 0,
    thorough: Annotated[bool, typer.Option("--thorough", help="Test longer samples too.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the verdicts as JSON, and nothing else.")] = False,
) -> None:
    """Hold extern blocks to their signatures: result, reads, padding, batch mates, gradients, randomness, saving.

    Each block runs on small random samples at many statics and sizes. Ends with 1 if a block breaks its signature, and
    prints the clause that it breaks with the input that shows it.

    Example: archlang test attention gru
    """
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    from archlang.contracts import hold, importable, library_blocks, program_blocks, require_trust

    names, plugins = list(dict.fromkeys(targets or ())), plugin or []
    is_program = bool(names) and (names[0].endswith(".arch") or Path(names[0]).is_file())
    blocks = program_blocks(names[0], names[1:]) if is_program else library_blocks(names)
    require_trust(blocks, plugins)
    verdicts: list[Verdict] = []
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    shown = Progress(*columns, console=console.err, transient=True, disable=not console.err.is_terminal)
    # What a block prints is no verdict.
    with redirect_stdout(sys.stderr), importable(plugins), shown as progress:
        bar = progress.add_task("testing", total=len(blocks))
        for block in blocks:
            progress.update(bar, description=block.name)
            verdicts += hold(block, seed, thorough)
            progress.advance(bar)
    broken = [verdict.mistake for verdict in verdicts if verdict.mistake is not None]
    if as_json:
        print(json.dumps([_described(verdict) for verdict in verdicts], indent=2, ensure_ascii=False))
    else:
        console.show(broken)
        _print(verdicts)
    if broken:
        raise typer.Exit(1)


def _described(verdict: Verdict) -> dict[str, object]:
    from archlang.diagnostics import render

    mistake = None if verdict.mistake is None else json.loads(render.to_json([verdict.mistake]))[0]
    outcome = "broken" if mistake else "skipped" if verdict.skipped else "kept"
    facts = {"block": verdict.block, "property": verdict.property, "outcome": outcome}
    return {**facts, "skipped": verdict.skipped, "mistake": mistake}


def _print(verdicts: Sequence[Verdict]) -> None:
    """A row for each block, a column for each property; why something was skipped stands below, by its number."""
    skipped = dict.fromkeys(one.skipped for one in verdicts if one.skipped)
    reasons = {reason: str(number) for number, reason in enumerate(skipped, start=1)}
    for row in _rows(verdicts, reasons):
        console.out.print(row)
    for reason, number in reasons.items():
        console.out.print(f"{number}  skipped: {reason}", markup=False)
    blocks = dict.fromkeys(one.block for one in verdicts)
    broken = dict.fromkeys(one.block for one in verdicts if one.mistake is not None)
    count = f"{len(blocks)} block{'s' * (len(blocks) != 1)}"
    console.out.print(f"{count}, {f'{len(broken)} broken' if broken else 'all as their signatures say'}", markup=False)


def _rows(verdicts: Sequence[Verdict], reasons: dict[str, str]) -> Iterator[Text]:
    """The lines of the table. Its columns are as wide as their titles, whatever the width of the terminal."""
    from rich.text import Text

    properties = list(dict.fromkeys(one.property for one in verdicts))
    margin = max(len(one.block) for one in verdicts) + 2
    yield Text("  ".join([" " * (margin - 2), *(name.ljust(_CODE) for name in properties)]), "bold")
    for block in dict.fromkeys(one.block for one in verdicts):
        row = Text(block.ljust(margin))
        for one in verdicts:
            if one.block == block:
                cell, style = _cell(one, reasons)
                row.append(cell.center(max(_CODE, len(one.property))) + "  ", style)
        row.rstrip()
        yield row


def _cell(verdict: Verdict, reasons: dict[str, str]) -> tuple[str, str]:
    if verdict.mistake is not None:
        return verdict.mistake.code, "bold red"
    return (reasons[verdict.skipped], "dim") if verdict.skipped else ("✓", "green")
