"""Tables that archlang writes: a recipe with all that it names, and a table of it at the end."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path

from archlang.elaborate.signature_check import load_file
from archlang.errors import Diagnostic, Edit, ProgramError, Source, ignore
from archlang.errors.edits import apply_edits, last_line, without_lines
from archlang.plan.check import check_text
from archlang.plan.from_file import plan_first_point
from archlang.plan.measures import TRAIN
from archlang.plan.plan import Plan
from archlang.plan.planner import joined_recipe
from archlang.resolve.resolve import Declaration, ResolvedFile, is_shipped
from archlang.syntax import tree
from archlang.syntax.parser import parse
from archlang.syntax.printer import format_program, unparse
from archlang.syntax.tokens import tokens

_Item = tree.Definition | tree.Extern | tree.Recipe
_COSTS = ('column "Parameters" run.parameters', 'column "FLOPs" run.flops')


@dataclass(frozen=True)
class TableLine:
    """A row: its title, and its settings as texts by their dotted paths."""

    title: str
    settings: dict[str, str]


@dataclass(frozen=True)
class TableDraft:
    """A program with a table of some rows; `left_out` says which others have a mistake."""

    text: str
    rows: tuple[TableLine, ...]
    left_out: tuple[str, ...]


class RecipePage:
    """A recipe of a file, its plan, and the items that it names, directly or not, also those of the library and of
    files beside it. The text of the file is that of `fmt`.

    Raises:
        ProgramError: the file has mistakes, or no such recipe."""

    def __init__(self, path: str | Path, name: str | None, allow: Iterable[str | Path] = ()) -> None:
        written = load_file(path, allow)
        self.plan = plan_first_point(written, name, {})
        source = written.program.source
        self.file = load_file(Source(source.path, format_program(parse(source))), allow)
        self.recipe = self.file.recipes[self.plan.recipe]
        self.joined = joined_recipe(self.recipe, self.file, ignore)
        self._allow = allow
        self._files: dict[int, ResolvedFile] = {}
        self.items = self._reached(self._is_copied) or self._reached(lambda file: file is self.file) or []

    def _is_copied(self, file: ResolvedFile) -> bool:
        path, own = Path(file.program.source.path), Path(self.file.program.source.path)
        return file is self.file or path.parent == own.parent or (is_shipped(file) and bool(file.program.items))

    def _reached(self, is_copied: Callable[[ResolvedFile], bool]) -> list[_Item] | None:
        """The recipe and what it names of files that are copied; None if two of them have one name."""
        self._files = {id(self.recipe): self.file}
        reached: list[_Item] = [self.recipe]
        for item in reached:
            names = {node.text for node in tree.walk(item) if isinstance(node, tree.Name)}
            others: list[tuple[_Item, ResolvedFile]] = []
            for declared in filter(None, map(self._files[id(item)].find, sorted(names))):
                others.append((declared.item, declared.file))
            if isinstance(item, tree.Recipe):
                externs = {**self.file.tasks, **self.file.optimizers}
                others += [(externs[name], self.file) for name in names & externs.keys()]
                others += [(self.file.recipes[item.base], self.file)] if item.base else []
            for other, file in others:
                if id(other) not in self._files and is_copied(file) and (other.name in names or file is self.file):
                    self._files[id(other)] = file
                    reached.append(other)
        blocks = [item.name for item in reached if not isinstance(item, tree.Recipe)]
        reached.sort(key=lambda item: (self._files[id(item)] is self.file, item.span.start))
        return reached if len(blocks) == len(set(blocks)) else None

    def find(self, name: str) -> Declaration | None:
        """Returns what the name of a block stands for in the items."""
        return next(filter(None, (file.find(name) for file in (self.file, *self._files.values()))), None)

    def text(
        self, name: str, about: str, rows: Iterable[TableLine], columns: Iterable[str], seeds: Sequence[int] | None,
        definitions: Mapping[str, str] | None = None,
    ) -> str:  # fmt: skip
        """Returns the program of the items, some definitions by other texts, with a table. The recipe varies `seeds`,
        or without them its own, or else three."""
        texts, words, own = list[str](), set[str](), {item.name for item in self.items}
        for item in self.items:
            text = (definitions or {}).get(item.name, item.span.text)
            if isinstance(item, tree.Recipe):
                text = self._recipe_text(item, seeds)
            words.update(map(str, tokens(Source("", text))[0]))
            is_own = self._files[id(item)] is self.file
            lines = item.documentation if is_own else [tree.first_sentence(item.documentation)]
            texts.append("".join(f"## {line}".rstrip() + "\n" for line in lines) + text)
        brought = (use for file in {self.file, *self._files.values()} for use in file.uses)
        uses = sorted({use.span.text for use, names in brought if words & (names - own)})
        table = [f"## {about}", f"table {name} {{", *map(self._row, rows), *columns, *_COSTS, "}"]
        text = "\n\n".join(filter(None, ["\n".join(uses), *texts, "\n".join(table)])) + "\n"
        return format_program(parse(Source(self.file.program.source.path, text)))

    def _row(self, row: TableLine) -> str:
        at = ", ".join(f"{path} = {value}" for path, value in row.settings.items())
        return f'row "{row.title}" {self.recipe.name}' + f" at {at}" * bool(at)

    def _recipe_text(self, recipe: tree.Recipe, seeds: Sequence[int] | None) -> str:
        """The recipe without claims, which are about no row of the table."""
        edits: list[Edit] = [without_lines(part.span) for part in recipe.parts if isinstance(part, tree.Claim)]
        varied = self.joined.parts.vary
        if recipe is self.recipe and (seeds or all(each.path.text != "seed" for each in varied)):
            edits += [without_lines(part.span) for part in recipe.parts if isinstance(part, tree.Vary)]
            others = [unparse(each) for each in varied if each.path.text != "seed"]
            edits.append(last_line(recipe.span, f"vary {', '.join([*others, f'seed in {list(seeds or (1, 2, 3))}'])}"))
        return apply_edits(recipe.span.source.text[: recipe.span.end], edits)[recipe.span.start :]

    def metrics(self) -> list[str]:
        """Returns the metric that selects weights in each split that a run measures, that by which it selects first."""
        split, _, metric = str(self.plan.settings["train.select"]).partition(".")
        measures = self.plan.measures
        splits = () if measures is None or metric not in measures.metrics else measures.splits
        left_out = (TRAIN, *(measures.empty if measures else ()))
        return [f"{each}.{metric}" for each in dict.fromkeys((split, *splits)) if each not in left_out]

    def around(self, path: str) -> list[str]:
        """Returns half, once and twice the value of a path, if it is a number; an unknown path has a value, too."""
        value = self.plan.settings.get(path)
        if isinstance(value, bool) or not isinstance(value, int | float):
            return ["1" if value is None else str(value)]
        return [str(each) for each in (value // 2 if isinstance(value, int) else value / 2, value, 2 * value) if each]

    def planned(self, text: str, rows: Iterable[TableLine]) -> dict[str, Plan | ProgramError]:
        """Returns the plan of each row of a program by its title, or why it has none."""
        file = load_file(Source(self.file.program.source.path, text), self._allow)
        plans: dict[str, Plan | ProgramError] = {}
        for row in rows:
            try:
                plans[row.title] = plan_first_point(file, self.recipe.name, row.settings)
            except ProgramError as error:
                plans[row.title] = error
        return plans

    def mistake(self, text: str) -> Diagnostic | None:
        """Returns the first mistake of a program that stands beside the page."""
        return next(
            (each for each in check_text(text, self.plan.source.path, allow=self._allow) if each.is_error), None
        )

    def reads_other_files(self, text: str, path: Path) -> bool:
        """Whether a program would find other files, or none, at a path than beside the page."""
        try:
            file = load_file(Source(str(path), text), self._allow)
            plan = plan_first_point(file, self.recipe.name, {})
            return (plan.task, plan.train) != (self.plan.task, self.plan.train)
        except ProgramError:
            return True


def scaling(
    page: RecipePage,
    values: Mapping[str, Sequence[str]],
    budgets: Sequence[int] = (),
    seeds: Sequence[int] | None = None,
) -> TableDraft:
    """Returns a table of a recipe with a row for each combination of values of some paths, and columns for each number
    of steps (or of epochs, if the recipe counts them); `seeds` as of `RecipePage.text`. A path without values has half
    of its value, the value, and twice it.

    Raises:
        ProgramError: no row can run."""
    points = product(*([(path, value) for value in listed or page.around(path)] for path, listed in values.items()))
    rows = [TableLine(", ".join(f"{path.rpartition('.')[2]} = {text}" for path, text in at), dict(at)) for at in points]
    plans = page.planned(page.file.program.source.text, rows)
    errors = {title: plan for title, plan in plans.items() if isinstance(plan, ProgramError)}
    if len(errors) == len(rows):
        raise next(iter(errors.values()))
    metrics = page.metrics()
    metrics = list(dict.fromkeys((f"{metrics[0].partition('.')[0]}.loss", *metrics)))
    counted = "steps" if page.plan.settings.get("train.steps") else "epochs"
    columns = [f'column "{metric}" {metric}' for metric in metrics]
    if budgets:
        columns = [f'columns "{metric}" {metric} at train.{counted} in {list(budgets)}' for metric in metrics]
    sound = tuple(row for row in rows if row.title not in errors)
    text = page.text("scaling", f"The recipe `{page.recipe.name}` at several sizes.", sound, columns, seeds)
    return TableDraft(text, sound, tuple(f"{title}: {e.diagnostics[0].message}" for title, e in errors.items()))
