"""A half-written line hides no mistake of other items, and none before it; it makes no other mistake than its own."""

import re

import pytest

from archlang.errors import Diagnostic
from archlang.plan.check import check_text

BODY = """block b(h: seq[n, d], x: seq[n, d]) -> seq[n, d] {
    a = h + first
    …
    z = norm(h)
    c = z + second |> linear[8, wrong = 3]
    return c
}

block other(h: seq[n, d]) -> seq[n, d] {
    return h + third
}
"""
REPEAT = """block b(h: seq[n, d], x: seq[n, d]) -> seq[n, d] {
    a = h + first
    repeat 3 {
        h <- norm(h)
        …
        z = h + inner
        h <- z
    }
    return h + second |> linear[8, wrong = 3]
}

block other(h: seq[n, d]) -> seq[n, d] {
    return h + third
}
"""
# The loop updates no state but in the half-written line.
LAST = REPEAT.replace("        h <- norm(h)\n", "").replace("        h <- z\n", "").replace("repeat 3", "stack 3")
SCAN = """block b(h: seq[n, d], x: seq[n, d]) -> seq[n, d] {
    a = h + first
    m = mean(h)
    y = scan c in h carry m {
        m <- m + c
        …
        z = c + inner
        emit z
    }
    return y + second |> linear[8, wrong = 3]
}

block other(h: seq[n, d]) -> seq[n, d] {
    return h + third
}
"""
EXTERN = """extern block blur[width: int, dropout: float = 0.0](q: seq[n, d], kv: seq[m, e] = q) -> seq[n, d]
    where width > 0, dropout >= 0
    …
    reads q pointwise, kw full
    costs parameters = 2 * wdth * (d + e), flops = 4 * n
    python "blur:Blur"

block other(h: seq[n, d]) -> seq[n, d] {
    return third + h
}
"""
RECIPE = """model m[d = 8](x: tokens[n]) -> logits[n, vocab] {
    return embed[d](x) |> linear[vocab]
}

recipe r {
    task  flipflop[nowhere = 3]
    model m
    train adamw[steps = 10]
    test  model.first = 3
    …
    vary  model.second in [1, 2]
}

recipe wide from r {
    train adamw[lr = 1e-3]
}

table t {
    row    "r" r claims 0.9, 0.8
    row    "s" missing_recipe claims 0.8, 0.7
    column "accuracy" test.accuracy
    column "iid" iid.inner
}
"""
TABLE = RECIPE.replace("    …\n", "").replace('    row    "s"', '    …\n    row    "s"')
STATEMENTS = ["y =", "y", "y = f(", "y = f[", "y = f[a =", "y = linear[8](h,", "y = norm(h", "let f", "h <- f(", "h <-",
    "h", "h |>", "h |> f(", "y = h +", "if", "if d", "repeat", "repeat 3", "y = scan", "y = scan c in", "stack",
    "loss b =", "let f =", "return", "return f(", "emit", ")", "]", 'y = "abc', "y = h; q"]  # fmt: skip
CLAUSES = ["where", "where width >", "where width > 0,", "reads", "reads q", "reads q pointwise,", "depends on",
    "random in", "random when", "costs", "costs parameters =", "costs parameters = (3 +", "maps query(q) =", "records",
    "cuts evenly into", "wher", "python", 'python "']  # fmt: skip
PARTS = ["task", "task ctl[", "model", "train", "train adamw[lr =", "train adamw[lr", "test model.d =", "test", "vary",
    "vary model.d in", "vary model.d in [1,", "search", "search model.d in", "claim", "claim test.accuracy =",
    "claim test.accuracy = 0.9 from", "mod", "["]  # fmt: skip
LINES = ["row", 'row "', 'row "q" r at', 'row "q" r claims', "column", 'column "x"', 'column "x" test.',
    'columns "x" test.accuracy at', 'columns test.accuracy at task.length in [', "r"]  # fmt: skip

Place = tuple[str, int, int, str]


def places(text: str, path: str = "program.arch") -> list[Place]:
    return [_place(each) for each in check_text(text, path) if each.is_error]


def _place(diagnostic: Diagnostic) -> Place:
    span = diagnostic.span
    return diagnostic.code, span.line, span.column, span.text


def assert_costs_only_itself(program: str, half: str) -> list[Place]:
    """Asserts that a half-written line makes mistakes of syntax alone, and hides none of other items. Returns the
    mistakes of the other lines."""
    line = program[: program.index("…")].count("\n") + 1
    complete, after = places(program.replace("…", "")), places(program.replace("…", half))
    assert any(place[0].startswith("E01") for place in after)
    others = [place for place in after if place[1] != line]
    assert [place for place in others if place not in complete] == []
    # The items of the programs are apart by an empty line.
    first = program[: program.index("…")].count("\n\n")
    kept = [place for place in complete if "\n".join(program.split("\n")[: place[1]]).count("\n\n") != first]
    assert [place for place in kept if place not in after and place[0] != "E0605"] == []
    return others


@pytest.mark.parametrize("half", STATEMENTS)
@pytest.mark.parametrize("program", [BODY, REPEAT, LAST, SCAN])
def test_a_half_written_statement_costs_only_itself(program: str, half: str) -> None:
    others = [place[3] for place in assert_costs_only_itself(program, half)]
    assert (others[0], others[-1]) == ("first", "third")


@pytest.mark.parametrize(("program", "halves"), [(EXTERN, CLAUSES), (RECIPE, PARTS), (TABLE, LINES)])
def test_a_half_written_clause_or_line_costs_only_itself(program: str, halves: list[str]) -> None:
    for half in halves:
        assert_costs_only_itself(program, half)


