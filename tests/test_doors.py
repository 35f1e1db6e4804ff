"""Two doors: run folders are read and written through `archlang.disk.folder` alone, and texts are printed as they are
through `archlang.errors.terminal` alone."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import archlang

ROOT = Path(archlang.__file__).parent
FILES = {
    f"{place.name}/{file.relative_to(place).as_posix()}" if place.is_dir() else file.name: file
    for place in ROOT.iterdir()
    for file in (place.rglob("*.py") if place.is_dir() else [place])
    if file.suffix == ".py"
}

# Files

LAYERS = ("train", "reports", "play", "api", "cli")
# Methods of `Path`, and functions of modules, that touch files. `replace` with one argument is that of `Path`.
METHODS = {
    "open", "read_text", "read_bytes", "write_text", "write_bytes", "mkdir", "rmdir", "unlink", "rename", "touch",
    "symlink_to", "hardlink_to", "chmod", "iterdir", "glob", "rglob",
}  # fmt: skip
# Functions of libraries that open files by their paths.
LIBRARIES = {"load_file", "save_file", "safe_open", "SummaryWriter", "RDBStorage", "AutoExecutor"}
MODULES = {"shutil", "tempfile", "os", "glob", "fileinput", "filelock"}
HARMLESS = {
    "os.path", "os.environ", "os.kill", "os.getpid", "os.getppid", "os.cpu_count", "os.sched_getaffinity", "os.setpgrp",
    "os.fspath", "os.sep", "os.name", "os._exit", "os.devnull", "os.getcwd",
    "os.SEEK_END",
}  # fmt: skip

# The terminal

# Ways to a terminal, or to markup and escape codes in a text.
FORBIDDEN = {
    "print", "input", "typer.echo", "typer.secho", "typer.confirm", "typer.prompt", "click.echo", "os.write",
    "sys.stdout", "sys.stderr", "sys.__stdout__", "sys.__stderr__", "rich.print", "Console", "TextColumn", "Markdown",
    "Text.from_markup", "Text.from_ansi", "render_str", "status",
}  # fmt: skip
FORBIDDEN_MODULES = {"rich.console.Console", "rich.progress.TextColumn", "rich.markup", "rich.print", "rich.logging"}
# Each exception has a reason.
EXCEPTIONS = {
    ("train/record/run_folder.py", "path.rmdir"): "removes the folders that a run created and that are still empty",
    ("train/record/checkpoint.py", "safetensors.torch.load_file"): "gets a file that the door has opened",
    ("train/runs/tune.py", "optuna.storages.RDBStorage"): "gets a file that the door has checked",
    ("train/runs/engines.py", "submitit.AutoExecutor"): "gets a folder that the door has checked",
    ("train/record/summaries.py", "os.walk"): "finds run folders below a folder that the user names",
    ("train/runs/cost.py", "tempfile.TemporaryDirectory"): "a new folder of its own",
    ("reports/pages.py", "read_text"): "the templates of the package",
    ("api/run.py", "load_file"): "the compiler's, which reads programs",
    ("api/saving.py", "tempfile.TemporaryDirectory"): "a new folder of its own",
    ("play/agent_tools.py", "rglob"): "lists the run folders of the folder that is served",
    ("cli/servers.py", "os.chdir"): "the folder that the user names, so that errors name its files",
    ("play/service.py", "glob"): "lists the models of the library",
    ("play/training.py", "tempfile.TemporaryDirectory"): "a new folder of its own",
    ("play/training.py", "write_text"): "a program in that folder",
    ("play/training.py", "glob"): "lists the checkpoints in that folder",
    ("play/build.py", "glob"): "finds what npm has written to a new folder",
    ("play/build.py", "tarfile.open"): "an archive in memory, whose digest is known",
    ("play/build.py", "shutil.which"): "finds npm",
    ("play/build.py", "tempfile.TemporaryDirectory"): "a new folder of its own",
    ("play/build.py", "file.read_bytes"): "the files of packages",
    ("play/build.py", "file.read_text"): "the licences of packages",
    ("play/build.py", "folder.iterdir"): "lists packages, and the folder that the user names",
    ("cli/servers.py", "webbrowser.open"): "opens the address of the playground",
    ("cli/servers.py", "tempfile.TemporaryDirectory"): "a new folder of its own",
    ("cli/trained.py", "open"): "a file of inputs that the user names",
    ("cli/new.py", "iterdir"): "lists the starters of the package",
    ("cli/new.py", "file.read_text"): "the starters of the package",
    ("cli/arguments.py", "path.rglob"): "finds programs below a folder that the user names",
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
EXCEPTIONS |= {
    ("cli/main.py", call): "opens the null device in place of standard streams that are closed"
    for call in ("open", "os.open", "os.fstat", "os.dup2", "os.close")
}


def file_calls(text: str) -> Iterator[str]:
    """Yields the calls that may touch a file, as they are written."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Call):
            function = ast.unparse(node.func)
            module, _, name = function.rpartition(".")
            if function == "open" or (name == "replace" and len(node.args) == 1 and not node.keywords):
                yield function
            elif module.partition(".")[0] in MODULES:
                if not any(function == known or function.startswith(f"{known}.") for known in HARMLESS):
                    yield function
            elif name in LIBRARIES or function in LIBRARIES:
                yield function
            elif module and name in METHODS and module != "Folder":
                yield function if module.isidentifier() else name
        elif isinstance(node, ast.ImportFrom) and node.module in MODULES:
            yield f"from {node.module}"


def dotted(node: ast.expr) -> str:
    match node:
        case ast.Name(id=name):
            return name
        case ast.Attribute(value=value, attr=name):
            return f"{dotted(value)}.{name}"
    return ""


def prints(text: str) -> Iterator[str]:
    """Yields the calls, streams, imports and keywords that print or interpret a text."""
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


def ways_around(name: str) -> set[tuple[str, str]]:
    """Returns the ways of a file around the doors."""
    text = FILES[name].read_text(encoding="utf-8")
    is_of_runs = name.partition("/")[0] in LAYERS
    return {(name, way) for way in (*prints(text), *(file_calls(text) if is_of_runs else ()))}


@pytest.mark.parametrize("name", FILES)
def test_a_file_opens_files_and_prints_only_through_the_doors(name: str) -> None:
    assert ways_around(name) - EXCEPTIONS.keys() == set()


def test_every_exception_is_still_needed() -> None:
    assert EXCEPTIONS.keys() - {way for name in FILES for way in ways_around(name)} == set()


@pytest.mark.parametrize(
    "line",
    [
        "print(x)", "sys.stdout.write(x)", "from rich import print", "from rich.console import Console",
        "Console().print(x)", "console.status(x)", "typer.echo(x)", "out.print(x, markup=True)", "Text.from_markup(x)",
        "os.write(1, x)", "typer.confirm(x)", "rich.console.Console()",
    ],
)  # fmt: skip
def test_a_way_to_print_is_found(line: str) -> None:
    assert list(prints(line))


def test_a_call_that_touches_files_is_found() -> None:
    text = (
        'import os, shutil\nopen("a")\n(folder / "b").write_text("")\nos.replace("a", "b")\nshutil.rmtree("c")\n'
        'path.replace(other)\nfrom shutil import move\n"text".replace("a", "b")\nos.path.join("a")\nFolder.open(path)\n'
    )
    assert sorted(file_calls(text)) == sorted(
        ["open", "write_text", "os.replace", "shutil.rmtree", "path.replace", "from shutil"]
    )
