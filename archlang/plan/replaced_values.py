"""Checks values of a recipe that no plan reads: those that `vary` replaces, and those that only a claim names."""

from collections.abc import Mapping

from archlang.diagnostics import Diagnostic
from archlang.elaborate.static_arguments import plain
from archlang.names.compared_symbols import listed_symbols
from archlang.names.mistakes import symbol_not_listed
from archlang.plan import mistakes
from archlang.plan.recipe import ResolvedRecipe
from archlang.plan.variations import VariedStatic
from archlang.syntax.tree import Call, Expression, Name
from archlang.types.statics import StaticValue


def check_replaced_values(
    recipe: ResolvedRecipe, varied: tuple[VariedStatic, ...], values: Mapping[str, tuple[StaticValue, ...]]
) -> None:
    """Reports symbols that the signature does not allow, where `vary` replaces them, and in claims about the model.
    Warns of a claim at a value that `vary` does not list. `values` are the known ones of each static."""
    lists = {static.path.text: static for static in varied}
    for word, choice in recipe.parts.choices.items():
        for argument in choice.value.statics if isinstance(choice.value, Call) else ():
            path = f"{word}.{argument.name}"
            if path in lists and (mistake := _symbol_not_listed(recipe, path, argument.value)) is not None:
                recipe.report(mistake)
    for claim in recipe.parts.claims:
        for setting in claim.at:
            path = setting.path.text
            mistake = _symbol_not_listed(recipe, path, setting.value)
            if mistake is not None and path.startswith("model."):
                recipe.report(mistake)
            elif mistake is None and path in lists:
                _check_is_varied(recipe, lists[path], values[path], setting.value)


def _symbol_not_listed(recipe: ResolvedRecipe, path: str, value: Expression) -> Diagnostic | None:
    """Returns the mistake of a symbol that a static cannot be; None for any other value."""
    word, _, name = path.partition(".")
    declaration = recipe.declarations.get(word)
    if declaration is None or not isinstance(value, Name):
        return None
    allowed = listed_symbols(declaration.item.signature).get(name)
    if allowed is None or value.text in allowed:
        return None
    return symbol_not_listed(value.span, value.text, name, declaration.name, allowed)


def _check_is_varied(
    recipe: ResolvedRecipe, static: VariedStatic, values: tuple[StaticValue, ...], value: Expression
) -> None:
    parameter = recipe.parameter(static.path.text)
    assert parameter is not None, "unknown paths are left out"
    claimed = plain(recipe.value(parameter, value))
    if claimed is not None and len(values) == len(static.values) and claimed not in values:
        recipe.report(mistakes.claim_at_other_value(value.span, static.path.text, static.path.span))
