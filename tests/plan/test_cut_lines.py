"""A line of a shipped file that is cut anywhere is one mistake: nothing else follows from it."""

import random
import re
from pathlib import Path

import pytest

from archlang.plan.check import check_text

ROOT = Path(__file__).parents[2]
FILES = sorted([*(ROOT / "recipes").rglob("*.arch"), *(ROOT / "archlang" / "blocks").rglob("*.arch")])
# Lines that hide a block of the prelude, or bind names on one line.
_MAY_HIDE = re.compile(r"\s*(?:let\b|if\b.*\}|\} else\b.*\})|recipe\b.*\}")


def places(text: str, path: Path) -> list[tuple[str, int, str]]:
    """Returns the code, the line and the message of each error."""
    return [(each.code, each.span.line, each.message) for each in check_text(text, str(path)) if each.is_error]


def check_cuts(seed: int, count: int) -> None:
    """Asserts that cuts in files without mistakes are no reason for mistakes other than those of syntax."""
    generator = random.Random(seed)
    while count:
        path = generator.choice(FILES)
        lines = path.read_text("utf-8").split("\n")
        number = generator.randrange(len(lines))
        code = lines[number].partition("#")[0].rstrip()
        if len(code.strip()) < 2 or _MAY_HIDE.match(code):
            continue
        cut = code[: generator.randrange(len(code) - len(code.lstrip()) + 1, len(code))]
        after = places("\n".join([*lines[:number], cut, *lines[number + 1 :]]), path)
        if any(place[0].startswith("E01") for place in after):
            count -= 1
            elsewhere = [place for place in after if place[1] != number + 1 and not place[0].startswith("E01")]
            assert elsewhere == [], f"{path}:{number + 1}: {cut}"


def test_a_line_that_is_cut_is_no_mistake_elsewhere() -> None:
    check_cuts(seed=1, count=40)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(10, 20))
def test_each_of_many_lines_that_are_cut_is_no_mistake_elsewhere(seed: int) -> None:
    check_cuts(seed, 500)


BODY = "-> seq[n, d] {\n    return norm(g)\n}\n"
SEQ = "(g: seq[n, d]) -> seq[n, d] {\n"
RECIPE = "    task flipflop\n    model m\n    train adamw[\n        steps = 3¦\n    vary model.d in [4]\n}\n"


@pytest.mark.parametrize(
    "text",
    [
        f"block a[\n    k: int = 2,\n    f: block = norm¦\n(g: seq[n, d]) {BODY}",
        f"block a[k: int](\n    h: seq[n, d],\n    g: seq[n, d]¦\n{BODY}",
        f"block a(g: seq[n, d]¦ {BODY}",
        f"block a[k: int¦(g: seq[n, d]) {BODY}",
        f"block a[\n    k: int = 2¦\n(g: seq[n, d]) {BODY}",
        f"recipe r {{\n{RECIPE}",
        f"block a{SEQ}    h = concat(\n        g,   # first\n        g¦  # second\n    return h\n}}\n",
    ],
)
def test_a_missing_bracket_is_added_behind_the_last_value(text: str) -> None:
    (mistake,) = [each for each in check_text(text.replace("¦", "")) if each.code == "E0103"]
    (edit,) = mistake.edits
    assert (edit.span.start, edit.span.end) == (text.index("¦"), text.index("¦"))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        # A name without its value takes nothing of an update.
        (f"block a{SEQ}    repeat 3 {{\n        u =\n        g <- norm(g)\n    }}\n    return g\n}}\n", ("E0101", 3)),
        # What a broken header lacks is no second mistake.
        (f"block a(g: seq[n, d],\n\nblock b(g: seq[n, d]) {BODY}", ("E0103", 1)),
        (f"block a(g: seq[n, d]) -> seq[n, d]\n    return g\n}}\n\nblock b(g: seq[n, d]) {BODY}", ("E0101", 1)),
        ("extern block a[k: int = 2,\n    s: fl\n    where k > 0\n", ("E0103", 1)),
        # Recipes whose names are cut, and lines whose header is deleted.
        ("recipe r\n    task flipflop\n}\n\nrecipe s from rest { }\n", ("E0101", 1)),
        (f"block a(g: seq[n, d]) {BODY}\n    return last(q)\n}}\n", ("E0101", 5)),
        (
            'extern block a(x: seq[n, d]) -> seq[n, d]\n    python "a:B"\n\n    reads x causal\n    python "a:C"\n',
            ("E0101", 4),
        ),
    ],
)
def test_a_mistake_has_no_others_behind_it(text: str, expected: tuple[str, int]) -> None:
    assert [(each.code, each.span.line) for each in check_text(text) if each.is_error] == [expected]