def test_a_mistake_that_no_missing_line_explains_is_reported() -> None:
    assert [place[3] for place in assert_costs_only_itself(BODY, "y = f(")] == ["first", "wrong = 3", "third"]


@pytest.mark.parametrize("header", ["model f[d = 8](x: tokens[n]) -> logits[n,", "model f[d = 8](x: tokens[n]) -> log",
    "model f[d = 8](x: tokens[n]) ->", "model f[d = 8](x: tokens[n])", "model f[d = 8](x: tok", "model f[d = 8](",
    "model f[d = 8]", "model f[d = 8](x tokens[n]) -> logits[n, vocab] {", "model f[d = 8, e", "model f[d =",
    "model f[", "model f", "model"])  # fmt: skip
def test_a_half_written_header_makes_no_other_mistake(header: str) -> None:
    text = (
        f"{header}\n    a = embed[d](x)\n    b = norm(a)\n    return linear[vocab](b)\n}}\n\n"
        "recipe r {\n    task  flipflop[nowhere = 3]\n    model f[e = 3]\n    train adamw[steps = 10]\n}\n"
    )
    after = places(text)
    assert [place[3] for place in after if place[1] > 1] == ["nowhere = 3"]
    assert {place[0] for place in after} & {"E0101", "E0103"}


@pytest.mark.parametrize("header", ["model q(x: tokens[n] ->", "modl q(x: tokens[n]) ->", "modelq(x: tokens[n]) ->",
    "model (x: tokens[n]) ->", "  model q(x tokens[n]) ->", "  model q[d = 8](x tokens[n]) ->",
    "model q: int](x: tokens[n]) ->"])  # fmt: skip
def test_a_name_may_be_that_of_an_item_whose_header_cannot_be_read(header: str) -> None:
    recipe = "recipe r {\n    task  flipflop\n    model q\n    train adamw[steps = 10]\n}\n"
    text = f"{header} logits[n, vocab] {{\n    return embed[8](x) |> linear[vocab]\n}}\n"
    codes = {place[0] for place in places(text + recipe)}
    assert codes <= {"E0101", "E0103"}
    assert codes != set()


@pytest.mark.parametrize("lost", ["}\n\nrecipe first {", "}\n\ntable results {"])
def test_a_name_may_be_that_of_an_item_whose_header_is_lost(lost: str) -> None:
    text = """model m(x: tokens[n]) -> logits[classes] {
    return embed[8](x) |> last |> linear[classes]
}

recipe first {
    task  ctl
    model m
    train adamw[steps = 10]
}

table results {
    row    "A" first
    column "B" test.accuracy
}

table both {
    row    "A" first
    column "B" average of results
}
"""
    assert check_text(text) == ()
    assert {diagnostic.code for diagnostic in check_text(text.replace(lost, ""))} == {"E0101"}


@pytest.mark.parametrize("word", ["task", "model", "train"])
def test_a_line_of_a_recipe_that_cannot_be_read_is_not_missing(word: str) -> None:
    line = re.search(rf"(?m)^    {word}\b.*$", RECIPE)
    assert line is not None
    cut = RECIPE.replace(line[0], f"    {word}").replace("    …\n", "")
    assert {place[0] for place in places(cut)} & {"E0601", "E0304", "E0604"} <= {"E0604"}
    assert ("E0101", cut[: line.start()].count("\n") + 1, 5, word) in places(cut)


def test_an_heir_of_half_a_recipe_has_its_own_mistakes_only() -> None:
    heir = "\nrecipe heir from r {\n    model nowhere[d = 4]\n}\n"
    text = RECIPE.partition("\ntable")[0].replace("    model m\n", "    mod\n").replace("    …\n", "") + heir
    assert [place[3] for place in places(text) if place[1] > 12] == ["nowhere"]


def test_a_name_that_a_wrong_line_may_mean_is_not_called_unused() -> None:
    for line in ("return norm(h + rrr)", "return norm", "return linear[8]", "return norm(h"):
        text = f"block b(h: seq[n, d]) -> seq[n, d] {{\n    r = norm(h)\n    {line}\n}}\n"
        assert "W0201" not in {each.code for each in check_text(text)}


def test_the_path_of_a_half_written_use_is_not_unknown() -> None:
    text = "use archlang.models.\n\nblock b(h: seq[n, d]) -> seq[n, d] {\n    return mine(h)\n}\n"
    assert [place[0] for place in places(text)] == ["E0101"]


def test_each_of_several_half_written_lines_is_reported() -> None:
    body = ["a =", "b = norm(", "if", "c = h +", "let f", "let g =", "repeat", "h <-", "loss b =", "y = f["]
    statements = BODY.replace("…", "\n    ".join(body))
    assert {place[1] for place in places(statements) if place[0].startswith("E01")} == {*range(3, 3 + len(body))}
    parts = ["task flipflop[nowhere = 3", "model", "train adamw[stps =", "test", "vary model.d in", "vary", "claim"]
    rows = ["row", 'row "b" r at', "column", "columns", 'column "x"']
    for word, lines in (("recipe", parts), ("table", rows)):
        text = f"{word} q {{\n    " + "\n    ".join(lines) + "\n}\n"
        assert {place[1] for place in places(text)} == {*range(2, 2 + len(lines))}


def test_a_mistake_in_a_block_is_not_repeated_with_the_sizes_of_a_call() -> None:
    text = """block b(h: seq[n, d]) -> seq[n, d] {
    return linear[1](h)
}

model m[d = 8](x: tokens[n]) -> logits[classes] {
    return embed[d](x) |> b |> last |> linear[classes]
}

recipe r {
    task  ctl
    model m
    train adamw[steps = 10]
}
"""
    assert [place[:2] for place in places(text)] == [("E0404", 2)]
