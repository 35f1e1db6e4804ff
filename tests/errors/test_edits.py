"""The edits of remedies, and their application to a text."""

import pytest

from archlang.errors import Diagnostic, Edit, Source, Span
from archlang.errors.edits import (
    apply_edits,
    insertion,
    last_element,
    static_set,
    used,
    without,
    without_item,
    without_lines,
    wrapped,
)


def marked(text: str) -> Span:
    """Returns the place between the signs `⟨` and `⟩` of a text without them."""
    start, end = text.index("⟨"), text.index("⟩") - 1
    return Span(Source("p.arch", text.replace("⟨", "").replace("⟩", "")), start, end)


def changed(span: Span, *edits: Edit | None) -> str:
    assert None not in edits
    return apply_edits(span.source.text, [edit for edit in edits if edit is not None])


def test_of_edits_that_overlap_the_first_is_applied() -> None:
    source = Source("p.arch", "abcdef")
    edits = [Edit(Span(source, 3, 5), "Y"), Edit(Span(source, 1, 4), "X"), insertion(source, 6, "!")]
    assert apply_edits(source.text, edits) == "aXef!"


def test_equal_insertions_count_once_and_different_ones_at_a_place_exclude_each_other() -> None:
    source = Source("p.arch", "ab")
    assert apply_edits("ab", [insertion(source, 1, "x"), insertion(source, 1, "x")]) == "axb"
    assert apply_edits("ab", [insertion(source, 1, "x"), insertion(source, 1, "y")]) == "axb"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("f[a, ⟨b⟩]", "f[a]"),
        ("f[⟨a⟩, b]", "f[b]"),
        ("f[⟨a⟩](h)", "f(h)"),
        ("scan c in h carry ⟨m⟩ {", "scan c in h {"),
        ("scan c in h carry m, ⟨k⟩ {", "scan c in h carry m {"),
        ("column test.loss at ⟨model.d = 8⟩", "column test.loss"),
    ],
)
def test_an_item_of_a_list_is_deleted_with_what_belongs_to_it(before: str, after: str) -> None:
    assert changed(marked(before), without_item(marked(before))) == after


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("{\n    ⟨a = 1⟩\n    b\n}", "{\n    b\n}"),
        ("{\n    ⟨a = 1⟩  # why\n    b\n}", "{\n    b\n}"),
        ("{\n    ⟨a =\n        1⟩\n    b\n}", "{\n    b\n}"),
        ("{ ⟨a = 1⟩ b }", "{ b }"),
    ],
)
def test_a_statement_is_deleted_with_its_lines_if_it_is_alone_on_them(before: str, after: str) -> None:
    assert changed(marked(before), without_lines(marked(before))) == after


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("⟨f(h)⟩", "f[k = 2](h)"),
        ("⟨f⟩", "f[k = 2]"),
        ("⟨mine.f[a](h)⟩", "mine.f[a, k = 2](h)"),
        ("⟨f[g[1]](h[2])⟩", "f[g[1], k = 2](h[2])"),
        ("⟨f[](h)⟩", "f[k = 2](h)"),
        ("⟨f[k = 1, a](h)⟩", "f[k = 2, a](h)"),
    ],
)
def test_a_static_is_set_in_a_call(before: str, after: str) -> None:
    assert changed(marked(before), static_set(marked(before), "k", "2")) == after


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("block b", "use archlang.m\n\nblock b"),
        ("use archlang.a\n\nblock b", "use archlang.a\nuse archlang.m\n\nblock b"),
        ("use archlang.a", "use archlang.a\nuse archlang.m\n"),
        ("# All of it.\n\nblock b", "# All of it.\n\nuse archlang.m\n\nblock b"),
        ("## Of b.\nblock b", "use archlang.m\n\n## Of b.\nblock b"),
    ],
)
def test_a_use_line_is_added_after_the_others(before: str, after: str) -> None:
    source = Source("p.arch", before)
    assert apply_edits(before, [used(source, "archlang.m")]) == after


def test_a_value_is_wrapped_in_a_block_and_a_word_is_deleted_with_its_space() -> None:
    span = marked("a + ⟨f(h)⟩ pure")
    assert changed(span, *wrapped(span, "linear[d](")) == "a + linear[d](f(h)) pure"
    span = marked("reads h full ⟨pure⟩ python")
    assert changed(span, without(span)) == "reads h full python"


def test_a_text_of_the_command_line_has_no_edits() -> None:
    span = Span(Source("<setting>", "wdie", is_command_line=True), 0, 4)
    assert Diagnostic("E0313", "", span).with_edits(Edit(span, "wide")).edits == ()


@pytest.mark.parametrize(
    ("brackets", "expected"),
    [
        ("[]", "[a = 1]"),
        ("[b = 2]", "[b = 2, a = 1]"),
        ("[b = 2,]", "[b = 2, a = 1]"),
        ("[\n    b = 2,\n]", "[\n    b = 2, a = 1\n]"),
        ("[\n    b = 2,  # why\n]", "[\n    b = 2,  # why\na = 1]"),
        ("[\n    b = 2  # why,\n]", "[\n    b = 2  # why,\n, a = 1]"),
        ('[b = "#,"]', '[b = "#,", a = 1]'),
        ("[b = 2", None),
    ],
)
def test_an_element_is_added_after_a_comma_too(brackets: str, expected: str | None) -> None:
    source = Source("m.arch", f"norm{brackets}(h)")
    edit = last_element(source, 4, "a = 1")
    if expected is None:
        assert edit is None
        return
    assert edit is not None
    assert source.text[: edit.span.start] + edit.text + source.text[edit.span.end :] == f"norm{expected}(h)"
