"""The language on one page has all of the language, and nothing that does not exist."""

import re
from pathlib import Path

import archlang
from archlang.resolve import library
from archlang.syntax.grammar import spellings

TEXT = (Path(archlang.__file__).parent / "llms.txt").read_text(encoding="utf-8")


def test_the_page_fits_into_a_prompt() -> None:
    """GPT-2 has 4,910 tokens where this counts about as many pieces of words."""
    assert len(re.findall(r"[A-Za-z]{1,7}|[0-9]{1,3}|[^\w\s]|\n| {2,}|_", TEXT)) <= 6_000


def test_every_word_of_the_grammar_is_on_the_page() -> None:
    assert not {word for word in spellings().values() if word.isalpha() and not re.search(rf"\b{word}\b", TEXT)}


def test_the_blocks_and_tasks_of_the_page_exist() -> None:
    names = {*library.blocks(), *library.task_names(), *library.optimizer_names()}
    listed = [
        line for line in TEXT.splitlines() if line.startswith(("- Pointwise:", "- Positions:", "- To a", "- Maps:"))
    ]
    listed += [line for line in TEXT.splitlines() if line.startswith(("- Recurrences:", "- Tokens:", "- Some tasks:"))]
    assert len(listed) == 7
    values = {"position", "none", "rotary", "alibi", "xpos", "vec"}
    for line in listed:
        for name in re.findall(r"`([a-z_]+)(?:\[[^`]*\])?(?:\([^`]*\))?`", line):
            assert name in names | values, name
