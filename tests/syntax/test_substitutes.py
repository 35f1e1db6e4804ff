"""Half a line that the words after it would complete is a mistake of its own, and costs nothing but itself."""

import pytest

from archlang.errors import Diagnostic, Source
from archlang.errors.edits import apply_edits
from archlang.syntax.parser import parse_tolerantly
from archlang.syntax.tree import Assign, Definition, If, Missing, RepeatStatement, ScanStatement, Statement

HEADER = "block b[a: bool = true](h: seq[n, d]) -> seq[n, d] {\n"


def read(body: str) -> tuple[tuple[Statement, ...], tuple[Diagnostic, ...]]:
    program, mistakes = parse_tolerantly(Source("b.arch", f"{HEADER}{body}    return h\n}}\n"))
    (item,) = program.items
    assert isinstance(item, Definition)
    return item.body.statements, mistakes


@pytest.mark.parametrize("word", ["e", "el", "els", "esle", "elsee", "Else"])
@pytest.mark.parametrize("gap", [" ", "\n    "])
def test_a_misspelt_else_keeps_its_branch(word: str, gap: str) -> None:
    statements, (mistake,) = read(f"    if a {{\n        u = h\n    }}{gap}{word} {{\n        u = relu(h)\n    }}\n")
    assert (mistake.code, mistake.span.text) == ("E0101", word)
    assert mistake.remedy == "did you mean `else`?"
    branch = statements[0]
    assert isinstance(branch, If)
    assert branch.otherwise is not None
    assert not parse_tolerantly(Source("b.arch", apply_edits(mistake.span.source.text, mistake.edits)))[1]


@pytest.mark.parametrize("words", ["elif", "elsif", "elseif", "els if", "esle if"])
@pytest.mark.parametrize("indent", ["  ", "    "])
def test_another_word_for_else_if_keeps_the_branches_after_it(words: str, indent: str) -> None:
    lines = ["if a {", "  u = h", f"}} {words} a {{", "  u = norm(h)", "} else {", "  u = relu(h)", "}"]
    statements, (mistake,) = read("".join(f"{indent}{line}\n" for line in lines))
    assert mistake.span.text == words.split()[0]
    branch = statements[0]
    assert isinstance(branch, If)
    assert branch.otherwise is not None
    chained = branch.otherwise.statements[0]
    assert isinstance(chained, If)
    assert chained.otherwise is not None
    assert not parse_tolerantly(Source("b.arch", apply_edits(mistake.span.source.text, mistake.edits)))[1]


def test_several_half_branches_on_one_line_are_a_mistake_each() -> None:
    statements, mistakes = read("if a { u = h } elsif a { u = norm(h) } els { u = relu(h) }\n")
    assert [mistake.span.text for mistake in mistakes] == ["elsif"]  # a line has one mistake
    assert len(statements) == 2


@pytest.mark.parametrize("word", ["else", "else if a"])
@pytest.mark.parametrize(("before", "indent"), [("\n        u = h\n", "    "), (" u = h", " ")])
def test_an_else_without_the_brace_before_it_keeps_its_branch(word: str, before: str, indent: str) -> None:
    statements, (mistake,) = read(f"    if a {{{before}{indent}{word} {{ u = relu(h) }}\n")
    assert (mistake.message, mistake.span.text) == ("`{` is never closed", "{")
    (branch, _) = statements
    assert isinstance(branch, If)
    assert branch.otherwise is not None


@pytest.mark.parametrize("header", ["a", "fi a", "ifa", "a and not a", "iff (a)"])
def test_an_if_whose_word_is_missing_keeps_its_branches(header: str) -> None:
    statements, (mistake,) = read(f"    {header} {{\n        u = h\n    }} else {{\n        u = relu(h)\n    }}\n")
    assert mistake.span.line == 2
    (branch, _) = statements
    assert isinstance(branch, If)
    assert isinstance(branch.test, Missing)
    assert branch.otherwise is not None


def test_comments_may_stand_between_a_brace_and_its_else() -> None:
    statements, mistakes = read("    if a { if a { u = h }  # so\n    # and\n    else { u = f(h) }\n    }\n    y h\n")
    assert [mistake.span.line for mistake in mistakes] == [6]
    assert len(statements) == 2


@pytest.mark.parametrize("loop", ["repeat 3 {\n        h <- h\n    }", "scan c in h carry h {\n        emit c\n    }"])
@pytest.mark.parametrize("end", ["", " ", "  # later", "\n\n    # a comment\n"])
def test_a_value_that_is_missing_before_a_loop_is_not_the_loop(loop: str, end: str) -> None:
    statements, (mistake,) = read(f"    s ={end}\n    {loop}\n")
    assert mistake.code == "E0101"
    assert mistake.span.text == "="
    assert mistake.span.line == 2
    assert [edge.span.text for edge in mistake.labels] == [loop.split()[0]]
    assert mistake.remedy == "write a value after `=`, or delete `=`"
    half, whole, _ = statements
    assert isinstance(half, Assign)
    assert isinstance(half.value, Missing)
    assert isinstance(whole, (RepeatStatement, ScanStatement))
    assert whole.target is None


def test_a_value_on_the_next_line_that_is_no_loop_is_the_value() -> None:
    statements, mistakes = read("    s =\n        norm(h)\n")
    assert not mistakes
    assert isinstance(statements[0], Assign)


@pytest.mark.parametrize("before", ["y =", "y <-", "return", "emit"])
@pytest.mark.parametrize("bodies", ["{ h }", "{ relu(h) } else { h }"])
def test_an_if_with_bodies_in_place_of_a_value_is_one_mistake(before: str, bodies: str) -> None:
    statements, (mistake,) = read(f"    z = h\n    {before} if a {bodies}\n")
    assert (mistake.message, mistake.span.text) == ("`if` with a body is a statement, not a value", "if")
    assert mistake.span.line == 3
    assert mistake.remedy.startswith("bind the name in both bodies, as in `if … { y = … } else { y = … }`")
    assert [type(each).__name__ for each in (statements[0], statements[-1])] == ["Assign", "Return"]


@pytest.mark.parametrize("header", ["} else {", "} else if a {", "}\n    else {"])
def test_an_else_without_any_if_is_one_mistake(header: str) -> None:
    program, (mistake,) = parse_tolerantly(
        Source("b.arch", f"{HEADER}    y = norm(h)\n    {header}\n    return y\n}}\n{HEADER}    return h\n}}\n")
    )
    assert (mistake.message, mistake.span.text) == ("`else` follows no `if`", "else")
    first, second = program.items
    assert isinstance(first, Definition)
    assert isinstance(second, Definition)
    assert isinstance(first.body.statements[0], Assign)
    assert len(first.body.statements) == 1
