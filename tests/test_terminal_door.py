"""Nothing is printed around `archlang.errors.terminal`, which shows every text as it is."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import archlang

ROOT = Path(archlang.__file__).parent
FILES = sorted(
    {
        file.resolve(): f"{place.name}/{file.relative_to(place)}" if place.is_dir() else file.name
        for place in ROOT.iterdir()
        for file in (place.rglob("*.py") if place.is_dir() else [place])
        if file.suffix == ".py"
    }.items()
)
# Ways to a terminal, or to markup and escape codes in a text.
FORBIDDEN = {
    "print", "input", "typer.echo", "typer.secho", "typer.confirm", "typer.prompt", "click.echo", "os.write",
    "sys.stdout", "sys.stderr", "sys.__stdout__", "sys.__stderr__", "rich.print", "Console", "TextColumn", "Markdown",
    "Text.from_markup", "Text.from_ansi", "render_str", "status",
}  # fmt: skip
FORBIDDEN_MODULES = {"rich.console.Console", "rich.progress.TextColumn", "rich.markup", "rich.print", "rich.logging"}
# Each exception has a reason.
ALLOWED = {
    ("errors/terminal.py", "status"): "the door: the message is a Text",
    ("errors/terminal.py", "TextColumn"): "the door: without markup",
    ("errors/terminal.py", "rich.progress.TextColumn"): "the door: without markup",
    ("errors/terminal.py", "rich.console.Console"): "the door is a subclass",
    ("cli/console.py", "sys.stdout"): "sets the encoding",
    ("cli/console.py", "sys.stderr"): "sets the encoding",
    ("cli/console.py", "typer.confirm"): "the only question, of a visible text",
    ("cli/main.py", "sys.stdout"): "opens it where it is closed, and closes a broken pipe",
    ("cli/main.py", "sys.stderr"): "opens it where it is closed, and reports that the door cannot be imported",
    ("cli/data.py", "sys.stderr"): "asks whether it is a terminal",
    ("cli/contracts.py", "sys.stderr"): "receives what the blocks under test print",
    ("cli/library.py", "Markdown"): "the pages are archlang's own",
}


def dotted(node: ast.expr) -> str:
    match node:
        case ast.Name(id=name):
            return name
        case ast.Attribute(value=value, attr=name):
            return f"{dotted(value)}.{name}"
    return ""


def ways_around(text: str) -> Iterator[str]:
    """Yields the forbidden calls, streams, imports and keywords of a file."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Call):
            name = dotted(node.func)
            # A method of any object counts by its own name alone.
            yield from {name, name.rpartition(".")[2]} & FORBIDDEN if not name.endswith(".print") else ()
            yield from (
                f"{word.arg}=" for word in node.keywords if word.arg in ("markup", "highlight") and is_true(word)
            )
        elif isinstance(node, ast.Attribute) and dotted(node) in FORBIDDEN:
            yield dotted(node)
        elif isinstance(node, ast.ImportFrom):
            names = {f"{node.module}.{alias.name}" for alias in node.names} | {str(node.module)}
            yield from names & FORBIDDEN_MODULES


def is_true(word: ast.keyword) -> bool:
    return not (isinstance(word.value, ast.Constant) and word.value.value is False)


@pytest.mark.parametrize(
    ("file", "name"), [pytest.param(file, name, id=name) for file, name in FILES if "__pycache__" not in name]
)
def test_a_file_prints_only_through_the_terminal(file: Path, name: str) -> None:
    ways = set(ways_around(file.read_text(encoding="utf-8")))
    assert not {way for way in ways if (name, way) not in ALLOWED}


def test_every_exception_is_still_needed() -> None:
    by_name = {name: set(ways_around(file.read_text(encoding="utf-8"))) for file, name in FILES}
    assert all(way in by_name[name] for name, way in ALLOWED)


@pytest.mark.parametrize(
    "line",
    [
        "print(x)", "sys.stdout.write(x)", "from rich import print", "from rich.console import Console",
        "Console().print(x)", "console.status(x)", "typer.echo(x)", "out.print(x, markup=True)", "Text.from_markup(x)",
        "os.write(1, x)", "typer.confirm(x)", "rich.console.Console()",
    ],
)  # fmt: skip
def test_a_way_around_is_found(line: str) -> None:
    assert list(ways_around(line))
