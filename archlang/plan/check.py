"""All mistakes of a file: of each block and model on its own, and of the points of its recipes and tables."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import MappingProxyType

from archlang.diagnostics import Diagnostic, ProgramError
from archlang.diagnostics.effort import TooMuchWork, limited
from archlang.diagnostics.log import DiagnosticLog
from archlang.elaborate.context import IN_CALL
from archlang.elaborate.signature_check import check_signature
from archlang.names import library
from archlang.names.mistakes import declared_by_library_only, incomplete_optimizer, too_much_work
from archlang.names.resolve import Declaration, Loader, ResolvedFile
from archlang.names.unused import unused_uses
from archlang.plan.ambiguous_names import follows, is_of_second_recipe, items_in_doubt
from archlang.plan.cells import CellPlanner
from archlang.plan.checked_bodies import CheckedBodies
from archlang.plan.inheritance import repeats_mistake_of_base
from archlang.plan.planner import Bindings, Planner
from archlang.plan.recipe import is_complete_optimizer
from archlang.plan.search import check_search, check_search_points
from archlang.plan.written_table import check_cells, check_table, repeats_mistake_of_averaged
from archlang.source import Source, Span
from archlang.syntax.tree import Definition, Extern, Name, Recipe, Table

# Step budgets of a check: for blocks, models and the first point of each recipe, and with all other points.
MOST_STEPS = 250_000
MOST_STEPS_WITH_POINTS = 450_000

# The codes of `use` lines whose file is not read.
_UNUSABLE_FILE = frozenset({"E0208", "E0209", "E0211", "E0232", "E0233"})
_USE_LINE = re.compile(r"[ \t]*use\b|us?[ \t]*$")
# The words of the items that can define an unknown name, by the code of its mistake.
_DEFINING_WORDS = {"E0202": "block|model", "E0214": "block|model", "E0604": "recipe", "E0612": "table"}

Item = Definition | Extern | Recipe | Table
Check = Callable[[], None]


def check(path: str | Path, allow: Iterable[str | Path] = ()) -> tuple[Diagnostic, ...]:
    """Returns every mistake of a file, by place. The file may name files of its own folder and below, and of the
    folders of `allow`."""
    return check_with(Loader(allow), path)


def check_with(loader: Loader, path: str | Path) -> tuple[Diagnostic, ...]:
    """Returns every mistake of a file that `loader` loads."""
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
    loader = Loader(allow, unsaved)
    return check_loaded(loader, loader.load_source(Source(path, text)))


def check_loaded(loader: Loader, resolved: ResolvedFile, bodies: CheckedBodies | None = None) -> tuple[Diagnostic, ...]:
    """Returns every mistake of a file that a loader has loaded. `bodies` are those that need not be checked again."""
    mistakes = tuple(loader.with_uses(_check(resolved, loader.diagnostics, bodies or CheckedBodies())))
    if bodies is not None and not mistakes:
        bodies.keep_sound(resolved)
    return mistakes


def _check(resolved: ResolvedFile, diagnostics: Sequence[Diagnostic], bodies: CheckedBodies) -> tuple[Diagnostic, ...]:
    """Checks a loaded file; `diagnostics` are those of loading."""
    report = DiagnosticLog()
    try:
        report.add(diagnostics)
        if not report.has("E0210"):  # blocks that contain themselves have no end
            _check_file(resolved, report, bodies)
    except ProgramError as error:
        return error.diagnostics  # more errors than are shown
    if not any(diagnostic.is_error for diagnostic in report.sorted()):
        report.add(unused_uses(resolved))  # else a misspelt name may be of a used file
    mistakes = report.sorted()
    doubtful = items_in_doubt(resolved, mistakes)
    return tuple(
        diagnostic
        for diagnostic in mistakes
        if not _may_be_used(diagnostic, mistakes, resolved)
        and not _is_repeated_by_call(diagnostic, mistakes)
        and (
            diagnostic in diagnostics
            or not (
                _follows(diagnostic, diagnostics)
                or follows(diagnostic, doubtful)
                or is_of_second_recipe(diagnostic, mistakes)
                or repeats_mistake_of_base(diagnostic, mistakes, resolved.recipes)
                or repeats_mistake_of_averaged(diagnostic, mistakes, resolved)
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


def _follows(diagnostic: Diagnostic, loading: Sequence[Diagnostic]) -> bool:
    """Whether a mistake follows from one of `loading`: its line could not be read as a whole, or it is about an unknown
    name, whose definition may stand where the text could not be read, or in a file that could not be used."""
    if any(_is_syntax_of_line(mistake, diagnostic.span) for mistake in loading):
        return True
    if diagnostic.code not in _DEFINING_WORDS:
        return False
    name = diagnostic.span.text.rpartition(".")[2]
    if any(mistake.code == "E0101" and mistake.span.text == name for mistake in loading):
        return True  # the word before the name of an item is missing
    unparsed = {mistake.span.source for mistake in loading if mistake.code.startswith("E01")}
    if any(_is_of_use(mistake) for mistake in loading) or any(mistake.code in _UNUSABLE_FILE for mistake in loading):
        return True
    definition = _half_definition(_DEFINING_WORDS[diagnostic.code], name)
    return any(re.search(definition, source.text, re.MULTILINE) for source in unparsed)


def _is_of_use(mistake: Diagnostic) -> bool:
    """Whether a mistake is that of a `use` line, whose first word may be misspelt."""
    is_misspelt = any(edit.text == "use" for edit in mistake.edits)
    return is_misspelt or _USE_LINE.match(mistake.span.source.line(mistake.span.line)) is not None


def _may_be_used(diagnostic: Diagnostic, mistakes: Sequence[Diagnostic], resolved: ResolvedFile) -> bool:
    """Whether a name without a use may be meant where the body has an error."""
    if diagnostic.code != "W0201":
        return False
    items = (each.item.span for each in resolved.own.values())
    body = next((item for item in items if _is_within(diagnostic.span, item)), None)
    return body is not None and any(each.is_error and _is_within(each.span, body) for each in mistakes)


def _is_within(place: Span, item: Span) -> bool:
    return place.source is item.source and item.start <= place.start <= item.end


def _half_definition(words: str, name: str) -> str:
    """Returns the pattern of a line that may define a name and cannot be read; `words` are those of its item."""
    beginnings, name = _beginnings(name), re.escape(name)
    # The name stands after the word of an item, or in a header with another mistake. An indented `model` without inputs
    # is a line of a recipe.
    recipe_line = rf"model[ \t]+{name}\b[ \t]*+(?:\[[^\[\]]*\])?+(?!\s*\()"
    header = (
        rf"^[ \t]+(?!{recipe_line})(?:{words})[ \t]+{name}\b|^(?=\S)[^\n{{]*(?<!\bfrom )\b{name}\b|^(?:{words}){name}\b"
    )
    # An item without a name, or whose word or name breaks off; an indented `model` may be a half-written line of a
    # recipe.
    nameless = (
        rf"^(?:{words})\b(?![ \t]*(?!from\b)[A-Za-z_])|^[ \t]+(?:{words})\b(?!\s*(?!from\b)[A-Za-z_}}]|[ \t]*[=:\[])"
    )
    begun_word = rf"^(?:{'|'.join(map(_beginnings, words.split('|')))})[ \t]*$"
    # After the second, the opening bracket of the statics or the inputs is missing.
    begun_name = rf"^(?:{words})[ \t]+(?:(?:{beginnings})[ \t]*$|{name}\w*[ \t]*:)"
    return f"{header}|{nameless}|{begun_word}|{begun_name}"


def _beginnings(word: str) -> str:
    """Returns the pattern of the texts that a word begins with, and of the word."""
    return "|".join(re.escape(word[:end]) for end in range(1, len(word) + 1))


def _is_syntax_of_line(mistake: Diagnostic, place: Span) -> bool:
    """Whether a mistake is one of syntax, in the line of a place."""
    span = mistake.span
    return mistake.code.startswith("E01") and span.source is place.source and span.line == place.line


def _check_file(resolved: ResolvedFile, report: DiagnosticLog, bodies: CheckedBodies) -> None:
    """Runs the checks of a file within its step budgets: first each item, then the points of recipes and tables."""
    points: list[Check] = []
    current: Item | None = None
    try:
        with limited(MOST_STEPS) as budget:
            for item, step in _checks(resolved, report, points, bodies):
                current = item
                step()
    except TooMuchWork:
        assert current is not None, "an empty program takes no work"
        report(too_much_work(current.name_span, current.name, MOST_STEPS))
        return
    report.begin_points()
    left = MOST_STEPS_WITH_POINTS - budget.spent
    for index, check_points in enumerate(points):
        # Steps that one recipe does not need are shared by the others.
        with limited(left // (len(points) - index)) as budget:
            check_points()
        left -= min(budget.spent, budget.steps)


def _checks(
    resolved: ResolvedFile, report: DiagnosticLog, points: list[Check], bodies: CheckedBodies
) -> Iterator[tuple[Item, Check]]:
    """Yields each item with its check, in order; adds the checks of further points to `points`. Ends early after
    mistakes from which others would follow."""
    own = _own_declarations(resolved)
    for declaration in (*own, *resolved.used.values()):
        yield declaration.item, partial(check_signature, declaration, report)
    if report.has("E0425"):
        return  # a size with two meanings
    for declaration in own:
        if isinstance(declaration.item, Definition):
            yield declaration.item, partial(bodies.check, declaration, report)
        if report.has("E0421"):
            return  # a block that is too large makes every model with it too large
    report.settle()
    items = resolved.program.all_items
    for task in items:
        if isinstance(task, Extern) and task.word == "task":
            yield task, partial(check_signature, Declaration(task, resolved), report)
    for item in items:
        if isinstance(item, Extern) and item.word == "optimizer":
            yield item, partial(_check_optimizer, item, resolved, report)
        elif isinstance(item, Extern) and item.word == "settings":
            yield item, partial(_refuse_training_settings, item, report)
    model_graphs = bodies.model_graphs
    bindings: dict[int, Bindings] = {}
    for recipe in [item for item in items if isinstance(item, Recipe)]:
        if bodies.is_sound(recipe, resolved):
            continue
        of_recipe = bindings[id(recipe)] = Bindings()
        make_planner = partial(Planner.of, recipe, resolved, report, model_graphs=model_graphs, bindings=of_recipe)
        yield recipe, partial(_check_recipe, make_planner, points)
    cells = CellPlanner(resolved, report, model_graphs=model_graphs, bindings=bindings)
    for table in [item for item in items if isinstance(item, Table)]:
        if bodies.is_sound(table, resolved):
            continue
        yield table, partial(check_table, cells, table)
        points.append(partial(check_cells, cells, table))


def _own_declarations(resolved: ResolvedFile) -> Sequence[Declaration]:
    """Returns the blocks and models of a file, also the second ones of a name."""
    items = [item for item in resolved.program.items if isinstance(item, Definition | Extern)]
    declared = {id(declaration.item): declaration for declaration in resolved.own.values()}
    blocks = [item for item in items if isinstance(item, Definition) or item.word == "block"]
    blocks += [item for item in resolved.program.unnamed if isinstance(item, Definition)]
    return [declared.get(id(item)) or Declaration(item, resolved) for item in blocks]


def _check_optimizer(item: Extern, resolved: ResolvedFile, report: DiagnosticLog) -> None:
    if not _is_shipped(item) and not is_complete_optimizer(item):
        if not item.is_whole:
            return
        report(incomplete_optimizer(item.name_span, item.name, _python_of_optimizer(item)))
        return
    check_signature(Declaration(library.with_settings(item), resolved), report)


def _python_of_optimizer(item: Extern) -> Span | None:
    """Returns the place of the class of an optimizer that would be complete with the training settings."""
    settings = Name(parts=("training",), span=item.span)
    is_complete = not item.includes and is_complete_optimizer(replace(item, includes=(settings,)))
    return item.python_span if is_complete else None


def _refuse_training_settings(item: Extern, report: DiagnosticLog) -> None:
    if not _is_shipped(item):
        report(declared_by_library_only(item.name_span, item.name, item.span))


def _is_shipped(item: Extern) -> bool:
    return Path(item.span.source.path).is_relative_to(library.PACKAGE)


def _check_recipe(make_planner: Callable[[], Planner], points: list[Check]) -> None:
    planner = make_planner()
    planner.check()
    check_search(planner)
    if planner.recipe.parts.vary:
        points.append(planner.check_points)
    if planner.recipe.parts.search:
        points.append(partial(check_search_points, planner))
