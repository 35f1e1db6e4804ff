"""Where braces and indentation disagree, the indentation shows which brace is missing or extra."""

import pytest

from archlang.errors import Source
from archlang.syntax.parser import parse_tolerantly
from archlang.syntax.tree import Definition, If, Missing, Return, walk

LOOP = "block b(h: seq[n, d]) -> seq[n, d] {{\n    {}\n        h <- norm(h)\n    }}\n    return h\n}}\n"


def places(text: str) -> list[tuple[str, int, str]]:
    return [(each.code, each.span.line, each.span.text) for each in parse_tolerantly(Source("b.arch", text))[1]]


@pytest.mark.parametrize("line", ["y = s", "y = scan", "h", "norm(h)", "y = s   # beside", "y = h + f(h)"])
def test_a_line_before_a_body_is_the_only_mistake_and_the_body_is_read(line: str) -> None:
    text = LOOP.format(line)
    ((code, number, _),) = places(text)
    assert (code, number) == ("E0101", 2)
    program, _ = parse_tolerantly(Source("b.arch", text))
    (item,) = program.items
    assert isinstance(item, Definition)
    assert isinstance(item.body.statements[-1], Return)
    assert "h <- norm(h)" in [statement.span.text for statement in item.body.statements]


def test_a_nested_body_ends_before_a_line_that_is_indented_less() -> None:
    text = """block b[deep: bool = true](h: seq[n, d]) -> seq[n, d] {
    y = scan c in h carry h {
        if deep { a = sum(c)
        h <- h + a
        emit c
    }
    repeat 2 {
        h <- norm(h)
    return y
}
"""
    assert places(text) == [("E0103", 3, "{"), ("E0103", 7, "{")]
    program, diagnostics = parse_tolerantly(Source("b.arch", text))
    assert [edit.text for mistake in diagnostics for edit in mistake.edits] == ["        }\n", "    }\n"]
    (item,) = program.items
    assert isinstance(item, Definition)
    assert len(item.body.statements) == 3


@pytest.mark.parametrize("half", ["}", "} e", "} el", "} els", "} else", "} else i", "} else if", "} else if k =="])
def test_an_else_if_without_its_brace_keeps_the_branches_after_it(half: str) -> None:
    text = f"""block b[k: int = 1](h: seq[n, d]) -> seq[n, d] {{
    if k == 1 {{
        y = h
    {half}
        y = norm(h)
    }} else {{
        y = relu(h)
    }}
    return y
}}
"""
    assert [(place[0][:3], place[1]) for place in places(text)] == [("E01", 4)]
    program, _ = parse_tolerantly(Source("b.arch", text))
    branches = [node for node in walk(program.items[0]) if isinstance(node, If)]
    assert branches[-1].otherwise is not None


@pytest.mark.parametrize("header", ["block b[k: int = 1](h: s) -> s {", "block b[k: int = 1](\n    h: s) -> s {"])
def test_a_brace_that_is_there_twice_does_not_end_the_block(header: str) -> None:
    text = f"{header}\n    if k == 1 {{\n        h <- f(h)\n    }}\n    }}\n    return h\n}}\n"
    assert [(code, place) for code, _, place in places(text)] == [("E0104", "}")]
    program, _ = parse_tolerantly(Source("b.arch", text))
    (item,) = program.items
    assert isinstance(item, Definition)
    assert isinstance(item.body.statements[-1], Return)


@pytest.mark.parametrize("half", ["wh", "where k >", "where k > 0"])
def test_a_header_without_its_brace_is_one_mistake(half: str) -> None:
    body = "    if k > 1 { g = h } else { g = h }\n    return g\n"
    text = f"block b[k: int](h: seq[n, d]) -> seq[n, d]\n    {half}\n{body}}}\n"
    assert [(code, number in (1, 2)) for code, number, _ in places(text)] == [("E0101", True)]
    program, _ = parse_tolerantly(Source("b.arch", text))
    (item,) = program.items
    assert isinstance(item, Definition)
    assert isinstance(item.body.statements[-1], Return)


