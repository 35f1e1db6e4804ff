"""Builds the playground as a static folder, in which the compiler runs within the page.

The folder has Pyodide, which is Python for browsers, and a packed copy of archlang's front end with the packages that
it needs, as they are installed here. Only Pyodide is fetched, once, by npm; the page fetches nothing from elsewhere."""

import base64
import hashlib
import hmac
import io
import shutil
import subprocess
import tarfile
import tempfile
import zipfile
from collections.abc import Iterator
from contextlib import suppress
from importlib.metadata import distribution
from importlib.util import find_spec
from pathlib import Path

from archlang.disk.cache_folder import cache_folder
from archlang.disk.readable import read_named
from archlang.play.mistakes import holds_other_files, is_no_folder, npm_failed, npm_is_missing, other_package
from archlang.play.page import page_files, policy
from archlang.reports.pages import PageError, asset, write_file
from archlang.resolve.library import PACKAGE

PYODIDE = "pyodide@314.0.7"
_SHA512 = "0YvXxEhfEdpLfb/XkM2BFAeMROq0iMUX2bzzH9pOttyMcWkwq+HbE5uyuGD82LN7y2q+SNvi/6V5JEsOlD2R1A=="
_PYODIDE_FILES = ("pyodide.mjs", "pyodide.asm.mjs", "pyodide.asm.wasm", "pyodide-lock.json", "python_stdlib.zip")
_LARGEST_ARCHIVE = 64 << 20  # bytes
_WORKER = "playground_worker.js"
_PACKED = "packages.zip"

# The packages that the front end imports, with the names of their distributions.
_PACKAGES = {
    "filelock": "filelock",
    "jinja2": "Jinja2",
    "lark": "lark",
    "markupsafe": "MarkupSafe",
    "networkx": "networkx",
    "platformdirs": "platformdirs",
}
# The folders of archlang whose Python the page runs; other folders have data only.
_LAYERS = frozenset(
    (
        "disk", "errors", "plugins", "syntax", "types", "resolve", "graph", "elaborate", "data", "tasks", "plan",
        "editor", "reports", "play",
    )
)  # fmt: skip
# There is no numpy in the page.
_NUMPY = ("numpy/__init__.py", "numpy/typing.py")
_STAND_IN = b"from archlang.play.numpy_stand_in import attribute as __getattr__\n"
_DATA = (".arch", ".lark", ".md", ".svg", ".tsv")
# A zip file holds no earlier time; the same files make the same bytes.
_TIME = (1980, 1, 1, 0, 0, 0)


def build(folder: Path) -> None:
    """Writes the playground to a folder, which is new or empty, or holds an earlier build.

    Raises:
        PlayError: the folder is a file or holds other files, or npm is missing or cannot fetch Pyodide.
        PageError: a file cannot be written."""
    if folder.exists() and not folder.is_dir():
        raise is_no_folder(folder)
    if folder.is_dir() and any(folder.iterdir()) and not (folder / _WORKER).exists():
        raise holds_other_files(folder)
    pyodide = _pyodide()
    files: dict[str, str | bytes] = {
        **page_files("worker", policy(script_src="'self' 'wasm-unsafe-eval'", worker_src="'self'")),
        _WORKER: str(asset(_WORKER)),
        _PACKED: pack(),
        "licences.txt": _licences(),
        **{f"pyodide/{name}": content for name, content in pyodide.items()},
    }
    for name, content in files.items():
        write_file(folder / name, content)


def pack() -> bytes:
    """Returns a zip file of archlang's front end and the packages that it needs."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        contents = {name: file.read_bytes() for name, file in _packed_files()}
        for name, content in (contents | dict.fromkeys(_NUMPY, _STAND_IN)).items():
            entry = zipfile.ZipInfo(name, _TIME)
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, content)
    return packed.getvalue()


def _packed_files() -> Iterator[tuple[str, Path]]:
    for file in _files(PACKAGE):
        parts = file.relative_to(PACKAGE).parts
        if file.suffix in _DATA or (file.suffix in (".py", ".txt") and (len(parts) == 1 or parts[0] in _LAYERS)):
            yield "/".join(("archlang", *parts)), file
    for package in _PACKAGES:
        spec = find_spec(package)
        assert spec is not None
        assert spec.origin is not None
        root = Path(spec.origin).parent
        for file in _files(root):
            parts = file.relative_to(root).parts
            if file.suffix in (".py", ".lark") and "tests" not in parts:
                yield "/".join((package, *parts)), file


def _files(folder: Path) -> Iterator[Path]:
    """Yields the files of a folder and below, in order, also through links: archlang's checkout has some."""
    for path in sorted(folder.iterdir()):
        if path.is_dir():
            yield from _files(path)
        else:
            yield path


def _licences() -> str:
    texts = [
        f"{PYODIDE}\n\nMozilla Public License 2.0: https://www.mozilla.org/MPL/2.0/",
        "Python, within pyodide\n\nPython Software Foundation License 2: https://docs.python.org/3/license.html",
    ]
    for name in ("archlang", *_PACKAGES.values()):
        package = distribution(name)
        names = [file for file in package.files or () if "licen" in file.name.lower() and file.suffix != ".py"]
        contents = [file.read_text(encoding="utf-8") for file in names]
        stated = [package.metadata[key] for key in ("License-Expression", "License") if key in package.metadata]
        texts.append("\n\n".join([f"{name} {package.version}", *(contents or stated)]))
    return ("\n\n" + "-" * 80 + "\n\n").join(text.strip() for text in texts) + "\n"


def _pyodide() -> dict[str, bytes]:
    """Returns the files of Pyodide by name, from the cache or by npm.

    Raises:
        PlayError: npm is missing or cannot fetch the package, or it is another package than expected."""
    cached_archive = cache_folder() / "npm" / f"{PYODIDE.replace('@', '-')}.tgz"
    try:
        archive = read_named(cached_archive, _LARGEST_ARCHIVE)
    except OSError:
        archive = b""
    if not _is_expected(archive):
        archive = _fetched()
        if not _is_expected(archive):
            raise other_package(PYODIDE)
        with suppress(PageError):  # without a cache, the next build fetches it again
            write_file(cached_archive, archive)
    with tarfile.open(fileobj=io.BytesIO(archive)) as opened:
        return {name: _member(opened, f"package/{name}") for name in _PYODIDE_FILES}


def _member(archive: tarfile.TarFile, name: str) -> bytes:
    file = archive.extractfile(name)
    assert file is not None, "the digest of the archive is known"
    return file.read()


def _is_expected(archive: bytes) -> bool:
    return hmac.compare_digest(base64.b64encode(hashlib.sha512(archive).digest()).decode(), _SHA512)


def _fetched() -> bytes:
    """Returns the archive of Pyodide from npm's registry.

    Raises:
        PlayError: npm is missing, or cannot fetch it."""
    npm = shutil.which("npm")
    if npm is None:
        raise npm_is_missing()
    with tempfile.TemporaryDirectory(prefix="archlang-") as folder:
        command = [npm, "pack", PYODIDE, "--pack-destination", folder, "--ignore-scripts"]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
        archives = sorted(Path(folder).glob("*.tgz"))
        if done.returncode or not archives:
            raise npm_failed(PYODIDE, done.stderr)
        return read_named(archives[0], _LARGEST_ARCHIVE)
