"""All mistakes of a file: of each block and model on its own, and of the points of its recipes and tables; and
the edits of those whose correction is safe."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

from archlang.elaborate.context import IN_CALL, Observe
from archlang.elaborate.elaborator import elaborate
from archlang.elaborate.signature_check import check_signature
from archlang.elaborate.task_pages import check_declared_page
from archlang.errors import Diagnostic, ProgramError, Report, Source, Span
from archlang.errors.edits import apply_edits
from archlang.errors.effort import TooMuchWork, limited, memoized
from archlang.errors.log import DiagnosticLog
from archlang.plan.cells import CellPlanner
from archlang.plan.recipe import is_complete_optimizer
from archlang.plan.search import check_search, check_search_points
from archlang.plan.statics import model_sizes
from archlang.plan.written_table import WrittenTable, averages, recipe_names
from archlang.resolve import library
from archlang.resolve.mistakes import declared_by_library_only, incomplete_optimizer, too_much_work
from archlang.resolve.resolve import Declaration, Item, ProgramLoader, ResolvedFile
from archlang.resolve.unused import hidden_names, unbound_names, unused_names, unused_uses
from archlang.syntax.tokens import PART_WORDS, RECIPE_WORDS, TABLE_WORDS
from archlang.syntax.tree import Columns, Definition, Extern, Recipe, Table, Use

# Step budgets of a check: for blocks, models and the first point of each recipe, and with all other points.
MOST_STEPS = 250_000
MOST_STEPS_WITH_POINTS = 450_000

# The codes of `use` lines whose file is not read.
_UNUSABLE_FILE = frozenset({"E0208", "E0209", "E0211", "E0232", "E0233"})
# Unknown blocks, models, recipes and tables.
_UNKNOWN_ITEMS = frozenset({"E0202", "E0214", "E0604", "E0612"})
# What a missing statement may return, emit, update or carry, and a missing line of a recipe or a table set, be or name.
_OF_MISSING_LINES = frozenset(
    {"E0216", "E0220", "E0222", "E0223", "E0224", "E0235", "E0302", "E0601", "E0610", "E0632", "E0635"}
)

# What does not follow from two definitions of a name: unknown values and blocks, and other repetitions.
_INDEPENDENT = frozenset({"E0201", "E0202", "E0204", "E0205", "E0306", "E0602", "E0611"})

# What a recipe and a table take from others.
_OF_SOURCES = frozenset({"E0601", "E0618", "E0633", "E0635"})


def check(path: str | Path, allow: Iterable[str | Path] = ()) -> tuple[Diagnostic, ...]:
    """Returns every mistake of a file, by place. The file may name files of its own folder and below, and of the
    folders of `allow`."""
    loader = ProgramLoader(allow)
    try:
        resolved = loader.load(path)
    except ProgramError as error:
        return error.diagnostics
    return check_loaded(loader, resolved)


def check_text(
    text: str, path: str = "<text>", unsaved: Mapping[str, str] = MappingProxyType({}), allow: Iterable[str | Path] = ()
) -> tuple[Diagnostic, ...]:
    """Returns every mistake of a program given as text; `use "./…"` looks beside `path`. `unsaved` are the texts of
    files that an editor has changed, by their real paths; `allow` is as for `check`."""
    loader = ProgramLoader(allow, unsaved)
    return check_loaded(loader, loader.load_source(Source(path, text)))


def check_loaded(loader: ProgramLoader, resolved: ResolvedFile) -> tuple[Diagnostic, ...]:
    """Returns every mistake of a file that a loader has loaded."""
    return tuple(loader.with_uses(_check(resolved, loader.diagnostics)))


def _check(resolved: ResolvedFile, diagnostics: Sequence[Diagnostic]) -> tuple[Diagnostic, ...]:
    """Checks a loaded file; `diagnostics` are those of loading."""
    report = DiagnosticLog()
    try:
        report.add(diagnostics)
        if not report.has("E0210"):  # blocks that contain themselves have no end
            _check_file(resolved, report)
    except ProgramError as error:
        return error.diagnostics  # more errors than are shown
    report.add(hidden_names(resolved))
    if not any(diagnostic.is_error for diagnostic in report.sorted()):
        report.add(unused_uses(resolved))  # else a misspelt name may be of a used file
    unparsed = [item for item in resolved.program.all_items if not item.is_whole]
    mistakes = [
        diagnostic
        for diagnostic in report.sorted()
        if diagnostic.is_of_syntax
        or not (
            diagnostic.span.text in resolved.unparsed
            or any(_may_explain(item, diagnostics, diagnostic) for item in unparsed)
        )
    ]
    signatures = [item.signature.span for item in resolved.program.items if isinstance(item, Definition | Extern)]
    # With two definitions of a name, any later mistake may be about the wrong one.
    is_ambiguous = any(
        each.code == "E0204" or (each.code == "E0205" and any(span.contains(each.span) for span in signatures))
        for each in mistakes
    )
    return tuple(
        diagnostic
        for diagnostic in mistakes
        if not _is_repeated_by_call(diagnostic, mistakes)
        and (
            diagnostic in diagnostics
            or not (
                (is_ambiguous and diagnostic.code not in _INDEPENDENT)
                or _follows(diagnostic, diagnostics, resolved)
                or _follows_from_source(diagnostic, mistakes, resolved)
            )
        )
    )


def _is_repeated_by_call(diagnostic: Diagnostic, mistakes: Sequence[Diagnostic]) -> bool:
    """Whether a mistake in a block is reported with the sizes of a call too, besides those of the block itself."""
    if not _is_of_call(diagnostic):
        return False
    key = diagnostic.code, diagnostic.span
    return any((each.code, each.span) == key and not _is_of_call(each) for each in mistakes)


def _is_of_call(diagnostic: Diagnostic) -> bool:
    return any(label.text == IN_CALL for label in diagnostic.labels)


def _may_explain(item: Item | Use, loading: Sequence[Diagnostic], diagnostic: Diagnostic) -> bool:
    """Whether the lines that an item with syntax mistakes lacks may explain a diagnostic: what is missing or unused, or
    about the item; after the first mistake an unknown name, or anything if it is in the header."""
    code, place = diagnostic.code, diagnostic.span
    if not item.span.contains(place):
        return any(item.span.contains(label.span) for label in diagnostic.labels)
    if isinstance(item, Use) or place == item.name_span or code in _OF_MISSING_LINES or code.startswith("W"):
        return True
    first_mistake = min((each.span.start for each in loading if item.span.contains(each.span)), default=0)
    if place.start < first_mistake or isinstance(item, Recipe | Table):
        return False
    is_of_header = isinstance(item, Extern) or first_mistake < item.body.span.start
    return is_of_header or code.startswith(("E02", "E05")) or code == "E0313"


def _follows(diagnostic: Diagnostic, loading: Sequence[Diagnostic], resolved: ResolvedFile) -> bool:
    """Whether a mistake follows from one of `loading`: its line could not be read as a whole, or it is about an unknown
    item, whose name may stand in a text that is no item, or in a file that could not be used."""
    if any(_is_syntax_of_line(mistake, diagnostic.span) for mistake in loading):
        return True
    return diagnostic.code in _UNKNOWN_ITEMS and any(
        mistake.code in _UNUSABLE_FILE or _is_outside_of_items(mistake, resolved) for mistake in loading
    )


def _is_outside_of_items(mistake: Diagnostic, resolved: ResolvedFile) -> bool:
    """Whether a syntax mistake is in no item that has a whole name, or is a line of an item whose header is lost."""
    return mistake.is_of_syntax and not any(
        item.span.contains(mistake.span)
        and mistake.span.start > item.name_span.start
        and mistake.span.text not in _lines_of_others(item)
        for item in resolved.program.items
        if not isinstance(item, Use)
    )


def _lines_of_others(item: Item) -> tuple[str, ...]:
    """The first words of lines that recipes and tables have, and an item like this one has not."""
    if isinstance(item, Recipe | Table):
        return RECIPE_WORDS if isinstance(item, Table) else TABLE_WORDS
    return PART_WORDS


def _is_syntax_of_line(mistake: Diagnostic, place: Span) -> bool:
    span = mistake.span
    return mistake.is_of_syntax and span.source is place.source and span.line == place.line


def _follows_from_source(diagnostic: Diagnostic, mistakes: Sequence[Diagnostic], resolved: ResolvedFile) -> bool:
    """Whether a recipe lacks a line, or what a task accepts, or a table a column, because a recipe or a table from
    which it takes them has a mistake."""
    if diagnostic.code not in _OF_SOURCES:
        return False
    reached: list[Item | Use] = [item for item in resolved.program.items if item.span.contains(diagnostic.span)]
    for item in reached:
        names = [item.base or ""] if isinstance(item, Recipe) else []
        if isinstance(item, Table):
            names += recipe_names(part for part in item.parts if not isinstance(part, Columns))
        sources = map(resolved.recipes.get, names)
        tables = [resolved.find_table(each.metric.text) for each in averages(item)] if isinstance(item, Table) else []
        for source in (*sources, *(table for _, table in filter(None, tables))):
            if source is not None and all(source is not each for each in reached):
                reached.append(source)
    return any(mistake.is_error and item.span.contains(mistake.span) for mistake in mistakes for item in reached[1:])


def _check_file(resolved: ResolvedFile, report: DiagnosticLog) -> None:
    """Runs the checks of a file within its step budgets: first each item, then the points of recipes and tables."""
    points = list[_Check]()
    current: _Check | None = None
    try:
        with limited(MOST_STEPS) as budget:
            for current in _checks(resolved, report):
                points += [current._replace(check=of_points) for of_points in current.run()]
        report.begin_points()
        left = MOST_STEPS_WITH_POINTS - budget.spent
        for index, current in enumerate(points):
            # Steps that one recipe does not need are shared by the others.
            with limited(left // (len(points) - index)) as budget:
                current.run()
            left -= min(budget.spent, budget.steps)
    except TooMuchWork:
        assert current is not None, "an empty program takes no work"
        report(too_much_work(current.item.name_span, current.item.name, MOST_STEPS))


class _Check(NamedTuple):
    """A check of an item. It returns the checks of the item's further points, if it has any."""

    item: Item
    file: ResolvedFile
    check: Callable[..., object]
    arguments: tuple[object, ...]

    def run(self) -> Sequence[Callable[..., object]]:
        """Runs the check, if its content is not known to have no mistakes."""
        content = self.file.content_of(self.item)
        of_points = memoized(content and (self.check.__name__, content), lambda: self.check(*self.arguments))
        return of_points if isinstance(of_points, tuple) else ()


