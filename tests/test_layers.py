"""Imports point one way, and the front end never needs torch."""

import ast
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import networkx
import pytest

import archlang
from archlang.resolve import library
from archlang.syntax.tree import Extern

ROOT = Path(archlang.__file__).parent
# From the lowest layer up; a file may import from its own layer and from earlier layers. A folder within a room may
# be a layer of its own, just below or above the other files of the room.
LAYERS = (
    "disk", "errors", "plugins", "syntax", "types", "resolve", "graph", "graph/passes", "elaborate", "data", "tasks",
    "plan", "editor", "backend", "compile", "contracts", "train/record", "train", "train/runs", "export", "reports",
    "play", "api", "weights", "blocks", "cli",
)  # fmt: skip
# Blocks implement the backend's protocols; the backend imports blocks by the names in a graph.
FRONT_END = LAYERS[: LAYERS.index("backend")]


def files(layer: str) -> list[Path]:
    folder = ROOT / layer
    if not folder.is_dir():
        return [ROOT / f"{layer}.py"]
    apart = [ROOT / other for other in LAYERS if other.startswith(f"{layer}/")]
    return [file for file in sorted(folder.rglob("*.py")) if not any(map(file.is_relative_to, apart))]


def layer_of(module: str) -> str | None:
    """Returns the layer of a module by its dotted name; the layer of a folder within a room comes first."""
    folders = module.split(".")[1:3] if module.startswith("archlang.") else []
    return next((name for name in ("/".join(folders), *folders[:1]) if name in LAYERS), None)


@cache
def imports_of(file: Path) -> list[ast.Import | ast.ImportFrom]:
    nodes = ast.walk(ast.parse(file.read_text(encoding="utf-8")))
    return [node for node in nodes if isinstance(node, ast.Import | ast.ImportFrom)]


def imported(file: Path) -> Iterator[str]:
    """Yields the name of every module that a file imports, also inside functions and under TYPE_CHECKING."""
    for node in imports_of(file):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        else:
            assert node.module, f"{file}:{node.lineno} has a relative import"
            assert node.level == 0, f"{file}:{node.lineno} has a relative import"
            yield node.module
            if node.module == "archlang":
                yield from (f"archlang.{alias.name}" for alias in node.names)


def imported_members(file: Path) -> Iterator[tuple[str, str]]:
    """Yields the package and the name of everything that a file imports by `from … import …`."""
    for node in imports_of(file):
        if isinstance(node, ast.ImportFrom) and node.module:
            yield from ((node.module, alias.name) for alias in node.names)


def test_every_folder_is_a_layer() -> None:
    folders = {place.parent.name for place in ROOT.glob("*/__init__.py")} - {"recipes"}
    modules = {file.stem for file in ROOT.glob("*.py")} - {"__init__", "__main__"}
    assert folders | modules == {layer.partition("/")[0] for layer in LAYERS}
    assert all((ROOT / layer / "__init__.py").is_file() for layer in LAYERS if "/" in layer)


@pytest.mark.parametrize("layer", LAYERS)
def test_a_layer_imports_only_layers_below_it(layer: str) -> None:
    allowed = LAYERS[: LAYERS.index(layer) + 1]
    for file in files(layer):
        for name in imported(file):
            assert layer_of(name) in (None, *allowed), f"{file} imports {name}"


def test_no_files_import_each_other_in_a_cycle() -> None:
    modules = {
        "archlang." + ".".join(file.relative_to(ROOT).with_suffix("").parts): file
        for layer in LAYERS
        for file in files(layer)
        if file.name != "__init__.py"
    }
    edges = [(name, other) for name, file in modules.items() for other in imported(file) if other in modules]
    edges += [
        (name, f"{package}.{member}")
        for name, file in modules.items()
        for package, member in imported_members(file)
        if f"{package}.{member}" in modules
    ]
    assert not list(networkx.simple_cycles(networkx.DiGraph(edges)))


def test_a_file_that_imports_upwards_is_found(tmp_path: Path) -> None:
    file = tmp_path / "low.py"
    file.write_text("def late():\n    from archlang import cli\n    import archlang.train.trainer\n")
    assert list(imported(file)) == ["archlang", "archlang.cli", "archlang.train.trainer"]


