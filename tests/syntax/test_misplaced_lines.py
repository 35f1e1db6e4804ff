"""Lines of recipes and tables that stand elsewhere."""

import pytest

from archlang.errors import Diagnostic, Source
from archlang.syntax.parser import parse_tolerantly
from archlang.syntax.tree import Definition

RECIPE = "recipe r {\n    task  ctl\n    model m\n    train adamw[steps = 1]\n}\n"
TABLE = 'table t {\n    row "A" r\n    column "B" test.accuracy\n}\n'
BLOCK = "block b(h: seq[n, d]) -> seq[n, d] {\n    return norm(h)\n}\n"
OF_RECIPES = (
    "vary seed in 1..3", 'claim test.accuracy = 0.5 from "it"', "task ctl", "model m[d = 8]", "train adamw",
    "test model.d = 9", "search train.lr in [1]",
)  # fmt: skip
OF_TABLES = ('row "B" r', 'column "C" test.loss', "columns test.loss at seed in [1]")


def mistakes(text: str) -> tuple[Diagnostic, ...]:
    return parse_tolerantly(Source("p.arch", text))[1]


@pytest.mark.parametrize("line", [line for line in (*OF_RECIPES, *OF_TABLES) if not line.startswith("model")])
@pytest.mark.parametrize("after", ["", f"\n{BLOCK}"])
@pytest.mark.parametrize("before", ["", "# A comment.\n", "    "])
def test_a_line_after_its_item_says_where_it_belongs(line: str, before: str, after: str) -> None:
    (mistake,) = mistakes(f"{BLOCK}\n{RECIPE}{before}{line}\n{after}")
    assert mistake.span.text == line.split()[0]
    assert mistake.remedy == f"write it between the braces of a {'recipe' if line in OF_RECIPES else 'table'}"


@pytest.mark.parametrize("line", [*OF_RECIPES, *OF_TABLES])
@pytest.mark.parametrize("item", [RECIPE, TABLE, BLOCK])
def test_a_line_in_another_item_says_where_it_belongs(item: str, line: str) -> None:
    text = item.replace("}\n", f"    {line}\n}}\n")
    word = line.split()[0]
    belongs, around = ("recipe" if line in OF_RECIPES else "table"), item.split()[0]
    if belongs == around:
        assert mistakes(text) == ()
        return
    (mistake,) = mistakes(text)
    assert mistake.message == f"a line `{word}` belongs to a {belongs}, not to a {around}"
    assert not mistake.edits


@pytest.mark.parametrize("line", [line for line in (*OF_RECIPES, *OF_TABLES) if not line.startswith("model")])
def test_a_line_far_from_its_item_has_no_edit(line: str) -> None:
    (mistake,) = mistakes(f"{line}\n\n{BLOCK}")
    assert "stands outside of a" in mistake.message
    assert not mistake.edits


def test_a_block_may_have_values_with_the_names_of_lines() -> None:
    assert mistakes(BLOCK.replace("return norm(h)", "task = norm(h)\n    row = task\n    return row")) == ()


@pytest.mark.parametrize(
    ("text", "remedy"),
    [
        (f"{BLOCK}\nh = norm(x)\n", "put statements between the braces of a block or a model"),
        (RECIPE.replace("}", "    seeds = 3\n}"), "write `vary seed in 1..3`"),
        (
            RECIPE.replace("}", "    steps = 3\n}"),
            "write a setting in its line `task`, `model` or `train`, as in `train adamw[steps = …]`",
        ),
        (RECIPE.replace("}", "    model.d = 3\n}"), "write it in the line `model`, as in `model …[d = …]`"),
        (
            RECIPE.replace("}", "    test.accuracy = 1.0\n}"),
            'write `claim test.accuracy = … from "…"` for a published result',
        ),
        (RECIPE.replace("}", "    test model.d: 4\n}"), "write `=` in place of `:`"),
        (
            BLOCK.replace("return norm(h)", "return h, h"),
            "`return` takes one value: join several, as in `return concat(a, b)`",
        ),
    ],
)
def test_a_line_of_no_recipe_says_what_to_write(text: str, remedy: str) -> None:
    assert [mistake.remedy for mistake in mistakes(text)] == [remedy]


@pytest.mark.parametrize("first", ["    task ctl\n    model m[d = 8]\n", "    model m[d = 8]\n    task ctl\n"])
@pytest.mark.parametrize("before", ["", BLOCK])
def test_the_lines_of_a_recipe_whose_header_is_gone_are_one_mistake_and_no_model(first: str, before: str) -> None:
    program, found = parse_tolerantly(Source("p.arch", f"{before}{first}    train adamw\n}}\n{TABLE}"))
    (mistake,) = found
    assert mistake.span.text == first.split()[0]
    assert mistake.remedy.startswith("write") and "recipe" in mistake.remedy  # noqa: PT018  # one claim
    assert not mistake.edits
    assert [type(item).__name__ for item in program.items][-1] == "Table"
    assert not any(isinstance(item, Definition) and item.word == "model" for item in program.items)
