"""The lines of a recipe by kind."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from archlang.diagnostics import Report
from archlang.plan import mistakes
from archlang.syntax.tree import AtTest, Choice, Claim, Recipe, Search, Setting, Sought, Variation, Vary

_EXAMPLES = {"task": "task ctl", "model": "model gut", "train": "train adamw[lr = 3e-4, steps = 1000]"}
_MODEL = re.compile(r"^model\s+(\w+)", re.MULTILINE)


@dataclass(frozen=True)
class RecipeParts:
    """The lines of a recipe. `choices` has the lines `task`, `model` and `train` by their first word. `is_whole` is
    False if the recipe has further lines: of an unknown base, or lines that could not be read."""

    recipe: Recipe
    choices: Mapping[str, Choice]
    at_test: tuple[Setting, ...]
    vary: tuple[Variation, ...]
    search: tuple[Sought, ...]
    claims: tuple[Claim, ...]
    is_whole: bool


def read_parts(recipe: Recipe, report: Report, is_whole: bool = True) -> RecipeParts:
    """Returns the lines of a recipe; reports repeated `task`, `model` and `train`, and missing ones if it is whole."""
    choices: dict[str, Choice] = {}
    repeated: set[str] = set()
    at_test: list[Setting] = []
    vary: list[Variation] = []
    search: list[Sought] = []
    claims: list[Claim] = []
    for part in recipe.parts:
        match part:
            case Choice(word=word):
                if word in choices:
                    report(mistakes.part_twice(part.span, word, choices[word].span))
                    repeated.add(word)
                choices.setdefault(word, part)
            case AtTest(settings=settings):
                at_test.extend(settings)
            case Vary(variations=variations):
                vary.extend(variations)
            case Search(sought=sought):
                search.extend(sought)
            case Claim():
                claims.append(part)
    is_whole &= recipe.is_whole
    for word, example in _EXAMPLES.items():
        if is_whole and word not in choices:
            line = _missing_line(recipe, word)
            report(mistakes.part_missing(recipe.name_span, recipe.name, word, example, recipe.span, line))
    # Which of two lines is meant is unknown, so neither is checked.
    choices = {word: choice for word, choice in choices.items() if word not in repeated}
    return RecipeParts(recipe, choices, tuple(at_test), tuple(vary), tuple(search), tuple(claims), is_whole)


def _missing_line(recipe: Recipe, word: str) -> str | None:
    """Returns the line that a recipe without one lacks; None if several are possible."""
    if word == "model":
        models = _MODEL.findall(recipe.span.source.text)
        return f"model {models[0]}" if len(models) == 1 else None
    return _EXAMPLES[word] if word == "train" else None
