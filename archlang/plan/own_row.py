"""A row of a shipped table for a block of a user's own, with as many weights as the first row."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from itertools import product
from pathlib import Path

from archlang.elaborate.signature_check import load_file
from archlang.errors import ProgramError, Source, Span
from archlang.errors.edits import apply_edits, insertion, static_set, used
from archlang.graph.summary import summarize
from archlang.plan.from_file import plan_first_point
from archlang.resolve.library import program_text

TOLERANCE = 0.05
"""by which share the numbers of weights may differ"""
_VALUES = (1, 2, 3, *range(4, 132, 4), *range(144, 513, 16))


@dataclass(frozen=True)
class OwnRow:
    """The text of the table with the row, what its models have as `body`, their weights, and those of the first row.
    `fitting` is a call of the block that would fit, if this one does not and one is found."""

    text: str
    body: str
    weights: int
    expected: int
    fitting: str | None = None

    @property
    def fits(self) -> bool:
        return abs(self.weights / self.expected - 1) <= TOLERANCE


def blocks_of(path: Path) -> tuple[str, ...]:
    """Returns the names of the blocks that a program declares.

    Raises:
        ProgramError: the file has mistakes."""
    return tuple(name for name, each in load_file(path).own.items() if each.item.word == "block")


def own_row(table: Path, own: Path, call: str, whole: bool, target: Path) -> OwnRow:
    """Returns a row for a block of the program `own`, as `call` writes it, in a shipped table, which will be the file
    `target` in the folder of the program. The block is `whole`: all that `model.body` does; or the mixer of the table's
    block `layers`, with the number of hidden features that fits.

    Raises:
        ProgramError: a model with the block has a mistake."""
    source = Source(str(target), program_text(table))
    source = Source(str(target), apply_edits(source.text, [used(source, f'"./{own.name}" as own')]))
    file = load_file(source)
    recipe = next(iter(file.recipes))

    def body_of(text: str, hidden: int) -> str:
        return f"own.{text}" if whole else f"layers[own.{text}, {hidden}]"

    def weights(body: str) -> int:
        return summarize(plan_first_point(file, recipe, {"model.body": body} if body else {}).graph, 1).unique

    expected, hidden = weights(""), 4
    if not whole:
        least, more = weights(body_of(call, 4)), weights(body_of(call, 8))
        hidden = max(4, 4 + 4 * round((expected - least) / (more - least)))
    body = body_of(call, hidden)
    first = next(iter(next(iter(file.tables.values())).parts)).span
    line = f'row    "{call}" at model.body = {body}\n    '
    row = OwnRow(apply_edits(source.text, [insertion(source, first.start, line)]), body, weights(body), expected)
    block = file.find(f"own.{call.partition('[')[0].strip()}")
    statics = [each.name for each in block.item.signature.statics if each.kind in (None, "int")] if block else []
    for static, value in () if row.fits else product(statics, _VALUES):
        edit = static_set(Span(Source("", call), 0, len(call)), static, str(value))
        text = call if edit is None else apply_edits(call, [edit])
        with suppress(ProgramError):
            if OwnRow("", "", weights(body_of(text, hidden)), expected).fits:
                return OwnRow(row.text, body, row.weights, expected, text)
    return row
