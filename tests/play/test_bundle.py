"""The bundled scripts of the playground are those that its sources make."""

import hashlib
import shutil
import subprocess
from pathlib import Path

import pytest

import archlang

ROOT = Path(__file__).parent.parent.parent
SOURCES = ROOT / "playground"
ASSETS = Path(archlang.__file__).parent / "reports" / "assets"
BUNDLES = ("playground.js", "playground_worker.js")


def digest() -> str:
    """Returns the digest of the sources, as `build.mjs` computes it."""
    names = ["build.mjs", "package-lock.json", "package.json"]
    names += sorted(f"src/{file.name}" for file in (SOURCES / "src").iterdir())
    content = b"".join(name.encode() + b"\0" + (SOURCES / name).read_bytes() + b"\0" for name in names)
    return hashlib.sha256(content).hexdigest()


@pytest.mark.parametrize("name", BUNDLES)
def test_a_bundle_belongs_to_its_sources(name: str) -> None:
    first, _, _ = (ASSETS / name).read_text(encoding="utf-8").partition("\n")
    expected = f"// Written by playground/build.mjs, from sources {digest()}"
    assert first == expected, "run `npm ci && npm run build` in playground/"


def test_a_bundle_has_the_licences_of_its_packages() -> None:
    text = (ASSETS / "playground.js").read_text(encoding="utf-8")
    assert text.count("Permission is hereby granted") >= 10


def test_the_lock_names_no_host() -> None:
    assert "://" not in (SOURCES / "package-lock.json").read_text(encoding="utf-8")


@pytest.mark.slow
def test_the_sources_make_the_bundles_again(tmp_path: Path) -> None:
    if shutil.which("npm") is None:
        pytest.skip("npm is not installed")
    shutil.copytree(SOURCES, tmp_path / "playground", ignore=shutil.ignore_patterns("node_modules"))
    (tmp_path / "archlang" / "reports" / "assets").mkdir(parents=True)
    for command in (["npm", "ci"], ["npm", "run", "build"]):
        subprocess.run(command, cwd=tmp_path / "playground", check=True, capture_output=True)
    for name in BUNDLES:
        rebuilt = tmp_path / "archlang" / "reports" / "assets" / name
        assert rebuilt.read_bytes() == (ASSETS / name).read_bytes()