@pytest.mark.parametrize(
    ("body", "place"),
    [
        ("repeat 3 {\nh <- norm(h)\n}\nreturn h + )", ("E0104", 5)),  # read by its braces
        ("    repeat 3 h <- norm(h) }\n    return h", ("E0101", 2)),
        ("  i\n    u = h\n  } else {\n    u = f(h)\n  }\n  return u", ("E0101", 2)),
        ("  if\n    u = h\n  } else {\n    u = f(h)\n  }\n  return u", ("E0101", 2)),
    ],
)
def test_a_body_with_one_wrong_line_has_one_mistake(body: str, place: tuple[str, int]) -> None:
    text = f"block b[g: bool](h: seq[n, d]) -> seq[n, d] {{\n{body}\n}}\n"
    assert [found[:2] for found in places(text)] == [place]


def test_a_value_that_is_missing_in_a_body_that_is_not_closed_is_missing_on_its_line() -> None:
    text = "block b(h: seq[n, d]) -> seq[n, d] {\n    repeat 3 { h <-\n    return h\n}\n"
    assert places(text) == [("E0101", 2, "<-")]


@pytest.mark.parametrize(
    ("body", "lines"),
    [
        ("    if g:\n        u = h\n    else:\n        u = f(h)\n", [2, 4]),
        ("    repeat 3:\n        repeat 2:\n            h <- f(h)\n    u = h\n", [2, 3]),
        ("    u = repeat 3:\n        # a note\n        emit h\n\n", [2]),
    ],
)
def test_headers_that_end_with_a_colon_have_bodies(body: str, lines: list[int]) -> None:
    text = f"block b[g: bool](h: s) -> s {{\n{body}    return u\n}}\n"
    assert [(code, number) for code, number, _ in places(text)] == [("E0101", number) for number in lines]
    program, _ = parse_tolerantly(Source("b.arch", text))
    (item,) = program.items
    assert isinstance(item, Definition)
    assert isinstance(item.body.statements[-1], Return)


def test_the_lines_of_a_block_without_its_header_are_one_mistake() -> None:
    lines = "    s = 0 * h\n    repeat 3 {\n        s <- norm(s)\n    }\n    return s\n}\n"
    following = "block b(h: s) -> s {\n    return h\n}\n"
    assert [place[:2] for place in places(lines + following)] == [("E0101", 1)]
    program, _ = parse_tolerantly(Source("b.arch", lines + following))
    assert [item.name for item in program.items if isinstance(item, Definition)] == ["b"]


@pytest.mark.parametrize("half", ["i", "if", "if g"])
@pytest.mark.parametrize("last", ["    }\n", "    } else {\n        u = f(h)\n    }\n"])
def test_half_the_header_of_an_if_before_its_else_is_one_mistake(half: str, last: str) -> None:
    chain = f"    {half}\n        u = h\n    }} else if g {{\n        u = f(h)\n{last}"
    text = f"block b[g: bool](h: s) -> s {{\n{chain}    return u\n}}\n"
    assert [place[:2] for place in places(text)] == [("E0101", 2)]
    program, _ = parse_tolerantly(Source("b.arch", text))
    (item,) = program.items
    assert isinstance(item, Definition)
    branch, result = item.body.statements
    assert isinstance(branch, If)
    assert isinstance(branch.test, Missing)
    assert isinstance(result, Return)


def test_a_loop_whose_header_takes_two_lines_has_its_brace_beside_half_an_if() -> None:
    branches = "        if for\n            u = h\n        } else {\n            u = f(h)\n        }\n"
    loop = f"    y = scan c in concat(\n        h, h) carry u {{\n{branches}        emit u\n    }}\n"
    text = f"block b[g: bool](h: s, u: s) -> s {{\n{loop}    return y\n}}\n"
    assert [place[:2] for place in places(text)] == [("E0101", 4)]
