"""The site comes from the repository: pages and links, reference, tables, and programs for the playground."""

import base64
import re
import zlib
from pathlib import Path

import pytest

from archlang.resolve import library
from archlang.tasks.kit.task import Kind
from website import pages
from website.links import with_links
from website.pages import site
from website.reference import reference
from website.tables import DOCS, written


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


def test_the_link_of_a_program_holds_it() -> None:
    program = "block b(h: seq[n, d]) -> seq[n, d] { return h }   # α ↔ β\n"
    (packed,) = re.findall(
        'href="../playground/#program=([^"]+)"', with_links(f"```arch\n{program}```\n", "../playground/")
    )
    unpacked = zlib.decompress(base64.urlsafe_b64decode(packed + "=" * (-len(packed) % 4)), -zlib.MAX_WBITS)
    assert unpacked.decode() == program


def test_a_signature_and_other_languages_have_no_link() -> None:
    text = "```{ .arch }\nblock b(h: seq[n, d]) -> seq[n, d]\n```\n\n```sh\nls\n```\n"
    assert with_links(text, "playground/") == text


def sections(address: str) -> list[str]:
    return re.findall(r"^## (.+)$", reference()[address], re.MULTILINE)


def test_every_block_task_and_optimizer_has_a_section() -> None:
    assert sections("docs/reference/blocks.md") == sorted(library.block_names())
    assert sections("docs/reference/tasks.md") == sorted(library.task_names())
    assert sections("docs/reference/optimizers.md") == sorted(library.optimizer_names())
    modules = {name.rpartition(".")[0] for name in library.blocks() if "." in name}
    assert {f"docs/reference/{module.replace('.', '/')}.md" for module in modules} < set(reference())
    assert "panm" in sections("docs/reference/models/panm.md")


def test_a_section_has_equations_an_example_and_the_signature_as_code() -> None:
    section = reference()["docs/reference/blocks.md"].partition("## geometric_attention\n")[2].partition("\n## ")[0]
    assert "```text\nP_ij = " in section
    assert "Example:\n\n```arch\nblock example(" in section
    assert "```{ .arch }\nblock geometric_attention[\n" in section
    assert section.endswith("\n- File: `archlang/blocks/geometric_attention.arch`\n")


def test_a_task_has_its_kind_its_splits_and_its_metrics() -> None:
    section = reference()["docs/reference/tasks.md"].partition("## ctl\n")[2].partition("\n## ")[0]
    assert "\n- Kind: classification\n- Splits: train, iid, valid, test\n" in section
    assert "\n- Metrics: accuracy\n" in section


def test_the_tables_are_those_of_the_signatures() -> None:
    for page, text in written().items():
        assert page.read_text(encoding="utf-8") == text, "run `python -m website.tables`"
        assert "|  |\n" not in text.partition("| setting |")[2], f"write in {page} what the new setting sets"


def test_a_changed_row_is_written_again() -> None:
    pages = written()
    page = DOCS / "tasks.md"
    assert "| `ctl` | classification | length | train, iid | valid, test |" in pages[page]
    assert "| `clip` | `0.0` | the largest norm" in pages[DOCS / "language.md"]


def test_every_kind_is_explained() -> None:
    page = (DOCS / "tasks.md").read_text(encoding="utf-8")
    assert all(f"\n| {kind.value} | " in page for kind in Kind)