@pytest.mark.parametrize("layer", [*FRONT_END, "compile", "reports/pictures"])
def test_the_front_end_and_the_tasks_do_not_import_torch(layer: str) -> None:
    for file in files(layer):
        assert not [name for name in imported(file) if name.split(".")[0] in ("torch", "lightning_fabric")], file


CORE = (
    "graph", "graph/passes", "elaborate", "plan", "backend", "compile", "contracts", "train", "train/runs",
    "reports",
)  # fmt: skip
BLOCKS = {name for name, item in library.blocks().items() if isinstance(item, Extern)}
# Names of blocks that are also words of the language or of the graph, metrics, or schedules.
WORDS = {
    "constant", "exact_match", "every", "first", "hold", "last", "mean", "sum", "chunks", "attention", "gate", "log",
}  # fmt: skip


@pytest.mark.parametrize("layer", CORE)
def test_the_core_knows_no_block_by_its_name(layer: str) -> None:
    """Facts about a block come from its signature, so user-defined blocks are treated like library blocks."""
    for file in files(layer):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                assert node.value not in BLOCKS - WORDS, f"{file}:{node.lineno} names the block {node.value}"
                assert not re.search(r"archlang\.blocks\.\w", node.value), f"{file}:{node.lineno} names a class"


def test_an_evaluation_does_not_import_the_compiler_of_torch() -> None:
    """It takes more than a second. Importing Fabric imports it too."""
    program = (
        "import sys, archlang.train.runs.evaluation, archlang.blocks.linear_recurrence; "
        "print([m for m in ('torch._dynamo', 'sympy') if m in sys.modules])"
    )
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert result.stdout == "[]\n"


def without_torch(*commands: tuple[str, ...]) -> subprocess.CompletedProcess[str]:
    """Runs commands in a Python in which importing torch fails, until one fails."""
    program = (
        "import sys\n"
        "class Refuse:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name.split('.')[0] in ('torch', 'lightning_fabric'):\n"
        "            raise AssertionError('imported ' + name)\n"
        "sys.meta_path.insert(0, Refuse())\n"
        "from archlang.cli.main import main\n"
        f"for command in {commands!r}:\n"
        "    sys.argv = ['archlang', *command]\n"
        "    try: main()\n"
        "    except SystemExit as end: assert not end.code, command\n"
    )
    return subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "ARCHLANG_DEBUG": "1"},
    )


def test_these_commands_work_without_torch(tmp_path: Path) -> None:
    gutlb, picture = str(ROOT / "recipes" / "gutlb.arch"), tmp_path / "gutlb.html"
    result = without_torch(
        ("check", str(ROOT / "recipes" / "mixed")), ("fmt", "--check", gutlb), ("explain", "E0401"), ("blocks",),
        ("blocks", "attention"), ("tasks", "ctl"), ("show", gutlb, "--graph"), ("show", gutlb, "--tree"),
        ("viz", gutlb), ("summary", gutlb), ("card", gutlb), ("diff", gutlb, gutlb),
        ("viz", gutlb, "--out", str(picture)), ("--help",), ("--version",),
    )  # fmt: skip
    assert result.returncode == 0, result.stderr
    assert "Usage: archlang" in result.stdout
    assert picture.exists()


def test_runs_are_listed_without_torch(finished_run: Path) -> None:
    result = without_torch(("runs", "list", str(finished_run.parent)))
    assert (result.returncode, result.stderr) == (0, "")
    assert "tiny on ctl, seed 1: done at step 40" in result.stdout


def test_importing_and_listing_the_package_imports_neither_torch_nor_numpy() -> None:
    program = (
        "import archlang, sys; dir(archlang); assert not {'torch', 'numpy', 'networkx', 'lark'} & set(sys.modules)\n"
        "archlang.check; assert 'torch' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def test_the_package_lists_its_public_names() -> None:
    assert dir(archlang) == sorted(archlang.__all__)
    assert all(getattr(archlang, name) is not None for name in archlang.__all__)
    with pytest.raises(AttributeError, match="module 'archlang' has no attribute 'lod'"):
        _ = archlang.lod
