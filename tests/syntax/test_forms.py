"""Each row of the foreign and half-written forms is found in its example, and its edit is right."""

import re

import pytest

from archlang.errors import Diagnostic, Source
from archlang.errors.edits import apply_edits
from archlang.syntax.forms import FORMS, Form
from archlang.syntax.parser import parse_tolerantly


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.example)
def test_the_example_of_a_form_has_its_remedy_and_its_edit_leaves_no_mistake(form: Form) -> None:
    mistake, *others = parse_tolerantly(Source("x.arch", form.example))[1]
    assert others == []
    remedy = re.escape(form.remedy.replace("{{", "\1").replace("}}", "\2"))
    remedy = re.sub(r"\\\{\w+\\\}", ".*", remedy).replace("\1", r"\{").replace("\2", r"\}")
    assert re.fullmatch(remedy, mistake.remedy, re.DOTALL), mistake.remedy
    assert bool(mistake.edits) == bool(form.edits)
    if mistake.edits:
        corrected = apply_edits(form.example, mistake.edits)
        assert parse_tolerantly(Source("x.arch", corrected))[1] == ()


def in_block(line: str, header: str = "block b[k: symbol](h: seq[n, d]) -> seq[n, d]") -> str:
    return f"{header} {{\n    a = h\n    {line}\n}}\n"


def mistakes(text: str) -> tuple[Diagnostic, ...]:
    return parse_tolerantly(Source("x.arch", text))[1]


@pytest.mark.parametrize(
    ("half", "whole"),
    [
        ("norm(h)", "return norm(h)"),
        ("linear[2 * d](norm(h))", "return linear[2 * d](norm(h))"),
        ("norm(\n        h)", "return norm(\n        h)"),
        ("a", "return a"),
        ("repeat 2 { a <-- norm(a) }", "repeat 2 { a <- norm(a) }"),
        ("return h -- norm(h)", "return h - norm(h)"),
        ("return linear[k(h)", "return linear[k](h)"),
    ],
)
def test_the_edit_of_a_half_written_statement_completes_it(half: str, whole: str) -> None:
    text = in_block(half)
    assert apply_edits(text, mistakes(text)[0].edits) == in_block(whole)


@pytest.mark.parametrize(
    "line", ["return attention{4}(h)", "return f(h a)", "norm(h)", "return f[a b](h)", "y = experts v in h with p {}"]
)
def test_the_lines_after_such_a_form_are_read(line: str) -> None:
    first, second = mistakes(in_block(f"{line}\n    a = * h\n    return a"))
    assert (first.span.line, second.span.line) == (3, 4)


def test_a_list_in_braces_is_one_mistake() -> None:
    text = in_block("return h", "block b[k: symbol](h: s) -> s\n    where k in {relu, gelu}")
    (mistake,) = mistakes(text)
    assert apply_edits(text, mistake.edits) == text.replace("{relu, gelu}", "[relu, gelu]")
