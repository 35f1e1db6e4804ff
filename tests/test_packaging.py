"""The wheel installs every file that the package needs, and nothing outside `archlang`."""

import ast
import os
import re
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

import archlang

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
FOLDERS = {"archlang.blocks": "blocks", "archlang.cli": "cli", "archlang.recipes": "recipes"}


def test_the_list_of_packages_matches_the_folders() -> None:
    inside = [path for pattern in ("*", "*/*") for path in (ROOT / "archlang").glob(f"{pattern}/__init__.py")]
    packages = {"archlang", *(".".join(path.parent.relative_to(ROOT).parts) for path in inside)}
    assert set(PROJECT["tool"]["setuptools"]["packages"]) == packages


@pytest.mark.parametrize(("package", "folder"), FOLDERS.items())
def test_the_links_point_to_the_folders(package: str, folder: str) -> None:
    link = ROOT / "archlang" / folder
    assert link.is_symlink()
    assert link.resolve() == (ROOT / folder).resolve()
    assert PROJECT["tool"]["setuptools"]["package-dir"][package] == folder


def python(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Runs Python in a folder, without PYTHONPATH, which would make this checkout importable."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    return subprocess.run(
        [sys.executable, *arguments], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    """A wheel built from a copy of the tree, because building writes into its source tree."""
    source = tmp_path_factory.mktemp("source")
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    if listed.returncode:
        pytest.skip("not a git checkout")
    for name in filter(None, listed.stdout.split("\0")):
        origin, target = ROOT / name, source / name
        if not origin.exists() or name.startswith("tests/"):
            continue
        target.parent.mkdir(parents=True, exist_ok=True)
        if origin.is_symlink():
            target.symlink_to(origin.readlink())
        else:
            target.write_bytes(origin.read_bytes())
    out = tmp_path_factory.mktemp("wheel")
    subprocess.run(
        [
            sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation",
            "--wheel-dir", str(out), str(source),
        ],
        check=True, capture_output=True,
    )  # fmt: skip
    (built,) = out.glob("*.whl")
    return zipfile.ZipFile(built)


def test_the_wheel_installs_only_archlang(wheel: zipfile.ZipFile) -> None:
    tops = {name.split("/")[0] for name in wheel.namelist()}
    assert {top for top in tops if not top.endswith(".dist-info")} == {"archlang"}


def test_every_file_that_is_read_at_run_time_is_installed(wheel: zipfile.ZipFile) -> None:
    installed = set(wheel.namelist())
    needed = [
        *(ROOT / "blocks").rglob("*.arch"),
        *(ROOT / "recipes").rglob("*.arch"),
        *(ROOT / "archlang").glob("*/*.arch"),
        *(ROOT / "archlang").glob("*/*.lark"),
        *(ROOT / "archlang").glob("*/*.tsv"),
        *(ROOT / "cli" / "starters").glob("*/*.txt"),
        *(ROOT / "archlang" / "errors" / "pages").glob("*.md"),
        *(ROOT / "archlang" / "reports" / "assets").iterdir(),
        *(ROOT / "archlang" / "reports" / "templates").iterdir(),
        ROOT / "archlang" / "py.typed",
    ]
    names = set()
    for file in needed:
        path = file.relative_to(ROOT)
        names.add(str(path if path.parts[0] == "archlang" else Path("archlang", path)))
    assert names <= installed
    assert len(names) > 100


def test_every_module_is_installed(wheel: zipfile.ZipFile) -> None:
    modules = {
        str(Path("archlang", file.relative_to(ROOT)) if folder != "archlang" else file.relative_to(ROOT))
        for folder in ("archlang", "blocks", "cli")
        for file in (ROOT / folder).rglob("*.py")
    }
    assert modules <= set(wheel.namelist())


def test_a_wheel_has_neither_tests_nor_documents(wheel: zipfile.ZipFile) -> None:
    endings = {Path(name).suffix for name in wheel.namelist() if name.startswith("archlang/")}
    assert endings == {
        ".arch", ".css", ".html", ".js", ".lark", ".md", ".py", ".svg", ".toml", ".tsv", ".txt", ".typed",
    }  # fmt: skip
    names = [name for name in wheel.namelist() if "/cli/starters/" not in name]
    assert not [name for name in names if re.search(r"(?<![a-z])test", name)]


def test_an_installed_wheel_registers_the_lexer_of_pygments(wheel: zipfile.ZipFile) -> None:
    (registered,) = (name for name in wheel.namelist() if name.endswith("entry_points.txt"))
    assert "[pygments.lexers]\narch = archlang.editor.pygments_lexer:ArchLexer\n" in wheel.read(registered).decode()


def test_the_version_of_a_wheel_is_that_of_the_package(wheel: zipfile.ZipFile) -> None:
    assert Path(str(wheel.filename)).name == f"archlang-{archlang.__version__}-py3-none-any.whl"


@pytest.fixture(scope="module")
def site(wheel: zipfile.ZipFile, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    wheel.extractall(folder)
    return folder


@pytest.mark.parametrize(
    ("command", "code", "end"),
    [
        ("check SITE/archlang/recipes/gutlb.arch", 0, "1 file, no errors\n"),
        ("train tiny.arch --out run", 0, "the run is in run\n"),
        ("data get scan", 71, "help: run `pip install 'archlang[data]'`\n"),
    ],
)
def test_an_installed_wheel_works_outside_the_checkout_and_without_extras(
    site: Path, tmp_path: Path, program: Path, command: str, code: int, end: str
) -> None:
    base, extras = dependencies()
    of_extras = extras - base | {name for name, owner in WITH_OTHERS.items() if owner not in base}
    script = (
        "import sys; sys.path.insert(0, sys.argv.pop(1))\n"
        f"sys.modules.update(dict.fromkeys({sorted(of_extras - {'setuptools'})}))\n"
        "import archlang\n"
        "from archlang.cli.main import main\n"
        "assert archlang.__file__.startswith(sys.path[0]), archlang.__file__\n"
        "main()\n"
    )
    result = python(tmp_path, "-I", "-c", script, str(site), *command.replace("SITE", str(site)).split())
    assert result.returncode == code, result.stderr
    assert (result.stderr or result.stdout).endswith(end)


def test_an_editable_installation_adds_only_archlang(tmp_path: Path) -> None:
    program = "import importlib.util as u; print([n for n in ('blocks', 'cli', 'recipes') if u.find_spec(n)])"
    assert python(tmp_path, "-c", program).stdout == "[]\n"


def test_the_workflow_runs_every_python_that_the_readme_names() -> None:
    workflow = (ROOT / ".github" / "workflows" / "tests.yml").read_text(encoding="utf-8")
    (matrix,) = re.findall(r"python: \[(.*)\]", workflow)
    (sentence,) = re.findall(r"It needs Python (.*)\.\n", (ROOT / "README.md").read_text(encoding="utf-8"))
    assert re.findall(r"3\.\d+", matrix) == re.findall(r"3\.\d+", sentence)


def test_the_citation_has_the_version_of_the_package() -> None:
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert f"\nversion: {archlang.__version__}\n" in citation


# Packages that come with a declared one, or have another name than their distribution.
WITH_OTHERS = {
    "backports": "backports.zstd",
    "PIL": "pillow", "cattrs": "pygls", "lsprotocol": "pygls", "markupsafe": "torch", "pydantic_core": "pydantic",
    "sqlalchemy": "optuna", "tokenizers": "transformers",
}  # fmt: skip


def dependencies() -> tuple[set[str], set[str]]:
    """Returns the packages that the project declares: those of the base installation, and those of extras."""
    extras = PROJECT["project"]["optional-dependencies"].values()
    parts = (PROJECT["project"]["dependencies"], [line for lines in extras for line in lines])
    base, others = ({re.split(r"[><=\[; ]", line)[0].lower().replace("-", "_") for line in part} for part in parts)
    return base, others


def test_every_imported_package_is_a_declared_dependency() -> None:
    names = set.union(*dependencies())
    imported: set[str] = set()
    for folder in ("archlang", "blocks", "cli", "recipes"):
        for file in (ROOT / folder).rglob("*.py"):
            for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
                if isinstance(node, ast.Import):
                    imported |= {alias.name.partition(".")[0] for alias in node.names}
                elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                    imported.add(node.module.partition(".")[0])
    assert set(WITH_OTHERS.values()) <= names
    # `compression` is of the standard library of Python 3.14.
    unknown = imported - names - sys.stdlib_module_names - {"archlang", "compression", *WITH_OTHERS}
    assert sorted(unknown) == []