def _checks(resolved: ResolvedFile, report: DiagnosticLog) -> Iterator[_Check]:
    """Yields the checks of each item, in order. Ends early after mistakes from which others would follow."""
    own = _own_declarations(resolved)
    for declaration in (*own, *resolved.used.values()):
        yield _Check(declaration.item, declaration.file, check_signature, (declaration, report))
    if report.has("E0425"):
        return  # a size with two meanings
    for declaration in own:
        if isinstance(declaration.item, Definition):
            yield _Check(declaration.item, resolved, _check_body, (declaration, report))
        if report.has("E0421"):
            return  # a block that is too large makes every model with it too large
    # What follows checks blocks again, with the sizes of recipes: their mistakes are not repeated.
    report.settle()
    items = resolved.program.all_items
    for item in items:
        if isinstance(item, Extern) and item.word == "task":
            yield _Check(item, resolved, check_signature, (Declaration(item, resolved), report))
            if item.body is not None:
                yield _Check(item, resolved, check_declared_page, (Declaration(item, resolved), report))
    for item in items:
        if isinstance(item, Extern) and item.word == "optimizer":
            yield _Check(item, resolved, _check_optimizer, (item, resolved, report))
        elif isinstance(item, Extern) and item.word == "settings":
            yield _Check(item, resolved, _refuse_training_settings, (item, report))
    cells = CellPlanner(resolved, report)
    for item in items:
        if isinstance(item, Recipe):
            yield _Check(item, resolved, _check_recipe, (item, cells))
    for item in items:
        if isinstance(item, Table):
            yield _Check(item, resolved, _check_table, (item, cells))


