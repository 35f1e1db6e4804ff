"""Printed code keeps its comments and its lines are short."""

import ast

from archlang.export.plain.text import WIDTH, attach_comments, print_statements

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
    assert text.startswith("def f(x: int, *, y: int = 2) -> tuple[int, int]:\n")
    assert text.endswith('    return y, "a"\n')


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
    assert "f = call(g for g in h)\n" in text
