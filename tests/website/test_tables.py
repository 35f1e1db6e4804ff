"""The tables of docs/ equal what signatures and classes say; every kind of task is explained."""

from archlang.tasks.kit.task import Kind
from website.tables import DOCS, written


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