def elaborate_alone(declaration: Declaration, report: Report, observe: Observe | None = None) -> None:
    """Elaborates a block or model without the values that only calls, recipes and tasks have. `observe` as of
    `elaborate`."""
    ambient = model_sizes({}) if declaration.item.word == "model" else {}
    elaborate(declaration, {}, ambient, declaration.span, report, generic=True, observe=observe)


def _check_body(declaration: Declaration, report: Report) -> None:
    item, reported = declaration.item, list[Diagnostic]()
    assert isinstance(item, Definition)

    def note(diagnostic: Diagnostic) -> None:
        reported.append(diagnostic)
        report(diagnostic)

    elaborate_alone(declaration, note)
    places = {each.span for each in reported}
    for mistake in unbound_names(item, declaration.file):
        if mistake.span not in places:  # in a branch that the defaults of statics exclude
            note(mistake)
    if not any(each.is_error for each in reported):  # else a misspelt name may be meant
        for warning in unused_names(item):
            note(warning)


def _own_declarations(resolved: ResolvedFile) -> Sequence[Declaration]:
    items = [item for item in resolved.program.items if isinstance(item, Definition | Extern)]
    declared = {id(declaration.item): declaration for declaration in resolved.own.values()}
    blocks = [item for item in items if isinstance(item, Definition) or item.word == "block"]
    blocks += [item for item in resolved.program.unnamed if isinstance(item, Definition)]
    return [declared.get(id(item)) or Declaration(item, resolved) for item in blocks]


