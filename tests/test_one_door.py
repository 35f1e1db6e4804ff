"""Run folders are read and written through `archlang.disk.folder` alone: no other code of runs opens files."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import archlang

ROOT = Path(archlang.__file__).parent
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
}  # fmt: skip
EXCEPTIONS = {
    ("train/record/run_folder.py", "path.rmdir"): "removes the folders that a run created and that are still empty",
    ("train/record/checkpoint.py", "safetensors.torch.load_file"): "gets a file that the door has opened",
    ("train/runs/tune.py", "optuna.storages.RDBStorage"): "gets a file that the door has checked",
    ("train/runs/engines.py", "submitit.AutoExecutor"): "gets a folder that the door has checked",
    ("train/record/summaries.py", "folder.rglob"): "finds run folders below a folder that the user names",
    ("train/runs/cost.py", "tempfile.TemporaryDirectory"): "a new folder of its own",
    ("reports/html.py", "read_text"): "the templates of the package",
    ("reports/pictures/formats.py", "Image.open"): "a picture in memory",
    ("api/run.py", "load_file"): "the compiler's, which reads programs",
    ("api/saving.py", "tempfile.TemporaryDirectory"): "a new folder of its own",
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
    ("cli/data.py", "place.iterdir"): "lists a folder of published data",
}
EXCEPTIONS |= {
    ("cli/main.py", call): "opens the null device in place of standard streams that are closed"
    for call in ("open", "os.open", "os.fstat", "os.dup2", "os.close")
}


def file_calls(file: Path) -> Iterator[str]:
    """Yields every call that may touch a file, as it is written."""
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
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


def uses(layer: str) -> set[tuple[str, str]]:
    folder = ROOT / layer
    return {
        (f"{layer}/{file.relative_to(folder).as_posix()}", call)
        for file in sorted(folder.rglob("*.py"))
        for call in file_calls(file)
    }


@pytest.mark.parametrize("layer", LAYERS)
def test_files_are_opened_through_the_door_alone(layer: str) -> None:
    assert uses(layer) - EXCEPTIONS.keys() == set()


def test_every_exception_is_in_use() -> None:
    assert EXCEPTIONS.keys() - {use for layer in LAYERS for use in uses(layer)} == set()


def test_a_call_that_goes_around_the_door_is_found(tmp_path: Path) -> None:
    file = tmp_path / "around.py"
    file.write_text(
        'import os, shutil\nopen("a")\n(folder / "b").write_text("")\nos.replace("a", "b")\nshutil.rmtree("c")\n'
        'path.replace(other)\nfrom shutil import move\n"text".replace("a", "b")\nos.path.join("a")\nFolder.open(path)\n'
    )
    assert sorted(file_calls(file)) == sorted(
        ["open", "write_text", "os.replace", "shutil.rmtree", "path.replace", "from shutil"]
    )
