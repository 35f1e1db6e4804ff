"""Printed code keeps its comments, its lines are short, and no text or name becomes code."""

import ast

import pytest

from archlang.export.plain.model_class import unused_name
from archlang.export.plain.text import WIDTH, attach_comments, is_text_of, print_statements

SOURCE = """def f(x: int, *, y: int = 2) -> tuple[int, int]:
    # Above.
    z = x + y  # beside
    if z:
        return x, z
    return y, 'a'  # type: ignore
"""


def printed(source: str) -> str:
    tree = ast.parse(source)
    attach_comments(tree, source)
    return print_statements(tree.body)


def test_comments_stay_above_their_statements_and_comments_for_tools_go() -> None:
    text = printed(SOURCE)
    assert "    # Above.\n    # beside\n    z = x + y\n" in text
    assert "type: ignore" not in text
    assert text.startswith("def f(x: int, *, y: int=2) -> tuple[int, int]:\n")
    assert text.endswith("    return (y, 'a')\n")


def test_long_lines_are_broken_in_their_brackets() -> None:
    names = ", ".join(f"argument_{index}" for index in range(20))
    source = f"y = call({names})\nz = tuple(first + second for first, second in [{names}])\n"
    text = printed(source)
    assert max(map(len, text.splitlines())) <= WIDTH
    assert ast.dump(ast.parse(text)) == ast.dump(ast.parse(source))


def test_brackets_that_mean_something_stay() -> None:
    source = "(a, b), c = d.shape, e\nf = call((g for g in h))\ni = call((1, 2))\nfor j, (k, m) in n:\n    pass\n"
    text = printed(source)
    assert ast.dump(ast.parse(text)) == ast.dump(ast.parse(source))


@pytest.mark.parametrize(
    "text", ["x = 1\nplanted()", "x = 2", "x = 1;planted()", "x = 1 #\rplanted()", "x = (", "\0", ""]
)
def test_a_text_with_other_statements_than_intended_is_not_accepted(text: str) -> None:
    assert is_text_of("x = 1  # any", ast.parse("x = 1").body)
    assert not is_text_of(text, ast.parse("x = 1").body)


@pytest.mark.parametrize("name", ["x; planted()", "class", "a b", "x\n"])
def test_a_name_that_is_no_name_in_python_is_not_accepted(name: str) -> None:
    statement = ast.Expr(ast.Name(name, ast.Load()))
    assert not is_text_of(ast.unparse(statement), [statement])


@pytest.mark.parametrize(
    "text", ['a"""; planted(); """', 'ends"', "ends\\", '"' * 7, "\\N{x}", "a\rb\0c", "\u2028\u202e"]
)
def test_any_text_stays_a_docstring_and_a_comment(text: str) -> None:
    statement = ast.parse("x = 1").body[0]
    statement.comments, statement.beside = [f"# {text}"], f"# {text}"  # type: ignore[attr-defined]
    statements = [ast.Expr(ast.Constant(f"A\n    {text}")), statement]
    assert is_text_of(print_statements(statements), statements)


def test_every_name_for_a_value_is_a_python_name() -> None:
    taken: set[str] = set()
    for _ in range(3):
        taken.add(unused_name("mask_n / 2", taken))
    assert taken == {"mask_n___2", "mask_n___2_2", "mask_n___2_3"}
