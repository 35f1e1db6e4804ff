"""Every example in the README and in docs runs."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import archlang
from archlang.cli.main import app
from archlang.compile import check_text

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


def examples(language: str) -> list[tuple[str, str]]:
    found = []
    for page in PAGES:
        fences = re.findall(rf"^```{language}\n(.*?)^```", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
        found += [(f"{page.stem}-{number}", text) for number, text in enumerate(fences, 1)]
    return found


@pytest.mark.parametrize("text", [pytest.param(text, id=name) for name, text in examples("arch")])
def test_a_program_on_a_page_has_no_mistake(text: str) -> None:
    assert check_text(text) == ()


@pytest.mark.parametrize("text", [pytest.param(text, id=name) for name, text in examples("python")])
def test_python_on_a_page_runs(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    exec(compile(text, "example", "exec"), {})


def test_the_public_names_are_those_on_their_page() -> None:
    listed = re.findall(r"^\| `archlang\.(\w+)`", (ROOT / "docs" / "api.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert sorted(listed) == sorted(archlang.__all__)


def test_every_command_on_a_page_exists() -> None:
    fenced = "\n".join(text for _, text in examples("sh"))
    named = set(re.findall(r"^archlang (\w+)", fenced, re.MULTILINE))
    assert "train" in named
    assert named <= {info.name for info in app.registered_commands}


def test_links_between_pages_lead_somewhere() -> None:
    for page in PAGES:
        prose = re.sub(r"^```.*?^```|`[^`\n]*`", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
        for target in re.findall(r"\]\(([^)#]+)\)", prose):
            if "://" not in target:
                assert (page.parent / target).exists(), f"{page.name} -> {target}"
