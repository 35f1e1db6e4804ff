"""`archlang test` and `equal`: compare blocks with their signatures, and pages with modules, numerically."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from contextlib import redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from archlang.cli import arguments, console
from archlang.cli.arguments import parse_sets
from archlang.errors.names import plural

if TYPE_CHECKING:
    from rich.text import Text

    from archlang.contracts import Verdict

# The width of a code, as of `E0703`.
_CODE = 5


def hold_blocks(
    context: typer.Context,
    targets: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[FILE] [BLOCK]...",
            help="A program and its blocks, or blocks of the library. Without a name, test all.",
        ),
    ] = None,
    plugin: arguments.Plugin = None,
    allow: arguments.Allow = None,
    seed: Annotated[int, typer.Option(min=0, max=2**31, help="The seed of weights and samples.")] = 0,
    as_json: arguments.AsJson = False,
) -> None:
    """Test extern blocks against their signatures: result, reads, padding, batch mates, gradients, randomness, saving.

    Runs each block on small random samples with many statics and sizes. For a block that violates its signature, prints
    the clause and an input that shows the violation, and exits with 1.

    Example: archlang test attention gru
    """
    from archlang.contracts import hold, library_blocks, program_blocks
    from archlang.plugins import Plugins

    names = list(dict.fromkeys(targets or ()))
    for name in names:
        arguments.refuse_standard_input(Path(name), context.command_path)
    is_program = bool(names) and (names[0].endswith(".arch") or Path(names[0]).is_file())
    blocks = program_blocks(names[0], names[1:], allow or ()) if is_program else library_blocks(names)
    plugins = Plugins.read(plugin or (), Path(names[0]).parent if is_program else "")
    verdicts: list[Verdict] = []
    # A block may print; standard output is for verdicts.
    with redirect_stdout(sys.stderr), console.progress(console.err) as progress:
        bar = progress.add_task("testing", total=len(blocks))
        for block in blocks:
            progress.update(bar, description=block.name)
            verdicts += hold(block, seed, plugins)
            progress.advance(bar)
    broken = [verdict.mistake for verdict in verdicts if verdict.mistake is not None]
    if as_json:
        console.out.write_json([_described(verdict) for verdict in verdicts])
    else:
        console.show(broken)
        _print(verdicts)
    if broken:
        raise typer.Exit(1)


def equal(
    file: arguments.ProgramOrInput,
    other: Annotated[str, typer.Option("--with", metavar="FILE:CLASS", help="A class or function: `mine:Class`.")],
    maps: Annotated[
        list[str] | None,
        typer.Option(
            "--map",
            help="A weight of the page and its partner, as `embed.weight=wte.weight`, or with `.T` of "
            "its transpose; `a+b=c` joins weights of the page row after row; may be repeated.",
        ),
    ] = None,
    length: Annotated[list[int] | None, typer.Option("--length", "-n", min=1, help="Positions per sample.")] = None,
    tolerance: Annotated[float, typer.Option(min=0.0, help="Of the largest number.")] = 1e-10,
    out: Annotated[Path | None, arguments.output("The certificate: .json.")] = None,
    model: arguments.Model = None,
    recipe: arguments.Recipe = None,
    sets: arguments.Sets = None,
    plugin: arguments.Plugin = None,
    allow: arguments.Allow = None,
    seed: Annotated[int, typer.Option(min=0, max=2**31, help="The seed of weights and samples.")] = 0,
    as_json: arguments.AsJson = False,
) -> None:
    """Compare a page with a torch module of your own: outputs, gradients, padding and causality, in float64.

    The class, or a function that returns a module, is in a file that `--plugin` names; it gets sizes and statics of the
    page that it has parameters for. Weights belong together by name, by shape, or by similar names. Exits with 1 if
    something differs.

    Example: archlang equal page.arch --with mine:Class --plugin mine.py
    """
    from archlang.compile import load_named
    from archlang.contracts.equality import LENGTHS, certify
    from archlang.plugins import Plugins

    console.require_suffix(out, (".json",), "a certificate")
    by_hand = dict(text.partition("=")[::2] for text in maps or ())
    if not all(by_hand.values()):
        console.fail("`--map` is not of the form page=module", "write `--map embed.weight=wte.weight`", code=2)
    page = load_named(
        arguments.text_or_path(file), model, recipe, parse_sets(sets), plugins=plugin or (), allow=allow or ()
    )
    with redirect_stdout(sys.stderr):  # of the module
        certificate = certify(page, Plugins.read(plugin or (), "."), other, by_hand, length or LENGTHS, seed, tolerance)
    text = json.dumps(certificate.facts(), indent=2, ensure_ascii=False)
    if out is not None:
        from archlang.reports.pages import write_file

        write_file(out, text + "\n")
    if as_json:
        console.out.write(text)
    else:
        for pair in (each for each in certificate.weights if each.by != "name"):
            console.out.print(str(pair), markup=False, highlight=False)
        for each in certificate.comparisons:
            said = f"skipped: {each.skipped}" if each.skipped else f"{each.difference:.1e}  {each.at}"
            console.out.print(
                f"{'≠' if each.what in certificate.different else '='} {each.what:<22}{said}",
                markup=False,
                highlight=False,
            )
        verdict = "equal" if certificate.is_equal else "not equal"
        lengths = ", ".join(map(str, certificate.lengths))
        of_numbers = f"up to {certificate.tolerance:g} of the largest number, at lengths {lengths}"
        console.out.print(f"{verdict}: `{certificate.page}` and `{other}`, {of_numbers}")
    if not certificate.is_equal:
        raise typer.Exit(1)


def _described(verdict: Verdict) -> dict[str, object]:
    from archlang.errors import exchange

    mistake = None if verdict.mistake is None else json.loads(exchange.to_json([verdict.mistake]))[0]
    outcome = "broken" if mistake else "skipped" if verdict.skipped else "kept"
    facts = {"block": verdict.block, "property": verdict.property, "outcome": outcome}
    return {**facts, "skipped": verdict.skipped, "mistake": mistake}


def _print(verdicts: Sequence[Verdict]) -> None:
    skipped = dict.fromkeys(verdict.skipped for verdict in verdicts if verdict.skipped)
    reasons = {reason: str(number) for number, reason in enumerate(skipped, start=1)}
    for row in _rows(verdicts, reasons):
        console.out.print(row)
    for reason, number in reasons.items():
        console.out.print(f"{number}  skipped: {reason}")
    blocks = dict.fromkeys(verdict.block for verdict in verdicts)
    broken = dict.fromkeys(verdict.block for verdict in verdicts if verdict.mistake is not None)
    verb = "violates its signature" if len(broken) == 1 else "violate their signatures"
    result = f"{len(broken)} {verb}" if broken else "no violations"
    console.out.print(f"{plural(len(blocks), 'block')}, {result}")


def _rows(verdicts: Sequence[Verdict], reasons: dict[str, str]) -> Iterator[Text]:
    from rich.text import Text

    properties = list(dict.fromkeys(verdict.property for verdict in verdicts))
    margin = max(len(verdict.block) for verdict in verdicts) + 2
    yield Text("  ".join([" " * (margin - 2), *(name.ljust(_CODE) for name in properties)]), "bold")
    for block in dict.fromkeys(verdict.block for verdict in verdicts):
        row = Text(block.ljust(margin))
        for verdict in verdicts:
            if verdict.block == block:
                cell, style = _cell(verdict, reasons)
                row.append(cell.center(max(_CODE, len(verdict.property))) + "  ", style)
        row.rstrip()
        yield row


def _cell(verdict: Verdict, reasons: dict[str, str]) -> tuple[str, str]:
    if verdict.mistake is not None:
        return verdict.mistake.code, "bold red"
    return (reasons[verdict.skipped], "dim") if verdict.skipped else ("✓", "green")
