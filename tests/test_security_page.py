"""Each promise of SECURITY.md names tests that exist."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "SECURITY.md").read_text(encoding="utf-8")
PROMISES = [
    line.strip("| ").split(" | ")
    for line in PAGE.partition("## Promises")[2].partition("## ")[0].splitlines()
    if line.startswith("| ")
][2:]


@pytest.mark.parametrize(("promise", "tests"), [(promise, tests) for _, promise, tests in PROMISES])
def test_a_promise_is_held_by_tests(promise: str, tests: str) -> None:
    held_by = re.findall(r"\]\((tests/[\w/.]+)\): ((?:`test_\w+`(?:, )?)+)", tests)
    assert held_by, promise
    for file, names in held_by:
        text = (ROOT / file).read_text(encoding="utf-8")
        for name in re.findall(r"`(\w+)`", names):
            assert f"def {name}(" in text, f"{file} has no {name}"


def test_every_link_of_the_page_leads_to_a_file() -> None:
    for target in re.findall(r"\]\(([^)#]+)", PAGE):
        assert (ROOT / target).exists(), target


def test_the_numbers_are_those_of_the_code() -> None:
    from archlang.disk import limits
    from archlang.syntax.reading import LARGEST

    assert LARGEST == 1_000_000
    assert (limits.LARGEST_LINES, limits.LARGEST_JSON, limits.LARGEST_GRAPH) == (1 << 30, 64 << 20, 16 << 20)
    assert limits.DEEPEST_GRAPH == 64
