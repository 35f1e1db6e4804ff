"""The pages of the site come from the repository, and every link between them leads somewhere."""

from pathlib import Path

import pytest

from website import pages
from website.pages import site
from website.reference import reference


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty repository."""
    monkeypatch.setattr(pages, "ROOT", tmp_path)
    return tmp_path


def test_links_between_pages_lead_somewhere() -> None:
    built = site(reference())
    assert built.broken == []
    assert {f"docs/{page.name}" for page in Path(pages.ROOT, "docs").glob("*.md")} <= set(built.pages)


def test_a_link_to_no_file_or_to_no_heading_is_reported(repository: Path) -> None:
    (repository / "README.md").write_text("# a\n\n[b](b.md) [c](#c) [d](e.md#d) [e](e.md#the-e-of-e)\n")
    (repository / "e.md").write_text("# The `e` of e\n")
    assert site({}).broken == ["README.md -> b.md", "README.md -> README.md#c", "README.md -> e.md#d"]


def test_code_has_no_links(repository: Path) -> None:
    (repository / "README.md").write_text("# a\n\n`f[2](h)`\n\n```arch\nf[2](h)\n```\n")
    assert site({}) == pages.Site({"README.md": (repository / "README.md").read_text()}, set(), [])


def test_a_folder_becomes_a_list_and_a_program_a_page(repository: Path) -> None:
    (repository / "docs" / "programs").mkdir(parents=True)
    (repository / "docs" / "a.md").write_text("[all](programs) [b](programs/b.arch) [c](c.png) [home](../README.md)")
    (repository / "docs" / "c.png").touch()
    (repository / "docs" / "programs" / "b.arch").write_text("## What b does.\nblock b() {}\n")
    (repository / "README.md").write_text("[a](docs/a.md)")
    built = site({})
    assert built.broken == []
    assert built.copied == {"docs/c.png"}
    assert built.pages["docs/a.md"] == (
        "[all](programs/index.md) [b](programs/b.arch.md) [c](c.png) [home](../README.md)"
    )
    unsearched = "---\nsearch:\n  exclude: true\n---\n\n"
    assert built.pages["docs/programs/index.md"] == f"{unsearched}# Programs\n\n- [b.arch](b.arch.md): What b does.\n"
    assert "```arch\n## What b does.\nblock b() {}\n```" in built.pages["docs/programs/b.arch.md"]


def test_a_made_page_may_link_to_files_of_the_repository(repository: Path) -> None:
    (repository / "README.md").touch()
    (repository / "a.md").write_text("# a")
    built = site({"made/b.md": "[a](../a.md) [c](c.md)", "made/c.md": "# c"})
    assert (set(built.pages), built.broken) == ({"README.md", "a.md", "made/b.md", "made/c.md"}, [])