def _check_optimizer(item: Extern, resolved: ResolvedFile, report: DiagnosticLog) -> None:
    if not library.has(item.span.source.path) and not is_complete_optimizer(item):
        module = f"mine:{item.name.capitalize()}"
        report(incomplete_optimizer(item.name_span, item.name, module))
        return
    check_signature(Declaration(library.with_settings(item), resolved), report)


def _refuse_training_settings(item: Extern, report: DiagnosticLog) -> None:
    if not library.has(item.span.source.path):
        report(declared_by_library_only(item.name_span, item.name, item.span))


def _check_recipe(recipe: Recipe, cells: CellPlanner) -> tuple[Callable[..., object], ...]:
    planner = cells.checked_planner(recipe)
    planner.check()
    check_search(planner)
    of_points = ((_check_points, planner.recipe.parts.vary), (_check_search_points, planner.recipe.parts.search))
    return tuple(check for check, lines in of_points if lines)


def _check_points(recipe: Recipe, cells: CellPlanner) -> None:
    cells.checked_planner(recipe).check_points()


def _check_search_points(recipe: Recipe, cells: CellPlanner) -> None:
    check_search_points(cells.checked_planner(recipe))


def _check_table(table: Table, cells: CellPlanner) -> tuple[Callable[..., object], ...]:
    WrittenTable(cells, table).check()
    return (_check_cells,)


def _check_cells(table: Table, cells: CellPlanner) -> None:
    WrittenTable(cells, table).check_cells()


# A correction can uncover the next mistake, as a syntax error hides an unknown name behind it.
_MOST_ROUNDS = 10


@dataclass(frozen=True)
class CorrectedText:
    """A corrected text, the mistakes that were corrected, and those that are left, at their places in the text."""

    text: str
    corrected: tuple[Diagnostic, ...]
    left: tuple[Diagnostic, ...]


def correct(
    text: str, path: str, allow: Iterable[str | Path] = (), unsaved: Mapping[str, str] = MappingProxyType({})
) -> CorrectedText:
    """Returns a program's text with the edits of its mistakes that are safe. Other files are not corrected.

    `allow` and `unsaved` are as for `check_text`."""
    allow = tuple(allow)
    corrected: list[Diagnostic] = []
    left = check_text(text, path, unsaved, allow)
    for _ in range(_MOST_ROUNDS):
        safe = [diagnostic for diagnostic in left if is_safe_in(diagnostic, path)]
        if not safe:
            break
        corrected += safe
        text = apply_edits(text, [edit for diagnostic in safe for edit in diagnostic.edits])
        left = check_text(text, path, unsaved, allow)
    return CorrectedText(text, tuple(corrected), left)


def is_safe_in(diagnostic: Diagnostic, path: str) -> bool:
    """Returns whether a mistake has safe edits, all of them in one file."""
    edits = diagnostic.edits
    return diagnostic.is_safe and bool(edits) and all(edit.span.source.path == path for edit in edits)
