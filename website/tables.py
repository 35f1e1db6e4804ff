"""The tables of the documentation that signatures and classes determine. `python -m website.tables` writes them."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from archlang.elaborate.task_pages import TABLE
from archlang.resolve import library
from archlang.syntax.printer import unparse
from archlang.tasks.kit.make_task import unchecked_task
from archlang.tasks.kit.metrics import MEANINGS

DOCS = Path(__file__).parents[1] / "docs"
_TASKS = "| task | kind | broken down by | in distribution | generalization |"
_METRICS = "| metric | meaning |"
_FUNCTIONS = "| function | result | what it computes |"
_SETTINGS = "| setting | default | what it sets |"


def written() -> Mapping[Path, str]:
    """Returns the pages with tables, with the rows that their tables should have."""
    tasks, language = DOCS / "tasks.md", DOCS / "language.md"
    metrics = [(f"`{name}`", meaning) for name, meaning in MEANINGS.items()]
    text = _with_rows(tasks.read_text(encoding="utf-8"), _TASKS, map(_task, sorted(library.task_names())))
    pages = {tasks: _with_rows(_with_rows(text, _METRICS, metrics), _FUNCTIONS, _functions())}
    text = language.read_text(encoding="utf-8")
    meanings = {row[0]: row[-1] for row in _rows(text, _SETTINGS)}
    settings = [
        (name := f"`{static.name}`", f"`{unparse(static.default)}`" if static.default else "", meanings.get(name, ""))
        for static in library.training_settings().signature.statics
    ]
    return {**pages, language: _with_rows(text, _SETTINGS, settings)}


def _task(name: str) -> Sequence[str]:
    """Returns the row of a task with its default statics."""
    item = library.task(name)
    assert item is not None
    task = unchecked_task(name, item.python, {})
    beyond = [split for split in task.split_names() if split not in task.in_distribution]
    return f"`{name}`", task.kind.value, task.breakdown, ", ".join(task.in_distribution), ", ".join(beyond)


def _functions() -> Iterator[Sequence[str]]:
    """Yields the rows of the functions of pages of tasks."""
    kinds = {"n": "number", "w": "word", "a": "value", "*": "…"}
    for line in TABLE.read_text(encoding="utf-8").splitlines()[1:]:
        name, values, result, meaning = line.split("\t")
        yield f"`{name}({', '.join(kinds[each] for each in values)})`", result or "as of `+`", meaning


def _rows(text: str, header: str) -> list[list[str]]:
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in _table(text, header).splitlines()[2:]]


def _table(text: str, header: str) -> str:
    """Returns the table with a header, up to the empty line after it."""
    return text[text.index(header) :].partition("\n\n")[0]


def _with_rows(text: str, header: str, rows: Iterable[Sequence[str]]) -> str:
    lines = [header, "| --- " * (header.count("|") - 1) + "|", *(f"| {' | '.join(row)} |" for row in rows)]
    return text.replace(_table(text, header), "\n".join(lines))


if __name__ == "__main__":
    for page, text in written().items():
        page.write_text(text, encoding="utf-8")
