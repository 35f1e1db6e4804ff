"""The static playground: what its folder holds, and what is refused before anything is written."""

import io
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from archlang.play import build as builder
from archlang.play.mistakes import PlayError


def archive_of(names: tuple[str, ...]) -> bytes:
    """Returns a package as npm packs it, with files that hold their names."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        for name in names:
            member = tarfile.TarInfo(f"package/{name}")
            member.size = len(name)
            archive.addfile(member, io.BytesIO(name.encode()))
    return packed.getvalue()


@pytest.fixture
def fetched(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[bytes]:
    """A cache without Pyodide, and in place of npm the one archive of the list."""
    archives = [archive_of(builder._PYODIDE_FILES)]
    monkeypatch.setenv("ARCHLANG_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(builder, "_fetched", lambda: archives.pop())
    monkeypatch.setattr(builder, "_is_expected", lambda archive: archive[:2] == b"\x1f\x8b")
    monkeypatch.setattr(builder, "pack", lambda: b"packed")
    return archives


def test_the_folder_has_the_page_pyodide_and_the_licences(fetched: list[bytes], tmp_path: Path) -> None:
    site = tmp_path / "site"
    builder.build(site)
    names = {file.relative_to(site).as_posix() for file in site.rglob("*") if file.is_file()}
    assert {"index.html", "playground.js", "playground_worker.js", "packages.zip", "pyodide/pyodide.mjs"} <= names
    page = (site / "index.html").read_text(encoding="utf-8")
    assert 'data-service="worker"' in page
    assert "script-src &#39;self&#39; &#39;wasm-unsafe-eval&#39;;" in page
    assert "unsafe-inline" not in page
    licences = (site / "licences.txt").read_text(encoding="utf-8")
    assert all(name in licences for name in ("pyodide", "Python Software", "archlang", *builder._PACKAGES.values()))


def test_pyodide_is_fetched_once(fetched: list[bytes], tmp_path: Path) -> None:
    builder.build(tmp_path / "one")
    assert not fetched
    builder.build(tmp_path / "two")
    builder.build(tmp_path / "two")


def test_a_cache_that_cannot_be_written_is_no_error(
    fetched: list[bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("ARCHLANG_CACHE", str(tmp_path / "file" / "cache"))
    builder.build(tmp_path / "site")
    assert (tmp_path / "site" / "index.html").exists()


def test_another_package_than_expected_is_refused_and_nothing_written(fetched: list[bytes], tmp_path: Path) -> None:
    fetched[:] = [b"something else"]
    with pytest.raises(PlayError, match="is not the package that archlang knows"):
        builder.build(tmp_path / "site")
    assert not (tmp_path / "site").exists()
    assert not (tmp_path / "cache").exists()


@pytest.mark.parametrize(("name", "reason"), [("site/index.html", "holds other files"), ("site", "is no folder")])
def test_a_place_with_other_files_is_refused(name: str, reason: str, fetched: list[bytes], tmp_path: Path) -> None:
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).write_text("mine")
    with pytest.raises(PlayError, match=reason):
        builder.build(tmp_path / "site")
    assert (tmp_path / name).read_text() == "mine"


def test_a_missing_npm_is_an_error_with_a_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: None)
    with pytest.raises(PlayError, match=r"install Node\.js"):
        builder._fetched()


def test_what_npm_says_is_in_the_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*arguments: object, **options: object) -> subprocess.CompletedProcess[str]:
        return subprocess.CompletedProcess([], 1, "", "npm error\nnpm error network\n")

    monkeypatch.setattr(shutil, "which", lambda name: "npm")
    monkeypatch.setattr(subprocess, "run", fail)
    with pytest.raises(PlayError, match="npm cannot fetch .*: npm error network"):
        builder._fetched()


def test_the_packed_files_are_the_front_end_and_the_library() -> None:
    names = {name for name, _ in builder._packed_files()}
    assert {"archlang/play/service.py", "archlang/blocks/attention.arch", "archlang/recipes/gutlb.arch"} <= names
    assert {"archlang/syntax/arch.lark", "archlang/errors/pages/E0501.md", "lark/lark.py"} <= names
    assert not [name for name in names if name.startswith(("archlang/backend/", "archlang/cli/"))]
    assert "archlang/blocks/attention.py" not in names


@pytest.fixture(scope="module")
def packed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder in which the page unpacks its packages."""
    folder = tmp_path_factory.mktemp("packages")
    with zipfile.ZipFile(io.BytesIO(builder.pack())) as archive:
        archive.extractall(folder)
    return folder


def in_page(packed: Path, program: str) -> str:
    """Runs a program with the packages of the page alone, and returns what it prints."""
    setup = f"import sys; sys.path.insert(0, {str(packed)!r})\nfrom archlang.play.service import Service\n"
    setup += "def ask(method, **fields): return service.answer({'method': method, **fields})['result']\n"
    command = [sys.executable, "-I", "-S", "-c", f"{setup}service = Service('/nowhere')\n{program}"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def test_recipes_are_checked_and_drawn_where_numpy_is_missing(packed: Path) -> None:
    """As in a browser: `ctl` counts its items with numpy."""
    program = """
text = ask("program", name="ndr")["text"]
assert ask("check", text=text)["diagnostics"] == []
assert ask("draw", text=text, lengths=[64])["costs"]["parameters"] > 0
for wrong in ("tset.accuracy", "test.acuracy", "test.accuracy[60]"):
    changed = text.replace("steps = 600]", f'steps = 600] claim {wrong} = 0.9 from "a paper"', 1)
    print(*(each["code"] for each in ask("check", text=changed)["diagnostics"]))
assert not {"torch", "networkx"} & set(sys.modules)
"""
    assert in_page(packed, program).split() == ["E0605", "E0605", "E0312"]


@pytest.mark.slow
def test_every_shipped_program_is_checked_where_numpy_is_missing(packed: Path) -> None:
    program = """
for shipped in ask("start")["programs"]:
    program = ask("program", name=shipped["name"])
    diagnostics = ask("check", text=program["text"], beside=program["beside"])["diagnostics"]
    print(*(f"{shipped['name']}: {each['message']}" for each in diagnostics))
"""
    assert in_page(packed, program).strip() == ""


def test_the_class_of_every_task_is_imported_where_numpy_is_missing(packed: Path) -> None:
    program = """
from importlib import import_module
from archlang.resolve.library import PACKAGE
for file in sorted((PACKAGE / "tasks").glob("*.py")):
    import_module(f"archlang.tasks.{file.stem}")
print(sys.modules["numpy"].__file__)
"""
    assert in_page(packed, program).strip() == str(packed / "numpy" / "__init__.py")
