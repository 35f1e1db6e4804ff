"""A document knows the diagnostics, names and types of a text that is being written."""

from pathlib import Path

import pytest

from archlang.diagnostics import Diagnostic
from archlang.editor.document import Document, Memory
from archlang.source import Source
from archlang.syntax.parser import parse_tolerantly
from archlang.syntax.tree import Program

HALF_WRITTEN = """block b(h: seq[n, d]) -> seq[n, d] {
    a = norm(h)
    c = feedforward[
    return a + h
}
"""


def test_a_half_written_line_costs_only_itself() -> None:
    document = Document("half.arch", HALF_WRITTEN)
    assert [each.span.line for each in document.diagnostics] == [3]
    types = {HALF_WRITTEN[start:end]: str(kind) for (start, end), kind in document.types.items()}
    assert types["a"] == "seq[n, d]"
    assert types["a + h"] == "seq[n, d]"


def test_a_line_with_a_type_error_leaves_the_types_of_the_others() -> None:
    document = Document(
        "m.arch", "block b(h: seq[n, 4]) -> seq[n, 4] {\n    a = norm(h)\n    return a + linear[5](h)\n}\n"
    )
    assert [each.code for each in document.diagnostics] == ["E0406"]
    assert str(document.types[document.text.index("a ="), document.text.index("a =") + 1]) == "seq[n, 4]"


def test_the_unsaved_text_of_a_used_file_counts(tmp_path: Path) -> None:
    used = tmp_path / "used.arch"
    used.write_text("block old(h: seq[n, d]) -> seq[n, d] { return h }\n", encoding="utf-8")
    text = 'use "./used.arch"\n\nblock b(h: seq[n, d]) -> seq[n, d] { return new(h) }\n'
    path = str(tmp_path / "b.arch")
    assert [each.code for each in Document(path, text).diagnostics] == ["E0202"]
    unsaved = {str(used): "block new(h: seq[n, d]) -> seq[n, d] { return h }\n"}
    assert Document(path, text, unsaved).diagnostics == ()


def test_a_used_file_is_parsed_again_only_if_its_text_changes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    parsed: list[str] = []

    def parse(source: Source) -> tuple[Program, tuple[Diagnostic, ...]]:
        parsed.append(source.text)
        return parse_tolerantly(source)

    monkeypatch.setattr("archlang.editor.parsed_files.parse_tolerantly", parse)
    used = tmp_path / "used.arch"
    text = 'use "./used.arch"\n\nblock b(h: seq[n, d]) -> seq[n, d] {\n    return a(h)\n}\n'
    memory, path = Memory(), str(tmp_path / "b.arch")
    for name, codes in (("a", []), ("c", ["E0202"]), ("a", [])):
        used.write_text(f"block {name}(h: seq[n, d]) -> seq[n, d] {{ return h }}\n", encoding="utf-8")
        for line in ("", "# A comment.\n"):
            assert [each.code for each in Document(path, text + line, memory=memory).diagnostics] == codes
        assert Document(path, text + "block half(", memory=memory).program.items
    assert len(parsed) == 2
